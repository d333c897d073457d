"""How soon a 200-page text PDF is searchable, against raw extraction plus raw embedding of the same chunks.

``python -m benchmarks.long_pdf [--pages N] [--json]``. Both sides are measured in one run, in wall seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import time
from pathlib import Path

import weasyprint

from benchmarks import floor
from benchmarks.stack import CALM, MAIN_QUEUES, Stack
from pipeline import bootstrap
from pipeline.engines.embedding.factory import build_embedder
from pipeline.services.search import SearchRequest
from pipeline.settings import load
from pipeline.types import Found, SearchMode

WORDS = [
    "the",
    "pump",
    "pressure",
    "valve",
    "shaft",
    "bearing",
    "coolant",
    "filter",
    "motor",
    "panel",
    "switch",
    "relay",
    "sensor",
    "reading",
    "operator",
    "checks",
    "adjusts",
    "replaces",
    "cleans",
    "measures",
    "records",
    "every",
    "weekly",
    "monthly",
    "after",
    "before",
    "during",
    "normal",
    "operation",
    "limit",
    "value",
    "torque",
    "level",
    "temperature",
    "line",
    "supply",
    "return",
    "housing",
    "cover",
    "seal",
    "gasket",
    "screw",
    "thread",
    "unit",
    "service",
    "interval",
    "report",
]
# The worker instances of one machine, as docmill up starts them.
MAIN = ("--queues", MAIN_QUEUES, "--pool", "prefork", "--concurrency", "2")
EMBED = ("--queues", "embed", "--pool", "solo")
PARAGRAPHS_PER_PAGE = 5


def manual(pages: int, target: Path) -> str:
    """Write a text PDF of so many pages; return the sentence that stands on page 137 (or the last) alone."""
    chance = random.Random(7)
    marked = min(137, pages)
    needle = f"The release code of the emergency gate is KX-{marked:04d}-Q."
    sections = []
    for page in range(1, pages + 1):
        body = "".join(
            "<p>" + " ".join(chance.choice(WORDS) for _ in range(70)).capitalize() + ".</p>"
            for _ in range(PARAGRAPHS_PER_PAGE)
        )
        extra = f"<p>{needle}</p>" if page == marked else ""
        sections.append(f"<section><h2>Procedure {page}</h2>{extra}{body}</section>")
    style = "section{page-break-after:always} body{font:10pt DejaVu Sans}"
    weasyprint.HTML(string=f"<style>{style}</style>" + "".join(sections)).write_pdf(str(target))
    return needle


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=200)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    arguments = parser.parse_args()
    os.environ.update(CALM)
    with tempfile.TemporaryDirectory() as holder:
        document = Path(holder) / "manual.pdf"
        manual(arguments.pages, document)
        workers = [
            ("--queues", MAIN_QUEUES, "--pool", "prefork", "--concurrency", "2"),
            ("--queues", "embed", "--pool", "solo"),
        ]
        with Stack(workers, capacity=2) as stack:
            warm = Path(holder) / "warm.pdf"
            manual(3, warm)
            stack.forget(stack.ingest([warm]))
            began = time.monotonic()
            (source,) = stack.ingest([document])
            searchable_s = time.monotonic() - began
            question = SearchRequest("release code of the emergency gate", SearchMode.HYBRID, 1)
            answer = stack.gateway.search.search(stack.principal, question)
            settings = load()
            raw = floor.Floor(settings, build_embedder(settings), bootstrap.chunker())
            raw.embed(raw.chunks(warm))
            began = time.monotonic()
            chunks = raw.chunks(document)
            extraction_s = time.monotonic() - began
            began = time.monotonic()
            raw.embed(chunks)
            embedding_s = time.monotonic() - began
    found = answer.hits[0].location.pages if isinstance(answer, Found) else ()
    figures = {
        "pages": arguments.pages,
        "status": source.status,
        "chunks": source.chunks,
        "searchable_s": round(searchable_s, 2),
        "raw_extraction_s": round(extraction_s, 2),
        "raw_embedding_s": round(embedding_s, 2),
        "ratio": round(searchable_s / (extraction_s + embedding_s), 3),
        "first_hit_pages": list(found),
        "right_page": min(137, arguments.pages),
    }
    print(json.dumps(figures) if arguments.json else "\n".join(f"{name:20} {value}" for name, value in figures.items()))
    return 0 if min(137, arguments.pages) in found else 1


if __name__ == "__main__":
    raise SystemExit(main())
