"""Anchors and assertions: what matches no character, worked out of a tree as far as that goes.

Anchors hold only at the ends of the text, so they are resolved in the tree: at the start `^` is the empty text, elsewhere it is nothing.
Lookarounds stay, but never alone inside a repeat, so that every turn of a repeat takes a character.
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
    Node,
    Repetition,
    ZeroWidth,
    alternation,
    concatenation,
    is_any_text,
    is_empty_text,
    is_nothing,
    negation,
    repetition,
)
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget

_MAX_ASSERTION_REPEAT = 8


def lookaround(item: Node, *, is_ahead: bool, is_negative: bool) -> Node:
    """An assertion about all text that remains (`is_ahead`) or all text so far."""
    if is_nothing(item) or is_any_text(item):
        return EMPTY_TEXT if is_any_text(item) != is_negative else NOTHING
    return Lookaround(item, is_ahead=is_ahead, is_negative=is_negative)


def repeated(item: Node, low: int, high: int | None, budget: Budget, location: str) -> Node:
    """`item` from `low` to `high` times, such that no turn of the repeat only asserts.

    Raises:
        GrammarError: what is repeated may be an assertion alone, and must come many times.
    """
    if not item.zero_width or item.min_length > 0:
        return repetition(item, low, high)
    once = consuming(item, budget)
    assertion = passing(item, budget)
    if low == 0 or is_empty_text(assertion):
        return repetition(once, 0, high)
    if is_nothing(assertion):
        return repetition(once, low, high)
    if low > _MAX_ASSERTION_REPEAT:
        raise GrammarError(
            f"a group that may match nothing but an assertion can be required at most {_MAX_ASSERTION_REPEAT} times",
            location,
        )
    # Turns beyond the required ones only add conditions where they take nothing, so those can be left out.
    return concatenation([*[item] * low, repetition(once, 0, None if high is None else high - low)])


def passing(node: Node, budget: Budget) -> Node:
    """The ways through a node that take no character: the empty text, assertions, or nothing."""
    budget.spend()
    if node.min_length > 0:
        return NOTHING
    if not node.zero_width:
        return EMPTY_TEXT
    if isinstance(node, Concatenation):
        parts = []
        for item in node.items:
            parts.append(passing(item, budget))
        return concatenation(parts)
    if isinstance(node, Alternation):
        parts = []
        for item in node.items:
            part = passing(item, budget)
            if is_empty_text(part):
                return part
            parts.append(part)
        return alternation(parts)
    if isinstance(node, Repetition):  # the shape says that it may be left out
        return EMPTY_TEXT if node.low == 0 else passing(node.item, budget)
    return node


def consuming(node: Node, budget: Budget) -> Node:
    """The ways through a node that take at least one character."""
    budget.spend()
    if node.min_length > 0:
        return node
    if isinstance(node, Concatenation):
        ways: list[Node] = []
        passed: list[Node] = []
        for index, item in enumerate(node.items):
            ways.append(concatenation([*passed, consuming(item, budget), *node.items[index + 1 :]]))
            if item.min_length > 0:
                break
            passed.append(passing(item, budget))
            budget.spend(states=len(node.items) - index)
        return alternation(ways)
    if isinstance(node, Alternation):
        ways = []
        for item in node.items:
            ways.append(consuming(item, budget))
        return alternation(ways)
    if isinstance(node, Repetition):
        once = consuming(node.item, budget)
        rest = repetition(node.item, max(node.low - 1, 0), None if node.high is None else node.high - 1)
        return concatenation([once, rest])
    return NOTHING


def resolved(node: Node, budget: Budget) -> Node:
    """The whole text's tree without anchors, and without such assertions at its ends as need not be asserted."""
    for kind in AnchorKind:
        node = _resolved(node, kind, True, budget)
        ways = []
        for way in node.items if isinstance(node, Alternation) else (node,):
            ways.append(_absorbed(way, kind))
        node = alternation(ways)
    return node


def resolved_at(node: Node, kind: AnchorKind, budget: Budget) -> Node:
    """A tree that reaches up to one end of the text, without the anchors of that end."""
    return _resolved(node, kind, True, budget)


def _resolved(node: Node, kind: AnchorKind, is_there: bool, budget: Budget) -> Node:
    """`node` without anchors of one kind, where its near end is (or is not) at that end of the text."""
    bit = ZeroWidth.START if kind is AnchorKind.START else ZeroWidth.END
    if not node.zero_width & bit:
        return node
    budget.spend(states=1)
    if isinstance(node, Anchor):
        return EMPTY_TEXT if is_there else NOTHING
    if isinstance(node, Alternation):
        parts = []
        for item in node.items:
            parts.append(_resolved(item, kind, is_there, budget))
        return alternation(parts)
    if isinstance(node, Lookaround):
        inner = _resolved(node.item, kind, is_there, budget)
        return lookaround(inner, is_ahead=node.is_ahead, is_negative=node.is_negative)
    if isinstance(node, Repetition):
        elsewhere = _resolved(node.item, kind, False, budget)
        if not is_there:
            return repetition(elsewhere, node.low, node.high)
        others = repetition(elsewhere, max(node.low - 1, 0), None if node.high is None else node.high - 1)
        first = _resolved(node.item, kind, True, budget)
        turns = _joined([first, others], kind)
        return alternation([EMPTY_TEXT, turns]) if node.low == 0 else turns
    assert isinstance(node, Concatenation), node
    items = node.items if kind is AnchorKind.START else node.items[::-1]
    if not is_there:
        return _joined(_all_elsewhere(items, kind, budget), kind)
    return _resolved_sequence(items, kind, budget)


def _resolved_sequence(items: Sequence[Node], kind: AnchorKind, budget: Budget) -> Node:
    """A concatenation beginning at the end of the text, its items in order from there."""
    bit = ZeroWidth.START if kind is AnchorKind.START else ZeroWidth.END
    ways: list[Node] = []
    passed: list[Node] = []
    last = max(index for index, item in enumerate(items) if item.zero_width & bit)
    for index, item in enumerate(items):
        if index > last:
            ways.append(_joined([*passed, *items[index:]], kind))
            break
        budget.spend(states=len(items) - index)
        here = item
        if item.zero_width & bit:
            here = _resolved(item, kind, True, budget)
        taken = consuming(here, budget)
        if not is_nothing(taken):
            ways.append(_joined([*passed, taken, *_all_elsewhere(items[index + 1 :], kind, budget)], kind))
        through = passing(here, budget)
        if is_nothing(through):
            break
        passed.append(through)
    else:
        ways.append(_joined(passed, kind))
    return alternation(ways)


def _all_elsewhere(items: Sequence[Node], kind: AnchorKind, budget: Budget) -> list[Node]:
    parts = []
    for item in items:
        parts.append(_resolved(item, kind, False, budget))
    return parts


def _joined(items: Sequence[Node], kind: AnchorKind) -> Node:
    """A concatenation of items that are in order from one end of the text."""
    return concatenation(items if kind is AnchorKind.START else items[::-1])


def _absorbed(node: Node, kind: AnchorKind) -> Node:
    """One way through the whole text, where an assertion beside its end may say what is there."""
    is_start = kind is AnchorKind.START
    bit = ZeroWidth.BEHIND if is_start else ZeroWidth.AHEAD
    if not node.zero_width & bit:
        return node
    items = node.items if isinstance(node, Concatenation) else (node,)
    near, others = (items[0], items[1:]) if is_start else (items[-1], items[:-1])
    if not is_any_text(near):
        return _joined_near(_asserted(near, kind, is_at_end=True), others, is_start)
    if not others:
        return node
    near, others = (others[0], others[1:]) if is_start else (others[-1], others[:-1])
    return _joined_near(_asserted(near, kind, is_at_end=False), others, is_start)


def _joined_near(near: Node, others: Sequence[Node], is_start: bool) -> Node:
    return concatenation([near, *others] if is_start else [*others, near])


def _asserted(node: Node, kind: AnchorKind, *, is_at_end: bool) -> Node:
    """`node` at one end of the text, or with only any text between it and that end, which is part of the result."""
    is_start = kind is AnchorKind.START
    if node.zero_width & (ZeroWidth.BEHIND if is_start else ZeroWidth.AHEAD):
        if isinstance(node, Alternation):
            ways = []
            for item in node.items:
                ways.append(_asserted(item, kind, is_at_end=is_at_end))
            return alternation(ways)
        if isinstance(node, Concatenation):
            near, others = (node.items[0], node.items[1:]) if is_start else (node.items[-1], node.items[:-1])
            return _joined_near(_asserted(near, kind, is_at_end=is_at_end), others, is_start)
        if isinstance(node, Lookaround) and node.is_ahead != is_start:
            if not is_at_end:
                return negation(node.item) if node.is_negative else node.item
            if node.item.min_length > 0:
                return EMPTY_TEXT if node.is_negative else NOTHING
    return node if is_at_end else _joined_near(ANY_TEXT, (node,), is_start)
