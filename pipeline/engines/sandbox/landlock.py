"""The file system a child sees, by Landlock (Linux 5.13 and later; documented in landlock(7)).

A ruleset denies whatever it handles and no rule allows. What an older kernel does not know is left out
of the mask; the ABI number says what is known.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from pathlib import Path

from pipeline.engines.sandbox import kernel

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REMOVE_DIR, REMOVE_FILE = 1 << 4, 1 << 5
MAKE_CHAR, MAKE_DIR, MAKE_REG, MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK, MAKE_SYM = (1 << bit for bit in range(6, 13))
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15

READ = EXECUTE | READ_FILE | READ_DIR
WRITE = READ_FILE | READ_DIR | WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_SYM | REFER | TRUNCATE
DEVICE = READ_FILE | WRITE_FILE
_ON_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV

_NET_BIND_TCP, _NET_CONNECT_TCP = 1 << 0, 1 << 1
_SCOPE_ABSTRACT_UNIX_SOCKET, _SCOPE_SIGNAL = 1 << 0, 1 << 1

ABI_REFER, ABI_TRUNCATE, ABI_NETWORK, ABI_IOCTL, ABI_SCOPE = 2, 3, 4, 5, 6


class _RulesetAttributes(ctypes.Structure):
    _fields_ = (
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def abi() -> int:
    """The kernel's Landlock version, 0 when it has none or it is switched off."""
    try:
        return kernel.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_CREATE_RULESET_VERSION))
    except OSError:
        return 0


def restrict(version: int, readable: Iterable[Path], writable: Iterable[Path], devices: Iterable[Path]) -> None:
    """Deny this thread and all it starts every path but these. Needs no_new_privs. Raises OSError.

    ``readable`` may be read and executed, ``writable`` read and written (never executed), ``devices`` read and
    written; paths that do not exist are passed over. ``version`` is :func:`abi` or less.
    """
    handled = _known(version)
    attributes = _RulesetAttributes(
        handled,
        _NET_BIND_TCP | _NET_CONNECT_TCP if version >= ABI_NETWORK else 0,
        _SCOPE_ABSTRACT_UNIX_SOCKET | _SCOPE_SIGNAL if version >= ABI_SCOPE else 0,
    )
    size = ctypes.sizeof(attributes) if version >= ABI_SCOPE else 16 if version >= ABI_NETWORK else 8
    ruleset = kernel.syscall(_CREATE_RULESET, ctypes.byref(attributes), ctypes.c_size_t(size), ctypes.c_uint32(0))
    try:
        for access, paths in ((READ, readable), (WRITE, writable), (DEVICE, devices)):
            for path in paths:
                _allow(ruleset, path, access & handled)
        kernel.syscall(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)


def _known(version: int) -> int:
    handled = REFER - 1
    if version >= ABI_REFER:
        handled |= REFER
    if version >= ABI_TRUNCATE:
        handled |= TRUNCATE
    if version >= ABI_IOCTL:
        handled |= IOCTL_DEV
    return handled


def _allow(ruleset: int, path: Path, access: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError):
        return  # what this user may not reach needs no rule
    try:
        if not path.is_dir():
            access &= _ON_FILES
        rule = _PathBeneath(access, descriptor)
        kernel.syscall(
            _ADD_RULE,
            ctypes.c_int(ruleset),
            ctypes.c_int(_RULE_PATH_BENEATH),
            ctypes.byref(rule),
            ctypes.c_uint32(0),
        )
    finally:
        os.close(descriptor)
