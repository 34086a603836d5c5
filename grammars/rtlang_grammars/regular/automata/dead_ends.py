"""Whether anything can follow: which states lead to acceptance.

Without boolean operations and assertions every term but NOTHING is a language with a text in it, and nothing is searched. With bounds on
the length of one such language, its shortest and longest text decide. Otherwise a depth-first search over the states looks for an
accepting one; what it learns is kept, and it is bounded by the budget of the terms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from rtlang_grammars.regular.automata.terms import EMPTY_TEXT, NOTHING, UNBOUNDED, Kind, Terms
from rtlang_grammars.spec.errors import GrammarError

Situation: TypeAlias = tuple[int, tuple[int, ...]]
"""A term, and the terms of what each history still lacks."""


class Lengths(NamedTuple):
    """Code points of the texts of a term: `low` to `high` (UNBOUNDED for no bound), every number between where `is_gapless`."""

    low: int
    high: int
    is_gapless: bool


class DeadEnds:
    """Tells live situations from dead ones. Owned by one automaton; not thread-safe.

    Args:
        terms: whose terms these are.
        successors: the situations after one more character, dead ones among them.
        accepts: whether the empty text may follow.
        plain: the classes that `can_wait` is about; default: all.
    """

    def __init__(
        self,
        terms: Terms,
        successors: Callable[[Situation], list[Situation]],
        accepts: Callable[[Situation], bool],
        plain: int | None = None,
    ) -> None:
        self.terms = terms
        self._plain = terms.partition.all_mask if plain is None else plain
        self._successors, self._accepts = successors, accepts
        self._known: dict[Situation, bool] = {}
        self._lengths: dict[int, Lengths] = {}
        self._least: dict[int, int] = {}
        self._can_wait: dict[int, bool] = {}
        self._decided_by: dict[int, int] = {}

    def is_live(self, situation: Situation) -> bool:
        """Whether some text leads from here to acceptance.

        Raises:
            GrammarError: the search went over the budget, or the stack.
        """
        try:
            return self._is_live(situation)
        except RecursionError:
            raise GrammarError("too complex: assertions that depend on each other too deeply") from None

    def _is_live(self, situation: Situation) -> bool:
        term = self._deciding(situation[0])
        if not self.terms.may_be_empty[term]:
            return term != NOTHING
        situation = (term, situation[1])
        known = self._known.get(situation)
        if known is None:
            known = True if self.can_wait(term) else self._by_shape(situation)
            if known is None:
                known = self._search(situation)
            self._known[situation] = known
        return known

    def _deciding(self, term: int) -> int:
        """The end of a concatenation behind what is never empty: whether there is a text is decided there."""
        terms = self.terms
        passed = []
        while (
            term not in self._decided_by
            and terms.kind[term] is Kind.CONCATENATION
            and terms.may_be_empty[term]
            and not terms.may_be_empty[terms.first[term]]
            and not terms.needs_history[term]
        ):
            passed.append(term)
            term = terms.second[term]
        term = self._decided_by.get(term, term)
        for each in passed:
            self._decided_by[each] = term
        return term

    def _by_shape(self, situation: Situation) -> bool | None:
        """The answer where the term's shape gives it."""
        terms, (term, histories) = self.terms, situation
        if self._accepts(situation):
            return True
        kind = terms.kind[term]
        if kind is Kind.ALTERNATION and any(not terms.may_be_empty[part] for part in terms.parts[term]):
            return True
        if kind is Kind.CONCATENATION and not terms.needs_history[term] and not terms.sees_beyond[terms.first[term]]:
            return self._is_live((terms.first[term], histories)) and self._is_live((terms.second[term], histories))
        if kind is Kind.BOTH:
            return self._by_lengths(term)
        return None

    def _by_lengths(self, term: int) -> bool | None:
        terms = self.terms
        low, high = terms.low[term], terms.high[term]
        is_gapless = len(terms.parts[term]) == 1
        for part in terms.parts[term]:
            if terms.may_be_empty[part]:
                is_gapless = False
                continue
            lengths = self.lengths(part)
            low = max(low, lengths.low)
            if lengths.high != UNBOUNDED:
                high = lengths.high if high == UNBOUNDED else min(high, lengths.high)
            is_endless = (
                terms.high[term] == lengths.high == UNBOUNDED and not terms.machines
            )  # theirs may be bounds alone
            is_gapless = is_gapless and (lengths.is_gapless or is_endless)
        if high != UNBOUNDED and low > high:
            return False
        return True if is_gapless else None

    def _search(self, start: Situation) -> bool:
        """Depth-first, for one accepting situation."""
        path: list[tuple[Situation, Iterator[Situation]]] = [(start, self._nearer(start))]
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
            is_live = self._known.get(following)
            if is_live is None:
                if not self.terms.may_be_empty[following[0]]:
                    is_live = following[0] != NOTHING
                else:
                    is_live = self._by_shape(following)
            if is_live:
                for situation, _ in path:
                    self._known[situation] = True
                return True
            if is_live is None:
                self.terms.budget.spend(states=1)
                path.append((following, self._nearer(following)))
        for situation in seen:  # all that can be reached, and none of it accepts
            self._known[situation] = False
        return False

    def _nearer(self, situation: Situation) -> Iterator[Situation]:
        """Situations of which one must be live: the parts of an alternation, or those after one more character."""
        terms, (term, histories) = self.terms, situation
        if terms.kind[term] is Kind.ALTERNATION and not terms.sees_beyond[term]:
            return iter([(part, histories) for part in terms.parts[term]])
        return iter(self._successors(situation))

    def can_wait(self, term: int) -> bool:
        """Whether the term certainly has P*KP* in it, P being the plain characters, for some texts K of P*: then any plain text may come
        before what it asks for.

        So it is for what lookaheads like (?=.*a)(?=.*b) ask for, which have a state for every subset of them.
        """
        found = self._can_wait.get(term)
        if found is None:
            terms, kind = self.terms, self.terms.kind[term]
            found = self._repeats_plain(term)
            if kind is Kind.CONCATENATION:
                head, tail = terms.first[term], terms.second[term]
                if terms.kind[head] is Kind.AHEAD:
                    found = self.can_wait(terms.first[head]) and self.can_wait(tail)
                else:
                    found = self._repeats_plain(head) and terms.low[head] == 0 and self._ends_freely(tail)
            elif kind is Kind.ALTERNATION:
                found = any(map(self.can_wait, terms.parts[term]))
            elif kind is Kind.BOTH:
                found = terms.high[term] == UNBOUNDED and all(map(self.can_wait, terms.parts[term]))
            self._can_wait[term] = found
        return found

    def _repeats_plain(self, term: int) -> bool:
        """Whether the term is a repeat without end of any plain character, and perhaps of others."""
        terms = self.terms
        if terms.kind[term] is not Kind.REPETITION or terms.high[term] != UNBOUNDED:
            return False
        item = terms.first[term]
        return terms.kind[item] is Kind.CHARACTERS and terms.first[item] & self._plain == self._plain

    def _ends_freely(self, term: int) -> bool:
        """Whether the term certainly has KP* in it, for some texts K of P*."""
        terms = self.terms
        while terms.kind[term] is Kind.CONCATENATION and self._may_be_plain(terms.first[term]):
            term = terms.second[term]
        if terms.kind[term] is Kind.ALTERNATION:
            return any(map(self._ends_freely, terms.parts[term]))
        return self._repeats_plain(term)

    def _may_be_plain(self, term: int) -> bool:
        """Whether the term certainly has a text of plain characters in it."""
        terms, kind = self.terms, self.terms.kind[term]
        if kind is Kind.CHARACTERS:
            return terms.first[term] & self._plain != 0
        if kind is Kind.CONCATENATION:
            while terms.kind[term] is Kind.CONCATENATION:
                if not self._may_be_plain(terms.first[term]):
                    return False
                term = terms.second[term]
            return self._may_be_plain(term)
        if kind is Kind.ALTERNATION:
            return any(map(self._may_be_plain, terms.parts[term]))
        if kind is Kind.REPETITION:
            return terms.low[term] == 0 or self._may_be_plain(terms.first[term])
        return kind is Kind.EMPTY_TEXT

    def least(self, term: int) -> int:
        """Code points that every text of a term has at least."""
        found = self._least.get(term)
        if found is not None:
            return found
        terms = self.terms
        chain = []
        while term not in self._least and terms.kind[term] is Kind.CONCATENATION:
            chain.append(term)
            term = terms.second[term]
        found = self._least.get(term)
        if found is None:
            kind = terms.kind[term]
            found = 0
            if kind is Kind.CHARACTERS:
                found = 1
            elif kind is Kind.REPETITION:
                found = self.least(terms.first[term]) * terms.low[term] if terms.low[term] else 0
            elif kind is Kind.ALTERNATION:
                found = min(map(self.least, terms.parts[term]))
            elif kind is Kind.BOTH:
                found = max(terms.low[term], *map(self.least, terms.parts[term]))
            self._least[term] = found
        for each in reversed(chain):
            found += self.least(terms.first[each])
            self._least[each] = found
        return found

    def lengths(self, term: int) -> Lengths:
        """The lengths of a term without boolean operations and assertions."""
        chain = []
        while term not in self._lengths and self.terms.kind[term] is Kind.CONCATENATION:
            chain.append(term)
            term = self.terms.second[term]
        found = self._lengths.get(term)
        if found is None:
            found = self._lengths[term] = self._lengths_of(term)
        for each in reversed(chain):
            head = self.lengths(self.terms.first[each])
            found = Lengths(head.low + found.low, _sum(head.high, found.high), head.is_gapless and found.is_gapless)
            self._lengths[each] = found
        return found

    def _lengths_of(self, term: int) -> Lengths:
        terms = self.terms
        kind = terms.kind[term]
        if term == EMPTY_TEXT:
            return Lengths(0, 0, True)
        if kind is Kind.CHARACTERS:
            return Lengths(1, 1, True)
        if kind is Kind.MACHINE:
            return Lengths(0, UNBOUNDED, False)
        if kind is Kind.REPETITION:
            item = self.lengths(terms.first[term])
            low, high = terms.low[term], terms.high[term]
            most = UNBOUNDED if UNBOUNDED in (high, item.high) else item.high * high
            next_joins = item.high == UNBOUNDED or (low + 1) * item.low <= low * item.high + 1
            is_gapless = item.is_gapless and (low == high or next_joins)
            return Lengths(item.low * low, most, is_gapless)
        assert kind is Kind.ALTERNATION, kind
        parts = []
        for part in terms.parts[term]:
            parts.append(self.lengths(part))
        parts.sort()
        low, high, is_gapless = parts[0]
        for part_lengths in parts[1:]:
            touches = high == UNBOUNDED or part_lengths.low <= high + 1
            is_gapless = is_gapless and part_lengths.is_gapless and touches
            high = UNBOUNDED if UNBOUNDED in (high, part_lengths.high) else max(high, part_lengths.high)
        return Lengths(low, high, is_gapless)


def _sum(one: int, other: int) -> int:
    return UNBOUNDED if UNBOUNDED in (one, other) else one + other
