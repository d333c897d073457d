"""The three families of error.

*Transient* trouble is an exception and is retried. A *rejected* document is a value
(:class:`Failure`), because the chain of a document that cannot be read still completes.
Everything else is a bug and propagates.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FailureCode(StrEnum):
    """Why a document was not ingested. The set is closed: a user acts on each differently."""

    UNSUPPORTED_TYPE = "unsupported-type"
    SKIPPED = "skipped"
    TOO_LARGE = "too-large"
    TOO_MANY_PAGES = "too-many-pages"
    TIMED_OUT = "timed-out"
    ENCRYPTED = "encrypted"
    NO_TEXT_LAYER = "no-text-layer"
    NO_VISION = "no-vision"
    MALFORMED = "malformed"
    CRASHED = "crashed"
    MALWARE = "malware"
    FETCH_FAILED = "fetch-failed"
    URL_REFUSED = "url-refused"
    EMPTY = "empty"
    VALIDATION_FAILED = "validation-failed"
    CANCELLED = "cancelled"


REMEDIES: dict[FailureCode, str] = {
    FailureCode.UNSUPPORTED_TYPE: "Convert it to a supported type, for example PDF, DOCX, HTML, Markdown, CSV or PNG.",
    FailureCode.SKIPPED: "None needed.",
    FailureCode.TOO_LARGE: "Split the document, or attach the part that matters.",
    FailureCode.TOO_MANY_PAGES: "Split the document.",
    FailureCode.TIMED_OUT: "Retry, or simplify the document.",
    FailureCode.ENCRYPTED: "Remove the password protection.",
    FailureCode.NO_TEXT_LAYER: "Run OCR, or provide a better scan.",
    FailureCode.NO_VISION: "Configure VISION_MODEL, or provide an image with readable text.",
    FailureCode.MALFORMED: "Re-export the document.",
    FailureCode.CRASHED: "Report it. The original is kept.",
    FailureCode.MALWARE: "The file is quarantined. Upload a clean copy.",
    FailureCode.FETCH_FAILED: "Check the address.",
    FailureCode.URL_REFUSED: "Check the address.",
    FailureCode.EMPTY: "None needed.",
    FailureCode.VALIDATION_FAILED: "Retry, and report it if it happens again.",
    FailureCode.CANCELLED: "Ingest it again.",
}

RETRYABLE = frozenset(
    {
        FailureCode.TIMED_OUT,
        FailureCode.CRASHED,
        FailureCode.FETCH_FAILED,
        FailureCode.VALIDATION_FAILED,
        FailureCode.CANCELLED,
    }
)


@dataclass(frozen=True, slots=True)
class Failure:
    """A document problem: a closed code and one sentence of detail fit for a user's eyes.

    ``died`` says that a sandbox child died of this document rather than refused it: the ledger counts
    such deaths and tries once more before the code is final.
    """

    code: FailureCode
    detail: str
    died: bool = False

    @property
    def remedy(self) -> str:
        return REMEDIES[self.code]

    @property
    def retryable(self) -> bool:
        return self.code in RETRYABLE


class DocmillError(Exception):
    """Root of every error this project raises on purpose."""


class TransientError(DocmillError):
    """Infrastructure trouble; the same call may succeed later.

    ``dependency`` names what was waited for (``s3``, ``postgres``, ``broker``, ``embedder``).
    """

    def __init__(self, dependency: str, detail: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(f"{dependency}: {detail}")
        self.dependency = dependency
        self.detail = detail
        self.retry_after_s = retry_after_s


class LeaseLost(DocmillError):
    """Another worker holds this stage now; nothing of this attempt may be written."""


class SourceGone(DocmillError):
    """The source was removed, cancelled or superseded while a stage ran; nothing may be written."""


class OriginalMissing(SourceGone):
    """The store no longer has the original's bytes: the source is being removed, or its object was lost."""


class StaleEmbeddingSet(DocmillError):
    """The tenant's active embedding set changed while a query was embedded; embed it anew and search again."""


class ConfigurationError(DocmillError):
    """A setting is wrong or a dependency cannot be reached; the start stops with this one line."""


class RequestError(DocmillError):
    """A caller's request that cannot be honoured; ``code`` is the problem document's code."""

    code = "invalid"


class NotFound(RequestError):
    """Not found. Also the answer when the caller is not entitled: the two are not told apart."""

    code = "not_found"


class Conflict(RequestError):
    """The thing is in a state that does not allow the request."""

    code = "conflict"


class Invalid(RequestError):
    """The request is malformed."""

    code = "invalid"


class Unauthenticated(RequestError):
    """The bearer token is missing, expired or not signed by an accepted key."""

    code = "unauthenticated"


class TooLarge(RequestError):
    """The upload is larger than the limit; both numbers are named."""

    code = "too_large"


class UnsupportedType(RequestError):
    """The media type is not on the exact list, or the content is not what it claims to be."""

    code = "unsupported_type"
