"""``docmill delete``."""

from __future__ import annotations

import argparse
import time
from typing import Any

from pipeline.entrypoints.cli import client, connection, terminal
from pipeline.entrypoints.cli.client import Gateway
from pipeline.entrypoints.cli.outcome import CommandError, Exit

_LOOK_S = 0.3
_PATIENCE_S = 120.0


def run(given: argparse.Namespace) -> int:
    with Gateway(connection.find(given.data)) as gateway:
        taken = gateway.delete(client.source(given.id), with_file=not given.keep_file)
        if given.no_wait:
            if given.json:
                terminal.document(taken)
            else:
                terminal.say(f"receipt {taken['receipt_id']}: hidden now, deleted soon")
            return Exit.DONE
        if not given.json:
            terminal.say(f"receipt {taken['receipt_id']}: hidden now")
        receipt = _wait(gateway, taken["receipt_id"])
    if given.json:
        terminal.document(receipt)
    else:
        _show(receipt)
    return Exit.DONE


def _wait(gateway: Gateway, receipt_id: str) -> Any:
    gives_up_at = time.monotonic() + _PATIENCE_S
    while True:
        receipt = gateway.get(f"/v1/deletions/{receipt_id}")
        if receipt["complete"]:
            return receipt
        if time.monotonic() > gives_up_at:
            raise CommandError(
                f"it is hidden, but receipt {receipt_id} is not complete after {_PATIENCE_S:g} s; the deletion goes on"
            )
        time.sleep(_LOOK_S)


def _show(receipt: Any) -> None:
    for name, counts in receipt["stores"].items():
        terminal.say(f"  {name:<10}{counts['before']:>8} before {counts['after']:>8} after")
    terminal.say("deleted")
