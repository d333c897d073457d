"""The closed registry of what a sandbox child may be asked to do.

A job is a function ``(content: BinaryIO, arguments: dict[str, Json]) -> bytes``. ``content`` is the input
document, open for reading and seekable; the returned bytes are JSON that the caller validates. A
document problem is returned (as a serialised ``Failure``), never raised: an exception that leaves a
job is a crash.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Job:
    """One job: ``target`` is ``module:function``; its module is imported before the fork.

    ``preload`` names further modules that the function imports late and that are worth importing once in
    the server. ``rehearsal`` is a ``module:function`` without arguments that the server calls once after the
    import, on bytes of our own; it must leave no thread behind, for a fork takes none along. ``programs`` is
    whether the job may start other programs; without it ``fork`` and ``execve`` are denied.
    """

    target: str
    preload: tuple[str, ...] = ()
    rehearsal: str | None = None
    programs: bool = False

    @property
    def module(self) -> str:
        return self.target.partition(":")[0]

    @property
    def function(self) -> str:
        return self.target.partition(":")[2]


CHECK = "sandbox.check"

JOBS: MappingProxyType[str, Job] = MappingProxyType(
    {
        CHECK: Job("pipeline.engines.sandbox.check:confinement"),
        "file.inspect": Job("pipeline.engines.verdict:job", rehearsal="pipeline.engines.rehearsal:inspector"),
        "pdf.profile": Job("pipeline.engines.pdf.jobs:profile"),
        "pdf.read": Job("pipeline.engines.pdf.jobs:read", rehearsal="pipeline.engines.rehearsal:pdf_reader"),
        "pdf.tables": Job("pipeline.engines.pdf.tables:tables"),
        "document.profile": Job("pipeline.engines.documents.jobs:profile"),
        "document.read": Job("pipeline.engines.documents.jobs:read", rehearsal="pipeline.engines.rehearsal:readers"),
        "ocr.recognize": Job("pipeline.engines.ocr.jobs:recognize", programs=True),
    }
)
