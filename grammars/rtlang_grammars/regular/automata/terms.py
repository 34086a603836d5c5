"""Hash-consed regular expressions (terms), identified by number.

A term is the language of the possible continuations of a string. Terms are simplified as they are built, so that similar derivatives get
the same number and the automaton stays small. Repetitions keep their bounds as numbers and are never unrolled; alternatives that differ
only in the bounds of one repetition are merged (a{3,5} | a{6} becomes a{3,6}). Source: Owens, Reppy, Turon 2009 for similarity.
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
"""The upper bound of a repetition that has none."""
_TERM_BYTES = 300


class Kind(IntEnum):
    """The kind of a term, which determines the meaning of `first`, `second` and `parts`."""

    EMPTY_TEXT = 0
    CHARACTERS = 1  # first: mask of classes
    CONCATENATION = 2  # first, second: terms
    ALTERNATION = 3  # parts: terms, none of them an alternation
    REPETITION = 4  # first: term; low, high
    INTERSECTION = 5  # parts: terms; low, high: bounds on the length
    COMPLEMENT = 6  # first: term
    DFA = 7  # first: index of the DFA; second: its state
    AHEAD = 8  # first: term of the rest of the string
    BEHIND = 9  # first: index of the lookbehind; second: 1 if negative


class Nullable(IntEnum):
    """Whether a term contains the empty string."""

    NO = 0
    YES = 1
    BY_LOOKBEHIND = 2


class Terms:
    """The terms of one automaton, as parallel lists indexed by term. Owned by the automaton; not thread-safe.

    Attributes:
        budget: charged for new terms; its owner replaces it.
        dfas: the DFAs in the tree.
        lookbehinds: for each lookbehind, the term that the string read so far must be in.
        depends_on_context: the term has an assertion that depends on what precedes or follows the term.
        has_lookbehind: the term contains a lookbehind.
        coarse_levels: the levels (as bits) of coarse classes that no part of the term splits.
        is_counted: the term contains a repetition or a length with bounds above one.
        may_be_nothing: the term contains a boolean operation or an assertion; all other terms except NOTHING are nonempty languages.
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
        self.depends_on_context: list[bool] = []
        self.has_lookbehind: list[bool] = []
        self.may_be_nothing: list[bool] = []
        self.coarse_levels: list[int] = []
        self.is_counted: list[bool] = []
        self.lookbehinds: list[int] = []
        self.dfas: list[syntax.Dfa] = []
        self._dfa_levels: list[int] = []
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
        depends_on_context = may_be_nothing = kind is Kind.AHEAD or kind is Kind.BEHIND
        has_lookbehind = kind is Kind.BEHIND
        is_boolean = kind is Kind.INTERSECTION or kind is Kind.COMPLEMENT
        may_be_nothing = may_be_nothing or is_boolean
        if kind is Kind.CHARACTERS:
            levels = self.partition.coarse_levels(first)
        elif kind is Kind.DFA:
            levels = self._dfa_levels[first]
        else:
            levels = ALL_LEVELS
        is_counted = low > 1 or high > 1
        for each in below:
            levels &= self.coarse_levels[each]
            if self.is_counted[each]:
                is_counted = True
            if self.depends_on_context[each]:
                depends_on_context = True
            if self.has_lookbehind[each]:
                has_lookbehind = True
            if self.may_be_nothing[each]:
                may_be_nothing = True
        self.depends_on_context.append(depends_on_context and not is_boolean)
        self.has_lookbehind.append(has_lookbehind)
        self.may_be_nothing.append(may_be_nothing)
        self.coarse_levels.append(levels)
        self.is_counted.append(is_counted)
        return number

    def characters(self, mask: int) -> int:
        """One character of some classes."""
        key = (Kind.CHARACTERS, mask)
        found = self._numbers.get(key)
        return self._new(key, Kind.CHARACTERS, mask) if found is None else found

    def concatenation(self, head: int, tail: int) -> int:
        """The concatenation of two terms."""
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
        """The alternation of terms."""
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
            members = self._merge_counts(members)
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
        """`low` to `high` repetitions of a term."""
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

    def intersection(self, items: Iterable[int], low: int, high: int) -> int:
        """The intersection of terms, restricted to `low` to `high` code points."""
        members: set[int] = set()
        for item in items:
            if self.kind[item] is Kind.INTERSECTION:
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
        if (EMPTY_TEXT in members or high == 0) and nullable is not Nullable.BY_LOOKBEHIND:
            return EMPTY_TEXT if nullable else NOTHING
        if any(self.kind[each] is Kind.COMPLEMENT and self.first[each] in members for each in members):
            return NOTHING
        if len(members) == 1:
            (member,) = members
            if low == 0 and high == UNBOUNDED and not self.depends_on_context[member]:
                return member
            if self.kind[member] is Kind.REPETITION and self.kind[self.first[member]] is Kind.CHARACTERS:
                highs = [bound for bound in (high, self.high[member]) if bound != UNBOUNDED]
                low, high = max(low, self.low[member]), min(highs, default=UNBOUNDED)
                return NOTHING if high != UNBOUNDED and low > high else self.repetition(self.first[member], low, high)
        parts = tuple(sorted(members))
        key = (Kind.INTERSECTION, low, high, *parts)
        found = self._numbers.get(key)
        if found is not None:
            return found
        return self._new(key, Kind.INTERSECTION, parts=parts, low=low, high=high, nullable=nullable, below=parts)

    def complement(self, item: int) -> int:
        """All strings that are not in a term."""
        if item in (NOTHING, ANY_TEXT):
            return ANY_TEXT if item == NOTHING else NOTHING
        if self.kind[item] is Kind.COMPLEMENT and not self.depends_on_context[self.first[item]]:
            return self.first[item]
        key = (Kind.COMPLEMENT, item)
        found = self._numbers.get(key)
        if found is not None:
            return found
        nullable = (Nullable.YES, Nullable.NO, Nullable.BY_LOOKBEHIND)[self.nullable[item]]
        return self._new(key, Kind.COMPLEMENT, item, nullable=nullable, below=(item,))

    def ahead(self, item: int) -> int:
        """The empty string where the rest of the string is in a term."""
        key = (Kind.AHEAD, item)
        found = self._numbers.get(key)
        if found is not None:
            return found
        return self._new(key, Kind.AHEAD, item, nullable=self.nullable[item], below=(item,))

    def behind(self, lookbehind: int, *, is_negative: bool) -> int:
        """The empty string where the string read so far is (not) in a term."""
        if lookbehind not in self.lookbehinds:
            self.lookbehinds.append(lookbehind)
        index = self.lookbehinds.index(lookbehind)
        key = (Kind.BEHIND, index, int(is_negative))
        found = self._numbers.get(key)
        if found is not None:
            return found
        return self._new(key, Kind.BEHIND, index, int(is_negative), nullable=Nullable.BY_LOOKBEHIND)

    def dfa_state(self, index: int, state: int) -> int:
        """The language of a state of a DFA; NOTHING for state -1."""
        if state < 0:
            return NOTHING
        key = (Kind.DFA, index, state)
        found = self._numbers.get(key)
        if found is not None:
            return found
        nullable = Nullable.YES if self.dfas[index].accepting[state] else Nullable.NO
        return self._new(key, Kind.DFA, index, state, nullable=nullable)

    def is_nullable(self, term: int, matched: int) -> bool:
        """Whether a term contains the empty string; bit i of `matched` is set if the string read so far matches lookbehind i."""
        while self.nullable[term] is Nullable.BY_LOOKBEHIND and self.kind[term] is Kind.CONCATENATION:
            if not self.is_nullable(self.first[term], matched):
                return False
            term = self.second[term]
        nullable = self.nullable[term]
        if nullable is not Nullable.BY_LOOKBEHIND:
            return nullable is Nullable.YES
        kind = self.kind[term]
        if kind is Kind.BEHIND:
            return (matched >> self.first[term]) & 1 != self.second[term]
        if kind is Kind.COMPLEMENT:
            return not self.is_nullable(self.first[term], matched)
        if kind in (Kind.ALTERNATION, Kind.INTERSECTION):
            wanted = kind is Kind.ALTERNATION
            for part in self.parts[term]:  # not any(): the depth limit assumes one stack frame per level
                if self.is_nullable(part, matched) is wanted:
                    return wanted
            return not wanted
        return self.is_nullable(self.first[term], matched)

    def load(self, node: syntax.PatternNode) -> int:
        """The term of a tree whose sets are in the partition."""
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
        if isinstance(node, syntax.Alternation | syntax.Intersection):
            loaded, words = [], []
            for item in node.items:
                word = self._word(item) if isinstance(node, syntax.Alternation) else None
                if word is None:
                    loaded.append(self.load(item))
                else:
                    words.append(word)
            if isinstance(node, syntax.Alternation):
                return self.alternation([*loaded, self._of_words(words)])
            return self.intersection(loaded, node.low, UNBOUNDED if node.high is None else node.high)
        if isinstance(node, syntax.Dfa):
            self.dfas.append(node)
            levels = ALL_LEVELS
            for points in node.symbols:
                levels &= self.partition.coarse_levels(self.partition.mask(points))
            self._dfa_levels.append(levels)
            return self.dfa_state(len(self.dfas) - 1, 0)
        if isinstance(node, syntax.Complement):
            return self.complement(self.load(node.item))
        assert isinstance(node, syntax.Lookaround), f"anchors must be resolved first: {node}"
        item_term = self.load(node.item)
        if not node.is_ahead:
            return self.behind(item_term, is_negative=node.is_negative)
        return self.ahead(self.complement(item_term) if node.is_negative else item_term)

    def _word(self, node: syntax.PatternNode) -> tuple[int, ...] | None:
        """The masks of a sequence of one or more single characters; None for other trees."""
        if isinstance(node, syntax.Characters):
            return (self.partition.mask(node.points),)
        if not isinstance(node, syntax.Concatenation) or not node.items:
            return None
        masks = []
        for item in node.items:
            if not isinstance(item, syntax.Characters):
                return None
            masks.append(self.partition.mask(item.points))
        return tuple(masks) or None

    def _of_words(self, words: list[tuple[int, ...]]) -> int:
        """The alternation of words as a trie: a thousand words are not a thousand alternatives in every derivative.

        Equal subtrees get the same number, so that ends are shared as well.
        """
        ways: list[list[int]] = [[]]  # at each depth of the last word, the alternatives that are done
        last: tuple[int, ...] = ()
        for word in [*sorted(set(words)), ()]:
            common = 0
            while common < min(len(last), len(word)) and last[common] == word[common]:
                common += 1
            for depth in range(len(last), common, -1):
                rest = self.alternation(ways.pop())
                ways[-1].append(self.concatenation(self.characters(last[depth - 1]), rest))
            ways += [[] for _ in word[common:]]
            if word:
                ways[-1].append(EMPTY_TEXT)
            last = word
        return self.alternation(ways[0])

    def _merge_counts(self, members: set[int]) -> set[int]:
        """Merge alternatives that differ only in the bounds of one repetition, where the bounds touch."""
        groups: dict[tuple[int, ...], list[tuple[int, int, int]]] = {}
        for term in members:
            counted = self._leading_count(term)
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
                term = self._with_leading_count(term, low, high)
                joined.add(term)
        return joined

    def _leading_count(self, term: int) -> tuple[tuple[int, ...], int, int] | None:
        """The bounds of the repetition that a term begins with, and a key of the rest of the term; None if there is none."""
        if term in self._skeletons:
            return self._skeletons[term]
        found: tuple[tuple[int, ...], int, int] | None = None
        if self.kind[term] is Kind.REPETITION:
            found = ((0, self.first[term]), self.low[term], self.high[term])
        elif self.kind[term] is Kind.CONCATENATION:
            head, tail = self.first[term], self.second[term]
            in_head = self._leading_count(head)
            in_tail = self._leading_count(tail) if self._begins_with_count(tail) else None
            if in_head is not None and (in_tail is None or not _is_plain(in_head)):
                found = ((1, tail, *in_head[0]), in_head[1], in_head[2])
            elif in_tail is not None:
                found = ((2, head, *in_tail[0]), in_tail[1], in_tail[2])
        self._skeletons[term] = found
        return found

    def _begins_with_count(self, term: int) -> bool:
        head = self.first[term] if self.kind[term] is Kind.CONCATENATION else term
        return self.kind[head] is Kind.REPETITION

    def _with_leading_count(self, term: int, low: int, high: int) -> int:
        """The term with other bounds for the repetition it begins with."""
        if self.kind[term] is Kind.REPETITION:
            return self.repetition(self.first[term], low, high)
        counted = self._leading_count(term)
        assert counted is not None
        head, tail = self.first[term], self.second[term]
        if counted[0][0] == 1:
            return self.concatenation(self._with_leading_count(head, low, high), tail)
        return self.concatenation(head, self._with_leading_count(tail, low, high))


def _is_plain(counted: tuple[tuple[int, ...], int, int]) -> bool:
    return counted[1] <= 1 and counted[2] == UNBOUNDED
