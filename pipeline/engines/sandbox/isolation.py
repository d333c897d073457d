"""What keeps a child from everything but its document: which mechanism this machine has, and applying it."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import pipeline
from pipeline.engines.sandbox import bubblewrap, kernel, landlock, seccomp
from pipeline.engines.sandbox.jobs import Job
from pipeline.errors import ConfigurationError
from pipeline.types import Json

# What parsers, Tesseract, fonts and office programs read. Never all of /etc, /proc, /var or a home.
SYSTEM_DIRECTORIES = (
    "/usr",
    "/lib",
    "/lib32",
    "/lib64",
    "/bin",
    "/sbin",
    "/etc/alternatives",
    "/etc/fonts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/libreoffice",
    "/etc/localtime",
    "/etc/mime.types",
    "/var/cache/fontconfig",
)
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
# A directory of language data outside /usr is named by this variable.
TESSDATA_VARIABLE = "TESSDATA_PREFIX"


class Mechanism(StrEnum):
    """In order of preference. ``BUBBLEWRAP`` costs a fresh interpreter, and its imports, for each call."""

    LANDLOCK = "landlock"
    BUBBLEWRAP = "bubblewrap"


@dataclass(frozen=True, slots=True)
class Isolation:
    """How children are confined here; start-up logs it. ``version`` is the mechanism's own (Landlock's ABI)."""

    mechanism: Mechanism
    version: int
    network: bool
    filesystem: bool


def detect(wanted: Mechanism | None = None) -> Isolation:
    """The best mechanism of this machine, or the ``wanted`` one.

    Raises ConfigurationError when hostile input could not be confined.
    """
    if not seccomp.supported():
        raise ConfigurationError(
            f"the document sandbox has no system call filter for {kernel.machine()}; it runs on x86_64 and aarch64"
        )
    version = landlock.abi()
    if version > 0 and wanted in (None, Mechanism.LANDLOCK):
        return Isolation(Mechanism.LANDLOCK, version, network=True, filesystem=True)
    if wanted in (None, Mechanism.BUBBLEWRAP) and bubblewrap.works(readable_paths()):
        return Isolation(Mechanism.BUBBLEWRAP, 0, network=True, filesystem=True)
    raise ConfigurationError(
        "documents cannot be read safely here: use a kernel with Landlock (Linux 5.13 or later), or install bubblewrap"
        " and allow it to make user namespaces"
    )


def readable_paths() -> list[Path]:
    """What a child may read and execute: the system, the interpreter, and this project's own modules."""
    paths = [Path(name) for name in SYSTEM_DIRECTORIES]
    # Never the directory that holds the package: in a checkout that is where .env and the data directory are.
    paths += [Path(sys.prefix), Path(sys.base_prefix), Path(pipeline.__file__).parent]
    # A user's own site directory lies outside both prefixes.
    paths += [path for path in map(Path, sys.path) if path.name in ("site-packages", "dist-packages")]
    if tessdata := os.environ.get(TESSDATA_VARIABLE):
        paths.append(Path(tessdata))
    return paths + [path.resolve() for path in paths if path.resolve() != path]


def refuse_exposed(private: Path) -> None:
    """Raise ConfigurationError when ``private`` lies where children may read."""
    resolved = private.resolve()
    for readable in readable_paths():
        if resolved.is_relative_to(readable.resolve()):
            raise ConfigurationError(
                f"the data directory may not lie inside {readable}, which sandboxed parsers may read; choose another"
            )


def confine(how: Isolation, job: Job, arguments: dict[str, Json], scratch: Path) -> None:
    """Confine this process for good; only ``scratch`` stays writable. Raises OSError.

    Under Landlock it returns; bubblewrap replaces this program by one that does the job.
    """
    if how.mechanism is Mechanism.BUBBLEWRAP:
        bubblewrap.enter(job, arguments, readable_paths(), scratch)
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    if os.geteuid() == 0:
        kernel.drop_capabilities()
    landlock.restrict(how.version, readable_paths(), [scratch], [Path(name) for name in DEVICES])
    seccomp.restrict(programs=job.programs, signals=how.version >= landlock.ABI_SCOPE)
