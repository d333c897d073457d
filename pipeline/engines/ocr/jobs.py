"""The sandbox job ``ocr.recognize``: one page, drawn and read in one child."""

from __future__ import annotations

import time
from typing import BinaryIO

from pydantic import TypeAdapter

from pipeline.engines.documents.sink import Limits
from pipeline.engines.ocr.raster import rasterise
from pipeline.engines.ocr.recognise import ReadingTimedOut, Recogniser
from pipeline.errors import Failure, FailureCode
from pipeline.types import Json, RecognisedPage

_ANSWER: TypeAdapter[RecognisedPage | Failure] = TypeAdapter(RecognisedPage | Failure)
# Tesseract is stopped this much before the sandbox would stop the child, so that a first reading is not lost.
_MARGIN_S = 3.0


def recognize(content: BinaryIO, arguments: dict[str, Json]) -> bytes:
    """Arguments: ``media_type``, ``page`` (from 1), ``languages`` (``eng+deu``), ``timeout_s`` and those of Limits."""
    began = time.monotonic()
    timeout_s = float(str(arguments["timeout_s"]))
    page = int(str(arguments["page"]))
    raster = rasterise(content, str(arguments["media_type"]), page, Limits.of(arguments))
    if isinstance(raster, Failure):
        return _ANSWER.dump_json(raster)
    deadline = began + max(timeout_s / 2, timeout_s - _MARGIN_S)
    try:
        reading = Recogniser(str(arguments["languages"]), deadline).read(raster, page)
    except ReadingTimedOut:
        detail = f"Recognising page {page} took longer than the limit of {timeout_s:g} seconds."
        return _ANSWER.dump_json(Failure(FailureCode.TIMED_OUT, detail, died=True))
    return _ANSWER.dump_json(RecognisedPage(page, reading.words, reading.confidence, reading.rotation))
