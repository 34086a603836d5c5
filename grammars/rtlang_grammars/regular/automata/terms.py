"""Interned terms: the languages that remain after some text, as numbers.

A term stands for what may still follow. Terms are hash-consed and simplified as they are made, so that equal remainders get equal numbers
and a determinised automaton is finite where its language is regular. Repeats keep their counts as numbers, never unrolled, and alternatives
that differ only in a count are joined (a{3,5} | a{6} is a{3,6}), which keeps counted patterns small.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum

from rtlang_grammars.regular.characters.coarse_classes import ALL_LEVELS
from rtlang_grammars.regular.characters.partition import Partition
from rtlang_grammars.regular.patterns import syntax
from rtlang_grammars.spec.limits import Budget

EMPTY_TEXT, NOTHING, ANY_TEXT = 0, 1, 2
UNBOUNDED = -1
"""The upper bound of a count that has none."""
_TERM_BYTES = 300


class Kind(IntEnum):
    """What a term is made of; `first`, `second` and `parts` are read accordingly."""

    EMPTY_TEXT = 0
    CHARACTERS = 1  # first: mask of classes
    CONCATENATION = 2  # first, second: terms
    ALTERNATION = 3  # parts: terms, none of them an alternation
    REPETITION = 4  # first: term; low, high
    BOTH = 5  # parts: terms; low, high bound the length of the text
    NEGATION = 6  # first: term
    MACHINE = 7  # first: index of the machine, second: its state
    AHEAD = 8  # first: term of all that remains
    BEHIND = 9  # first: index of the history; second: 1 where negative


class Nullable(IntEnum):
    """Whether the empty text is in a term."""

    NO = 0
    YES = 1
    BY_HISTORY = 2


class Terms:
    """All terms of one automaton. Owned by it; not thread-safe.

    Attributes:
        budget: what new terms are charged to; its owner replaces it.
        machines: the tables of the machines in the tree.
        histories: for each lookbehind, the term that all text so far must be in.
        sees_beyond: the term has an assertion whose meaning depends on what follows or came before.
        needs_history: the term has a lookbehind anywhere.
        coarse_levels: the levels of grains, as bits, of which nothing in the term tells two characters of one grain apart.
        may_be_empty: the term has a boolean operation or an assertion; all others are never the empty language unless they are NOTHING.
    """

    def __init__(self, partition: Partition, budget: Budget) -> None:
        self.partition, self.budget = partition, budget
        self.kind: list[Kind] = []
        self.first: list[int] = []
        self.second: list[int] = []
        self.parts: list[tuple[int, ...]] = []
        self.low: list[int] = []
        self.high: list[int] = []
        self.nullable: list[Nullable] = []
        self.sees_beyond: list[bool] = []
        self.needs_history: list[bool] = []
        self.may_be_empty: list[bool] = []
        self.coarse_levels: list[int] = []
        self.histories: list[int] = []
        self.machines: list[syntax.Machine] = []
        self._machine_levels: list[int] = []
        self._numbers: dict[tuple[int, ...], int] = {}
        self._skeletons: dict[int, tuple[tuple[int, ...], int, int] | None] = {}
        self._new((Kind.EMPTY_TEXT,), Kind.EMPTY_TEXT, nullable=Nullable.YES)
        self._new((Kind.CHARACTERS, 0), Kind.CHARACTERS)
        self._new((Kind.REPETITION, 3, 0, UNBOUNDED), Kind.REPETITION, 3, high=UNBOUNDED, nullable=Nullable.YES)
        self._new((Kind.CHARACTERS, partition.all_mask), Kind.CHARACTERS, partition.all_mask)

    def _new(
        self,
        key: tuple[int, ...],
        kind: Kind,
        first: int = 0,
        second: int = 0,
        parts: tuple[int, ...] = (),
        low: int = 0,
        high: int = 0,
        nullable: Nullable = Nullable.NO,
        below: Sequence[int] = (),
    ) -> int:
        self.budget.spend(states=1, num_bytes=_TERM_BYTES + 8 * len(parts))
        number = len(self.kind)
        self._numbers[key] = number
        self.kind.append(kind)
        self.first.append(first)
        self.second.append(second)
        self.parts.append(parts)
        self.low.append(low)
        self.high.append(high)
        self.nullable.append(nullable)
        sees = empty = kind is Kind.AHEAD or kind is Kind.BEHIND
        needs = kind is Kind.BEHIND
        is_boolean = kind is Kind.BOTH or kind is Kind.NEGATION
        empty = empty or is_boolean
        if kind is Kind.CHARACTERS:
            levels = self.partition.coarse_levels(first)
        elif kind is Kind.MACHINE:
            levels = self._machine_levels[first]
        else:
            levels = ALL_LEVELS
        for each in below:
            levels &= self.coarse_levels[each]
            if self.sees_beyond[each]:
                sees = True
            if self.needs_history[each]:
                needs = True
            if self.may_be_empty[each]:
                empty = True
        self.sees_beyond.append(sees and not is_boolean)
        self.needs_history.append(needs)
        self.may_be_empty.append(empty)
        self.coarse_levels.append(levels)
        return number

    def characters(self, mask: int) -> int:
        """One character of some classes."""
        key = (Kind.CHARACTERS, mask)
        found = self._numbers.get(key)
        return self._new(key, Kind.CHARACTERS, mask) if found is None else found

    def concatenation(self, head: int, tail: int) -> int:
        """One term after another."""
        if head == EMPTY_TEXT:
            return tail
        if tail == EMPTY_TEXT:
            return head
        if head == NOTHING or tail == NOTHING:
            return NOTHING
        if head == ANY_TEXT and (
            tail == ANY_TEXT or (self.kind[tail] is Kind.CONCATENATION and self.first[tail] == ANY_TEXT)
        ):
            return tail
        key = (Kind.CONCATENATION, head, tail)
        found = self._numbers.get(key)
        if found is not None:
            return found
        nullable = min(self.nullable[head], self.nullable[tail])
        if nullable is Nullable.YES:
            nullable = max(self.nullable[head], self.nullable[tail])
        return self._new(key, Kind.CONCATENATION, head, tail, nullable=nullable, below=(head, tail))

    def alternation(self, items: Iterable[int]) -> int:
        """Any of several terms."""
        members: set[int] = set()
        for item in items:
            if self.kind[item] is Kind.ALTERNATION:
                members.update(self.parts[item])
            else:
                members.add(item)
        members.discard(NOTHING)
        if ANY_TEXT in members:
            return ANY_TEXT
        if len(members) > 1:
            if EMPTY_TEXT in members and any(
                self.nullable[each] is Nullable.YES for each in members if each != EMPTY_TEXT
            ):
                members.discard(EMPTY_TEXT)
            members = self._joined_counts(members)
        if len(members) <= 1:
            return members.pop() if members else NOTHING
        parts = tuple(sorted(members))
        key = (Kind.ALTERNATION, *parts)
        found = self._numbers.get(key)
        if found is not None:
            return found
        present = {self.nullable[each] for each in parts}
        nullable = Nullable.YES if Nullable.YES in present else max(present)
        return self._new(key, Kind.ALTERNATION, parts=parts, nullable=nullable, below=parts)

    def repetition(self, item: int, low: int, high: int) -> int:
        """A term `low` to `high` times."""
        if high == 0 or item == EMPTY_TEXT:
            return EMPTY_TEXT
        if item == NOTHING:
            return NOTHING if low else EMPTY_TEXT
        if self.nullable[item] is Nullable.YES:
            low = 0
        if low == high == 1:
            return item
        key = (Kind.REPETITION, item, low, high)
        found = self._numbers.get(key)
        if found is not None:
            return found
        nullable = Nullable.YES if low == 0 else self.nullable[item]
        return self._new(key, Kind.REPETITION, item, low=low, high=high, nullable=nullable, below=(item,))

    def both(self, items: Iterable[int], low: int, high: int) -> int:
        """What is in every term and has `low` to `high` code points."""
        members: set[int] = set()
        for item in items:
            if self.kind[item] is Kind.BOTH:
                members.update(self.parts[item])
                low = max(low, self.low[item])
                if self.high[item] != UNBOUNDED:
                    high = self.high[item] if high == UNBOUNDED else min(high, self.high[item])
            else:
                members.add(item)
        members.discard(ANY_TEXT)
        if NOTHING in members or (high != UNBOUNDED and low > high):
            return NOTHING
        if not members:
            return self.repetition(3, low, high)
        nullables = {self.nullable[each] for each in members}
        nullable = Nullable.NO if low or Nullable.NO in nullables else max(nullables)
        if (EMPTY_TEXT in members or high == 0) and nullable is not Nullable.BY_HISTORY:
            return EMPTY_TEXT if nullable else NOTHING
        if any(self.kind[each] is Kind.NEGATION and self.first[each] in members for each in members):
            return NOTHING
        if len(members) == 1:
            (member,) = members
            if low == 0 and high == UNBOUNDED and not self.sees_beyond[member]:
                return member
            if self.kind[member] is Kind.REPETITION and self.kind[self.first[member]] is Kind.CHARACTERS:
                highs = [bound for bound in (high, self.high[member]) if bound != UNBOUNDED]
                low, high = max(low, self.low[member]), min(highs, default=UNBOUNDED)
                return NOTHING if high != UNBOUNDED and low > high else self.repetition(self.first[member], low, high)
        parts = tuple(sorted(members))
        key = (Kind.BOTH, low, high, *parts)
        found = self._numbers.get(key)
        if found is not None:
            return found
        return self._new(key, Kind.BOTH, parts=parts, low=low, high=high, nullable=nullable, below=parts)

    def negation(self, item: int) -> int:
        """Every text that is not in a term."""
        if item in (NOTHING, ANY_TEXT):
            return ANY_TEXT if item == NOTHING else NOTHING
        if self.kind[item] is Kind.NEGATION and not self.sees_beyond[self.first[item]]:
            return self.first[item]
        key = (Kind.NEGATION, item)
        found = self._numbers.get(key)
        if found is not None:
            return found
        nullable = (Nullable.YES, Nullable.NO, Nullable.BY_HISTORY)[self.nullable[item]]
        return self._new(key, Kind.NEGATION, item, nullable=nullable, below=(item,))

    def ahead(self, item: int) -> int:
        """The empty text, where all that remains is in a term."""
        key = (Kind.AHEAD, item)
        found = self._numbers.get(key)
        if found is not None:
            return found
        return self._new(key, Kind.AHEAD, item, nullable=self.nullable[item], below=(item,))

    def behind(self, history: int, *, is_negative: bool) -> int:
        """The empty text, where all text so far is (not) in a term."""
        if history not in self.histories:
            self.histories.append(history)
        index = self.histories.index(history)
        key = (Kind.BEHIND, index, int(is_negative))
        found = self._numbers.get(key)
        if found is not None:
            return found
        return self._new(key, Kind.BEHIND, index, int(is_negative), nullable=Nullable.BY_HISTORY)

    def machine(self, index: int, state: int) -> int:
        """A state of a machine; NOTHING for its state -1."""
        if state < 0:
            return NOTHING
        key = (Kind.MACHINE, index, state)
        found = self._numbers.get(key)
        if found is not None:
            return found
        nullable = Nullable.YES if self.machines[index].accepting[state] else Nullable.NO
        return self._new(key, Kind.MACHINE, index, state, nullable=nullable)

    def is_nullable(self, term: int, passed: int) -> bool:
        """Whether the empty text is in a term; bit i of `passed` is set where the text so far is in history i."""
        while self.nullable[term] is Nullable.BY_HISTORY and self.kind[term] is Kind.CONCATENATION:
            if not self.is_nullable(self.first[term], passed):
                return False
            term = self.second[term]
        nullable = self.nullable[term]
        if nullable is not Nullable.BY_HISTORY:
            return nullable is Nullable.YES
        kind = self.kind[term]
        if kind is Kind.BEHIND:
            return (passed >> self.first[term]) & 1 != self.second[term]
        if kind is Kind.NEGATION:
            return not self.is_nullable(self.first[term], passed)
        if kind in (Kind.ALTERNATION, Kind.BOTH):
            wanted = kind is Kind.ALTERNATION
            for part in self.parts[term]:  # not any(): a frame a level is what the depth limit counts on
                if self.is_nullable(part, passed) is wanted:
                    return wanted
            return not wanted
        return self.is_nullable(self.first[term], passed)

    def load(self, node: syntax.Node) -> int:
        """The term of a tree whose sets the partition knows."""
        if isinstance(node, syntax.Characters):
            return self.characters(self.partition.mask(node.points))
        if isinstance(node, syntax.Concatenation):
            term = EMPTY_TEXT
            for item in reversed(node.items):
                term = self.concatenation(self.load(item), term)
            return term
        if isinstance(node, syntax.Repetition):
            high = UNBOUNDED if node.high is None else node.high
            return self.repetition(self.load(node.item), node.low, high)
        if isinstance(node, syntax.Alternation | syntax.Both):
            loaded = []
            for item in node.items:
                loaded.append(self.load(item))
            if isinstance(node, syntax.Alternation):
                return self.alternation(loaded)
            return self.both(loaded, node.low, UNBOUNDED if node.high is None else node.high)
        if isinstance(node, syntax.Machine):
            self.machines.append(node)
            levels = ALL_LEVELS
            for points in node.symbols:
                levels &= self.partition.coarse_levels(self.partition.mask(points))
            self._machine_levels.append(levels)
            return self.machine(len(self.machines) - 1, 0)
        if isinstance(node, syntax.Negation):
            return self.negation(self.load(node.item))
        assert isinstance(node, syntax.Lookaround), f"anchors are resolved before: {node}"
        item_term = self.load(node.item)
        if not node.is_ahead:
            return self.behind(item_term, is_negative=node.is_negative)
        return self.ahead(self.negation(item_term) if node.is_negative else item_term)

    def _joined_counts(self, members: set[int]) -> set[int]:
        """Alternatives that differ only in the bounds of one count, joined where the bounds touch."""
        groups: dict[tuple[int, ...], list[tuple[int, int, int]]] = {}
        for term in members:
            counted = self._counted(term)
            if counted is not None:
                groups.setdefault(counted[0], []).append((counted[1], counted[2], term))
        if not any(len(group) > 1 for group in groups.values()):
            return members
        joined = set(members)
        for group in groups.values():
            group.sort()
            low, high, term = group[0]
            for next_low, next_high, next_term in group[1:]:
                if high != UNBOUNDED and next_low > high + 1:
                    low, high, term = next_low, next_high, next_term
                    continue
                joined -= {term, next_term}
                if high != UNBOUNDED:
                    high = UNBOUNDED if next_high == UNBOUNDED else max(high, next_high)
                term = self._recounted(term, low, high)
                joined.add(term)
        return joined

    def _counted(self, term: int) -> tuple[tuple[int, ...], int, int] | None:
        """The bounds of the count a term begins with, and what else the term is; None where it has none."""
        if term in self._skeletons:
            return self._skeletons[term]
        found: tuple[tuple[int, ...], int, int] | None = None
        if self.kind[term] is Kind.REPETITION:
            found = ((0, self.first[term]), self.low[term], self.high[term])
        elif self.kind[term] is Kind.CONCATENATION:
            head, tail = self.first[term], self.second[term]
            in_head = self._counted(head)
            in_tail = self._counted(tail) if self._begins_with_count(tail) else None
            if in_head is not None and (in_tail is None or not _is_plain(in_head)):
                found = ((1, tail, *in_head[0]), in_head[1], in_head[2])
            elif in_tail is not None:
                found = ((2, head, *in_tail[0]), in_tail[1], in_tail[2])
        self._skeletons[term] = found
        return found

    def _begins_with_count(self, term: int) -> bool:
        head = self.first[term] if self.kind[term] is Kind.CONCATENATION else term
        return self.kind[head] is Kind.REPETITION

    def _recounted(self, term: int, low: int, high: int) -> int:
        """The term with other bounds for the count it begins with."""
        if self.kind[term] is Kind.REPETITION:
            return self.repetition(self.first[term], low, high)
        counted = self._counted(term)
        assert counted is not None
        head, tail = self.first[term], self.second[term]
        if counted[0][0] == 1:
            return self.concatenation(self._recounted(head, low, high), tail)
        return self.concatenation(head, self._recounted(tail, low, high))


def _is_plain(counted: tuple[tuple[int, ...], int, int]) -> bool:
    return counted[1] <= 1 and counted[2] == UNBOUNDED
