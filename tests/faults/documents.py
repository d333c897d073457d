"""Ten documents of every kind the pipeline treats differently, new for every seed."""

from __future__ import annotations

import random
from dataclasses import dataclass

from pipeline.flow import Stage
from tests.inputs import pdfs, pictures, word

_WORDS = (
    "pump",
    "valve",
    "bearing",
    "shaft",
    "filter",
    "gasket",
    "torque",
    "coolant",
    "spindle",
    "flange",
    "sensor",
    "relay",
    "breaker",
    "coupling",
)


@dataclass(frozen=True)
class Document:
    filename: str
    media_type: str
    body: bytes


def ten(seed: int) -> list[Document]:
    """Text, Markdown, HTML, tables, Word, a short and a long PDF (which fans out), a scan and a screenshot."""
    dice = random.Random(seed)
    return [
        Document("note.txt", "text/plain", _prose(dice, 6).encode()),
        Document("memo.txt", "text/plain", _prose(dice, 3).encode()),
        Document(
            "handbook.md",
            "text/markdown",
            f"# Book\n\n{_prose(dice, 2)}\n\n## Torque\n\n{_prose(dice, 2)}".encode(),
        ),
        Document("faq.md", "text/markdown", f"# Questions\n\n- {_sentence(dice)}\n- {_sentence(dice)}\n".encode()),
        Document("page.html", "text/html", _html(dice)),
        Document("parts.csv", "text/csv", _table(dice)),
        Document("report.docx", _DOCX, word.document("".join(word.paragraph(_sentence(dice)) for _ in range(5)))),
        Document("manual.pdf", "application/pdf", long_pdf(dice, 40)),
        Document("scan.pdf", "application/pdf", pictures.scan_pdf(pictures.page(_sentence(dice), _sentence(dice)))),
        Document("screen.png", "image/png", image(dice)),
    ]


def meeting(stage: Stage, seed: int, number: int) -> Document:
    """One that passes every point of ``stage``; at extract it is long enough to fan out."""
    dice = random.Random(f"{seed}-{stage}-{number}")
    if stage is Stage.OCR:
        return Document(f"screen-{number}.png", "image/png", image(dice))
    if stage is Stage.EXTRACT and number % 2 == 0:
        return Document(f"manual-{number}.pdf", "application/pdf", long_pdf(dice, 40))
    return short(seed, number, stage)


def short(seed: int, number: int, kind: str = "note") -> Document:
    """A note that is read in no time."""
    dice = random.Random(f"{seed}-{kind}-{number}")
    return Document(f"{kind}-{number}.txt", "text/plain", _prose(dice, 2).encode())


def image(dice: random.Random) -> bytes:
    return pictures.saved(pictures.page(_sentence(dice), _sentence(dice)))


def long_pdf(dice: random.Random, pages: int) -> bytes:
    return pdfs.pdf(
        [pdfs.lines(72, 720, [f"Chapter {page}", *(_sentence(dice) for _ in range(4))]) for page in range(1, pages + 1)]
    )


_DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


def _sentence(dice: random.Random) -> str:
    first, second, third = dice.sample(_WORDS, 3)
    return f"The {first} of unit {dice.randrange(10**6)} holds the {second} against the {third}."


def _prose(dice: random.Random, paragraphs: int) -> str:
    return "\n\n".join(" ".join(_sentence(dice) for _ in range(4)) for _ in range(paragraphs))


def _html(dice: random.Random) -> bytes:
    return f"<html><body><h1>Notice</h1><p>{_sentence(dice)}</p><p>{_sentence(dice)}</p></body></html>".encode()


def _table(dice: random.Random) -> bytes:
    rows = [f"{dice.choice(_WORDS)},{dice.randrange(10**6)},{dice.randrange(500)}" for _ in range(30)]
    return ("part,number,price\n" + "\n".join(rows) + "\n").encode()
