"""The file inspector as the core sees it: the judging itself (:mod:`pipeline.engines.verdict`) runs in the sandbox."""

from __future__ import annotations

from pathlib import Path

from pydantic import TypeAdapter

from pipeline.engines.asking import Asker
from pipeline.errors import Failure

JOB = "file.inspect"
_MEDIA_TYPE = TypeAdapter(str)


class SandboxedInspector:
    """:class:`~pipeline.ports.FileInspector` whose reading happens in a sandbox child."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker

    def sniff(self, content: Path, declared: str, filename: str) -> str | Failure:
        """The accepted media type, or why the file is refused. Raises ``TransientError('sandbox', …)``."""
        return self._asker.ask(JOB, content, {"declared": declared, "filename": filename}, _MEDIA_TYPE)
