"""Explains which part of a prompt is cached. The engine thread reads the tree; the thread of the caller computes digests and asks tiers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from rtlang.cache.tiers.digest import sequence_digests
from rtlang.contract.cache_report import CacheExplanation, Divergence, page_runs
from rtlang.engine.engine import Engine

_T = TypeVar("_T")

NUM_SHOWN = 8
"""Tokens of each side that a divergence shows."""


class OnEngineThread(Protocol):
    """Runs a function on the engine thread and returns what it returns."""

    def __call__(self, command: Callable[[], _T], /) -> _T: ...


def explain_prefix(
    engine: Engine,
    run: OnEngineThread,
    decode: Callable[[Iterable[int]], str],
    token_ids: Sequence[int],
    namespace: str = "",
) -> CacheExplanation:
    """Explain which part of a prompt of a namespace is cached. Changes nothing.

    Args:
        decode: the text of tokens.
    """
    cache = engine.cache
    size, num_pages = cache.page_size, len(token_ids) // cache.page_size

    def look() -> tuple[int, int, tuple[int, list[int]]]:
        scope = engine.namespaces.scope(namespace, token_ids)
        return scope.num_public, cache.peek(token_ids, scope), cache.stored_next(token_ids, NUM_SHOWN, scope)

    num_public, num_cached, (position, stored) = run(look)
    num_in_pool = num_cached // size
    digests = sequence_digests(cache.digests.root, token_ids, size, num_pages, namespace, num_public)[num_in_pool:]
    evicted = run(lambda: [cache.evictions.seconds_since(each) for each in digests])
    places: list[tuple[str | None, float | None]] = [("pool", None)] * num_in_pool
    for digest, seconds in zip(digests, evicted, strict=True):
        places.append((next((tier.name for tier in engine.tiers if tier.has(digest)), None), seconds))
    divergence = None
    if stored and position < len(token_ids):
        own = list(token_ids[position : position + NUM_SHOWN])
        divergence = Divergence(position, own[0], decode(own), stored[0], decode(stored))
    return CacheExplanation(len(token_ids), num_cached, divergence, page_runs(places, size))
