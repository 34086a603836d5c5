"""Syntax trees of regular languages, with boolean operations.

Patterns, formats and numbers share these node types. Trees are immutable. The lower-case functions build and simplify them: nested
concatenations are flattened, empty parts dropped, and nested repetitions merged where possible. Each node knows its depth, so that
recursive functions can be bounded.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from enum import Enum, auto
from functools import lru_cache

from rtlang_grammars.regular.characters import code_points
from rtlang_grammars.regular.characters.code_points import CodePoints

_PREFIX_LEVELS = 30
"""The maximal number of nested alternations in a tree of literals; each adds two levels of depth."""


class PatternNode:
    """A language.

    Attributes:
        depth: the height of the tree.
        min_length: a lower bound on the length of a string; exact without `Intersection`, `Complement`, `Dfa` and zero-width nodes.
        zero_width: the kinds of anchors and lookarounds that depend on the context of the node, as bits of `ZeroWidth`.
    """

    __slots__ = ("depth", "min_length", "zero_width")
    depth: int
    min_length: int
    zero_width: int


class ZeroWidth:
    """The bits of `PatternNode.zero_width`."""

    START, END, AHEAD, BEHIND = 1, 2, 4, 8
    ANY = START | END | AHEAD | BEHIND


class Characters(PatternNode):
    """One character of a set."""

    __slots__ = ("points",)

    def __init__(self, points: CodePoints) -> None:
        self.points = points
        self.depth, self.min_length, self.zero_width = 1, 1, 0


class Concatenation(PatternNode):
    """A concatenation; the empty string if there are no items."""

    __slots__ = ("items",)

    def __init__(self, items: tuple[PatternNode, ...]) -> None:
        self.items = items
        depth = length = zero_width = 0
        for item in items:
            depth = max(depth, item.depth)
            length += item.min_length
            zero_width |= item.zero_width
        self.depth, self.min_length, self.zero_width = depth + 1, length, zero_width


class Alternation(PatternNode):
    """An alternation of at least two items."""

    __slots__ = ("items",)

    def __init__(self, items: tuple[PatternNode, ...]) -> None:
        self.items = items
        depth, zero_width = 0, 0
        length = items[0].min_length
        for item in items:
            depth = max(depth, item.depth)
            length = min(length, item.min_length)
            zero_width |= item.zero_width
        self.depth, self.min_length, self.zero_width = depth + 1, length, zero_width


class Repetition(PatternNode):
    """`low` to `high` repetitions of the item, unbounded if `high` is None."""

    __slots__ = ("high", "item", "low")

    def __init__(self, item: PatternNode, low: int, high: int | None) -> None:
        self.item, self.low, self.high = item, low, high
        self.depth, self.min_length, self.zero_width = item.depth + 1, item.min_length * low, item.zero_width


class AnchorKind(Enum):
    """The start or the end of the whole string."""

    START = auto()
    END = auto()


class Anchor(PatternNode):
    """Matches the empty string at the start or the end of the whole string."""

    __slots__ = ("kind",)

    def __init__(self, kind: AnchorKind) -> None:
        self.kind = kind
        self.depth, self.min_length = 1, 0
        self.zero_width = ZeroWidth.START if kind is AnchorKind.START else ZeroWidth.END


class Lookaround(PatternNode):
    """Matches the empty string where the item matches (or, if negative, does not match) the whole rest, or the whole string so far."""

    __slots__ = ("is_ahead", "is_negative", "item")

    def __init__(self, item: PatternNode, *, is_ahead: bool, is_negative: bool) -> None:
        self.item, self.is_ahead, self.is_negative = item, is_ahead, is_negative
        self.depth, self.min_length = item.depth + 1, 0
        self.zero_width = item.zero_width | (ZeroWidth.AHEAD if is_ahead else ZeroWidth.BEHIND)


class Intersection(PatternNode):
    """The strings in every item with `low` to `high` code points. Its items do not see what follows it."""

    __slots__ = ("high", "items", "low")

    def __init__(self, items: tuple[PatternNode, ...], low: int, high: int | None) -> None:
        self.items, self.low, self.high = items, low, high
        depth, length, zero_width = 0, low, 0
        for item in items:
            depth = max(depth, item.depth)
            length = max(length, item.min_length)
            zero_width |= item.zero_width & ZeroWidth.BEHIND
        self.depth, self.min_length, self.zero_width = depth + 1, length, zero_width


class Complement(PatternNode):
    """All strings that are not in the item."""

    __slots__ = ("item",)

    def __init__(self, item: PatternNode) -> None:
        self.item = item
        self.depth, self.min_length, self.zero_width = item.depth + 1, 0, item.zero_width & ZeroWidth.BEHIND


class Dfa(PatternNode):
    """A deterministic automaton given by its table, without dead states.

    Attributes:
        symbols: disjoint sets of characters.
        rows: the next state of each state for each symbol, -1 for none. State 0 is the start state.
        accepting: the acceptance flag of each state.
    """

    __slots__ = ("accepting", "rows", "symbols")

    def __init__(
        self, symbols: tuple[CodePoints, ...], rows: tuple[tuple[int, ...], ...], accepting: tuple[bool, ...]
    ) -> None:
        self.symbols, self.rows, self.accepting = symbols, rows, accepting
        self.depth, self.min_length, self.zero_width = 1, 0, 0


EMPTY_TEXT = Concatenation(())
NOTHING = Characters(code_points.NONE)
CHARACTER = Characters(code_points.ALL)
ANY_TEXT = Repetition(CHARACTER, 0, None)


def is_empty_text(node: PatternNode) -> bool:
    """Whether the node is the empty string, by its structure."""
    return isinstance(node, Concatenation) and not node.items


def is_nothing(node: PatternNode) -> bool:
    """Whether the node is the empty language, by its structure."""
    return isinstance(node, Characters) and not node.points


def is_any_text(node: PatternNode) -> bool:
    """Whether the node is the language of all strings, by its structure."""
    return (
        isinstance(node, Repetition)
        and node.low == 0
        and node.high is None
        and isinstance(node.item, Characters)
        and node.item.points == code_points.ALL
    )


@lru_cache(maxsize=1024)
def character(code_point: int) -> PatternNode:
    """One character; NOTHING for a surrogate."""
    return Characters(code_points.single(code_point))


def characters(points: CodePoints) -> PatternNode:
    """One character of a set."""
    return Characters(points) if points else NOTHING


def text(value: str) -> PatternNode:
    """A literal string."""
    return concatenation([character(ord(each)) for each in value])


def any_of_texts(values: Iterable[str]) -> PatternNode:
    """An alternation of literal strings that shares their common prefixes."""
    words = sorted(set(values))
    return _prefix_tree(words, 0, _PREFIX_LEVELS) if words else NOTHING


def _prefix_tree(words: Sequence[str], start: int, levels: int) -> PatternNode:
    """The suffixes from `start` of sorted words that agree up to there."""
    first, last = words[0], words[-1]
    if len(words) == 1:
        return text(first[start:])
    if levels == 0:
        return alternation([text(word[start:]) for word in words])
    end = start
    while end < len(first) and first[end] == last[end]:
        end += 1
    branches: list[PatternNode] = []
    index = 0
    if len(first) == end:
        branches.append(EMPTY_TEXT)
        index = 1
    while index < len(words):
        letter = words[index][end]
        after = bisect_right(words, letter, lo=index, key=lambda word: word[end])
        branches.append(concatenation([character(ord(letter)), _prefix_tree(words[index:after], end + 1, levels - 1)]))
        index = after
    return concatenation([text(first[start:end]), alternation(branches)])


def concatenation(items: Sequence[PatternNode]) -> PatternNode:
    """The concatenation of the items."""
    flat: list[PatternNode] = []
    for item in items:
        if isinstance(item, Concatenation):
            flat.extend(item.items)
        elif is_nothing(item):
            return NOTHING
        else:
            flat.append(item)
    if len(flat) == 1:
        return flat[0]
    return Concatenation(tuple(flat)) if flat else EMPTY_TEXT


def alternation(items: Iterable[PatternNode]) -> PatternNode:
    """The alternation of the items. Sets of characters are merged."""
    flat: list[PatternNode] = []
    sets: list[CodePoints] = []
    set_at = -1
    has_empty_text = False
    for item in items:
        for each in item.items if isinstance(item, Alternation) else (item,):
            if isinstance(each, Characters):
                if each.points:
                    if not sets:
                        set_at = len(flat)
                        flat.append(each)
                    sets.append(each.points)
            elif not is_empty_text(each):
                flat.append(each)
            elif not has_empty_text:
                has_empty_text = True
                flat.append(each)
    if len(sets) > 1:
        flat[set_at] = Characters(code_points.union(*sets))
    if len(flat) == 1:
        return flat[0]
    if len(flat) == 2 and has_empty_text and not flat[0].zero_width | flat[1].zero_width:
        return repetition(flat[1] if is_empty_text(flat[0]) else flat[0], 0, 1)
    return Alternation(tuple(flat)) if flat else NOTHING


def repetition(item: PatternNode, low: int, high: int | None) -> PatternNode:
    """`low` to `high` repetitions of the item; `high` None means unbounded."""
    if high == 0 or is_empty_text(item):
        return EMPTY_TEXT
    if is_nothing(item):
        return EMPTY_TEXT if low == 0 else NOTHING
    if low == high == 1:
        return item
    if isinstance(item, Repetition):
        if item.low == 0:  # (x{0,b}){low,high}: any count up to b * high
            return repetition(item.item, 0, None if item.high is None or high is None else item.high * high)
        if item.low == 1 and item.high is None:  # (x+){low,high}
            return repetition(item.item, low, None)
        if item.low == 1 and high is None and low <= 1:  # (x{1,b})* or (x{1,b})+
            return repetition(item.item, low, None)
    return Repetition(item, low, high)


def intersection(items: Sequence[PatternNode], low: int = 0, high: int | None = None) -> PatternNode:
    """The strings in every item with `low` to `high` code points; `high` None means unbounded."""
    flat: list[PatternNode] = []
    for item in items:
        if isinstance(item, Intersection):
            flat.extend(item.items)
            low = max(low, item.low)
            if item.high is not None:
                high = item.high if high is None else min(high, item.high)
        elif not is_any_text(item):
            flat.append(item)
    if high is not None and low > high:
        return NOTHING
    if not flat:
        return repetition(CHARACTER, low, high)
    if any(is_nothing(item) for item in flat):
        return NOTHING
    if len(flat) == 1 and low == 0 and high is None and not flat[0].zero_width:
        return flat[0]
    return Intersection(tuple(flat), low, high)


def complement(item: PatternNode) -> PatternNode:
    """All strings that are not in the item."""
    if isinstance(item, Complement):
        return item.item
    if is_nothing(item):
        return ANY_TEXT
    return NOTHING if is_any_text(item) else Complement(item)
