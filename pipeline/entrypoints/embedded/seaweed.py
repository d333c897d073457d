"""SeaweedFS: master, volume, filer and S3 in one process, everything on the loopback address."""

from __future__ import annotations

import io
import json
import os
import signal
import uuid
from pathlib import Path

from pipeline.entrypoints.embedded import binaries, network
from pipeline.entrypoints.embedded.layout import Layout, write_private
from pipeline.entrypoints.embedded.process import ProcessSpec
from pipeline.errors import NotFound, TransientError
from storage.content import S3ContentStore

BUCKET = "docmill"
REGION = "us-east-1"
PORTS = ("s3", "s3.grpc", "master", "master.grpc", "volume", "volume.grpc", "filer", "filer.grpc")


class Seaweed:
    """One S3 server with its volumes in ``DIR/s3`` and one generated identity."""

    name = "s3"
    start_timeout_s = 60.0

    def __init__(self, layout: Layout, ports: dict[str, int]) -> None:
        """``ports`` has one loopback port for each name in :data:`PORTS`."""
        self._layout = layout
        self.ports = ports
        self._program = binaries.weed()

    @property
    def endpoint(self) -> str:
        return f"{network.LOOPBACK}:{self.ports['s3']}"

    @property
    def access_key(self) -> str:
        return self._layout.secret("s3_access_key")

    @property
    def secret_key(self) -> str:
        return self._layout.secret("s3_secret_key")

    def content_store(self) -> S3ContentStore:
        return S3ContentStore(self.endpoint, self.access_key, self.secret_key, BUCKET, region=REGION, secure=False)

    def prepare(self) -> None:
        identity = {
            "name": "docmill",
            "credentials": [{"accessKey": self.access_key, "secretKey": self.secret_key}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        }
        write_private(self._layout.secrets / "s3_identities.json", json.dumps({"identities": [identity]}))
        self.clean()

    def clean(self) -> None:
        """Remove the sockets it puts into /tmp, whose place cannot be chosen, and leaves there when it ends."""
        for kind in ("master", "volume", "filer", "s3"):
            Path(f"/tmp/seaweedfs-{kind}-grpc-{self.ports[f'{kind}.grpc']}.sock").unlink(missing_ok=True)  # noqa: S108

    def spec(self) -> ProcessSpec:
        options = {
            "dir": str(self._layout.s3),
            "ip": network.LOOPBACK,
            "ip.bind": network.LOOPBACK,
            **{_port_option(name): str(port) for name, port in self.ports.items()},
            "filer": "true",
            "filer.localSocket": self._socket("filer"),
            "s3": "true",
            "s3.config": str(self._layout.secrets / "s3_identities.json"),
            "s3.localSocket": self._socket("s3"),
            "s3.iam": "false",
            "s3.port.iceberg": "0",
            "s3.port.lance": "0",
            "master.telemetry": "false",
            # The only master elects itself; the default makes a restart wait 16 s for it.
            "master.electionTimeout": "1s",
            "master.volumeSizeLimitMB": "1024",
            "volume.max": "64",
        }
        return ProcessSpec(
            name=self.name,
            command=(
                str(self._program),
                "-logtostderr=true",
                "server",
                *(f"-{key}={value}" for key, value in options.items()),
            ),
            log=self._layout.logs / "s3.log",
            environment={"PATH": "/usr/bin:/bin", "HOME": str(self._layout.s3), **self._signing_keys()},
            directory=self._layout.s3,
            # It takes 15 s to leave by itself, waiting for its own streams; whatever it has answered for is written.
            grace_s=1.0,
            orphan_signal=signal.SIGKILL,
        )

    def _socket(self, kind: str) -> str:
        """Seen from its working directory: an absolute path could be longer than the 107 bytes a socket's may have."""
        return os.path.relpath(self._layout.run / f"{kind}.sock", self._layout.s3)

    def _signing_keys(self) -> dict[str, str]:
        """Behind S3, filer and volumes answer over HTTP too; with these they want a token that only S3 can sign."""
        kinds = ("SIGNING", "SIGNING_READ", "FILER_SIGNING", "FILER_SIGNING_READ")
        return {f"WEED_JWT_{kind}_KEY": self._layout.secret(f"s3_{kind.lower()}") for kind in kinds}

    def is_ready(self) -> bool:
        """A signed PUT and GET of a small object come back unchanged."""
        store, key, content = self.content_store(), f"readiness/{uuid.uuid4()}", b"ready"
        try:
            store.ensure_bucket()
            store.put(key, io.BytesIO(content), len(content), "text/plain")
            answer = b"".join(store.read(key))
            store.delete(key)
        except (TransientError, NotFound):
            return False
        return answer == content


def _port_option(name: str) -> str:
    """``s3`` and ``s3.grpc`` are ``s3.port`` and ``s3.port.grpc`` on the command line."""
    server, _, kind = name.partition(".")
    return f"{server}.port.{kind}" if kind else f"{server}.port"
