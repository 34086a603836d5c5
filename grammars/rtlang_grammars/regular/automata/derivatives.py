"""Derivatives of terms by one character, for all character classes at once.

`step` returns a deterministic derivative: disjoint class masks and the term after each. It is the union of the partial derivatives that
`partials` returns. Boolean operations are products of deterministic derivatives. A lookahead becomes an intersection with the rest of
the pattern; a lookbehind is resolved by a bit that the automaton tracks. Sources: Brzozowski 1964, Antimirov 1996.
"""

from __future__ import annotations

from typing import TypeAlias

from rtlang_grammars.regular.automata.terms import ANY_TEXT, EMPTY_TEXT, NOTHING, UNBOUNDED, Kind, Terms

Moves: TypeAlias = tuple[tuple[int, int], ...]
"""Pairs of a class mask and the term after a character of one of these classes."""


class Derivatives:
    """Computes and caches the derivatives of the terms of one automaton. Owned by it; not thread-safe."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self._partials: dict[int | tuple[int, int], Moves] = {}
        self._steps: dict[int | tuple[int, int], Moves] = {}

    def step(self, term: int, matched: int) -> Moves:
        """The deterministic derivative of a term: disjoint masks, none of which leads to NOTHING.

        Args:
            term: the term.
            matched: bit i is set if the string read so far matches lookbehind i.
        Raises:
            GrammarError: the budget of the terms ran out.
        """
        key: int | tuple[int, int] = (term, matched) if self.terms.has_lookbehind[term] else term
        found = self._steps.get(key)
        if found is None:
            found = self._steps[key] = self._determinize(self.partials(term, matched))
        return found

    def partials(self, term: int, matched: int) -> Moves:
        """The partial derivatives of a term; their masks may overlap. Arguments and errors as in `step`."""
        key: int | tuple[int, int] = (term, matched) if self.terms.has_lookbehind[term] else term
        found = self._partials.get(key)
        if found is not None:
            return found
        terms = self.terms
        terms.budget.spend()
        kind = terms.kind[term]
        if kind is Kind.CHARACTERS:
            moves: Moves = ((terms.first[term], EMPTY_TEXT),) if terms.first[term] else ()
        elif kind is Kind.CONCATENATION:
            moves = self._of_concatenation(term, matched)
        elif kind is Kind.ALTERNATION:
            joined: list[tuple[int, int]] = []
            for part in terms.parts[term]:
                joined += self.partials(part, matched)
            moves = tuple(joined)
        elif kind is Kind.REPETITION:
            item, low, high = terms.first[term], terms.low[term], terms.high[term]
            if terms.depends_on_context[item]:
                moves = self._unfold(term, EMPTY_TEXT, matched)
            else:
                others = terms.repetition(item, max(low - 1, 0), high if high == UNBOUNDED else high - 1)
                moves = tuple(
                    [(mask, terms.concatenation(rest, others)) for mask, rest in self.partials(item, matched)]
                )
        elif kind is Kind.DFA:
            dfa = terms.dfas[terms.first[term]]
            row = dfa.rows[terms.second[term]]
            moves = tuple(
                [
                    (terms.partition.mask(points), terms.dfa_state(terms.first[term], target))
                    for points, target in zip(dfa.symbols, row, strict=True)
                    if target >= 0
                ]
            )
        elif kind is Kind.INTERSECTION:
            moves = self._of_intersection(term, matched)
        elif kind is Kind.COMPLEMENT:
            moves = self._of_complement(terms.first[term], matched)
        else:
            moves = ()
        self._partials[key] = moves
        return moves

    def _of_concatenation(self, term: int, matched: int) -> Moves:
        terms = self.terms
        moves: list[tuple[int, int]] = []
        while terms.kind[term] is Kind.CONCATENATION:
            head, tail = terms.first[term], terms.second[term]
            terms.budget.spend()
            if terms.depends_on_context[head]:
                moves += self._unfold(head, tail, matched)
                return tuple(moves)
            for mask, rest in self.partials(head, matched):
                moves.append((mask, terms.concatenation(rest, tail)))
            if not terms.is_nullable(head, matched):
                return tuple(moves)
            term = tail
        moves += self.partials(term, matched)
        return tuple(moves)

    def _unfold(self, head: int, tail: int, matched: int) -> Moves:
        """The derivative of `head` followed by `tail` where an assertion in the head depends on the tail."""
        terms = self.terms
        kind = terms.kind[head]
        if kind is Kind.CONCATENATION:
            return self.partials(
                terms.concatenation(terms.first[head], terms.concatenation(terms.second[head], tail)), matched
            )
        if kind is Kind.ALTERNATION:
            moves: list[tuple[int, int]] = []
            for part in terms.parts[head]:
                moves += self.partials(terms.concatenation(part, tail), matched)
            return tuple(moves)
        if kind is Kind.REPETITION:
            item, low, high = terms.first[head], terms.low[head], terms.high[head]
            others = terms.repetition(item, max(low - 1, 0), high if high == UNBOUNDED else high - 1)
            turn = self.partials(terms.concatenation(item, terms.concatenation(others, tail)), matched)
            return turn if low else (*turn, *self.partials(tail, matched))
        if kind is Kind.BEHIND:
            holds = (matched >> terms.first[head]) & 1 != terms.second[head]
            return self.partials(tail, matched) if holds else ()
        assert kind is Kind.AHEAD, kind
        return self._product(self.step(terms.first[head], matched), self.partials(tail, matched), 0, UNBOUNDED)

    def _product(self, one: Moves, other: Moves, low: int, high: int) -> Moves:
        moves = []
        for mask, rest in one:
            for other_mask, other_rest in other:
                if mask & other_mask:
                    after = self.terms.intersection((rest, other_rest), low, high)
                    if after != NOTHING:
                        moves.append((mask & other_mask, after))
        return tuple(moves)

    def _of_intersection(self, term: int, matched: int) -> Moves:
        terms = self.terms
        low, high = terms.low[term], terms.high[term]
        if high == 0:
            return ()
        low, high = max(low - 1, 0), high if high == UNBOUNDED else high - 1
        parts = terms.parts[term]
        combined: list[tuple[int, tuple[int, ...]]] = [(terms.partition.all_mask, ())]
        for part in parts:
            moves = self.step(part, matched)
            crossed = []
            for mask, rests in combined:
                for other_mask, rest in moves:
                    if mask & other_mask:
                        crossed.append((mask & other_mask, (*rests, rest)))
            combined = crossed
            terms.budget.spend()
        by_term: dict[int, int] = {}
        for mask, rests in combined:
            after = terms.intersection(rests, low, high)
            if after != NOTHING:
                by_term[after] = by_term.get(after, 0) | mask
        return tuple([(mask, after) for after, mask in by_term.items()])

    def _of_complement(self, item: int, matched: int) -> Moves:
        terms = self.terms
        moves = []
        others = terms.partition.all_mask
        for mask, rest in self.step(item, matched):
            others &= ~mask
            after = terms.complement(rest)
            if after != NOTHING:
                moves.append((mask, after))
        if others:
            moves.append((others, ANY_TEXT))
        return tuple(moves)

    def _determinize(self, moves: Moves) -> Moves:
        """Make the masks disjoint."""
        if len(moves) <= 1:
            return moves
        terms = self.terms
        by_mask: dict[int, list[int]] = {}
        for mask, rest in moves:
            by_mask.setdefault(mask, []).append(rest)
        pieces: list[tuple[int, list[int]]] = []
        union = 0
        for mask, rests in by_mask.items():
            if not union & mask:  # the common case
                pieces.append((mask, rests))
                union |= mask
                continue
            union |= mask
            left = mask
            added = []
            for index, (piece_mask, piece_rests) in enumerate(pieces):
                common = piece_mask & left
                if not common:
                    continue
                if common == piece_mask:
                    piece_rests += rests
                else:
                    pieces[index] = (piece_mask & ~common, piece_rests)
                    added.append((common, piece_rests + rests))
                left &= ~common
            pieces += added
            if left:
                pieces.append((left, list(rests)))
            terms.budget.spend()
        by_term: dict[int, int] = {}
        for mask, rests in pieces:
            after = rests[0] if len(rests) == 1 else terms.alternation(rests)
            if after != NOTHING:
                by_term[after] = by_term.get(after, 0) | mask
        return tuple([(mask, after) for after, mask in by_term.items()])
