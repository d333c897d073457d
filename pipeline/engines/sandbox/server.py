"""The sandbox server: forks one limited child per request, ends it, and says how it went.

One thread and one selector, so that a fork copies no lock in a held state. It imports parsers but never
reads a document's byte. Started by :mod:`pipeline.engines.sandbox.process`; it ends with its parent.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import cast

from pipeline.engines.sandbox import child, isolation, kernel, reaper, wire
from pipeline.engines.sandbox.calls import BadRequest, Connection, RunningChild, deadline
from pipeline.engines.sandbox.jobs import Job
from pipeline.errors import ConfigurationError

BACKLOG = 128
# How often running children are looked after when nothing happens, and how soon a killed one is looked for again.
WATCH_S = 0.25
BURIAL_S = 0.005


class Registry:
    """Jobs by name; a job's modules are imported on first use, before the fork, and stay."""

    def __init__(self, jobs: Mapping[str, Job]) -> None:
        self._jobs = jobs
        self._loaded: dict[str, child.JobFunction] = {}

    def find(self, name: str) -> Job | None:
        return self._jobs.get(name)

    def load(self, name: str) -> child.JobFunction:
        """The job's function. Raises ImportError or AttributeError when the registry is wrong."""
        if name not in self._loaded:
            job = self._jobs[name]
            for module in job.preload:
                importlib.import_module(module)
            function = _named(job.target)
            if job.rehearsal is not None:
                _named(job.rehearsal)()
            self._loaded[name] = cast("child.JobFunction", function)
            # What is imported is here to stay: frozen, the collector does not touch (and copy) it after a fork.
            gc.collect()
            gc.freeze()
        return self._loaded[name]


def _named(target: str) -> Callable[..., object]:
    """What ``module:function`` names."""
    module, _, function = target.partition(":")
    return cast("Callable[..., object]", getattr(importlib.import_module(module), function))


class Server:
    """Accepts calls on ``listener`` until told to stop."""

    def __init__(self, listener: socket.socket, registry: Registry, jobs_dir: Path, how: isolation.Isolation) -> None:
        self._listener = listener
        self._registry = registry
        self._jobs_dir = jobs_dir
        self._isolation = how
        self._selector = selectors.DefaultSelector()
        self._live: dict[int, RunningChild] = {}
        self._buried: list[RunningChild] = []
        self._stopping = False

    def serve(self, parent: int) -> None:
        """Run until SIGTERM or until the process behind the pidfd ``parent`` is gone; then kill every child."""
        wake = self._install_signals()
        self._selector.register(wake, selectors.EVENT_READ, partial(_drain, wake))
        self._selector.register(parent, selectors.EVENT_READ, self._stop)
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        while not self._stopping:
            for key, _ in self._selector.select(self._patience()):
                cast("Callable[[], None]", key.data)()
            self._look_after_children()
        self._end_all()

    def _install_signals(self) -> int:
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _ignore)
        signal.signal(signal.SIGTERM, lambda *_: self._stop())
        # Ctrl-C in a terminal reaches the whole foreground group; the parent decides when this server stops.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return reader

    def _stop(self) -> None:
        self._stopping = True

    def _patience(self) -> float | None:
        if self._buried:
            return BURIAL_S
        return WATCH_S if self._live else None

    # --- clients ---

    def _accept(self) -> None:
        try:
            accepted, _ = self._listener.accept()
        except OSError:  # out of descriptors, or a client that is gone already
            return
        accepted.setblocking(False)
        connection = Connection(accepted)
        self._selector.register(accepted, selectors.EVENT_READ, partial(self._hear, connection))

    def _hear(self, connection: Connection) -> None:
        if not connection.receive():
            self._hang_up(connection)
            return
        try:
            request = connection.request()
        except (BadRequest, ValueError, TypeError):
            connection.tell(wire.Reply(wire.Event.REFUSED, detail="this is no sandbox request"))
            self._hang_up(connection)
            return
        if request is not None:
            self._begin(connection, request)

    def _hang_up(self, connection: Connection) -> None:
        """The client wants no more: kill its child, or forget a client that has none."""
        self._selector.unregister(connection.socket)
        for running in self._live.values():
            if running.connection is connection:
                running.kill(wire.Outcome.TIMED_OUT)
                return
        connection.close()

    def _answer(self, connection: Connection, reply: wire.Reply) -> None:
        connection.tell(reply)
        with contextlib.suppress(KeyError, ValueError):  # a client that hung up is unregistered already
            self._selector.unregister(connection.socket)
        connection.close()

    # --- children ---

    def _begin(self, connection: Connection, request: wire.Request) -> None:
        job = self._registry.find(request.job)
        if job is None:
            self._answer(connection, wire.Reply(wire.Event.REFUSED, detail=f"there is no job {request.job}"))
            return
        try:
            function = self._registry.load(request.job)
        except (ImportError, AttributeError) as problem:
            detail = f"job {request.job} cannot be loaded: {problem}"
            self._answer(connection, wire.Reply(wire.Event.REFUSED, detail=detail))
            return
        try:
            running = self._fork(connection, request, job, function)
        except OSError as problem:
            detail = f"no sandbox child could be started: {problem.strerror}"
            self._answer(connection, wire.Reply(wire.Event.UNAVAILABLE, detail=detail))
            return
        connection.close_descriptors()
        self._live[running.pid] = running
        connection.tell(wire.Reply(wire.Event.STARTED))

    def _fork(
        self, connection: Connection, request: wire.Request, job: Job, function: child.JobFunction
    ) -> RunningChild:
        scratch = Path(tempfile.mkdtemp(dir=self._jobs_dir))
        status_reader, status_writer = os.pipe()
        os.set_blocking(status_reader, False)
        content, output = connection.descriptors
        assignment = child.Assignment(
            work=lambda document: function(document, request.arguments),
            confine=partial(isolation.confine, self._isolation, job, request.arguments, scratch),
            request=request,
            scratch=scratch,
            content=content,
            output=output,
            status=status_writer,
            server_pid=os.getpid(),
            baseline_bytes=reaper.data_bytes(os.getpid()),
        )
        resident = reaper.resident_bytes(os.getpid())
        try:
            pid = os.fork()
        except OSError:
            os.close(status_reader)
            os.close(status_writer)
            scratch.rmdir()
            raise
        if pid == 0:
            child.run(assignment)
        os.close(status_writer)
        has_family = job.programs or self._isolation.mechanism is isolation.Mechanism.BUBBLEWRAP
        return RunningChild(connection, request, pid, status_reader, scratch, has_family, resident, deadline(request))

    def _look_after_children(self) -> None:
        now = time.monotonic()
        for pid, running in list(self._live.items()):
            if not running.is_over():
                running.watch(now)
                continue
            running.bury()
            del self._live[pid]
            self._buried.append(running)
        # Nothing is answered while a descendant of a finished job may still run.
        if self._buried and reaper.kill_adopted(self._live) == 0:
            for running in self._buried:
                running.clean()
                if running.ending is not None:
                    self._answer(running.connection, running.ending)
            self._buried.clear()

    def _end_all(self) -> None:
        for running in self._live.values():
            running.kill(wire.Outcome.CRASHED)
            running.bury()
        while reaper.kill_adopted(()) > 0:
            time.sleep(BURIAL_S)


def _drain(descriptor: int) -> None:
    with contextlib.suppress(BlockingIOError):
        while os.read(descriptor, 4096):
            pass


def _ignore(*_: object) -> None:
    """A handler that does nothing: unlike SIG_IGN it lets the wakeup descriptor tell."""


def listen(run_dir: Path) -> socket.socket:
    """The server's socket in its private directory."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    directory = os.open(run_dir, os.O_PATH | os.O_DIRECTORY)
    try:
        (run_dir / wire.SOCKET_NAME).unlink(missing_ok=True)
        listener.bind(wire.socket_address(directory, wire.SOCKET_NAME))
    finally:
        os.close(directory)
    listener.listen(BACKLOG)
    listener.setblocking(False)
    return listener


def lock(run_dir: Path) -> int:
    """Hold the run directory. Raises ConfigurationError when another server does."""
    descriptor = os.open(run_dir / wire.LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ConfigurationError("another sandbox server uses this run directory") from None
    return descriptor


def empty_jobs_directory(run_dir: Path) -> Path:
    """A fresh directory for the children's own; what a killed server left there is ended and removed."""
    jobs_dir = run_dir / wire.JOBS_DIRECTORY
    reaper.kill_inside(jobs_dir)
    reaper.remove_tree(jobs_dir)
    jobs_dir.mkdir(mode=0o700, exist_ok=True)
    return jobs_dir


def find_registry(name: str) -> Mapping[str, Job]:
    module, _, attribute = name.partition(":")
    return cast("Mapping[str, Job]", getattr(importlib.import_module(module), attribute))


def main() -> int:
    """Serve one run directory; the first line on stdout says how children are confined, or why not."""
    parser = argparse.ArgumentParser(prog="docmill-sandbox")
    parser.add_argument("--run-dir", type=Path, required=True)
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--registry", required=True)
    parser.add_argument("--mechanism", type=isolation.Mechanism)
    parser.add_argument("--preload", action="append", default=[])
    options = parser.parse_args()
    run_dir = options.run_dir.resolve()
    parent = os.pidfd_open(options.parent)
    if os.getppid() != options.parent:
        return 1
    try:
        held = lock(run_dir)
        how = isolation.detect(options.mechanism)
        isolation.refuse_exposed(run_dir)
    except ConfigurationError as problem:
        _announce({"refused": str(problem)})
        return 1
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    registry = Registry(find_registry(options.registry))
    for name in options.preload:
        registry.load(name)
    server = Server(listen(run_dir), registry, empty_jobs_directory(run_dir), how)
    _announce({"isolation": asdict(how)})
    server.serve(parent)
    os.close(held)
    return 0


def _announce(line: Mapping[str, object]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
