"""What the pipeline costs over the bare stage functions, and what a second worker process gains.

``python -m benchmarks.pipeline [--corpus DIR] [--json]``. Prints two ratios of one run:

* CPU: of the whole stack while it ingests, idle services subtracted, over the same stage functions in one process;
* wall: two worker processes over one, on documents enough to fill both.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks import floor
from benchmarks.stack import ALL_QUEUES, CALM, REPOSITORY, Stack, documents
from pipeline import bootstrap
from pipeline.engines.embedding.factory import build_embedder
from pipeline.records import Source
from pipeline.settings import load

# Idle services (beat, heartbeats, checkpoints) are measured for this long.
IDLE_S = 10.0
# Enough to keep two processes busy, so that the last document is no large share of the whole.
LEAST_DOCUMENTS = 70
SOLO = ("--queues", ALL_QUEUES, "--pool", "solo")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _floor_in_child(paths: list[Path], answer: Any) -> None:
    settings = load()
    measured = floor.Floor(settings, build_embedder(settings), bootstrap.chunker())
    for path in {path.suffix: path for path in paths}.values():
        measured.ingest(path)  # loads the model and the parsers
    before = floor.cpu_s()
    chunks = sum(measured.ingest(path) for path in paths)
    answer.put((floor.cpu_s() - before, chunks))


def floor_cpu_s(paths: list[Path]) -> tuple[float, int]:
    """CPU seconds and chunks of the bare stage functions, in a fresh process, after a warm-up."""
    os.environ.update(CALM)
    context = multiprocessing.get_context("spawn")
    answer = context.Queue()
    process = context.Process(target=_floor_in_child, args=(paths, answer))
    process.start()
    result: tuple[float, int] = answer.get()
    process.join()
    return result


def measure(paths: list[Path], workers: int, copies: int) -> dict[str, float]:
    """CPU and wall seconds of a warm stack with so many solo worker processes, idle CPU subtracted."""
    with Stack([SOLO] * workers, capacity=workers) as stack:
        stack.forget(stack.ingest(paths[:8], copies=workers))
        idle_from, at = stack.cpu_s(), time.monotonic()
        time.sleep(IDLE_S)
        idle = (stack.cpu_s() - idle_from) / (time.monotonic() - at)
        before, began = stack.cpu_s(), time.monotonic()
        sources = stack.ingest(paths, copies=copies)
        wall = time.monotonic() - began
        cpu = stack.cpu_s() - before - idle * wall
    _report(sources)
    return {"cpu_s": cpu, "wall_s": wall, "idle_cpu_share": idle, "chunks": float(sum(one.chunks for one in sources))}


def _report(sources: list[Source]) -> None:
    ready = sum(one.status == "ready" for one in sources)
    _say(f"  {len(sources)} documents: {ready} ready, {len(sources) - ready} refused")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, help="a directory of documents beside examples/")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    arguments = parser.parse_args()
    paths = documents(REPOSITORY / "examples")
    if arguments.corpus:
        paths += documents(arguments.corpus)
    else:
        _say("no --corpus: measuring on examples/ alone")
    copies = max(1, LEAST_DOCUMENTS // len(paths))
    _say(f"{len(paths)} documents, {copies} copies of each; the bare stage functions first")
    bare, bare_chunks = floor_cpu_s(paths * copies)
    _say("one worker process")
    one = measure(paths, 1, copies)
    _say("two worker processes")
    two = measure(paths, 2, copies)
    figures = {
        "documents": len(paths) * copies,
        "floor_cpu_s": round(bare, 2),
        "floor_chunks": bare_chunks,
        "stack_cpu_s": round(one["cpu_s"], 2),
        "stack_chunks": int(one["chunks"]),
        "cpu_ratio": round(one["cpu_s"] / bare, 3),
        "cpu_ms_per_document_beyond": round(1000 * (one["cpu_s"] - bare) / (len(paths) * copies), 1),
        "wall_one_s": round(one["wall_s"], 2),
        "wall_two_s": round(two["wall_s"], 2),
        "wall_ratio": round(two["wall_s"] / one["wall_s"], 3),
        "idle_cpu_share": round(one["idle_cpu_share"], 4),
    }
    print(json.dumps(figures) if arguments.json else "\n".join(f"{name:28} {value}" for name, value in figures.items()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
