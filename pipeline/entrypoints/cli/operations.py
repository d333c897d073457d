"""``docmill up`` and ``migrate``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping

import alembic.util
from sqlalchemy.exc import SQLAlchemyError

from pipeline import bootstrap, settings
from pipeline.entrypoints.cli import terminal, tokens
from pipeline.entrypoints.cli.outcome import CommandError, Exit
from pipeline.entrypoints.embedded.stack import UpOptions, run_stack
from pipeline.errors import ConfigurationError


def run(given: argparse.Namespace) -> int:
    commands: dict[str, Callable[[argparse.Namespace], int]] = {"up": _up, "migrate": _migrate}
    return commands[given.command](given)


def _up(given: argparse.Namespace) -> int:
    return run_stack(
        UpOptions(
            issue_token=_first_token,
            data=given.data,
            host=given.host,
            port=given.port,
            workers=given.workers,
            flower=not given.no_flower,
            ready_file=given.ready_file,
        )
    )


def _first_token(environment: Mapping[str, str]) -> str:
    """A tenant needs an embedding set, so the configured model's is made before the first tenant is."""
    try:
        migrate()
        return tokens.issue(environment, tokens.Wanted())
    except CommandError as problem:
        # The stack ends with the one line of a ConfigurationError.
        raise ConfigurationError(str(problem)) from problem


def _migrate(_given: argparse.Namespace) -> int:
    migrate()
    terminal.say("the database is at this version's schema")
    return Exit.DONE


def migrate() -> None:
    """Schema and embedding set of this environment's settings. Raises CommandError with one line."""
    try:
        bootstrap.migrate(settings.load())
    except (SQLAlchemyError, alembic.util.CommandError) as problem:
        why = str(problem).partition("\n")[0]
        raise CommandError(f"the database could not be migrated: {why}") from problem
