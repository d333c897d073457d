"""The parser, the inspector and the OCR provider around a sandbox: what is asked, and what an answer becomes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pipeline.engines import media
from pipeline.engines.asking import Asker
from pipeline.engines.inspector import SandboxedInspector
from pipeline.engines.ocr.tesseract import TesseractOcr
from pipeline.engines.parser import SandboxedParser, limits_of
from pipeline.engines.sandbox.client import DeathCause, SandboxDeath, SandboxReply
from pipeline.errors import Failure, FailureCode
from pipeline.settings import load
from pipeline.types import Block, BlockKind, DocumentProfile, Json, RecognisedPage, WindowText
from tests.unit.documents import LIMITS

HERE = Path("document")


@dataclass
class Recorder:
    """A sandbox that gives prepared answers and keeps what it was asked."""

    answers: list[bytes | SandboxDeath]
    asked: list[tuple[str, dict[str, Json]]] = field(default_factory=list)

    def call(
        self, job: str, content: Path, arguments: dict[str, Json], *, timeout_s: float, memory_bytes: int
    ) -> SandboxReply | SandboxDeath:
        assert content == HERE
        assert (timeout_s, memory_bytes) == (30.0, 1_000)
        self.asked.append((job, arguments))
        answer = self.answers.pop(0)
        return answer if isinstance(answer, SandboxDeath) else SandboxReply(answer, 1, 0.1)


def asker(*answers: bytes | SandboxDeath) -> tuple[Asker, Recorder]:
    recorder = Recorder(list(answers))
    return Asker(recorder, 30.0, 1_000), recorder


def parser(*answers: bytes | SandboxDeath) -> tuple[SandboxedParser, Recorder]:
    made, recorder = asker(*answers)
    return SandboxedParser(made, LIMITS), recorder


@pytest.mark.parametrize(
    ("media_type", "job"),
    [
        (media.PDF, "pdf.read"),
        (media.DOCX, "document.read"),
        ("image/png", "document.read"),
        (media.CSV, "document.read"),
    ],
)
def test_reading_goes_to_the_formats_own_job_with_the_limits(media_type: str, job: str) -> None:
    reading, recorder = parser(b'{"blocks":[{"kind":"paragraph","text":"x"}],"title":"T"}')
    window = reading.read(HERE, media_type, 2, 3)
    assert window == WindowText(blocks=(Block(BlockKind.PARAGRAPH, "x"),), title="T")
    name, arguments = recorder.asked[0]
    assert name == job
    assert (arguments["first_page"], arguments["last_page"], arguments["media_type"]) == (2, 3, media_type)
    assert arguments["max_pages"] == LIMITS.max_pages


@pytest.mark.parametrize(
    ("media_type", "job"),
    [(media.PDF, "pdf.profile"), (media.DOCX, "document.profile"), ("image/png", "document.profile")],
)
def test_profiles_are_asked_for_where_opening_may_refuse(media_type: str, job: str) -> None:
    reading, recorder = parser(b'{"pages":3}')
    assert reading.profile(HERE, media_type) == DocumentProfile(3)
    assert recorder.asked[0][0] == job


@pytest.mark.parametrize("media_type", [media.PLAIN, media.MARKDOWN, media.HTML, media.CSV, media.TSV])
def test_text_needs_no_opening(media_type: str) -> None:
    reading, recorder = parser()
    assert reading.profile(HERE, media_type) == DocumentProfile(0)
    assert recorder.asked == []


def test_an_accepted_type_without_a_reader_says_what_to_convert_to() -> None:
    reading, recorder = parser()
    refused = reading.profile(HERE, media.EPUB)
    assert refused == Failure(
        FailureCode.UNSUPPORTED_TYPE, "An e-book (EPUB) cannot be read here. Convert it to PDF or HTML."
    )
    assert reading.read(HERE, media.EPUB, 1, 0) == refused
    foreign = reading.profile(HERE, "video/quicktime")
    assert isinstance(foreign, Failure)
    assert foreign.code is FailureCode.UNSUPPORTED_TYPE
    assert recorder.asked == []


def test_a_refusal_comes_back_as_it_is() -> None:
    refused = Failure(FailureCode.ENCRYPTED, "The PDF can only be opened with a password.")
    reading, _ = parser(b'{"code":"encrypted","detail":"The PDF can only be opened with a password.","died":false}')
    assert reading.profile(HERE, media.PDF) == refused


@pytest.mark.parametrize(
    ("cause", "code"),
    [
        (DeathCause.TIMED_OUT, FailureCode.TIMED_OUT),
        (DeathCause.MEMORY, FailureCode.TOO_LARGE),
        (DeathCause.OUTPUT, FailureCode.TOO_LARGE),
        (DeathCause.CRASHED, FailureCode.CRASHED),
    ],
)
def test_a_dead_child_is_a_failure_that_counts_as_a_death(cause: DeathCause, code: FailureCode) -> None:
    reading, _ = parser(SandboxDeath(cause, 30.0, 1_000))
    failure = reading.read(HERE, media.HTML, 1, 0)
    assert isinstance(failure, Failure)
    assert failure.code is code
    assert failure.died


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"not json",
        b"[]",
        b'{"code":"nonsense","detail":"x"}',
        b'{"blocks":[{"kind":"paragraph"}]}',
        b'{"blocks":[{"kind":"invented","text":"x"}]}',
        b'{"blocks":[{"kind":"paragraph","text":"\\ud800"}]}',
        b'{"blocks":[{"kind":"paragraph","text":"\xff"}]}',
    ],
)
def test_an_answer_of_another_shape_is_a_crash(answer: bytes) -> None:
    reading, _ = parser(answer)
    failure = reading.read(HERE, media.HTML, 1, 0)
    assert isinstance(failure, Failure)
    assert failure.code is FailureCode.CRASHED
    assert failure.died


def test_the_inspector_asks_with_what_was_declared() -> None:
    made, recorder = asker(b'"application/pdf"', b'{"code":"unsupported-type","detail":"x"}')
    inspector = SandboxedInspector(made)
    assert inspector.sniff(HERE, "application/pdf", "a.pdf") == "application/pdf"
    assert recorder.asked == [("file.inspect", {"declared": "application/pdf", "filename": "a.pdf"})]
    assert inspector.sniff(HERE, "", "a.pdf") == Failure(FailureCode.UNSUPPORTED_TYPE, "x")


def test_recognition_asks_once_a_page_and_ends_at_the_first_failure() -> None:
    page = json.dumps({"page": 4, "words": [], "confidence": 0.5, "rotation": 90}).encode()
    made, recorder = asker(page, SandboxDeath(DeathCause.TIMED_OUT, 30.0, 1_000), page)
    provider = TesseractOcr(made, LIMITS, ("eng",))
    assert provider.recognize(HERE, media.PDF, (4,), ("eng", "deu")) == (RecognisedPage(4, (), 0.5, 90),)
    assert recorder.asked[0][0] == "ocr.recognize"
    assert recorder.asked[0][1]["languages"] == "eng+deu"
    assert recorder.asked[0][1]["page"] == 4
    failure = provider.recognize(HERE, media.PDF, (1, 2), ())
    assert isinstance(failure, Failure)
    assert (failure.code, failure.died) == (FailureCode.TIMED_OUT, True)
    assert len(recorder.asked) == 2
    assert recorder.asked[1][1]["languages"] == "eng"


def test_recognition_is_not_available_without_program_or_language(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made, _ = asker()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not TesseractOcr(made, LIMITS, ("eng",)).available()
    program = tmp_path / "tesseract"
    program.write_text("#!/bin/sh\necho 'List of available languages (2):'\necho eng\necho osd\n")
    program.chmod(0o700)
    assert TesseractOcr(made, LIMITS, ("eng",)).available()
    assert not TesseractOcr(made, LIMITS, ("eng", "deu")).available()


def test_limits_come_from_the_settings() -> None:
    limits = limits_of(load(max_pages=7, max_cells=9))
    assert (limits.max_pages, limits.max_cells) == (7, 9)
    assert limits.of(limits.arguments()) == limits
