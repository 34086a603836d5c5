"""Explains which part of a prompt is cached. The engine thread reads the tree; the thread of the caller computes digests and asks tiers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from rtlang.cache.outline import OutlineNode
from rtlang.cache.prefix_cache import Lookup
from rtlang.cache.tiers.digest import sequence_digests
from rtlang.cache.tiers.tier import RemoteTier
from rtlang.contract.service.cache_report import CacheExplanation, Divergence, StateReport, page_runs
from rtlang.engine.engine import Engine

_T = TypeVar("_T")

NUM_SHOWN = 8
"""Tokens of each side that a divergence shows."""
MAX_ASKED = 512
"""Pages whose eviction is looked up between two steps."""


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
    cache, namespaces = engine.cache, engine.namespaces
    size, num_pages = cache.page_size, len(token_ids) // cache.page_size
    scope = run(lambda: namespaces.scope(namespace, token_ids))
    packed = scope.pack(token_ids)  # here, since it takes milliseconds

    visible = partial(namespaces.visible, scope, token_ids)

    def look() -> tuple[Lookup, list[int]]:
        found = cache.lookup(packed, NUM_SHOWN, lambda position, key: bool(visible(position, (key,))))
        return found, visible(found.position, found.next_keys)

    found, stored = run(look)
    position, num_in_pool = found.position, found.num_in_pages // size
    digests = sequence_digests(cache.digests.root, token_ids, size, num_pages, namespace, scope.num_public)
    for tier in engine.tiers:
        if isinstance(tier, RemoteTier):
            tier.ask(digests[num_in_pool:])
    places: list[tuple[str | None, float | None]] = [("pool", None)] * num_in_pool
    for start in range(num_in_pool, num_pages, MAX_ASKED):
        asked = digests[start : start + MAX_ASKED]
        evicted = run(lambda asked=asked: [cache.evictions.seconds_since(each) for each in asked])  # type: ignore[misc]
        for digest, seconds in zip(asked, evicted, strict=True):
            places.append((next((tier.name for tier in engine.tiers if tier.has(digest)), None), seconds))
    divergence = None
    if stored and position < len(token_ids):
        own = list(token_ids[position : position + NUM_SHOWN])
        divergence = Divergence(position, own[0], decode(own), stored[0], decode(stored))
    states = None
    if cache.states is not None:
        states = StateReport(found.num_in_pages, found.num_cached, found.state_positions)
    return CacheExplanation(len(token_ids), found.num_cached, divergence, page_runs(places, size), states)


def plain_node(node: OutlineNode, namespace: str, text: str) -> dict[str, Any]:
    """A node of the tree as a plain map."""
    return {
        "id": node.node_id,
        "parent": node.parent_id or None,
        "num_tokens": node.num_tokens,
        "num_pages": node.num_pages,
        "num_users": node.num_users,
        "is_held": node.is_held,
        "num_children": node.num_children,
        "last_access": node.last_access,
        "namespace": namespace,
        "text": text,
    }
