"""One data directory: where everything of an embedded stack lives, and its generated secrets."""

from __future__ import annotations

import os
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import ConfigurationError

PRIVATE_DIRECTORY = 0o700
PRIVATE_FILE = 0o600
PASSABLE_DIRECTORY = 0o711
MINIMUM_FREE_BYTES = 1024**3
_SECRET_BYTES = 24


def default_data_directory() -> Path:
    """``$DOCMILL_DATA``, else ``~/.local/share/docmill``."""
    chosen = os.environ.get("DOCMILL_DATA")
    return Path(chosen) if chosen else Path.home() / ".local" / "share" / "docmill"


@dataclass(frozen=True, slots=True)
class Layout:
    """Paths below one data directory; nothing outside it is written."""

    root: Path

    @property
    def postgres(self) -> Path:
        return self.root / "pg"

    @property
    def postgres_binaries(self) -> Path:
        return self.root / "pg-binaries"

    @property
    def redis(self) -> Path:
        return self.root / "redis"

    @property
    def s3(self) -> Path:
        return self.root / "s3"

    @property
    def run(self) -> Path:
        return self.root / "run"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def work(self) -> Path:
        return self.root / "work"

    @property
    def secrets(self) -> Path:
        return self.root / "secrets"

    @property
    def ports(self) -> Path:
        return self.root / "ports.json"

    @property
    def token(self) -> Path:
        return self.root / "token"

    @property
    def state(self) -> Path:
        return self.root / "stack.json"

    @property
    def lock(self) -> Path:
        return self.root / "lock"

    def prepare(self) -> None:
        """Make the directory and its parts; an existing directory keeps its permissions.

        Raises :class:`~pipeline.errors.ConfigurationError` when it cannot be written or the disk is nearly full.
        """
        try:
            # As root the database's account passes through to its own part; every other part is private by itself.
            mode = PASSABLE_DIRECTORY if os.geteuid() == 0 else PRIVATE_DIRECTORY
            self.root.mkdir(parents=True, exist_ok=True, mode=mode)
            for part in (self.redis, self.s3, self.run, self.logs, self.work, self.secrets):
                part.mkdir(exist_ok=True, mode=PRIVATE_DIRECTORY)
        except OSError as problem:
            raise ConfigurationError(
                f"cannot write to {self.root}: {problem.strerror}; choose another --data"
            ) from problem
        free = shutil.disk_usage(self.root).free
        if free < MINIMUM_FREE_BYTES:
            raise ConfigurationError(
                f"only {free // 1024**2} MiB are free below {self.root}, {MINIMUM_FREE_BYTES // 1024**2} are needed; "
                "free some space or choose another --data"
            )

    def secret(self, name: str) -> str:
        """The generated secret called ``name``: URL-safe text, made on first use, the same ever after."""
        path = self.secrets / name
        if not path.exists():
            write_private(path, secrets.token_urlsafe(_SECRET_BYTES))
        return path.read_text()


def write_private(path: Path, text: str) -> None:
    """Replace ``path`` in one step by a file only its owner can read."""
    draft = path.with_name(path.name + ".new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, PRIVATE_FILE)
    with os.fdopen(descriptor, "w") as target:
        target.write(text)
    draft.replace(path)
