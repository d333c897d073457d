"""The stages of an ingestion as data: their order, queues and fan-out. Written once, read by all."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pipeline.types import Priority

MESSAGE_VERSION = 1

# Documents under this many pages are one extraction window.
SINGLE_WINDOW_PAGES = 32
EXTRACT_WINDOW_PAGES = 16
OCR_UNIT_PAGES = 8
# A unit of at most this many pages of an interactive document may use the interactive queue.
INTERACTIVE_UNIT_PAGES = 10


class Stage(StrEnum):
    REGISTER = "register"
    EXTRACT = "extract"
    OCR = "ocr"
    CHUNK = "chunk"
    EMBED = "embed"
    KEYWORDS = "keywords"
    PUBLISH = "publish"


class Queue(StrEnum):
    INTERACTIVE = "interactive"
    EXTRACT = "extract"
    OCR = "ocr"
    EMBED = "embed"
    INDEX = "index"
    GRAPH = "graph"
    EXPORT = "export"
    MAINTENANCE = "maintenance"


@dataclass(frozen=True, slots=True)
class StageSpec:
    """One stage: the queue of its bulk work and the hard time limit of one task, in seconds."""

    stage: Stage
    queue: Queue
    hard_limit_s: int

    @property
    def task_name(self) -> str:
        return f"docmill.{self.stage}"


FLOW: tuple[StageSpec, ...] = (
    StageSpec(Stage.REGISTER, Queue.INDEX, 120),
    StageSpec(Stage.EXTRACT, Queue.EXTRACT, 600),
    StageSpec(Stage.OCR, Queue.OCR, 1200),
    StageSpec(Stage.CHUNK, Queue.INDEX, 300),
    StageSpec(Stage.EMBED, Queue.EMBED, 900),
    StageSpec(Stage.KEYWORDS, Queue.INDEX, 300),
    StageSpec(Stage.PUBLISH, Queue.INDEX, 120),
)

LONGEST_HARD_LIMIT_S = max(spec.hard_limit_s for spec in FLOW)
FIRST_STAGE = FLOW[0].stage
LAST_STAGE = FLOW[-1].stage
_POSITION = {spec.stage: position for position, spec in enumerate(FLOW)}


def spec(stage: Stage) -> StageSpec:
    return FLOW[_POSITION[stage]]


def predecessor(stage: Stage) -> Stage | None:
    """The stage that must have succeeded before ``stage`` may be claimed; None for the first."""
    position = _POSITION[stage]
    return FLOW[position - 1].stage if position else None


def successor(stage: Stage) -> Stage | None:
    position = _POSITION[stage] + 1
    return FLOW[position].stage if position < len(FLOW) else None


def remaining(stage: Stage) -> tuple[StageSpec, ...]:
    """``stage`` and every stage after it, in order: what a chain that starts at ``stage`` holds."""
    return FLOW[_POSITION[stage] :]


def queue_of(stage: Stage, priority: Priority, *, unit_pages: int = 1, alone: bool = False) -> Queue:
    """The queue a task goes to.

    Embedding always has its own worker instance, because the model must never be loaded in a forking one; that
    instance does one thing at a time. Any other stage of a document that lost two workers runs ``alone`` on the
    maintenance queue.
    """
    if stage is Stage.EMBED:
        return Queue.EMBED
    if alone:
        return Queue.MAINTENANCE
    if priority is Priority.INTERACTIVE and unit_pages <= INTERACTIVE_UNIT_PAGES:
        return Queue.INTERACTIVE
    return spec(stage).queue
