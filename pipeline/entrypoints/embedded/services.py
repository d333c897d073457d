"""The three servers every part of Docmill needs, without Docmill's own processes: what the test suite runs on."""

from __future__ import annotations

import time
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, Self

from pipeline.entrypoints.embedded import bootstrap, network, seaweed
from pipeline.entrypoints.embedded.layout import Layout
from pipeline.entrypoints.embedded.postgres import DATABASE, Postgres
from pipeline.entrypoints.embedded.process import Process, ProcessSpec
from pipeline.entrypoints.embedded.redis_server import RedisServer
from pipeline.errors import ConfigurationError
from storage.content import S3ContentStore

_START_ATTEMPTS = 3
_START_PAUSE_S = 0.5
_POLL_S = 0.02


class Server(Protocol):
    """A server under supervision."""

    name: str
    start_timeout_s: float

    def prepare(self) -> None:
        """Everything before its process starts."""

    def spec(self) -> ProcessSpec:
        """How to start it."""

    def is_ready(self) -> bool:
        """Whether it does its work now; answers within a few seconds."""


class EmbeddedServices:
    """Postgres, Redis and S3 below one data directory.

    As a context manager it starts all three, makes roles, database and bucket, and stops them at the end. The
    supervisor of ``docmill up`` uses the same parts and keeps the processes itself.
    """

    def __init__(self, data_directory: Path, *, running: bool = False) -> None:
        """``running`` names the servers that another process keeps below this directory.

        Raises :class:`~pipeline.errors.ConfigurationError` when the directory, a program or an account is missing.
        """
        self.layout = Layout(data_directory.absolute())
        if running:
            ports = network.ports_in(self.layout.ports)
        else:
            self.layout.prepare()
            ports = network.remembered_ports(self.layout.ports, ("postgres", "redis", *seaweed.PORTS))
        self.postgres = Postgres(self.layout, ports["postgres"])
        self.redis = RedisServer(self.layout, ports["redis"])
        self.s3 = seaweed.Seaweed(self.layout, {name: ports[name] for name in seaweed.PORTS})
        self.processes: dict[str, Process] = {}

    @property
    def servers(self) -> tuple[Server, ...]:
        """In the order they are started; they are stopped in the reverse one."""
        return (self.postgres, self.redis, self.s3)

    def start(self) -> None:
        """Start all three side by side; raises as the parts do, with nothing left running."""
        try:
            self.start_with_database()
            self.wait_for_the_others()
        except BaseException:
            self.stop()
            raise

    def start_with_database(self) -> None:
        """Start all three, and return when the database is there: S3 takes seconds more, mostly waiting.

        Raises :class:`~pipeline.errors.ConfigurationError` naming the server that failed.
        """
        for server in self.servers:
            self._launch(server)
        self._wait_for(self.postgres)
        bootstrap.bootstrap(self.postgres)

    def wait_for_the_others(self) -> None:
        """Raises :class:`~pipeline.errors.ConfigurationError` naming the server that failed."""
        self._wait_for(self.redis)
        self._wait_for(self.s3)

    def stop(self) -> None:
        for process in reversed(self.processes.values()):
            process.ask_to_stop()
        for process in self.processes.values():
            process.finish()
        self.processes.clear()
        self.s3.clean()

    def kill(self) -> None:
        """End what this object itself keeps at once; a :meth:`stop` that waits returns."""
        for process in self.processes.values():
            process.kill()

    def database_url(self, role: str, database: str = DATABASE) -> str:
        """A SQLAlchemy URL for one of the roles of bootstrap.sql or the superuser ``postgres``."""
        return self.postgres.url(role, database)

    def copy_database(self, template: str, name: str) -> None:
        """Replace database ``name`` by a copy of ``template``; nobody may be connected to either."""
        bootstrap.copy_database(self.postgres, template, name)

    def content_store(self) -> S3ContentStore:
        return self.s3.content_store()

    def settings_environment(self, database: str = DATABASE) -> dict[str, str]:
        """The ``DOCMILL_`` variables that point every part at these servers."""
        return {
            "DOCMILL_DATABASE_URL_GATEWAY": self.database_url("docmill_gateway", database),
            "DOCMILL_DATABASE_URL_WORKER": self.database_url("docmill_worker", database),
            "DOCMILL_DATABASE_URL_SWEEP": self.database_url("docmill_sweep", database),
            "DOCMILL_DATABASE_URL_MIGRATOR": self.database_url("docmill_migrator", database),
            "DOCMILL_BROKER_URL": self.redis.url,
            "DOCMILL_S3_ENDPOINT": self.s3.endpoint,
            "DOCMILL_S3_ACCESS_KEY": self.s3.access_key,
            "DOCMILL_S3_SECRET_KEY": self.s3.secret_key,
            "DOCMILL_S3_BUCKET": seaweed.BUCKET,
            "DOCMILL_S3_REGION": seaweed.REGION,
            "DOCMILL_S3_SECURE": "false",
            "DOCMILL_JWT_SECRET": self.layout.secret("jwt_secret"),
        }

    def pids(self) -> Mapping[str, int]:
        return {name: process.pid for name, process in self.processes.items()}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: types.TracebackType | None
    ) -> None:
        self.stop()

    def _launch(self, server: Server) -> None:
        server.prepare()
        self.processes[server.name] = Process(server.spec())

    def _wait_for(self, server: Server) -> None:
        deadline = time.monotonic() + server.start_timeout_s
        ends = 0
        while not server.is_ready():
            process = self.processes[server.name]
            ends += process.has_ended()
            if ends == _START_ATTEMPTS or time.monotonic() > deadline:
                raise ConfigurationError(f"{server.name} did not become ready; see {process.spec.log}")
            if process.has_ended():
                process.finish()
                # Perhaps an instance of an earlier start is still letting go of the data.
                time.sleep(_START_PAUSE_S)
                self._launch(server)
            time.sleep(_POLL_S)
