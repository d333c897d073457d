"""One question to the sandbox, answered by a value or by the document's failure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import structlog
from pydantic import TypeAdapter, ValidationError

from pipeline.engines.sandbox.client import Sandbox, SandboxDeath
from pipeline.errors import Failure, FailureCode
from pipeline.types import Json

T = TypeVar("T")

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Asker:
    """A sandbox with the limits of one call: wall seconds and bytes of memory."""

    sandbox: Sandbox
    timeout_s: float
    memory_bytes: int

    def ask(self, job: str, content: Path, arguments: dict[str, Json], shape: TypeAdapter[T | Failure]) -> T | Failure:
        """Run a job and validate what comes back, for the child has read hostile input.

        A child that died is its failure (``timed-out``, ``too-large``, ``crashed``), an answer of another shape
        is ``crashed``. Raises ``TransientError('sandbox', …)``.
        """
        answer = self.sandbox.call(job, content, arguments, timeout_s=self.timeout_s, memory_bytes=self.memory_bytes)
        if isinstance(answer, SandboxDeath):
            return answer.failure()
        try:
            return shape.validate_json(answer.output)
        except ValidationError as problem:
            log.warning("sandbox.invalid_answer", job=job, errors=problem.error_count())
            return Failure(FailureCode.CRASHED, "The parser gave no usable result for this document.", died=True)
