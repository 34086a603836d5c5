"""Liveness: which states of an automaton can reach acceptance.

Without boolean operations and assertions every term except NOTHING is a nonempty language, and no search is needed. An intersection of
one such language with length bounds is decided by its minimal and maximal lengths. Other configurations are decided by a depth-first
search for an accepting one; results are cached and the search is charged to the budget of the terms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from rtlang_grammars.regular.automata.terms import EMPTY_TEXT, NOTHING, UNBOUNDED, Kind, Terms
from rtlang_grammars.spec.errors import GrammarError

Configuration: TypeAlias = tuple[int, tuple[int, ...]]
"""A term, and the derivative of each lookbehind."""


class LengthRange(NamedTuple):
    """The lengths in code points of a language: `low` to `high` (UNBOUNDED if there is no maximum), without gaps if `is_gapless`."""

    low: int
    high: int
    is_gapless: bool


class DeadEnds:
    """Decides whether configurations are live. Owned by one automaton; not thread-safe.

    Args:
        terms: the terms of the automaton.
        successors: the configurations after one more character, dead ones included.
        accepts: whether a configuration accepts.
        plain: the class mask of the plain characters of `has_all_plain_prefixes`; default: all classes.
    """

    def __init__(
        self,
        terms: Terms,
        successors: Callable[[Configuration], list[Configuration]],
        accepts: Callable[[Configuration], bool],
        plain: int | None = None,
    ) -> None:
        self.terms = terms
        self._plain = terms.partition.all_mask if plain is None else plain
        self._successors, self._accepts = successors, accepts
        self._liveness: dict[Configuration, bool] = {}
        self._length_ranges: dict[int, LengthRange] = {}
        self._min_lengths: dict[int, int] = {}
        self._all_plain_prefixes: dict[int, bool] = {}
        self._decisive_suffixes: dict[int, int] = {}

    def is_live(self, configuration: Configuration) -> bool:
        """Whether acceptance is reachable.

        Raises:
            GrammarError: the search exceeds the budget or the recursion limit.
        """
        try:
            return self._is_live(configuration)
        except RecursionError:
            raise GrammarError("too complex: assertions depend on one another too deeply") from None

    def _is_live(self, configuration: Configuration) -> bool:
        term = self._decisive_suffix(configuration[0])
        if not self.terms.may_be_nothing[term]:
            return term != NOTHING
        configuration = (term, configuration[1])
        known = self._liveness.get(configuration)
        if known is None:
            known = True if self.has_all_plain_prefixes(term) else self._by_structure(configuration)
            if known is None:
                known = self._search(configuration)
            self._liveness[configuration] = known
        return known

    def _decisive_suffix(self, term: int) -> int:
        """The suffix of a concatenation after its parts that are known to be nonempty: the concatenation is empty if and only if it is."""
        terms = self.terms
        passed = []
        while (
            term not in self._decisive_suffixes
            and terms.kind[term] is Kind.CONCATENATION
            and terms.may_be_nothing[term]
            and not terms.may_be_nothing[terms.first[term]]
            and not terms.has_lookbehind[term]
        ):
            passed.append(term)
            term = terms.second[term]
        term = self._decisive_suffixes.get(term, term)
        for each in passed:
            self._decisive_suffixes[each] = term
        return term

    def _by_structure(self, configuration: Configuration) -> bool | None:
        """The answer if the structure of the term implies it, else None."""
        terms, (term, lookbehinds) = self.terms, configuration
        if self._accepts(configuration):
            return True
        kind = terms.kind[term]
        if kind is Kind.ALTERNATION and any(not terms.may_be_nothing[part] for part in terms.parts[term]):
            return True
        if (
            kind is Kind.CONCATENATION
            and not terms.has_lookbehind[term]
            and not terms.depends_on_context[terms.first[term]]
        ):
            return self._is_live((terms.first[term], lookbehinds)) and self._is_live((terms.second[term], lookbehinds))
        if kind is Kind.INTERSECTION:
            return self._by_lengths(term)
        return None

    def _by_lengths(self, term: int) -> bool | None:
        terms = self.terms
        low, high = terms.low[term], terms.high[term]
        is_gapless = len(terms.parts[term]) == 1
        for part in terms.parts[term]:
            if terms.may_be_nothing[part]:
                is_gapless = False
                continue
            length_range = self.length_range(part)
            low = max(low, length_range.low)
            if length_range.high != UNBOUNDED:
                high = length_range.high if high == UNBOUNDED else min(high, length_range.high)
            is_endless = (
                terms.high[term] == length_range.high == UNBOUNDED and not terms.dfas
            )  # the lengths of a DFA are only bounds
            is_gapless = is_gapless and (length_range.is_gapless or is_endless)
        if high != UNBOUNDED and low > high:
            return False
        return True if is_gapless else None

    def _search(self, start: Configuration) -> bool:
        """Search depth-first for a live configuration."""
        path: list[tuple[Configuration, Iterator[Configuration]]] = [(start, self._candidates(start))]
        seen = {start}
        while path:
            self.terms.budget.spend()
            following = next(path[-1][1], None)
            if following is None:
                path.pop()
                continue
            if following in seen:
                continue
            seen.add(following)
            is_live = self._liveness.get(following)
            if is_live is None:
                if not self.terms.may_be_nothing[following[0]]:
                    is_live = following[0] != NOTHING
                else:
                    is_live = self._by_structure(following)
            if is_live:
                for configuration, _ in path:
                    self._liveness[configuration] = True
                return True
            if is_live is None:
                self.terms.budget.spend(states=1)
                path.append((following, self._candidates(following)))
        for configuration in seen:  # all that is reachable, none of it accepting
            self._liveness[configuration] = False
        return False

    def _candidates(self, configuration: Configuration) -> Iterator[Configuration]:
        """Configurations of which at least one is live if this one is: the parts of an alternation, or the successors."""
        terms, (term, lookbehinds) = self.terms, configuration
        if terms.kind[term] is Kind.ALTERNATION and not terms.depends_on_context[term]:
            return iter([(part, lookbehinds) for part in terms.parts[term]])
        return iter(self._successors(configuration))

    def has_all_plain_prefixes(self, term: int) -> bool:
        """Whether the term is known to contain P*KP* for a nonempty K within P*, where P are the plain characters.

        Then every plain string is a prefix of some string of the language. This holds for lookaheads such as (?=.*a)(?=.*b), whose
        automaton has a state for every subset of them and is therefore not explored.
        """
        found = self._all_plain_prefixes.get(term)
        if found is None:
            terms, kind = self.terms, self.terms.kind[term]
            found = self._repeats_plain(term)
            if kind is Kind.CONCATENATION:
                head, tail = terms.first[term], terms.second[term]
                if terms.kind[head] is Kind.AHEAD:
                    found = self.has_all_plain_prefixes(terms.first[head]) and self.has_all_plain_prefixes(tail)
                else:
                    found = self._repeats_plain(head) and terms.low[head] == 0 and self._has_all_plain_suffixes(tail)
            elif kind is Kind.ALTERNATION:
                found = any(map(self.has_all_plain_prefixes, terms.parts[term]))
            elif kind is Kind.INTERSECTION:
                found = terms.high[term] == UNBOUNDED and all(map(self.has_all_plain_prefixes, terms.parts[term]))
            self._all_plain_prefixes[term] = found
        return found

    def _repeats_plain(self, term: int) -> bool:
        """Whether the term is an unbounded repetition of a set that contains all plain characters."""
        terms = self.terms
        if terms.kind[term] is not Kind.REPETITION or terms.high[term] != UNBOUNDED:
            return False
        item = terms.first[term]
        return terms.kind[item] is Kind.CHARACTERS and terms.first[item] & self._plain == self._plain

    def _has_all_plain_suffixes(self, term: int) -> bool:
        """Whether the term is known to contain KP* for a nonempty K within P*."""
        terms = self.terms
        while terms.kind[term] is Kind.CONCATENATION and self._has_plain_string(terms.first[term]):
            term = terms.second[term]
        if terms.kind[term] is Kind.ALTERNATION:
            return any(map(self._has_all_plain_suffixes, terms.parts[term]))
        return self._repeats_plain(term)

    def _has_plain_string(self, term: int) -> bool:
        """Whether the term is known to contain a string of plain characters."""
        terms, kind = self.terms, self.terms.kind[term]
        if kind is Kind.CHARACTERS:
            return terms.first[term] & self._plain != 0
        if kind is Kind.CONCATENATION:
            while terms.kind[term] is Kind.CONCATENATION:
                if not self._has_plain_string(terms.first[term]):
                    return False
                term = terms.second[term]
            return self._has_plain_string(term)
        if kind is Kind.ALTERNATION:
            return any(map(self._has_plain_string, terms.parts[term]))
        if kind is Kind.REPETITION:
            return terms.low[term] == 0 or self._has_plain_string(terms.first[term])
        return kind is Kind.EMPTY_TEXT

    def min_length(self, term: int) -> int:
        """A lower bound on the length in code points of the strings of a term."""
        found = self._min_lengths.get(term)
        if found is not None:
            return found
        terms = self.terms
        chain = []
        while term not in self._min_lengths and terms.kind[term] is Kind.CONCATENATION:
            chain.append(term)
            term = terms.second[term]
        found = self._min_lengths.get(term)
        if found is None:
            kind = terms.kind[term]
            found = 0
            if kind is Kind.CHARACTERS:
                found = 1
            elif kind is Kind.REPETITION:
                found = self.min_length(terms.first[term]) * terms.low[term] if terms.low[term] else 0
            elif kind is Kind.ALTERNATION:
                found = min(map(self.min_length, terms.parts[term]))
            elif kind is Kind.INTERSECTION:
                found = max(terms.low[term], *map(self.min_length, terms.parts[term]))
            self._min_lengths[term] = found
        for each in reversed(chain):
            found += self.min_length(terms.first[each])
            self._min_lengths[each] = found
        return found

    def length_range(self, term: int) -> LengthRange:
        """The lengths of a term without boolean operations and assertions."""
        chain = []
        while term not in self._length_ranges and self.terms.kind[term] is Kind.CONCATENATION:
            chain.append(term)
            term = self.terms.second[term]
        found = self._length_ranges.get(term)
        if found is None:
            found = self._length_ranges[term] = self._length_range_of(term)
        for each in reversed(chain):
            head = self.length_range(self.terms.first[each])
            found = LengthRange(
                head.low + found.low, _add_bounds(head.high, found.high), head.is_gapless and found.is_gapless
            )
            self._length_ranges[each] = found
        return found

    def _length_range_of(self, term: int) -> LengthRange:
        terms = self.terms
        kind = terms.kind[term]
        if term == EMPTY_TEXT:
            return LengthRange(0, 0, True)
        if kind is Kind.CHARACTERS:
            return LengthRange(1, 1, True)
        if kind is Kind.DFA:
            return LengthRange(0, UNBOUNDED, False)
        if kind is Kind.REPETITION:
            item = self.length_range(terms.first[term])
            low, high = terms.low[term], terms.high[term]
            most = UNBOUNDED if UNBOUNDED in (high, item.high) else item.high * high
            next_joins = item.high == UNBOUNDED or (low + 1) * item.low <= low * item.high + 1
            is_gapless = item.is_gapless and (low == high or next_joins)
            return LengthRange(item.low * low, most, is_gapless)
        assert kind is Kind.ALTERNATION, kind
        parts = []
        for part in terms.parts[term]:
            parts.append(self.length_range(part))
        parts.sort()
        low, high, is_gapless = parts[0]
        for part_lengths in parts[1:]:
            touches = high == UNBOUNDED or part_lengths.low <= high + 1
            is_gapless = is_gapless and part_lengths.is_gapless and touches
            high = UNBOUNDED if UNBOUNDED in (high, part_lengths.high) else max(high, part_lengths.high)
        return LengthRange(low, high, is_gapless)


def _add_bounds(one: int, other: int) -> int:
    return UNBOUNDED if UNBOUNDED in (one, other) else one + other
