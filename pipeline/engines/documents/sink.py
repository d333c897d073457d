"""Where readers put their blocks: cleaned, never over-long, and counted against the limits while they come."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

from pipeline.errors import DocmillError, Failure, FailureCode
from pipeline.stages.clean import clean_text
from pipeline.types import Block, BlockKind, Json, Table, WindowText

# A block's JSON is at most 64 KB, and a character at most four bytes of UTF-8 (six where JSON escapes it).
MAX_BLOCK_CHARS = 10_000
# Where an over-long text is cut: the last line end in the window, else sentence end, else space.
_CUTS = ("\n", ". ", " ")


class Refused(DocmillError):
    """A document problem found deep inside a reader; the job turns it into the failure it carries."""

    def __init__(self, code: FailureCode, detail: str) -> None:
        super().__init__(detail)
        self.failure = Failure(code, detail)


@dataclass(frozen=True, slots=True)
class Limits:
    """The contract's limits that readers count against; bytes, blocks, cells, pixels, pages."""

    max_pages: int
    max_text_bytes: int
    max_blocks: int
    max_cells: int
    max_inflated_bytes: int
    max_inflate_ratio: int
    max_image_pixels: int

    def arguments(self) -> dict[str, Json]:
        """The limits as arguments of a sandbox job."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @classmethod
    def of(cls, arguments: dict[str, Json]) -> Limits:
        """The limits back from a job's arguments."""
        return cls(**{each.name: int(str(arguments[each.name])) for each in fields(cls)})


class BlockSink:
    """Collects the blocks of one document.

    Raises :class:`Refused` with ``too-large`` past MAX_BLOCKS or MAX_CELLS. Text past MAX_TEXT_BYTES ends the
    collecting (:attr:`full`), after the block that crossed the line: the document pass truncates there and says so.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._blocks: list[Block] = []
        self._bytes = 0
        self._cells = 0

    @property
    def full(self) -> bool:
        """Whether more text was collected than will be kept; readers may stop."""
        return self._bytes > self._limits.max_text_bytes

    def add(self, block: Block) -> None:
        """Append a block; one without text (and without a table) is left out, an over-long one is split."""
        if self.full:
            return
        text = clean_text(block.text)
        if not text.strip():
            return
        text = text.strip("\n") if block.kind is BlockKind.CODE else text.strip()
        for number, part in enumerate(pieces(text)):
            self._append(replace(block, text=part, marker=block.marker if number == 0 else None), len(part.encode()))

    def add_table(self, block: Block, table: Table) -> None:
        """Append a table block. Its cells' text must be clean."""
        if self.full or not any(cell.text for cell in table.cells):
            return
        # The whole grid is laid out whenever the table is shown, cells that are not there included.
        self.check_cells(table.rows * table.columns)
        self._cells += table.rows * table.columns
        self._append(replace(block, table=table), sum(len(cell.text.encode()) for cell in table.cells))

    def check_cells(self, pending: int) -> None:
        """Raise :class:`Refused` when the cells so far and ``pending`` more of an unfinished table are too many."""
        if self._cells + pending > self._limits.max_cells:
            raise Refused(
                FailureCode.TOO_LARGE,
                f"The document has at least {self._cells + pending:,} table cells; "
                f"the limit is {self._limits.max_cells:,}.",
            )

    def window(self, title: str | None = None, warnings: tuple[str, ...] = ()) -> WindowText:
        """Everything collected, as what extraction read."""
        cleaned = " ".join(clean_text(title).split())[:500] if title else ""
        return WindowText(blocks=tuple(self._blocks), title=cleaned or None, warnings=warnings)

    def _append(self, block: Block, size: int) -> None:
        self._blocks.append(block)
        self._bytes += size
        if len(self._blocks) > self._limits.max_blocks:
            raise Refused(
                FailureCode.TOO_LARGE,
                f"The document has more than {self._limits.max_blocks:,} blocks, which is the limit.",
            )


def pieces(text: str) -> Iterator[str]:
    """``text`` in parts of at most :data:`MAX_BLOCK_CHARS`, cut at a line end, sentence or space where there is one."""
    while len(text) > MAX_BLOCK_CHARS:
        at = next(
            (
                found + len(mark)
                for mark in _CUTS
                if (found := text.rfind(mark, MAX_BLOCK_CHARS // 2, MAX_BLOCK_CHARS)) > 0
            ),
            MAX_BLOCK_CHARS,
        )
        yield text[:at].rstrip()
        text = text[at:].lstrip("\n ")
    if text:
        yield text
