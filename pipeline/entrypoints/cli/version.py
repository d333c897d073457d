"""``docmill version``."""

from __future__ import annotations

import argparse
from importlib import metadata

from pipeline.entrypoints.cli import terminal
from pipeline.entrypoints.cli.outcome import Exit


def run(_given: argparse.Namespace) -> int:
    terminal.say(f"docmill {metadata.version('docmill')}")
    return Exit.DONE
