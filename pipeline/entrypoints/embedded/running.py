"""One running stack: servers, schema, token and Docmill's processes, from nothing to ready and back."""

from __future__ import annotations

import functools
import json
import os
import time
from collections.abc import Callable, Mapping

import alembic.util
import dotenv
import sqlalchemy.exc

from pipeline import settings
from pipeline.entrypoints.embedded import network, proofs
from pipeline.entrypoints.embedded.layout import Layout, write_private
from pipeline.entrypoints.embedded.process import ProcessSpec
from pipeline.entrypoints.embedded.processes import Application, Plan
from pipeline.entrypoints.embedded.services import EmbeddedServices, Server
from pipeline.entrypoints.embedded.supervisor import Supervisor
from pipeline.errors import ConfigurationError
from storage import migrate

_GATEWAY_PORT = 8000
_FLOWER_PORT = 5555
_READY_TIMEOUT_S = 120.0
_WILDCARDS = ("0.0.0.0", "::")  # noqa: S104 (compared with, never bound)
_ENGLISH_NOTE = (
    "note: the default embedding model reads English; "
    "for other languages set DOCMILL_EMBEDDING_PROVIDER=openai and OPENAI_BASE_URL"
)
# Threads of numeric libraries in many processes on few cores slow each other down; Tesseract 36 times, measured.
_CALM_LIBRARIES = {"OMP_NUM_THREADS": "1", "OMP_THREAD_LIMIT": "1", "TOKENIZERS_PARALLELISM": "false"}


class RunningStack:
    """Everything below one data directory. Lives in the supervisor's process."""

    def __init__(self, place: Layout, say: Callable[[str], None]) -> None:
        self.url = ""
        self._place = place
        self._say = say
        self._supervisor = Supervisor(on_change=self._write_state)
        self._services: EmbeddedServices | None = None
        self._applications: tuple[Application, ...] = ()
        self._flower_url: str | None = None
        self._began = time.monotonic()

    def start(
        self,
        *,
        host: str,
        port: int | None,
        workers: int,
        flower: bool,
        issue_token: Callable[[Mapping[str, str]], str],
        applications: Callable[[Plan], tuple[Application, ...]],
    ) -> None:
        """From nothing to ready. Raises :class:`~pipeline.errors.ConfigurationError` with the one line to show."""
        self._began = time.monotonic()
        plan = self._plan(host, port, workers, flower=flower)
        self._services = EmbeddedServices(self._place.root)
        environment = self._environment(self._services, plan)
        self._start_servers(self._services)
        self._say_progress("preparing the database")
        self._migrate(environment)
        write_private(self._place.token, issue_token(environment) + "\n")
        self._applications = applications(plan)
        self._say_progress("starting " + ", ".join(application.name for application in self._applications))
        for application in self._applications:
            self._supervisor.start(application.name, functools.partial(self._spec, application, environment))
        for application in self._applications:
            proven = functools.partial(self._proves_itself, application, environment)
            if not self._supervisor.wait_until(proven, _READY_TIMEOUT_S):
                log = self._place.logs / f"{application.name}.log"
                raise ConfigurationError(f"{application.name} did not become ready; see {log}")
        self._say_progress(f"gateway {self.url}" + (f", Flower {self._flower_url}" if self._flower_url else ""))

    def watch(self) -> None:
        """Keep it running. Raises :class:`~pipeline.errors.ConfigurationError` when a process cannot be kept."""
        self._supervisor.watch()

    def stop(self) -> None:
        """Docmill's processes first, each server when nothing needs it any more."""
        self._supervisor.stop([application.name for application in self._applications])
        if self._services is not None:
            for server in reversed(self._services.servers):
                self._supervisor.stop([server.name])
            self._services.stop()
        self._place.state.unlink(missing_ok=True)

    def kill(self) -> None:
        """End every process at once; a :meth:`stop` that waits for one returns."""
        self._supervisor.kill()
        if self._services is not None:
            self._services.kill()

    # --- parts of a start ---

    def _plan(self, host: str, port: int | None, workers: int, *, flower: bool) -> Plan:
        if port is not None and not network.is_free(host, port):
            raise ConfigurationError(f"port {port} on {host} is taken; choose another --port, or none for a free one")
        chosen = port if port is not None else self._free(host, _GATEWAY_PORT, "gateway")
        flower_port = self._free(network.LOOPBACK, _FLOWER_PORT, "Flower") if flower else None
        reachable = network.LOOPBACK if host in _WILDCARDS else host
        self.url = f"http://[{reachable}]:{chosen}" if ":" in reachable else f"http://{reachable}:{chosen}"
        self._flower_url = f"http://{network.LOOPBACK}:{flower_port}" if flower_port is not None else None
        return Plan(
            host=host,
            port=chosen,
            url=self.url,
            worker_processes=workers,
            beat_schedule=str(self._place.work / "beat-schedule"),
            flower_port=flower_port,
            flower_password=self._place.secret("flower"),
        )

    def _free(self, host: str, first_choice: int, name: str) -> int:
        port = network.port_from(host, first_choice)
        if port != first_choice:
            self._say(f"port {first_choice} is taken, {name} takes {port}")
        return port

    def _environment(self, services: EmbeddedServices, plan: Plan) -> dict[str, str]:
        """The user's own settings, ``.env`` included, pointed at these servers. Checked before anything starts."""
        from_file = {name: value for name, value in dotenv.dotenv_values(".env").items() if value is not None}
        environment = {
            **from_file,
            **os.environ,
            **_CALM_LIBRARIES,
            **services.settings_environment(),
            "DOCMILL_WORKER_PROCESSES": str(plan.worker_processes),
            "DOCMILL_WORK_DIR": str(self._place.work),
            "PYTHONUNBUFFERED": "1",
        }
        os.environ.update(environment)
        if settings.load().embedding_provider is settings.EmbeddingChoice.LOCAL:
            self._say(_ENGLISH_NOTE)
        return environment

    def _start_servers(self, services: EmbeddedServices) -> None:
        self._say_progress("starting postgres, redis and s3")
        services.start()
        for server in services.servers:
            self._supervisor.adopt(server.name, _spec_again(server), services.processes.pop(server.name))
        self._write_state()

    def _migrate(self, environment: Mapping[str, str]) -> None:
        try:
            migrate.upgrade(environment["DOCMILL_DATABASE_URL_MIGRATOR"])
        except (sqlalchemy.exc.SQLAlchemyError, alembic.util.CommandError) as problem:
            log = self._place.logs / "migrate.log"
            log.write_text(str(problem))
            raise ConfigurationError(
                f"the database could not be brought to this version's schema; see {log}"
            ) from problem

    def _spec(self, application: Application, environment: Mapping[str, str]) -> ProcessSpec:
        return ProcessSpec(
            name=application.name,
            command=application.command,
            log=self._place.logs / f"{application.name}.log",
            environment={**environment, **application.environment},
            # A neutral place: Celery puts its directory before all others when it imports the application.
            directory=self._place.work,
            grace_s=application.grace_s,
        )

    def _proves_itself(self, application: Application, environment: Mapping[str, str]) -> bool:
        return application.name in self._supervisor.pids() and proofs.holds(application, environment, self._place.work)

    # --- what others see ---

    def _say_progress(self, what: str) -> None:
        self._say(f"[{time.monotonic() - self._began:5.1f} s] {what}")

    def _write_state(self) -> None:
        state = {
            "url": self.url,
            "flower": self._flower_url,
            "pid": os.getppid(),
            "supervisor": os.getpid(),
            "processes": self._supervisor.pids(),
            "ports": network.ports_in(self._place.ports),
        }
        write_private(self._place.state, json.dumps(state, indent=1) + "\n")


def _spec_again(server: Server) -> Callable[[], ProcessSpec]:
    def make() -> ProcessSpec:
        server.prepare()
        return server.spec()

    return make
