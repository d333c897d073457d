"""Which pages need OCR, and how what it read joins what the document says by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import fmean, median

from pipeline.stages.clean import clean_text
from pipeline.stages.garble import GARBLED
from pipeline.stages.hyphens import SOFT_HYPHEN, Joiner, without_mark
from pipeline.stages.layout import union_by_page
from pipeline.types import Block, BlockKind, Box, ExtractedDocument, Page, PageMethod, RecognisedPage, Word

# Recognition below this mean confidence is no better than text that a broken font map gave.
_WORSE_THAN_GARBLED = 0.4
# A short paragraph in letters so much taller than the usual ones is a heading, of the first level from the second.
_HEADING_HEIGHT, _TITLE_HEIGHT = 1.35, 1.8
_MAX_HEADING_LINES, _MAX_HEADING_CHARS = 3, 120


def pages_needing_ocr(pages: Sequence[Page]) -> tuple[int, ...]:
    """Numbers of the pages whose text is still to be recognised. A page that cannot be drawn has no size."""
    return tuple(
        page.page for page in pages if page.method is PageMethod.SKIPPED and page.width > 0 and page.height > 0
    )


def merge(document: ExtractedDocument, recognised: Sequence[RecognisedPage]) -> ExtractedDocument:
    """The document with what OCR read on some of its pages, blocks in page order.

    Recognised blocks carry the mean confidence of their words. They replace garbled text; beside sound text (the page
    is ``mixed`` then) only what does not lie over it is taken. A page without any text is ``blank``, with the
    confidence the engine gave.
    """
    pages = {page.page: page for page in document.pages}
    blocks = list(document.blocks)
    resolved: set[str] = set()
    for read in sorted(recognised, key=lambda item: item.page):
        page = pages[read.page]
        here = [block for block in blocks if block.page == page.page and not block.hidden]
        garbled = page.garble >= GARBLED
        if garbled and here and (not read.words or read.confidence < _WORSE_THAN_GARBLED):
            pages[page.page] = replace(page, method=PageMethod.NATIVE, confidence=read.confidence)
            continue
        if garbled:
            dropped = set(map(id, here))
            blocks = [block for block in blocks if id(block) not in dropped]
            resolved.add(f"Page {page.page}: {page.warning}")
            page, here = replace(page, warning=None), []
        found = _blocks(read, [box for block in here for box in block.boxes if box.page == page.page])
        blocks = _placed(blocks, found, page.page)
        pages[page.page] = replace(page, method=_method(bool(here), bool(found)), confidence=read.confidence)
    return replace(
        document,
        blocks=tuple(blocks),
        pages=tuple(pages[page.page] for page in document.pages),
        warnings=tuple(warning for warning in document.warnings if warning not in resolved),
    )


def _method(native: bool, found: bool) -> PageMethod:
    if found:
        return PageMethod.MIXED if native else PageMethod.OCR
    return PageMethod.NATIVE if native else PageMethod.BLANK


def _placed(blocks: Sequence[Block], found: Sequence[Block], number: int) -> list[Block]:
    """All blocks in page order; on page ``number`` recognised and native ones from top to bottom."""
    before = [block for block in blocks if (block.page or 0) < number]
    own = [block for block in blocks if (block.page or 0) == number]
    after = [block for block in blocks if (block.page or 0) > number]
    if not found:
        return [*before, *own, *after]
    # Recognised blocks keep the order the engine gave them, which knows columns; native ones are few and fall between.
    merged = list(found)
    for block in own:
        top = _top(block, number)
        place = next((at for at, other in enumerate(merged) if _top(other, number) > top), len(merged))
        merged.insert(place, block)
    return [*before, *merged, *after]


def _top(block: Block, page: int) -> float:
    return min((box.y0 for box in block.boxes if box.page == page), default=0.0)


@dataclass(frozen=True, slots=True)
class _TextLine:
    words: tuple[Word, ...]
    box: Box
    turned: bool

    @property
    def text(self) -> str:
        return clean_text(" ".join(word.text for word in self.words))

    @property
    def height(self) -> float:
        """Of the letters, as they stand: on a page lying on its side their height runs across."""
        return self.box.x1 - self.box.x0 if self.turned else self.box.y1 - self.box.y0


def _blocks(read: RecognisedPage, taken: Sequence[Box]) -> list[Block]:
    paragraphs = [[line for line in lines if not _covered(line.box, taken)] for lines in _paragraphs(read)]
    paragraphs = [lines for lines in paragraphs if lines]
    if not paragraphs:
        return []
    usual = median(line.height for lines in paragraphs for line in lines for _ in line.words)
    joiner = Joiner([line.text for lines in paragraphs for line in lines])
    return [block for lines in paragraphs if (block := _block(lines, usual, joiner)) is not None]


def _is_text(word: Word) -> bool:
    """Not a speck: an engine gives specks and rules as words of no confidence and no letter or digit."""
    return bool(word.text.strip()) and (word.confidence > 0 or any(map(str.isalnum, word.text)))


def _paragraphs(read: RecognisedPage) -> Iterator[list[_TextLine]]:
    turned = read.rotation in (90, 270)
    for _, paragraph in groupby(filter(_is_text, read.words), key=lambda word: word.paragraph):
        yield [_line(tuple(group), turned) for _, group in groupby(paragraph, key=lambda word: word.line)]


def _line(words: tuple[Word, ...], turned: bool) -> _TextLine:
    return _TextLine(words, union_by_page(word.box for word in words)[0], turned)


def _covered(box: Box, taken: Sequence[Box]) -> bool:
    x, y = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
    return any(other.x0 <= x <= other.x1 and other.y0 <= y <= other.y1 for other in taken)


def _block(lines: Sequence[_TextLine], usual: float, joiner: Joiner) -> Block | None:
    text = ""
    for line in lines:
        text = joiner.join(text, line.text) if text else line.text
        if len(text) > 1 and text[-1] == "-" and text[-2].isalpha():
            text = text[:-1] + SOFT_HYPHEN
    text = " ".join(without_mark(text).split())
    if not text:
        return None
    words = [word for line in lines for word in line.words]
    level = _heading_level(lines, text, usual)
    return Block(
        kind=BlockKind.HEADING if level else BlockKind.PARAGRAPH,
        text=text,
        level=level,
        page=lines[0].box.page,
        boxes=union_by_page(line.box for line in lines),
        method=PageMethod.OCR,
        confidence=round(fmean(word.confidence for word in words), 4),
    )


def _heading_level(lines: Sequence[_TextLine], text: str, usual: float) -> int:
    """1 or 2 for a heading, else 0. Only the height of letters is left as evidence on an image."""
    ratio = median(line.height for line in lines) / usual if usual > 0 else 0.0
    short = len(lines) <= _MAX_HEADING_LINES and len(text) <= _MAX_HEADING_CHARS
    if not short or ratio < _HEADING_HEIGHT or sum(map(str.isalpha, text)) < 2:
        return 0
    return 1 if ratio >= _TITLE_HEIGHT else 2
