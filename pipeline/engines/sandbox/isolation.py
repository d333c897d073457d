"""What keeps a child from everything but its document: which mechanism this machine has, and applying it."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import pipeline
from pipeline.engines.sandbox import kernel, landlock, seccomp
from pipeline.errors import ConfigurationError

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
    LANDLOCK = "landlock"


@dataclass(frozen=True, slots=True)
class Isolation:
    """How children are confined here; start-up logs it. ``version`` is the mechanism's own (Landlock's ABI)."""

    mechanism: Mechanism
    version: int
    network: bool
    filesystem: bool


def detect() -> Isolation:
    """The mechanism this machine offers. Raises ConfigurationError when hostile input could not be confined."""
    if not seccomp.supported():
        raise ConfigurationError(
            f"the document sandbox has no system call filter for {kernel.machine()}; it runs on x86_64 and aarch64"
        )
    version = landlock.abi()
    if version > 0:
        return Isolation(Mechanism.LANDLOCK, version, network=True, filesystem=True)
    raise ConfigurationError(
        "documents cannot be read safely here: the kernel has no Landlock; use Linux 5.13 or later with it enabled"
    )


def readable_paths() -> tuple[Path, ...]:
    """What a child may read and execute: the system, the interpreter, and this project's own modules."""
    paths = [Path(name) for name in SYSTEM_DIRECTORIES]
    # Never the directory that holds the package: in a checkout that is where .env and the data directory are.
    paths += [Path(sys.prefix), Path(sys.base_prefix), Path(pipeline.__file__).parent]
    # A user's own site directory lies outside both prefixes.
    paths += [path for path in map(Path, sys.path) if path.name in ("site-packages", "dist-packages")]
    if tessdata := os.environ.get(TESSDATA_VARIABLE):
        paths.append(Path(tessdata))
    return tuple(path.resolve() for path in paths)


def refuse_exposed(private: Path) -> None:
    """Raise ConfigurationError when ``private`` lies where children may read."""
    resolved = private.resolve()
    for readable in readable_paths():
        if resolved.is_relative_to(readable):
            raise ConfigurationError(
                f"the data directory may not lie inside {readable}, which sandboxed parsers may read; choose another"
            )


def confine(isolation: Isolation, scratch: Path, *, programs: bool) -> None:
    """Confine this process for good; only ``scratch`` stays writable. Raises OSError."""
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    if os.geteuid() == 0:
        kernel.drop_capabilities()
    landlock.restrict(isolation.version, readable_paths(), [scratch], [Path(name) for name in DEVICES])
    seccomp.restrict(programs=programs, signals=isolation.version >= landlock.ABI_SCOPE)
