"""The sandbox server as its parent sees it: start, keep alive, stop."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import structlog

import pipeline
from pipeline.engines.sandbox import check, reaper, wire
from pipeline.engines.sandbox.client import SandboxClient, SandboxReply
from pipeline.engines.sandbox.isolation import TESSDATA_VARIABLE, Isolation, Mechanism
from pipeline.engines.sandbox.jobs import CHECK
from pipeline.errors import ConfigurationError, TransientError

log = structlog.get_logger(__name__)

PRODUCTION_REGISTRY = "pipeline.engines.sandbox.jobs:JOBS"
# All of the parent's environment that a server (and so a child) is given. No credential has these names.
PASSED_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", TESSDATA_VARIABLE)
# One thread per child: unset, Tesseract was 36 times slower on two cores and dropped pages.
FIXED_ENVIRONMENT = {
    "OMP_THREAD_LIMIT": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "PYTHONSAFEPATH": "1",
}
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 10.0
CHECK_TIMEOUT_S = 30.0
CHECK_MEMORY_BYTES = 256 * 1024 * 1024


class SandboxProcess:
    """One running server and the private directory it works in. Made by :meth:`start`; safe to share by threads."""

    def __init__(self, run_dir: Path, registry: str, preload: Sequence[str], mechanism: Mechanism | None) -> None:
        self._run_dir = run_dir
        self._registry = registry
        self._preload = tuple(preload)
        self._mechanism = mechanism
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._isolation: Isolation | None = None

    @classmethod
    def start(
        cls,
        run_dir: Path,
        *,
        registry: str = PRODUCTION_REGISTRY,
        preload: Sequence[str] = (),
        mechanism: Mechanism | None = None,
    ) -> SandboxProcess:
        """Start a server in ``run_dir`` (made, mode 0700, used by this instance alone) and prove that it confines.

        ``preload`` names jobs whose parsers are imported now rather than on first use. ``registry`` names the
        mapping of jobs as ``module:attribute``; only tests bring their own. ``mechanism`` is how children are
        confined, by default the best there is. Raises ConfigurationError when hostile input cannot be confined
        on this machine.
        """
        run_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        run_dir.chmod(0o700)
        sandbox = cls(run_dir.resolve(), registry, preload, mechanism)
        try:
            sandbox._launch()
            sandbox._check()
        except TransientError as problem:
            sandbox.stop()
            raise ConfigurationError(f"the sandbox server does not work: {problem.detail}") from problem
        except ConfigurationError:
            sandbox.stop()
            raise
        return sandbox

    @property
    def run_dir(self) -> Path:
        return self._run_dir

    @property
    def isolation(self) -> Isolation:
        """How children are confined, as the server reported it at its start."""
        if self._isolation is None:
            raise RuntimeError("the sandbox server was not started")
        return self._isolation

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def client(self) -> SandboxClient:
        """A client of this server; it outlives restarts, and works in processes forked from this one."""
        return SandboxClient(self._run_dir)

    def ensure_alive(self) -> bool:
        """Start the server again if it died; True when it had. Raises TransientError when it cannot be."""
        with self._lock:
            if self._process is None or self._process.poll() is None:
                return False
            log.error("sandbox.server_died", exit_code=self._process.returncode)
            try:
                self._launch()
            except ConfigurationError as problem:
                raise TransientError("sandbox", str(problem)) from problem
            return True

    def stop(self) -> None:
        """End the server and every child; returns when they are gone."""
        with self._lock:
            process, self._process = self._process, None
            if process is None:
                return
            process.terminate()
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()
            reaper.kill_inside(self._run_dir / wire.JOBS_DIRECTORY)

    def _launch(self) -> None:
        process = subprocess.Popen(
            self._command(),
            env=_environment(),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        if self._process is not None and self._process.stdout is not None:
            self._process.stdout.close()
        self._process = process
        self._isolation = _read_announcement(process)
        log.info(
            "sandbox.started",
            mechanism=self._isolation.mechanism.value,
            version=self._isolation.version,
            network_denied=self._isolation.network,
            filesystem_denied=self._isolation.filesystem,
        )

    def _command(self) -> list[str]:
        command = [sys.executable, "-m", "pipeline.engines.sandbox.server"]
        command += ["--run-dir", str(self._run_dir), "--parent", str(os.getpid()), "--registry", self._registry]
        if self._mechanism is not None:
            command += ["--mechanism", self._mechanism.value]
        for job in self._preload:
            command += ["--preload", job]
        return command

    def _check(self) -> None:
        """Have a child try what a hostile document would; refuse to go on when anything works."""
        own = Path(pipeline.__file__)
        reply = self.client().call(
            CHECK,
            own,
            {"private": str(self._run_dir / wire.LOCK_NAME), "own": str(own)},
            timeout_s=CHECK_TIMEOUT_S,
            memory_bytes=CHECK_MEMORY_BYTES,
        )
        if not isinstance(reply, SandboxReply):
            raise ConfigurationError(f"the sandbox does not work here: its own check ended as {reply.cause.value}")
        if findings := check.FINDINGS.validate_json(reply.output):
            raise ConfigurationError(f"the sandbox does not confine here: {', '.join(findings)}")


@contextlib.contextmanager
def running_sandbox(
    run_dir: Path,
    *,
    registry: str = PRODUCTION_REGISTRY,
    preload: Sequence[str] = (),
    mechanism: Mechanism | None = None,
) -> Iterator[SandboxProcess]:
    """A server for the length of a ``with`` block; arguments as for :meth:`SandboxProcess.start`."""
    sandbox = SandboxProcess.start(run_dir, registry=registry, preload=preload, mechanism=mechanism)
    try:
        yield sandbox
    finally:
        sandbox.stop()


def _environment() -> dict[str, str]:
    passed = {name: os.environ[name] for name in PASSED_ENVIRONMENT if name in os.environ}
    return passed | FIXED_ENVIRONMENT | {"PYTHONPATH": _import_path()}


def _import_path() -> str:
    """Where this process imports from, so that the server finds the same modules."""
    return os.pathsep.join(str(Path(entry).resolve()) for entry in sys.path if entry)


def _read_announcement(process: subprocess.Popen[bytes]) -> Isolation:
    if process.stdout is None:
        raise RuntimeError("the sandbox server was started without a pipe")
    ready, _, _ = select.select([process.stdout], [], [], START_TIMEOUT_S)
    line = process.stdout.readline() if ready else b""
    if not line:
        raise ConfigurationError("the sandbox server did not start; its own message is above")
    said = json.loads(line)
    if "refused" in said:
        raise ConfigurationError(said["refused"])
    how = said["isolation"]
    return Isolation(Mechanism(how["mechanism"]), how["version"], how["network"], how["filesystem"])
