"""The system calls a child may not make, as a classic BPF filter (seccomp(2)).

A deny list, because parsers are large and what they may open is Landlock's matter. It takes away the network
and local sockets, other processes, namespaces and mounts, and changing files by path.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct
from dataclasses import dataclass

from pipeline.engines.sandbox import kernel, syscalls

_MODE_FILTER = 2
_ALLOW, _KILL_PROCESS, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_DENY = _ERRNO | errno.EPERM
_NOT_IMPLEMENTED = _ERRNO | errno.ENOSYS

_LOAD_WORD, _AND, _RETURN = 0x20, 0x54, 0x06
_JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY_BIT = 0x15, 0x35, 0x45
_OFFSET_NUMBER, _OFFSET_ARCHITECTURE, _OFFSET_ARGUMENTS = 0, 4, 16
_INSTRUCTION = struct.Struct("=HBBI")

_X32_BIT = 0x40000000
_CLONE_THREAD = 0x00010000
# CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
_CLONE_NAMESPACES = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
_SOCKET_TYPE_MASK = 0xF

Block = list[tuple[int, int, int, int]]


@dataclass(frozen=True, slots=True)
class _Machine:
    audit_architecture: int
    column: int


_MACHINES = {"x86_64": _Machine(0xC000003E, 0), "aarch64": _Machine(0xC00000B7, 1)}


def supported() -> bool:
    """Whether the filter is written for this machine."""
    return kernel.machine() in _MACHINES


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def restrict(*, programs: bool, signals: bool) -> None:
    """Install the filter for this thread and all it starts. Needs no_new_privs. Raises OSError.

    ``programs`` is whether other programs may be started, ``signals`` whether signals need no guard here.
    """
    code = compile_filter(kernel.machine(), programs=programs, signals=signals, own_pid=os.getpid())
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // _INSTRUCTION.size, ctypes.addressof(buffer))
    kernel.prctl_pointer(kernel.PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program))


def compile_filter(machine: str, *, programs: bool, signals: bool, own_pid: int) -> bytes:
    """The filter's instructions. A rule is a block that is skipped whole, or ends the program."""
    target = _MACHINES[machine]
    column = target.column
    code: Block = [
        (_LOAD_WORD, 0, 0, _OFFSET_ARCHITECTURE),
        (_JUMP_EQUAL, 1, 0, target.audit_architecture),
        (_RETURN, 0, 0, _KILL_PROCESS),
        (_LOAD_WORD, 0, 0, _OFFSET_NUMBER),
    ]
    if machine == "x86_64":
        code += [(_JUMP_AT_LEAST, 0, 1, _X32_BIT), (_RETURN, 0, 0, _KILL_PROCESS)]
    code += [(_JUMP_AT_LEAST, 0, 1, syscalls.UNKNOWN_FROM), (_RETURN, 0, 0, _NOT_IMPLEMENTED)]
    denied = list(syscalls.DENIED.values())
    if not programs:
        denied += syscalls.PROGRAMS.values()
    if not signals:
        denied += syscalls.SIGNALS.values()
        code += _rule(syscalls.TGKILL[column], _only_equal(0, own_pid))
    for numbers in denied:
        code += _rule(numbers[column], [(_RETURN, 0, 0, _DENY)])
    # clone3 hides its flags behind a pointer; told it is missing, libraries fall back to clone.
    code += _rule(syscalls.CLONE3[column], [(_RETURN, 0, 0, _NOT_IMPLEMENTED)])
    code += _rule(syscalls.CLONE[column], _clone(programs=programs))
    # Another process's limits are no business of a child's; 0 is itself.
    code += _rule(syscalls.PRLIMIT[column], _only_equal(0, 0))
    # A datagram pair could still be sent to a socket in the file system.
    code += _rule(syscalls.SOCKETPAIR[column], _only_equal(1, socket.SOCK_STREAM, mask=_SOCKET_TYPE_MASK))
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(_INSTRUCTION.pack(*instruction) for instruction in code)


def _rule(number: int | None, block: Block) -> Block:
    if number is None:
        return []
    return [(_JUMP_EQUAL, 0, len(block), number), *block]


def _only_equal(argument: int, value: int, mask: int = 0xFFFFFFFF) -> Block:
    return [
        (_LOAD_WORD, 0, 0, _OFFSET_ARGUMENTS + 8 * argument),
        (_AND, 0, 0, mask),
        (_JUMP_EQUAL, 0, 1, value),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _DENY),
    ]


def _clone(*, programs: bool) -> Block:
    block: Block = [
        (_LOAD_WORD, 0, 0, _OFFSET_ARGUMENTS),
        (_JUMP_ANY_BIT, 0, 1, _CLONE_NAMESPACES),
        (_RETURN, 0, 0, _DENY),
    ]
    if not programs:
        block += [(_JUMP_ANY_BIT, 1, 0, _CLONE_THREAD), (_RETURN, 0, 0, _DENY)]
    block.append((_RETURN, 0, 0, _ALLOW))
    return block
