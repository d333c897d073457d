"""JSON values by reference, compressed in Postgres."""

from __future__ import annotations

import hashlib
import zlib

from pipeline.errors import NotFound
from storage.rows import Repository


class PostgresBlobs(Repository):
    """Adapter of :class:`pipeline.ports.BlobStore`."""

    def put(self, value: bytes, *, owner: str) -> str:
        digest = hashlib.sha256(value).hexdigest()
        # The update locks the value, which keeps release() of another owner from taking it away meanwhile.
        self.change(
            "INSERT INTO blobs (tenant_id, digest, body, byte_size) VALUES (:tenant, :digest, :body, :size)"
            " ON CONFLICT (tenant_id, digest) DO UPDATE SET byte_size = excluded.byte_size",
            digest=digest,
            body=zlib.compress(value, 1),
            size=len(value),
        )
        self.change(
            "INSERT INTO blob_refs (tenant_id, owner, digest) VALUES (:tenant, :owner, :digest) ON CONFLICT DO NOTHING",
            owner=owner,
            digest=digest,
        )
        return digest

    def get(self, digest: str) -> bytes:
        row = self.row("SELECT body FROM blobs WHERE tenant_id = :tenant AND digest = :digest", digest=digest)
        if row is None:
            raise NotFound("no such value")
        return zlib.decompress(row["body"])

    def release(self, owner: str) -> int:
        # The values are locked first, in one order: only then do the links that other owners made or dropped
        # meanwhile show, so that no value goes that has one and none stays that has none.
        owned = self.rows(
            "SELECT b.digest FROM blobs b JOIN blob_refs r ON r.tenant_id = b.tenant_id AND r.digest = b.digest"
            " WHERE r.tenant_id = :tenant AND r.owner = :owner ORDER BY b.digest FOR UPDATE OF b",
            owner=owner,
        )
        self.change("DELETE FROM blob_refs WHERE tenant_id = :tenant AND owner = :owner", owner=owner)
        if not owned:
            return 0
        return self.change(
            "DELETE FROM blobs b WHERE b.tenant_id = :tenant AND b.digest = ANY(:digests) AND NOT EXISTS"
            " (SELECT FROM blob_refs r WHERE r.tenant_id = b.tenant_id AND r.digest = b.digest)",
            digests=[row["digest"] for row in owned],
        )
