"""Plain text: paragraphs between blank lines, line ends kept."""

from __future__ import annotations

import re

from pipeline.engines.documents.charset import decode
from pipeline.engines.documents.sink import BlockSink, Limits
from pipeline.stages.clean import clean_text
from pipeline.types import Block, BlockKind, WindowText

_BLANK_LINES = re.compile(r"\n[^\S\n]*(?:\n[^\S\n]*)+")


def read_text(data: bytes, limits: Limits) -> WindowText:
    """One paragraph block for each run of lines without a blank one."""
    sink = BlockSink(limits)
    text = clean_text(decode(data))
    start = 0
    for gap in _BLANK_LINES.finditer(text):
        sink.add(Block(BlockKind.PARAGRAPH, text[start : gap.start()]))
        start = gap.end()
        if sink.full:
            break
    sink.add(Block(BlockKind.PARAGRAPH, text[start:]))
    return sink.window()
