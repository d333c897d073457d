"""Which gateway, and with which token: the environment's, else the running embedded stack's."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import dotenv

from pipeline.entrypoints.cli.outcome import CommandError, Exit
from pipeline.entrypoints.embedded.layout import Layout, default_data_directory

URL = "DOCMILL_URL"
TOKEN = "DOCMILL_TOKEN"  # noqa: S105 (a variable's name)


@dataclass(frozen=True, slots=True)
class Connection:
    url: str
    token: str


def find(data: Path | None) -> Connection:
    """The environment (or ``.env``), else the stack that runs below ``data`` or the usual directory.

    Raises CommandError that says what to set or start.
    """
    place = Layout((data or default_data_directory()).absolute())
    url = _variable(URL) if data is None else None
    return Connection(url or _stack_url(place), _token(place, chosen=data is not None, remote=url is not None))


def _variable(name: str) -> str | None:
    return os.environ.get(name) or dotenv.dotenv_values(".env").get(name) or None


def _stack_url(place: Layout) -> str:
    try:
        return str(json.loads(place.state.read_text())["url"])
    except (OSError, ValueError, KeyError):
        raise CommandError(
            f"no stack is running below {place.root}; start one with: docmill up (or set {URL} and {TOKEN})",
            Exit.NOT_REACHABLE,
        ) from None


def _token(place: Layout, *, chosen: bool, remote: bool) -> str:
    token = None if chosen else _variable(TOKEN)
    if token is not None:
        return token.strip()
    if remote:
        raise CommandError(f"{URL} is set but {TOKEN} is not; it expects a bearer token", Exit.USAGE)
    try:
        return place.token.read_text().strip()
    except OSError:
        raise CommandError(
            f"the token of the stack below {place.root} cannot be read; run as the user that started it, or set {TOKEN}"
        ) from None
