"""How a command ends."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes that scripts may rely on."""

    DONE = 0
    ERROR = 1
    USAGE = 2
    SOME_FAILED = 3
    NOTHING_FOUND = 4
    NOT_REACHABLE = 5
    INTERRUPTED = 130


class CommandError(Exception):
    """One line that says what happened and what to do, and the code to end with."""

    def __init__(self, message: str, code: Exit = Exit.ERROR) -> None:
        super().__init__(message)
        self.code = code
