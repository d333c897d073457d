"""One running stack: servers, schema, token and Docmill's processes, from nothing to ready and back."""

from __future__ import annotations

import functools
import json
import os
import time
from collections.abc import Callable, Mapping

import dotenv

from pipeline import settings
from pipeline.entrypoints.embedded import network, proofs, schema
from pipeline.entrypoints.embedded.layout import Layout, write_private
from pipeline.entrypoints.embedded.process import ProcessSpec
from pipeline.entrypoints.embedded.processes import FLOWER_USER, Application, Plan, Proof
from pipeline.entrypoints.embedded.services import EmbeddedServices, Server
from pipeline.entrypoints.embedded.supervisor import Supervisor
from pipeline.errors import ConfigurationError

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
        self._say_progress("starting postgres, redis and s3")
        self._services.start_with_database()
        self._say_progress("preparing the database")
        token = schema.prepare(environment, self._place.logs / "migrate.log", issue_token)
        write_private(self._place.token, token + "\n")
        self._services.wait_for_the_others()
        self._adopt_servers(self._services)
        self._applications = applications(plan)
        self._say_progress("starting " + ", ".join(application.name for application in self._applications))
        for application in self._applications:
            self._supervisor.start(application.name, functools.partial(self._spec, application, environment))
        self._wait_for_proofs(environment)
        self._say_progress(f"gateway {self.url}, its token in {self._place.token}")
        if self._flower_url is not None:
            password = self._place.secrets / "flower"
            self._say_progress(f"Flower {self._flower_url}, user {FLOWER_USER}, password in {password}")

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
        if not network.is_free(host, 0):
            raise ConfigurationError(
                f"cannot listen on {host}: it is no address of this machine; choose another --host"
            )
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

    def _adopt_servers(self, services: EmbeddedServices) -> None:
        for server in services.servers:
            self._supervisor.adopt(server.name, _spec_again(server), services.processes.pop(server.name))
        self._write_state()

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

    def _wait_for_proofs(self, environment: Mapping[str, str]) -> None:
        # A ping costs a second of CPU, so it comes last, when the workers have probably started.
        for application in sorted(self._applications, key=lambda one: one.proof is Proof.WORKER_PING):
            name, holds = application.name, proofs.proof_of(application, environment, self._place.work)
            if not self._supervisor.wait_until(functools.partial(self._has_proven, name, holds), _READY_TIMEOUT_S):
                raise ConfigurationError(f"{name} did not become ready; see {self._place.logs / name}.log")

    def _has_proven(self, name: str, holds: Callable[[], bool]) -> bool:
        return name in self._supervisor.pids() and holds()

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
