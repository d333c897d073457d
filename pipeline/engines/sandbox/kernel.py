"""The few kernel calls the standard library does not wrap, through ``ctypes``."""

from __future__ import annotations

import ctypes
import os
import platform

PR_SET_PDEATHSIG = 1
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4

CAPABILITY_VERSION_3 = 0x20080522
# Capability numbers beyond the last one are refused by the kernel; 64 is all the ABI can name.
CAPABILITIES = 64

_libc = ctypes.CDLL(None, use_errno=True)


class CapabilityHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class CapabilityData(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def machine() -> str:
    """``x86_64``, ``aarch64`` or another name the kernel gives."""
    return platform.machine()


def syscall(number: int, *arguments: object) -> int:
    """A raw system call. Raises OSError."""
    return _checked(_libc.syscall(ctypes.c_long(number), *arguments))


def prctl(option: int, *values: int) -> int:
    """``prctl`` with up to four integer arguments. Raises OSError."""
    padded = [*values, *([0] * (4 - len(values)))]
    return _checked(_libc.prctl(option, *(ctypes.c_ulong(value) for value in padded)))


def prctl_pointer(option: int, value: int, pointer: object) -> int:
    """``prctl`` whose third argument is an address. Raises OSError."""
    return _checked(_libc.prctl(option, ctypes.c_ulong(value), pointer, ctypes.c_ulong(0), ctypes.c_ulong(0)))


def drop_capabilities() -> None:
    """Give up every capability for good: bounding set, ambient set, and what this thread holds now."""
    for capability in range(CAPABILITIES):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:  # EINVAL past the last one; EPERM without privilege, when there is nothing to drop
            break
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    header = CapabilityHeader(CAPABILITY_VERSION_3, 0)
    nothing = (CapabilityData * 2)()
    _checked(_libc.capset(ctypes.byref(header), ctypes.byref(nothing)))


def _checked(result: int) -> int:
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
