"""One sandbox server with the production jobs for the engines' tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipeline.engines.asking import Asker
from pipeline.engines.inspector import SandboxedInspector
from pipeline.engines.ocr.tesseract import TesseractOcr
from pipeline.engines.parser import SandboxedParser
from pipeline.engines.sandbox.process import SandboxProcess, running_sandbox
from tests.unit.documents import LIMITS

TIMEOUT_S = 60.0
MEMORY_BYTES = 1024 * 1024 * 1024

Place = Callable[[bytes], Path]


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    jobs = ("file.inspect", "document.read", "pdf.read", "ocr.recognize")
    with running_sandbox(tmp_path_factory.mktemp("engines") / "run", preload=jobs) as process:
        yield process


@pytest.fixture
def asker(sandbox: SandboxProcess) -> Asker:
    return Asker(sandbox.client(), TIMEOUT_S, MEMORY_BYTES)


@pytest.fixture
def parser(asker: Asker) -> SandboxedParser:
    return SandboxedParser(asker, LIMITS)


@pytest.fixture
def inspector(asker: Asker) -> SandboxedInspector:
    return SandboxedInspector(asker)


@pytest.fixture
def ocr(asker: Asker) -> TesseractOcr:
    provider = TesseractOcr(asker, LIMITS, ("eng",))
    if not provider.available():
        pytest.skip("Tesseract with English is not installed")
    return provider


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Writes bytes to a file of no telling name."""

    def write(data: bytes) -> Path:
        path = tmp_path / "content"
        path.write_bytes(data)
        return path

    return write
