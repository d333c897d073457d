"""How many hits fit into a reader's context: the best ones first, never a part of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pipeline.types import Hit, index_text


def within(hits: Sequence[Hit], budget: int, count_tokens: Callable[[Sequence[str]], Sequence[int]]) -> tuple[Hit, ...]:
    """The hits, in order, whose texts (heading path and body) together take at most ``budget`` tokens.

    A hit that does not fit is left out and a shorter one further down may still fit; the best is always kept.
    """
    costs = count_tokens([index_text(hit.heading_path, hit.content) for hit in hits])
    kept: list[Hit] = []
    left = budget
    for hit, cost in zip(hits, costs, strict=True):
        if cost <= left or not kept:
            kept.append(hit)
            left -= cost
    return tuple(kept)
