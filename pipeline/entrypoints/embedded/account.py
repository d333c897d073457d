"""Who runs Postgres. It refuses to run as root, so as root it gets an account that owns its data and nothing else.

That account must reach the data and the programs without any permission on the way being widened. Where a directory
on the way is closed to it (``/root``, a private temporary directory), the server starts in a mount namespace of its
own, in which an empty directory covers the closed one and holds only what the server needs.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import shutil
import stat
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import ConfigurationError

ACCOUNT = "docmill-pg"
_CLONE_NEWNS = 0x00020000
_MS_NOSUID, _MS_NODEV, _MS_BIND, _MS_REC, _MS_PRIVATE = 2, 4, 4096, 16384, 1 << 18
_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Identity:
    """User and group that Postgres runs as."""

    uid: int
    gid: int

    @property
    def is_ours(self) -> bool:
        return self.uid == os.geteuid()


def postgres_identity() -> Identity:
    """Ourselves, or as root the dedicated account, made when it is missing.

    Raises :class:`~pipeline.errors.ConfigurationError` when it cannot be made.
    """
    if os.geteuid() != 0:
        return Identity(os.geteuid(), os.getegid())
    try:
        entry = pwd.getpwnam(ACCOUNT)
    except KeyError:
        _create_account()
        entry = pwd.getpwnam(ACCOUNT)
    return Identity(entry.pw_uid, entry.pw_gid)


def _create_account() -> None:
    useradd = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin:/bin")
    command = [
        useradd or "useradd", "--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent",
        "--shell", "/usr/sbin/nologin", ACCOUNT,
    ]  # fmt: skip
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as problem:
        raise ConfigurationError(
            f"Postgres does not run as root and the account {ACCOUNT} could not be made; "
            "make it with useradd --system, or run docmill as an ordinary user"
        ) from problem


def closed_directories(paths: Sequence[Path], identity: Identity) -> tuple[Path, ...]:
    """The topmost directories on the way to ``paths`` that ``identity`` may not pass through."""
    closed: list[Path] = []
    for path in paths:
        for ancestor in reversed(path.resolve().parents):
            if not _may_pass(ancestor, identity):
                if ancestor not in closed:
                    closed.append(ancestor)
                break
    return tuple(closed)


def _may_pass(directory: Path, identity: Identity) -> bool:
    status = directory.stat()
    if status.st_uid == identity.uid:
        return bool(status.st_mode & stat.S_IXUSR)
    if status.st_gid == identity.gid:
        return bool(status.st_mode & stat.S_IXGRP)
    return bool(status.st_mode & stat.S_IXOTH)


def can_cover() -> bool:
    """Whether this process may give a child a mount namespace of its own (a container often may not)."""
    child = os.fork()
    if child == 0:
        os._exit(0 if _LIBC.unshare(_CLONE_NEWNS) == 0 else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@dataclass(frozen=True, slots=True)
class Enter:
    """Becomes ``identity`` in a child before its program starts.

    ``covered`` are closed directories, each replaced (for this process alone) by an empty one that holds what of
    ``visible`` lies below it. ``own_directory`` is made by the account itself.
    """

    identity: Identity
    covered: tuple[Path, ...] = ()
    visible: tuple[Path, ...] = ()
    own_directory: Path | None = None

    def __call__(self) -> None:
        if self.covered:
            self._cover()
        if not self.identity.is_ours:
            os.setgroups([])
            os.setgid(self.identity.gid)
            os.setuid(self.identity.uid)
        os.umask(0o077)
        if self.own_directory is not None and not self.own_directory.exists():
            self.own_directory.mkdir(mode=0o700)

    def _cover(self) -> None:
        _check(_LIBC.unshare(_CLONE_NEWNS), "unshare")
        _mount("none", "/", "", _MS_REC | _MS_PRIVATE)
        for closed in self.covered:
            below = [path.resolve() for path in self.visible if path.resolve().is_relative_to(closed)]
            held = [os.open(path, os.O_PATH | os.O_DIRECTORY) for path in below]
            _mount("tmpfs", str(closed), "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=0755,size=1m")
            for path, descriptor in zip(below, held, strict=True):
                path.mkdir(parents=True)
                _mount(f"/proc/self/fd/{descriptor}", str(path), "", _MS_BIND | _MS_REC)
                os.close(descriptor)


def _mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    _check(
        _LIBC.mount(
            source.encode(), target.encode(), kind.encode() or None, ctypes.c_ulong(flags), options.encode() or None
        ),
        "mount",
    )


def _check(answer: int, call: str) -> None:
    if answer != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
