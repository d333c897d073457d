"""The OCR provider: Tesseract's command line through pytesseract, a sandbox child for every page."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from pydantic import TypeAdapter

from pipeline.engines.asking import Asker
from pipeline.engines.documents.sink import Limits
from pipeline.errors import Failure
from pipeline.types import RecognisedPage

RECOGNIZE = "ocr.recognize"
_PROGRAM = "tesseract"
_LIST_TIMEOUT_S = 20.0
_PAGE = TypeAdapter(RecognisedPage)


class TesseractOcr:
    """:class:`~pipeline.ports.OcrProvider`. Confidence is the mean of its words' own, weighed by their length."""

    def __init__(self, asker: Asker, limits: Limits, languages: Sequence[str]) -> None:
        """``languages`` are Tesseract's names (``eng``), all of which must be installed."""
        self._asker = asker
        self._limits = limits
        self._languages = tuple(languages)

    def available(self) -> bool:
        """Whether the program and the data of every configured language are installed."""
        program = shutil.which(_PROGRAM)
        if program is None:
            return False
        try:
            listed = subprocess.run(
                [program, "--list-langs"], capture_output=True, text=True, timeout=_LIST_TIMEOUT_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        return set(self._languages) <= set(listed.stdout.split())

    def recognize(
        self, content: Path, media_type: str, pages: Sequence[int], languages: Sequence[str]
    ) -> tuple[RecognisedPage, ...] | Failure:
        """Read each page; the first that fails is the answer. Raises ``TransientError('sandbox', …)``."""
        recognised: list[RecognisedPage] = []
        for page in pages:
            answer = self._asker.ask(
                RECOGNIZE,
                content,
                {
                    **self._limits.arguments(),
                    "media_type": media_type,
                    "page": page,
                    "languages": "+".join(languages or self._languages),
                    "timeout_s": self._asker.timeout_s,
                },
                _PAGE,
            )
            if isinstance(answer, Failure):
                return answer
            recognised.append(answer)
        return tuple(recognised)
