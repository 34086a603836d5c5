"""The growing arrays of masks, and scratch: allocated here, used by compiled code."""

from __future__ import annotations

import numpy as np

from rtlang_grammars.machine.lexer_run.lexer_layout import (
    BYTES,
    CROSSINGS,
    ENDS,
    ITEMS,
    KIDS,
    MEMBERS,
    NODES,
    RANGES,
    ROWS,
    SAMES,
    STACK_LINKS,
    STACK_NODES,
    TAILS,
    GraphStack,
    Ints,
    Tree,
    VisitScratch,
    WalkScratch,
)
from rtlang_grammars.spec.errors import GrammarError

_MAX_STACK_NODES = 1 << 22
_POOLS = {
    "nodes": NODES,
    "ends": ENDS,
    "tails": TAILS,
    "crossings": CROSSINGS,
    "items": ITEMS,
    "kids": KIDS,
    "ranges": RANGES,
    "data": BYTES,
    "rows": ROWS,
}
"""The growing arrays of a tree, and their places in its counts."""


def _ints(*shape: int) -> Ints:
    """An array that is written before it is read; its memory is taken when it is first written."""
    return np.empty(shape, dtype=np.int32)


def new_stack(start: int) -> GraphStack:
    """Stacks with one set, which holds the stack of the start state alone."""
    stack = GraphStack(
        _ints(1 << 13, 3),
        _ints(1 << 13),
        _ints(1 << 13),
        _ints(1 << 9, 2),
        _ints(1 << 9, 4),
        np.zeros(3, dtype=np.int64),
    )
    stack.nodes[0] = start, 0, 0
    stack.members[:2] = 0
    stack.counts[:] = 1, 2, 0
    return stack


def larger_stack(stack: GraphStack) -> GraphStack:
    """The same with twice the room.

    Raises:
        GrammarError: the bound is reached.
    """
    if len(stack.nodes) >= _MAX_STACK_NODES:
        raise GrammarError(
            f"too ambiguous or nested too deeply: the text needs more than {_MAX_STACK_NODES} parser stacks"
        )
    return stack._replace(
        nodes=_doubled(stack.nodes, int(stack.counts[STACK_NODES])),
        links=_doubled(stack.links, int(stack.counts[STACK_LINKS])),
        members=_doubled(stack.members, int(stack.counts[MEMBERS])),
        paths=_ints(min(2 * len(stack.paths), 1 << 14), 2),
        tops=_ints(min(2 * len(stack.tops), 1 << 14), 4),
    )


def new_tree(num_words: int) -> Tree:
    """An empty tree."""
    # Below 4 MiB an array: numpy asks for huge pages beyond, of which the first write has to clear 2 MiB, for milliseconds.
    return Tree(
        _ints(1 << 13, 6),
        _ints(1 << 16, 5),
        _ints(1 << 17, 6),
        _ints(1 << 16, 4),
        _ints(1 << 17, 5),
        _ints(1 << 16, 3),
        _ints(1 << 18, 2),
        np.empty(1 << 20, dtype=np.uint8),
        np.empty((1 + (3 << 18) // num_words, num_words), dtype=np.uint32),
        np.zeros((1 << 16, 3), dtype=np.int32),
        np.zeros(10, dtype=np.int64),
        np.zeros(10, dtype=np.int64),
    )


def larger_tree(tree: Tree) -> Tree:
    """The same with room for what it needs."""
    counts, needs = tree.counts, tree.needs
    for name, place in _POOLS.items():
        array = getattr(tree, name)
        if needs[place] >= len(array):
            grown = np.empty((int(needs[place]) * 3 // 2 + 1, *array.shape[1:]), dtype=array.dtype)
            grown[: int(counts[place])] = array[: int(counts[place])]
            tree = tree._replace(**{name: grown})
    # Equal nodes are found again when they are next asked for: the table saves work, and records nothing.
    if needs[SAMES]:
        counts[SAMES] = 0
        tree = tree._replace(same=np.zeros((2 * len(tree.same), 3), dtype=np.int32))
    needs[:] = 0
    return tree


def larger_walk(walk: WalkScratch) -> WalkScratch:
    """Scratch with twice the room."""
    return walk._replace(
        ends=_ints(2 * len(walk.ends), 6),
        groups=_ints(2 * len(walk.groups)),
        seen=np.zeros(2 * (len(walk.seen) - 1) + 1, dtype=np.int64),
        crossings=_ints(2 * len(walk.crossings), 6),
        parts=_ints(2 * len(walk.parts), 4),
        data=np.empty(2 * len(walk.data), dtype=np.uint8),
        end_of=_ints(2 * len(walk.end_of)),
        crossing_of=_ints(2 * len(walk.crossing_of)),
    )


def larger_visit(visit: VisitScratch) -> VisitScratch:
    """Scratch with twice the room."""
    return visit._replace(frames=_ints(2 * len(visit.frames), 6), asks=_ints(2 * len(visit.asks), 3))


def size_of(tree: Tree) -> int:
    """Bytes in use."""
    return sum(int(getattr(tree, name)[:1].nbytes) * int(tree.counts[place]) for name, place in _POOLS.items())


def new_walk(num_tokens: int, max_depth: int) -> WalkScratch:
    """Scratch for walks of a vocabulary, in all grammars."""
    return WalkScratch(
        _ints(num_tokens + 1, 6),
        _ints(min(num_tokens + 1, 1 << 17), 6),
        _ints(1 << 12, 4),
        _ints(num_tokens + 1),
        _ints(max_depth + 64, 3),
        np.empty(max_depth + 64, dtype=np.uint8),
        np.empty(1 << 21, dtype=np.uint8),
        np.zeros((1 << 12) + 1, dtype=np.int64),
        _ints(1 << 12),
        _ints(1 << 11),
    )


def new_visit(num_pairs: int, num_terminals: int) -> VisitScratch:
    """Scratch for visits."""
    return VisitScratch(
        _ints(1 << 14, 6),
        _ints(max(num_pairs, 1)),
        _ints(num_terminals + 1),
        _ints(1 << 14, 3),
        np.zeros(4, dtype=np.int64),
    )


def _doubled(array: Ints, used: int) -> Ints:
    grown = np.empty((2 * len(array), *array.shape[1:]), dtype=array.dtype)
    grown[:used] = array[:used]
    return grown
