"""Files in Microsoft's compound format: which program's they are, and whether a password protects them."""

from __future__ import annotations

from typing import BinaryIO

import olefile

from pipeline.engines import media
from pipeline.errors import Failure, FailureCode

MAGIC = olefile.MAGIC
# Streams that make a compound file what it is; looked for in this order.
_STREAMS = (
    ("WordDocument", media.DOC),
    ("Workbook", media.XLS),
    ("Book", media.XLS),
    ("PowerPoint Document", media.PPT),
    ("__properties_version1.0", media.MSG),
)
_PROTECTED = ("EncryptedPackage", "EncryptionInfo")
# What olefile raises on damage: its own kind of OSError, and the errors of reading past what is there.
_DAMAGE = (OSError, ValueError, IndexError, KeyError, TypeError, AttributeError)


def kind(content: BinaryIO) -> str | Failure | None:
    """The media type of a compound file; ``encrypted`` or ``malformed``; None for a kind that is not accepted."""
    content.seek(0)
    try:
        with olefile.OleFileIO(content) as compound:
            if any(compound.exists(name) for name in _PROTECTED):
                return Failure(FailureCode.ENCRYPTED, "The document can only be opened with a password.")
            return next((found for name, found in _STREAMS if compound.exists(name)), None)
    except _DAMAGE:
        return Failure(FailureCode.MALFORMED, "The file is a damaged office document.")


def refusal(content: BinaryIO) -> Failure | None:
    """Only the failure of :func:`kind`."""
    found = kind(content)
    return found if isinstance(found, Failure) else None
