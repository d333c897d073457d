"""Runs the embedded services for one test session, beside it: ``python -m tests.services_host DIR SESSION_PID``.

The workers of a parallel run share one instance, and any of them may end first, so none of them can own it. This
process does, and ends with the session's main process, however that one ends.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from pathlib import Path

from pipeline.entrypoints.embedded.services import EmbeddedServices
from storage import migrate

MIGRATED = "docmill_migrated"


def main(directory: Path, session: int) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    session_ended = os.pidfd_open(session)
    with EmbeddedServices(directory) as services:
        services.copy_database("docmill", MIGRATED)
        migrate.upgrade(services.database_url("docmill_migrator", MIGRATED))
        (directory / "ready").touch()
        select.select([session_ended], [], [])


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
