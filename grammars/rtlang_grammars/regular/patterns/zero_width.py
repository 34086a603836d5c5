"""Elimination of anchors, and normalization of lookarounds, in syntax trees.

Anchors hold only at the ends of the whole string, so they are resolved statically: `^` becomes the empty string at the start and NOTHING
elsewhere. Lookarounds stay in the tree, but a repetition never consists of a lookaround alone: each of its iterations takes a character.
"""

from __future__ import annotations

from collections.abc import Sequence

from rtlang_grammars.regular.patterns.syntax import (
    ANY_TEXT,
    EMPTY_TEXT,
    NOTHING,
    Alternation,
    Anchor,
    AnchorKind,
    Concatenation,
    Lookaround,
    PatternNode,
    Repetition,
    ZeroWidth,
    alternation,
    complement,
    concatenation,
    is_any_text,
    is_empty_text,
    is_nothing,
    repetition,
)
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget

_MAX_ASSERTION_REPEAT = 8


def lookaround(item: PatternNode, *, is_ahead: bool, is_negative: bool) -> PatternNode:
    """An assertion about the rest of the string (`is_ahead`) or the string read so far."""
    if is_nothing(item) or is_any_text(item):
        return EMPTY_TEXT if is_any_text(item) != is_negative else NOTHING
    return Lookaround(item, is_ahead=is_ahead, is_negative=is_negative)


def repeat(item: PatternNode, low: int, high: int | None, budget: Budget, location: str) -> PatternNode:
    """`item` repeated `low` to `high` times, such that no iteration is an assertion alone.

    Raises:
        GrammarError: the item may match an assertion alone, and `low` is too large to unroll it.
    """
    if not item.zero_width or item.min_length > 0:
        return repetition(item, low, high)
    once = consuming_paths(item, budget)
    assertion = zero_width_paths(item, budget)
    if low == 0 or is_empty_text(assertion):
        return repetition(once, 0, high)
    if is_nothing(assertion):
        return repetition(once, low, high)
    if low > _MAX_ASSERTION_REPEAT:
        raise GrammarError(
            f"the minimum repeat count of a group that may match only an assertion may be at most {_MAX_ASSERTION_REPEAT}",
            location,
        )
    # An optional iteration that takes no character only adds conditions, so it can be dropped.
    return concatenation([*[item] * low, repetition(once, 0, None if high is None else high - low)])


def zero_width_paths(node: PatternNode, budget: Budget) -> PatternNode:
    """The part of a language that takes no character: the empty string, assertions, or NOTHING."""
    budget.spend()
    if node.min_length > 0:
        return NOTHING
    if not node.zero_width:
        return EMPTY_TEXT
    if isinstance(node, Concatenation):
        parts = []
        for item in node.items:
            parts.append(zero_width_paths(item, budget))
        return concatenation(parts)
    if isinstance(node, Alternation):
        parts = []
        for item in node.items:
            part = zero_width_paths(item, budget)
            if is_empty_text(part):
                return part
            parts.append(part)
        return alternation(parts)
    if isinstance(node, Repetition):  # its min_length is 0
        return EMPTY_TEXT if node.low == 0 else zero_width_paths(node.item, budget)
    return node


def consuming_paths(node: PatternNode, budget: Budget) -> PatternNode:
    """The part of a language that takes at least one character."""
    budget.spend()
    if node.min_length > 0:
        return node
    if isinstance(node, Concatenation):
        paths: list[PatternNode] = []
        passed: list[PatternNode] = []
        for index, item in enumerate(node.items):
            paths.append(concatenation([*passed, consuming_paths(item, budget), *node.items[index + 1 :]]))
            if item.min_length > 0:
                break
            passed.append(zero_width_paths(item, budget))
            budget.spend(states=len(node.items) - index)
        return alternation(paths)
    if isinstance(node, Alternation):
        paths = []
        for item in node.items:
            paths.append(consuming_paths(item, budget))
        return alternation(paths)
    if isinstance(node, Repetition):
        once = consuming_paths(node.item, budget)
        rest = repetition(node.item, max(node.low - 1, 0), None if node.high is None else node.high - 1)
        return concatenation([once, rest])
    return NOTHING


def resolve_anchors(node: PatternNode, budget: Budget) -> PatternNode:
    """Remove all anchors from the tree of the whole string, and the lookarounds at its ends that can be decided there."""
    for kind in AnchorKind:
        node = _resolve(node, kind, True, budget)
        paths = []
        for path in node.items if isinstance(node, Alternation) else (node,):
            paths.append(_absorb_assertion(path, kind))
        node = alternation(paths)
    return node


def resolve_anchors_at(node: PatternNode, kind: AnchorKind, budget: Budget) -> PatternNode:
    """Remove the anchors of one end of the string from a tree that reaches up to that end."""
    return _resolve(node, kind, True, budget)


def refuse_anchors(node: PatternNode, kind: AnchorKind, budget: Budget) -> PatternNode:
    """Remove the anchors of one end of the string from a tree that does not reach up to that end: they do not hold."""
    return _resolve(node, kind, False, budget)


def _resolve(node: PatternNode, kind: AnchorKind, is_at_end: bool, budget: Budget) -> PatternNode:
    """Remove anchors of one kind from a node; `is_at_end`: the near end of the node is that end of the string."""
    bit = ZeroWidth.START if kind is AnchorKind.START else ZeroWidth.END
    if not node.zero_width & bit:
        return node
    budget.spend(states=1)
    if isinstance(node, Anchor):
        return EMPTY_TEXT if is_at_end else NOTHING
    if isinstance(node, Alternation):
        parts = []
        for item in node.items:
            parts.append(_resolve(item, kind, is_at_end, budget))
        return alternation(parts)
    if isinstance(node, Lookaround):
        inner = _resolve(node.item, kind, is_at_end, budget)
        return lookaround(inner, is_ahead=node.is_ahead, is_negative=node.is_negative)
    if isinstance(node, Repetition):
        elsewhere = _resolve(node.item, kind, False, budget)
        if not is_at_end:
            return repetition(elsewhere, node.low, node.high)
        others = repetition(elsewhere, max(node.low - 1, 0), None if node.high is None else node.high - 1)
        first = _resolve(node.item, kind, True, budget)
        turns = _concatenate_from_end([first, others], kind)
        return alternation([EMPTY_TEXT, turns]) if node.low == 0 else turns
    assert isinstance(node, Concatenation), node
    items = node.items if kind is AnchorKind.START else node.items[::-1]
    if not is_at_end:
        return _concatenate_from_end(_resolve_elsewhere(items, kind, budget), kind)
    return _resolve_sequence(items, kind, budget)


def _resolve_sequence(items: Sequence[PatternNode], kind: AnchorKind, budget: Budget) -> PatternNode:
    """Resolve a concatenation at one end of the string; items are in order from that end."""
    bit = ZeroWidth.START if kind is AnchorKind.START else ZeroWidth.END
    paths: list[PatternNode] = []
    passed: list[PatternNode] = []
    last = max(index for index, item in enumerate(items) if item.zero_width & bit)
    for index, item in enumerate(items):
        if index > last:
            paths.append(_concatenate_from_end([*passed, *items[index:]], kind))
            break
        budget.spend(states=len(items) - index)
        here = item
        if item.zero_width & bit:
            here = _resolve(item, kind, True, budget)
        taken = consuming_paths(here, budget)
        if not is_nothing(taken):
            paths.append(
                _concatenate_from_end([*passed, taken, *_resolve_elsewhere(items[index + 1 :], kind, budget)], kind)
            )
        through = zero_width_paths(here, budget)
        if is_nothing(through):
            break
        passed.append(through)
    else:
        paths.append(_concatenate_from_end(passed, kind))
    return alternation(paths)


def _resolve_elsewhere(items: Sequence[PatternNode], kind: AnchorKind, budget: Budget) -> list[PatternNode]:
    parts = []
    for item in items:
        parts.append(_resolve(item, kind, False, budget))
    return parts


def _concatenate_from_end(items: Sequence[PatternNode], kind: AnchorKind) -> PatternNode:
    """A concatenation of items that are in order from one end of the string."""
    return concatenation(items if kind is AnchorKind.START else items[::-1])


def _absorb_assertion(node: PatternNode, kind: AnchorKind) -> PatternNode:
    """Decide a lookaround next to the end of the string in one alternative of the whole string."""
    is_start = kind is AnchorKind.START
    bit = ZeroWidth.BEHIND if is_start else ZeroWidth.AHEAD
    if not node.zero_width & bit:
        return node
    items = node.items if isinstance(node, Concatenation) else (node,)
    near, others = (items[0], items[1:]) if is_start else (items[-1], items[:-1])
    if not is_any_text(near):
        return _attach_near(_apply_assertion(near, kind, is_at_end=True), others, is_start)
    if not others:
        return node
    near, others = (others[0], others[1:]) if is_start else (others[-1], others[:-1])
    return _attach_near(_apply_assertion(near, kind, is_at_end=False), others, is_start)


def _attach_near(near: PatternNode, others: Sequence[PatternNode], is_start: bool) -> PatternNode:
    return concatenation([near, *others] if is_start else [*others, near])


def _apply_assertion(node: PatternNode, kind: AnchorKind, *, is_at_end: bool) -> PatternNode:
    """The node at one end of the string, or separated from it by any string, which is then part of the result."""
    is_start = kind is AnchorKind.START
    if node.zero_width & (ZeroWidth.BEHIND if is_start else ZeroWidth.AHEAD):
        if isinstance(node, Alternation):
            paths = []
            for item in node.items:
                paths.append(_apply_assertion(item, kind, is_at_end=is_at_end))
            return alternation(paths)
        if isinstance(node, Concatenation):
            near, others = (node.items[0], node.items[1:]) if is_start else (node.items[-1], node.items[:-1])
            return _attach_near(_apply_assertion(near, kind, is_at_end=is_at_end), others, is_start)
        if isinstance(node, Lookaround) and node.is_ahead != is_start:
            if not is_at_end:
                return complement(node.item) if node.is_negative else node.item
            if node.item.min_length > 0:
                return EMPTY_TEXT if node.is_negative else NOTHING
    return node if is_at_end else _attach_near(ANY_TEXT, (node,), is_start)
