"""Documents through the production's handlers and a real sandbox: what reaches OCR, and how a document ends."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pypdfium2
import pytest
from PIL import Image

from pipeline import bootstrap
from pipeline.engines import parser
from pipeline.engines.asking import Asker
from pipeline.engines.ocr.tesseract import TesseractOcr
from pipeline.engines.parser import SandboxedParser
from pipeline.engines.sandbox.process import SandboxProcess, running_sandbox
from pipeline.errors import Failure, FailureCode
from pipeline.flow import Stage
from pipeline.ports import OcrProvider
from pipeline.records import Source
from pipeline.services.ingest.extract import Extract
from pipeline.services.ingest.ocr import Ocr
from pipeline.settings import Settings, load
from pipeline.testing.engines import SCANNED, MemoryOcr, pretend_pdf, pretend_png
from pipeline.types import GenerationRef, PageMethod, RecognisedPage, WindowText
from tests.conftest import DatabaseUrls
from tests.inputs import pdfs
from tests.inputs.pictures import SENTENCES, page, saved, scan_pdf, text_pdf
from tests.integration.workshop import LIMITS, PDF, THRESHOLD, Parser, Workshop
from tests.state import State, open_state

PNG = "image/png"
WORDS = "The cooling pump reports ERR-4021 again"


@dataclass
class Spy:
    """OcrProvider that notes every page it is given, whatever comes of it."""

    inner: OcrProvider
    asked: list[int] = field(default_factory=list)

    def available(self) -> bool:
        return self.inner.available()

    def recognize(
        self, content: Path, media_type: str, pages: Sequence[int], languages: Sequence[str]
    ) -> tuple[RecognisedPage, ...] | Failure:
        self.asked.extend(pages)
        return self.inner.recognize(content, media_type, pages, languages)


@pytest.fixture(scope="module")
def shared(database_urls: DatabaseUrls) -> Iterator[State]:
    opened = open_state(database_urls)
    yield opened
    opened.worker.dispose()
    opened.superuser.dispose()


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    jobs = ("file.inspect", "document.read", "pdf.read", "ocr.recognize")
    with running_sandbox(tmp_path_factory.mktemp("runner") / "run", preload=jobs) as process:
        yield process


@pytest.fixture
def bare(shared: State, tmp_path: Path) -> Workshop:
    """Engines in memory."""
    return Workshop(replace(shared, tenant_id=shared.another_tenant()), tmp_path)


def settings() -> Settings:
    return load(low_confidence_threshold=THRESHOLD, max_pages=50)


def asker(sandbox: SandboxProcess, timeout_s: float = 60.0) -> Asker:
    return Asker(sandbox.client(), timeout_s, 1024 * 1024 * 1024)


@pytest.fixture
def spy(sandbox: SandboxProcess) -> Spy:
    engine = TesseractOcr(asker(sandbox), parser.limits_of(settings()), ("eng",))
    if not engine.available():
        pytest.skip("Tesseract with English is not installed")
    return Spy(engine)


@pytest.fixture
def workshop(bare: Workshop, sandbox: SandboxProcess, spy: Spy) -> Workshop:
    """The production's own handlers, with a spy in front of its OCR."""
    made = bootstrap.handlers(settings(), bare.state.units, bare.cache, sandbox.client(), bare.embedder)
    bare.replaced = dict(made)
    use_ocr(bare, spy)
    return bare


def use_ocr(workshop: Workshop, engine: OcrProvider) -> None:
    workshop.replaced[Stage.OCR] = Ocr(workshop.state.units, workshop.cache, engine, ("eng",), THRESHOLD)


def code(source: Source) -> FailureCode | None:
    failure = source.latest.failure
    return None if failure is None else failure.code


def joined(*documents: bytes) -> bytes:
    """One PDF of all their pages."""
    whole = pypdfium2.PdfDocument.new()
    for data in documents:
        part = pypdfium2.PdfDocument(data)
        whole.import_pages(part)
        part.close()
    buffer = io.BytesIO()
    whole.save(buffer)
    whole.close()
    return buffer.getvalue()


# --- what reaches OCR ---


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (pdfs.pdf([pdfs.PageSpec()], passwords=(b"secret", b"owner")), FailureCode.ENCRYPTED),
        (scan_pdf(page(WORDS))[:3_000], FailureCode.MALFORMED),
        (b"%PDF-1.7\n" + b"nothing of a document " * 20, FailureCode.MALFORMED),
        (text_pdf(WORDS)[:-200], FailureCode.MALFORMED),
    ],
    ids=["encrypted", "half a scan", "no objects", "cut"],
)
def test_what_cannot_be_opened_never_reaches_ocr(
    workshop: Workshop, spy: Spy, body: bytes, expected: FailureCode
) -> None:
    source = workshop.ingest(body, "a.pdf", PDF)
    assert (source.status, code(source), spy.asked) == ("failed", expected, [])


def test_more_pages_than_are_taken_never_reach_ocr(workshop: Workshop, spy: Spy) -> None:
    source = workshop.ingest(scan_pdf(*[Image.new("L", (60, 60), 0)] * 51), "a.pdf", PDF)
    assert (code(source), spy.asked) == (FailureCode.TOO_MANY_PAGES, [])
    assert source.latest.failure is not None
    assert "51" in source.latest.failure.detail
    assert "50" in source.latest.failure.detail


def test_only_the_pages_that_need_it_reach_ocr(workshop: Workshop, spy: Spy) -> None:
    body = joined(text_pdf(*SENTENCES), scan_pdf(page(WORDS)), text_pdf(*SENTENCES), pdfs.pdf([pdfs.PageSpec()]))
    source = workshop.ingest(body, "mixed.pdf", PDF)
    assert (source.status, code(source), spy.asked) == ("ready", None, [2])
    ref = GenerationRef(workshop.state.tenant_id, source.source_id, 1)
    pages = workshop.reading.pages(workshop.principal(), ref.source_id)
    assert [one.method for one in pages] == [PageMethod.NATIVE, PageMethod.OCR, PageMethod.NATIVE, PageMethod.BLANK]
    assert not source.low_confidence
    assert source.confidence is not None
    assert source.confidence > THRESHOLD
    recognised = next(hit for hit in workshop.hits("again"))
    assert WORDS in recognised.content
    assert 2 in recognised.location.pages


def test_text_alone_never_reaches_ocr(workshop: Workshop, spy: Spy) -> None:
    assert workshop.ingest(text_pdf(*SENTENCES), "text.pdf", PDF).status == "ready"
    assert workshop.ingest(b"# Pump\n\nERR-4021\n", "note.md", "text/markdown").status == "ready"
    assert spy.asked == []
    assert len(workshop.hits("ERR-4021")) == 2


# --- how a document ends ---


def test_a_blank_document_is_empty(workshop: Workshop, spy: Spy) -> None:
    for body, name, kind in (
        (pdfs.pdf([pdfs.PageSpec()] * 2), "blank.pdf", PDF),
        (b" \n\n", "blank.txt", "text/plain"),
    ):
        source = workshop.ingest(body, name, kind)
        assert (source.status, code(source), spy.asked) == ("failed", FailureCode.EMPTY, [])


def test_pictures_without_words_end_by_their_kind(workshop: Workshop, spy: Spy) -> None:
    photo = Image.new("RGB", (640, 480), (120, 170, 230))
    assert code(workshop.ingest(saved(photo), "photo.png", PNG)) is FailureCode.NO_VISION
    assert code(workshop.ingest(scan_pdf(photo), "photo.pdf", PDF)) is FailureCode.NO_TEXT_LAYER
    assert spy.asked == [1, 1]


def test_without_an_ocr_engine_a_scan_has_no_text_and_a_mixed_document_says_what_is_missing(
    workshop: Workshop,
) -> None:
    absent = MemoryOcr(installed=False)
    use_ocr(workshop, absent)
    scan = workshop.ingest(scan_pdf(page(WORDS)), "scan.pdf", PDF)
    assert (scan.status, code(scan)) == ("failed", FailureCode.NO_TEXT_LAYER)
    picture = workshop.ingest(saved(page(WORDS)), "scan.png", PNG)
    assert code(picture) is FailureCode.NO_VISION
    mixed = workshop.ingest(joined(text_pdf(*SENTENCES), scan_pdf(page(WORDS))), "mixed.pdf", PDF)
    assert (mixed.status, code(mixed)) == ("ready", None)
    window = workshop.reading.document(workshop.principal(), mixed.source_id, 0, 50)
    assert any("no OCR engine is installed" in warning for warning in window.warnings)
    assert absent.asked == []


def test_a_lie_about_the_type_is_found_before_anything_is_parsed(workshop: Workshop, spy: Spy) -> None:
    source = workshop.ingest(saved(page(WORDS)), "scan.pdf", PDF)
    assert (code(source), spy.asked) == (FailureCode.UNSUPPORTED_TYPE, [])
    ref = GenerationRef(workshop.state.tenant_id, source.source_id, 1)
    assert set(workshop.state.stages(ref)) == {Stage.REGISTER}


def test_a_reader_that_takes_too_long_is_tried_twice_in_a_real_sandbox(
    workshop: Workshop, sandbox: SandboxProcess
) -> None:
    hasty = SandboxedParser(asker(sandbox, 0.2), parser.limits_of(settings()))
    workshop.replaced[Stage.EXTRACT] = Extract(workshop.cache, hasty, LIMITS)
    ref = workshop.upload(b"[a](b " * 2_000_000, "slow.md", "text/markdown")
    workshop.drive(ref)
    source = workshop.source(ref)
    assert (source.status, code(source)) == ("failed", FailureCode.TIMED_OUT)
    assert workshop.stage(ref, Stage.EXTRACT, "attempts", "lost_leases") == (2, 0)
    assert workshop.ingest(b"# Next\n\nis read\n", "next.md", "text/markdown").status == "ready"


# --- unsure recognition ---


def test_unsure_recognition_is_flagged_in_three_places_and_on_hits(bare: Workshop) -> None:
    bare.ocr = MemoryOcr(confidence=0.5)
    source = bare.ingest(pretend_pdf("The harbour", f"{SCANNED}The quay is nine metres"), "scan.pdf", PDF)
    assert (source.status, source.low_confidence, source.confidence) == ("ready", True, 0.5)
    window = bare.reading.document(bare.principal(), source.source_id, 0, 50)
    assert window.low_confidence
    assert window.warnings == ("Text recognition was unsure on page 2: check it against the original.",)
    (file,) = bare.files.page(bare.principal(), 10, None).items
    assert file.low_confidence
    (hit,) = bare.hits("quay")
    assert (hit.low_confidence, hit.confidence) == (True, 0.5)


def test_one_unsure_page_among_sure_ones_is_still_flagged(bare: Workshop) -> None:
    class Uneven(MemoryOcr):
        """Sure of every page but the third."""

        def recognize(
            self, content: Path, media_type: str, pages: Sequence[int], languages: Sequence[str]
        ) -> tuple[RecognisedPage, ...] | Failure:
            inner = MemoryOcr(confidence=0.3 if list(pages) == [3] else 0.99)
            return inner.recognize(content, media_type, pages, languages)

    bare.ocr = Uneven()
    source = bare.ingest(pretend_pdf(*(f"{SCANNED}Berth{number}" for number in range(1, 11))), "scan.pdf", PDF)
    assert (source.status, source.low_confidence) == ("ready", True)
    assert source.confidence is not None
    assert source.confidence > THRESHOLD
    window = bare.reading.document(bare.principal(), source.source_id, 0, 50)
    assert window.warnings == ("Text recognition was unsure on page 3: check it against the original.",)


def test_sure_recognition_is_flagged_nowhere(bare: Workshop) -> None:
    source = bare.ingest(pretend_png("The quay is nine metres"), "scan.png", PNG)
    window = bare.reading.document(bare.principal(), source.source_id, 0, 50)
    (file,) = bare.files.page(bare.principal(), 10, None).items
    (hit,) = bare.hits("quay")
    assert (source.low_confidence, window.low_confidence, window.warnings) == (False, False, ())
    assert (file.low_confidence, hit.low_confidence, hit.confidence) == (False, False, 0.95)


def test_a_copy_of_an_unsure_document_is_flagged_too(bare: Workshop) -> None:
    bare.ocr = MemoryOcr(confidence=0.5)
    source = bare.ingest(pretend_png("The quay"), "scan.png", PNG)
    copy = bare.upload_again(pretend_png("The quay"), "copy.png", PNG)
    assert copy.sources == (source.source_id,)
    assert copy.low_confidence


class Garbling(Parser):
    """Gives the text of each page that begins with «#» as a font without a map would."""

    def read(self, content: Path, media_type: str, first_page: int, last_page: int) -> WindowText | Failure:
        read = super().read(content, media_type, first_page, last_page)
        assert isinstance(read, WindowText)
        garbled = {line.page for line in read.lines if line.text.startswith("#")}
        pages = (
            replace(one, method=PageMethod.SKIPPED, garble=1.0) if one.page in garbled else one for one in read.pages
        )
        return replace(read, pages=tuple(pages))


def test_garbled_text_that_nothing_better_replaces_is_flagged(bare: Workshop) -> None:
    bare.parser = Garbling()
    body = pretend_pdf("The quay is nine metres wide.", "#$%& &$%# #$&")
    bare.ocr = MemoryOcr(confidence=0.2)
    worse = bare.ingest(body, "worse.pdf", PDF)
    assert (worse.status, worse.low_confidence) == ("ready", True)
    bare.ocr = MemoryOcr(confidence=0.9)
    replaced = bare.ingest(body + b"\n%%EOF", "replaced.pdf", PDF)
    assert (replaced.status, replaced.low_confidence) == ("ready", False)
    bare.ocr = MemoryOcr(installed=False)
    without = bare.ingest(body + b" \n%%EOF", "without.pdf", PDF)
    assert (without.status, without.low_confidence) == ("ready", True)


def test_garbled_text_alone_is_no_text_layer_without_an_engine(bare: Workshop) -> None:
    bare.parser = Garbling()
    bare.ocr = MemoryOcr(installed=False)
    source = bare.ingest(pretend_pdf("#$%& &$%# #$&", "#%$"), "garbled.pdf", PDF)
    assert (source.status, code(source)) == ("failed", FailureCode.NO_TEXT_LAYER)
