"""What every embedding must be before it leaves an adapter: finite, of the right size and of length one."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def unit(vector: Sequence[float] | NDArray[np.float32], dimensions: int) -> tuple[float, ...]:
    """The vector scaled to length one. Raises ValueError for another size, NaN, infinity or no length."""
    values = np.asarray(vector, dtype=np.float64)
    if values.shape != (dimensions,):
        raise ValueError(f"the vector has {values.size} dimensions, not {dimensions}")
    length = math.hypot(*values.tolist())
    if not math.isfinite(length) or length == 0.0:
        raise ValueError("the vector has no finite length above zero")
    return tuple((values / length).tolist())


def refuse_blank(texts: Sequence[str]) -> None:
    """Raises ValueError when a text has nothing to embed: some models refuse it, others invent a direction."""
    if any(not text.strip() for text in texts):
        raise ValueError("a text without a character cannot be embedded")
