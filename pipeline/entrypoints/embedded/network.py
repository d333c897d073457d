"""Loopback ports: remembered from one start to the next, replaced when something else has taken them."""

from __future__ import annotations

import json
import random
import socket
from collections.abc import Sequence
from pathlib import Path

from pipeline.entrypoints.embedded.layout import write_private
from pipeline.errors import ConfigurationError

LOOPBACK = "127.0.0.1"
# Below the range the kernel hands out to outgoing connections, so that none of those takes a port between two starts.
_FIRST, _LAST = 20_000, 32_000
_TRIES = 200


def is_free(host: str, port: int) -> bool:
    """Whether a server could listen there now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def free_port(host: str = LOOPBACK, taken: Sequence[int] = ()) -> int:
    """Some free port. Raises :class:`~pipeline.errors.ConfigurationError` when none was found."""
    for _ in range(_TRIES):
        port = random.randint(_FIRST, _LAST)  # noqa: S311 (a port is no secret)
        if port not in taken and is_free(host, port):
            return port
    raise ConfigurationError(f"no free port between {_FIRST} and {_LAST} on {host}")


def port_from(host: str, first_choice: int) -> int:
    """``first_choice`` when it is free, else the next free one above it, else any."""
    for port in range(first_choice, min(first_choice + 50, 65_536)):
        if is_free(host, port):
            return port
    return free_port(host)


def remembered_ports(memory: Path, names: Sequence[str]) -> dict[str, int]:
    """One loopback port for each name: last time's where still free, and written down for the next."""
    known = ports_in(memory) if memory.exists() else {}
    ports: dict[str, int] = {}
    for name in names:
        port = known.get(name)
        if port is None or port in ports.values() or not is_free(LOOPBACK, port):
            port = free_port(taken=tuple(ports.values()))
        ports[name] = port
    write_private(memory, json.dumps(ports))
    return ports


def ports_in(memory: Path) -> dict[str, int]:
    """What :func:`remembered_ports` wrote down."""
    known: dict[str, int] = json.loads(memory.read_text())
    return known
