"""The database brought to this version, and the development token: done in a child that then gives its memory back.

Migrations and the composition root pull in half of the program, of which the supervisor needs nothing afterwards.
"""

from __future__ import annotations

import json
import os
import signal
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path

from pipeline.errors import ConfigurationError, TransientError

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def prepare(environment: Mapping[str, str], log: Path, issue_token: Callable[[Mapping[str, str]], str]) -> str:
    """Migrate, then return the token. The environment is this process's own.

    Raises :class:`~pipeline.errors.ConfigurationError` with the one line to show.
    """

    def work() -> str:
        _migrate(log)
        return issue_token(environment)

    return _in_child(work)


def _migrate(log: Path) -> None:
    # Imported here, in the child: see above.
    import alembic.util
    import sqlalchemy.exc

    from pipeline import bootstrap, settings

    try:
        bootstrap.migrate(settings.load())
    except (sqlalchemy.exc.SQLAlchemyError, alembic.util.CommandError) as problem:
        log.write_text(f"{problem}\n")
        raise ConfigurationError(f"the database could not be brought to this version's schema; see {log}") from problem


def _in_child(work: Callable[[], str]) -> str:
    """What ``work`` returns when a forked child runs it; its ConfigurationError is raised here."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _answer(work, writer)
    os.close(writer)
    with os.fdopen(reader) as answers:
        answer = answers.read()
    os.waitpid(child, 0)
    if not answer:
        raise ConfigurationError("preparing the database failed; the cause is above")
    outcome: dict[str, str] = json.loads(answer)
    if "error" in outcome:
        raise ConfigurationError(outcome["error"])
    return outcome["result"]


def _answer(work: Callable[[], str], writer: int) -> None:
    """In the child; never returns."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    try:
        try:
            outcome = {"result": work()}
        except (ConfigurationError, TransientError) as failure:
            outcome = {"error": str(failure)}
        os.write(writer, json.dumps(outcome).encode())
    except BaseException:  # noqa: BLE001 (the edge of this process: nothing above could report it)
        traceback.print_exc()
    finally:
        os._exit(0)
