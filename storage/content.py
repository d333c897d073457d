"""The bytes of files in any S3 store (SeaweedFS, MinIO, AWS), by the minio SDK."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast
from xml.etree.ElementTree import ParseError

import minio
import minio.error
import urllib3

from pipeline.errors import ConfigurationError, NotFound, TransientError
from pipeline.ports import StoredContent

_CONNECT_TIMEOUT_S = 5.0
_READ_TIMEOUT_S = 30.0
_PIECE_BYTES = 256 * 1024
# Written at put and compared at every read, so that a store which cuts an object consistently is caught too.
_SIZE_METADATA = "byte-size"
_MISSING = frozenset({"NoSuchKey", "NoSuchObject"})
_BUCKET_IS_THERE = frozenset({"BucketAlreadyOwnedByYou", "BucketAlreadyExists"})


class S3ContentStore:
    """A :class:`~pipeline.ports.FileContentStore` over one bucket.

    It holds a connection pool, so each process builds its own, after any fork.
    """

    def __init__(
        self,
        endpoint: str,
        access_key: str,
        secret_key: str,
        bucket: str,
        *,
        region: str = "us-east-1",
        secure: bool = True,
    ) -> None:
        """``endpoint`` is ``HOST:PORT``; nothing is connected yet.

        Raises :class:`~pipeline.errors.ConfigurationError` for an endpoint of another form.
        """
        if not endpoint or "/" in endpoint:
            raise ConfigurationError(
                "DOCMILL_S3_ENDPOINT expects HOST:PORT without a scheme or path; DOCMILL_S3_SECURE chooses https"
            )
        pool = urllib3.PoolManager(
            timeout=urllib3.Timeout(connect=_CONNECT_TIMEOUT_S, read=_READ_TIMEOUT_S),
            # One more try for a connection the store closed while it lay idle; more is the ledger's business.
            retries=urllib3.Retry(total=1, connect=1, read=1, redirect=0, status=0, other=0),
            maxsize=8,
        )
        self._client = minio.Minio(
            endpoint, access_key=access_key, secret_key=secret_key, region=region, secure=secure, http_client=pool
        )
        self._bucket = bucket

    def ensure_bucket(self) -> None:
        """Make the bucket when it is missing. Raises ``TransientError('s3', …)``."""
        with _translated("look for the bucket"):
            if self._client.bucket_exists(self._bucket):
                return
            try:
                self._client.make_bucket(self._bucket)
            except minio.error.S3Error as refusal:
                if refusal.code not in _BUCKET_IS_THERE:
                    raise

    def check(self) -> None:
        """Raises ``TransientError('s3', …)`` when the store or its bucket is not there."""
        with _translated("look for the bucket"):
            found = self._client.bucket_exists(self._bucket)
        if not found:
            raise TransientError("s3", "the bucket is missing")

    def put(self, key: str, content: BinaryIO, byte_size: int, media_type: str) -> None:
        """Store exactly ``byte_size`` bytes; the SDK sends their digest along, and the store checks it.

        Raises ``ValueError`` when ``content`` ends early, ``TransientError('s3', …)`` otherwise.
        """
        counted = _Counted(content, byte_size)
        with _translated("store an object"):
            try:
                self._client.put_object(
                    self._bucket, key, cast("BinaryIO", counted), byte_size,
                    content_type=media_type, metadata={_SIZE_METADATA: str(byte_size)}, num_parallel_uploads=1,
                )  # fmt: skip
            except OSError:
                if counted.ended_early:
                    raise ValueError(f"content ended after {counted.given} of {byte_size} bytes") from None
                raise

    def fetch(self, key: str, target: Path) -> None:
        try:
            with target.open("wb") as file:
                for piece in self.read(key):
                    file.write(piece)
        except (TransientError, NotFound, OSError):
            target.unlink(missing_ok=True)
            raise

    def read(self, key: str, offset: int = 0, length: int | None = None) -> Iterator[bytes]:
        """Stream from byte ``offset``, at most ``length`` bytes; a range past the end holds nothing.

        Raises :class:`~pipeline.errors.NotFound` at once, and ``TransientError('s3', …)`` also while it is read.
        """
        if length == 0:
            if self.stat(key) is None:
                raise NotFound("no such object")
            return iter(())
        with _translated("read an object"):
            try:
                response = self._client.get_object(self._bucket, key, offset=offset, length=length or 0)
            except minio.error.S3Error as refusal:
                if refusal.code == "InvalidRange":
                    return iter(())
                raise
        return _pieces(response, offset, length)

    def stat(self, key: str) -> StoredContent | None:
        try:
            with _translated("look up an object"):
                found = self._client.stat_object(self._bucket, key)
        except NotFound:
            return None
        return StoredContent(key=key, byte_size=found.size or 0)

    def delete(self, key: str) -> None:
        try:
            with _translated("delete an object"):
                self._client.remove_object(self._bucket, key)
        except NotFound:
            return

    def keys(self, prefix: str) -> Iterator[str]:
        with _translated("list objects"):
            for found in self._client.list_objects(self._bucket, prefix=prefix, recursive=True):
                if not found.is_dir:
                    yield str(found.object_name)


class _Counted(io.RawIOBase):
    """Reads at most ``limit`` bytes of a stream and knows whether it ended before."""

    def __init__(self, content: BinaryIO, limit: int) -> None:
        super().__init__()
        self._content = content
        self._limit = limit
        self.given = 0
        self.ended_early = False

    def read(self, size: int = -1) -> bytes:
        left = self._limit - self.given
        piece = self._content.read(left if size < 0 else min(size, left))
        self.given += len(piece)
        self.ended_early = not piece and self.given < self._limit
        return piece


def _pieces(response: urllib3.BaseHTTPResponse, offset: int, length: int | None) -> Iterator[bytes]:
    received = 0
    try:
        with _translated("read an object"):
            for piece in response.stream(_PIECE_BYTES, decode_content=False):
                received += len(piece)
                yield piece
            expected = _expected_bytes(response, offset, length)
            if expected is not None and received != expected:
                raise TransientError("s3", f"an object ended after {received} of {expected} bytes")
        response.release_conn()
    finally:
        # A body that was not read to its end must not go back into the pool.
        response.close()


def _expected_bytes(response: urllib3.BaseHTTPResponse, offset: int, length: int | None) -> int | None:
    """What the object's own metadata says this range holds; None for an object somebody else stored."""
    declared = response.headers.get(f"x-amz-meta-{_SIZE_METADATA}")
    if declared is None or not declared.isdigit():
        return None
    rest = max(int(declared) - offset, 0)
    return rest if length is None else min(rest, length)


@contextlib.contextmanager
def _translated(action: str) -> Iterator[None]:
    """The SDK's and urllib3's errors in our own words; the cause stays chained."""
    try:
        yield
    except minio.error.S3Error as refusal:
        if refusal.code in _MISSING:
            raise NotFound("no such object") from refusal
        raise TransientError("s3", f"the store refused to {action} ({refusal.code})") from refusal
    except (minio.error.MinioException, urllib3.exceptions.HTTPError, ParseError) as trouble:
        raise TransientError("s3", f"the store could not {action}") from trouble
