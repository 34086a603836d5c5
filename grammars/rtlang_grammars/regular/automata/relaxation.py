"""Terms without the counts that a short string cannot reach.

After `[a-z]` of `[a-z]{3,500}` and after its hundredth letter, the same tokens may follow: none is so long that it could reach a bound.
The relaxed terms of the two are equal, so that one mask serves both, and a few states serve all lengths.

A repetition takes at least one character for each item that is not empty. So a string of up to `reach` characters cannot tell a maximum
above `reach` from none, nor minimums above `reach` from each other (less, if items are longer); what is missing can be added. A bound
on the length of the whole is dropped if every beginning of `reach` characters can be completed within it. Boolean operations are left as
they are, because there a completion of one part need not be one of the others.
"""

from __future__ import annotations

from collections.abc import Callable

from rtlang_grammars.regular.automata.terms import UNBOUNDED, Kind, Terms


class Relaxation:
    """Computes and caches the relaxed terms of one automaton for one reach. Owned by it; not thread-safe."""

    def __init__(self, terms: Terms, min_length: Callable[[int], int], reach: int) -> None:
        """`min_length`: the least number of characters of a term; exact where there are no boolean operations."""
        self._terms, self._min_length, self._reach = terms, min_length, reach
        self._relaxed: dict[int, int] = {}
        self._missing: dict[int, int | None] = {}

    def relaxed(self, term: int) -> int:
        """A term of which the same strings of up to `reach` characters are beginnings, and the same are strings.

        Raises:
            GrammarError: the budget of the terms ran out.
        """
        terms, chain = self._terms, []
        if not terms.is_counted[term]:
            return term
        while term not in self._relaxed and terms.kind[term] is Kind.CONCATENATION:
            chain.append(term)
            term = terms.second[term]
        found = self._relaxed.get(term)
        if found is None:
            found = self._relaxed[term] = self._relaxed_alone(term)
        for each in reversed(chain):
            found = self._relaxed[each] = terms.concatenation(self.relaxed(terms.first[each]), found)
        return found

    def _relaxed_alone(self, term: int) -> int:
        terms, reach = self._terms, self._reach
        terms.budget.spend()
        kind, low, high = terms.kind[term], terms.low[term], terms.high[term]
        if terms.depends_on_context[term] or not terms.is_counted[term]:
            return term
        if kind is Kind.ALTERNATION:
            return terms.alternation([self.relaxed(part) for part in terms.parts[term]])
        if kind is Kind.REPETITION:
            length = self._min_length(terms.first[term])
            most = reach if length < 2 else reach // length + 1  # items that are begun
            item = self.relaxed(terms.first[term])
            return terms.repetition(item, min(low, most + 1), UNBOUNDED if high > most else high)
        if kind is Kind.INTERSECTION and len(terms.parts[term]) == 1 and low <= 1:
            (part,) = terms.parts[term]
            missing = None if high == UNBOUNDED else self._most_missing(part)
            if missing is not None and high >= reach + missing:
                return terms.intersection([self.relaxed(part)], low, UNBOUNDED)
        return term

    def _most_missing(self, term: int) -> int | None:
        """With how many characters every beginning of a string can be completed; None: unknown."""
        terms, chain = self._terms, []
        while term not in self._missing and terms.kind[term] is Kind.CONCATENATION:
            chain.append(term)
            term = terms.second[term]
        if term not in self._missing:
            self._missing[term] = self._most_missing_alone(term)
        found = self._missing[term]
        for each in reversed(chain):
            head = self._most_missing(terms.first[each])
            if found is not None:
                found = None if head is None else max(head + self._min_length(terms.second[each]), found)
            self._missing[each] = found
        return found

    def _most_missing_alone(self, term: int) -> int | None:
        terms = self._terms
        terms.budget.spend()
        kind = terms.kind[term]
        if kind is Kind.EMPTY_TEXT or kind is Kind.CHARACTERS:
            return int(kind is Kind.CHARACTERS)
        if kind is Kind.ALTERNATION:
            found = 0
            for part in terms.parts[term]:
                missing = self._most_missing(part)
                if missing is None:
                    return None
                found = max(found, missing)
            return found
        if kind is Kind.REPETITION:
            item = self._most_missing(terms.first[term])
            others = max(terms.low[term] - 1, 0)
            return None if item is None else item + others * self._min_length(terms.first[term])
        return None
