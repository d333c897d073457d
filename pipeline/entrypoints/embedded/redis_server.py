"""Redis: append-only file on, nothing evicted, a password, loopback only."""

from __future__ import annotations

import socket

from pipeline.entrypoints.embedded import binaries, network
from pipeline.entrypoints.embedded.layout import Layout, write_private
from pipeline.entrypoints.embedded.process import ProcessSpec

_PROBE_TIMEOUT_S = 2.0
_CONFIGURATION = """\
bind {host}
port {port}
protected-mode yes
requirepass {password}
dir {directory}
appendonly yes
appendfsync everysec
save ""
maxmemory-policy noeviction
daemonize no
databases 1
"""


class RedisServer:
    """One server with its append-only file in ``DIR/redis``."""

    name = "redis"
    start_timeout_s = 30.0

    def __init__(self, layout: Layout, port: int) -> None:
        self._layout = layout
        self.port = port
        self._program = binaries.redis_server()

    @property
    def url(self) -> str:
        return f"redis://:{self._password}@{network.LOOPBACK}:{self.port}/0"

    @property
    def _password(self) -> str:
        return self._layout.secret("redis")

    def prepare(self) -> None:
        configuration = _CONFIGURATION.format(
            host=network.LOOPBACK, port=self.port, password=self._password, directory=self._layout.redis
        )
        write_private(self._layout.secrets / "redis.conf", configuration)

    def spec(self) -> ProcessSpec:
        return ProcessSpec(
            name=self.name,
            command=(str(self._program), str(self._layout.secrets / "redis.conf")),
            log=self._layout.logs / "redis.log",
            environment={"PATH": "/usr/bin:/bin"},
            directory=self._layout.redis,
        )

    def is_ready(self) -> bool:
        """AUTH, then PING. While the append-only file is being read the answer is LOADING, so not ready."""
        try:
            with socket.create_connection((network.LOOPBACK, self.port), _PROBE_TIMEOUT_S) as connection:
                connection.sendall(f"AUTH {self._password}\r\nPING\r\n".encode())
                answer = b""
                while answer.count(b"\r\n") < 2:
                    received = connection.recv(256)
                    if not received:
                        return False
                    answer += received
        except OSError:
            return False
        return answer == b"+OK\r\n+PONG\r\n"
