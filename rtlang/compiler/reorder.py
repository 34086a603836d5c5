"""Lays out texts whose order is free, so that the pieces that most instances share come first.

The cache can share only the text before the first difference. The pieces of one text are ordered by the share of the instances
that contain them: the siblings that continue the same node, and the other runs of a batch. Pieces with equal shares are in one order in
all instances: the order of the first instance that contains them. Other text stays in its place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import groupby

from rtlang.compiler.context import Pieces, ShareOf
from rtlang.contract.graph.frozen_copies import changed
from rtlang.contract.request_graph import Part, RequestGraph, Text


def reorder(graph: RequestGraph, free: Mapping[int, Pieces], share_of: ShareOf | None = None) -> RequestGraph:
    """Order the pieces of each text in `free`.

    Args:
        free: the pieces of texts of this graph, as written, by node id. The rest of such a text (the marks of its message) stays in place.
        share_of: how the instances of a batch share a piece.
    """
    orders = layout(graph, free, share_of)
    if not orders:
        return graph
    nodes = tuple(changed(node, parts=orders[node.node_id]) if node.node_id in orders else node for node in graph.nodes)
    return RequestGraph(nodes, graph.inputs, graph.outputs)


def layout(
    graph: RequestGraph, free: Mapping[int, Pieces], share_of: ShareOf | None = None
) -> dict[int, tuple[Part, ...]]:
    """The parts of each text of `reorder` whose pieces change places."""
    counts: dict[int | None, Counter[tuple[Part, ...]]] = {}
    texts = [node for node in graph.nodes if isinstance(node, Text) and node.node_id in free]
    for node in texts:
        counts.setdefault(node.parent, Counter()).update(dict.fromkeys(free[node.node_id], 1))
    first_seen = {parent: {piece: i for i, piece in enumerate(pieces)} for parent, pieces in counts.items()}
    orders: dict[int, tuple[Part, ...]] = {}
    for node in texts:
        pieces, siblings, seen = free[node.node_id], counts[node.parent], first_seen[node.parent]
        keys: dict[tuple[Part, ...], tuple[float, int]] = {}
        ranks: dict[tuple[Part, ...], int] = {}
        for piece in pieces:
            share, rank = (0.0, seen[piece] if siblings[piece] > 1 else None) if share_of is None else share_of(piece)
            keys[piece] = (-share, -siblings[piece])
            if rank is not None:
                ranks[piece] = rank
        ordered = [
            piece
            for _, equal in groupby(sorted(pieces, key=keys.__getitem__), keys.__getitem__)
            for piece in _by_rank(list(equal), ranks)
        ]
        if tuple(ordered) == pieces:
            continue
        written = tuple(part for piece in pieces for part in piece)
        start = _position(node.parts, written)
        parts = tuple(part for piece in ordered for part in piece)
        orders[node.node_id] = (*node.parts[:start], *parts, *node.parts[start + len(written) :])
    return orders


def _by_rank(pieces: list[tuple[Part, ...]], ranks: Mapping[tuple[Part, ...], int]) -> Iterator[tuple[Part, ...]]:
    """The pieces, those with a rank in its order on the places that they have together."""
    ranked = iter(sorted((piece for piece in pieces if piece in ranks), key=ranks.__getitem__))
    return (next(ranked) if piece in ranks else piece for piece in pieces)


def _position(parts: tuple[Part, ...], written: tuple[Part, ...]) -> int:
    for start in range(len(parts) - len(written) + 1):
        if parts[start : start + len(written)] == written:
            return start
    raise AssertionError(
        "the pieces of a text with a free order are its parts, in the order in which they were written"
    )
