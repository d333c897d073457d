"""``docmill ingest``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from pipeline.entrypoints.cli import batch, connection, reading, terminal
from pipeline.entrypoints.cli.batch import Batch, Document
from pipeline.entrypoints.cli.client import Gateway
from pipeline.entrypoints.cli.outcome import Exit
from pipeline.types import Priority

# More paths than this are no longer one person waiting for one answer.
_INTERACTIVE_PATHS = 5
_BARS = 8
_NAME_CHARS = 40


def run(given: argparse.Namespace) -> int:
    documents = batch.find(given.paths, recursive=given.recursive)
    bulk = given.recursive or len(documents) > _INTERACTIVE_PATHS
    fields = {"priority": str(Priority.BULK if bulk else Priority.INTERACTIVE)}
    if given.subject:
        fields["subject"] = terminal.sendable(given.subject)
    with Gateway(connection.find(given.data)) as gateway, _Display(documents, quiet=given.json) as display:
        for document in Batch(gateway, documents, fields).run(wait=not given.no_wait):
            display.show(document, followed=not given.no_wait)
    failed = [document for document in documents if document.failed]
    if given.json:
        terminal.document([document.report() for document in documents])
    elif failed or len(documents) != 1:
        terminal.say(_summary(documents, failed))
    return Exit.SOME_FAILED if failed else Exit.DONE


def _summary(documents: Sequence[Document], failed: Sequence[Document]) -> str:
    ready = sum(document.status == "ready" for document in documents)
    told = f"{ready} of {terminal.counted(len(documents), 'document')} ready"
    return told + (f", {len(failed)} failed" if failed else "")


class _Display:
    """Bars on a terminal (stderr), one line for each document that has ended (stdout)."""

    def __init__(self, documents: Sequence[Document], *, quiet: bool) -> None:
        self._quiet = quiet
        self._said: set[Document] = set()
        self._bars: dict[Document, TaskID] = {}
        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=30),
            TextColumn("{task.fields[counts]}", markup=False),
            console=console,
            transient=True,
            # Bars and lines share the screen only when both go to it.
            disable=not (console.is_terminal and (quiet or sys.stdout.isatty())),
        )
        self._total = self._progress.add_task("all", total=len(documents), counts="", visible=len(documents) > 1)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def show(self, document: Document, *, followed: bool) -> None:
        if document in self._said:
            return
        if document.ended or not followed:
            self._said.add(document)
            self._end_bar(document)
            if not self._quiet:
                # Through the bars' console, which takes them off the line while it is written.
                self._progress.console.file.flush()
                self._say(document)
        elif document.source is not None:
            self._move_bar(document)

    def _say(self, document: Document) -> None:
        name = terminal.line(document.path)
        if document.failure is not None:
            failure = document.failure
            told = f"{name}: {failure['code']}: {failure['detail']} {failure['remedy']}"
            line = f"{'failed' if document.failed else failure['code']:<8} {terminal.line(told)}"
        else:
            counts = (
                [terminal.counted(document.source[kind], kind[:-1]) for kind in ("pages", "chunks")]
                if document.source
                else []
            )
            line = f"{document.status:<8} {name} ({', '.join(counts)}) {document.source_id}"
        if self._progress.disable:
            terminal.say(line)
            sys.stdout.flush()
        else:
            self._progress.stop()
            terminal.say(line)
            sys.stdout.flush()
            self._progress.start()

    def _move_bar(self, document: Document) -> None:
        if document not in self._bars:
            if len(self._bars) >= _BARS:
                return
            self._bars[document] = self._progress.add_task("", total=None, counts="")
        source = document.source
        done, total = source["progress"]["done"], source["progress"]["total"]
        self._progress.update(
            self._bars[document],
            description=terminal.line(document.path.name)[-_NAME_CHARS:].ljust(_NAME_CHARS),
            total=total or None,
            completed=done,
            counts=terminal.line(reading.progress(source)),
        )

    def _end_bar(self, document: Document) -> None:
        bar = self._bars.pop(document, None)
        if bar is not None:
            self._progress.remove_task(bar)
        self._progress.update(self._total, advance=1, counts=f"{len(self._said)} documents")
