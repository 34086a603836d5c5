"""Derivatives of terms: what may follow after one more character, for all characters at once.

`step` gives the deterministic form, disjoint masks of classes and the term after each; it is the union of the partial derivatives that
`partials` gives. Boolean operations are products of deterministic steps. An assertion ahead becomes an intersection with all that follows
it; one behind asks a bit that whoever walks the text keeps. Source: Brzozowski 1964, Antimirov 1996.
"""

from __future__ import annotations

from typing import TypeAlias

from rtlang_grammars.regular.automata.terms import ANY_TEXT, EMPTY_TEXT, NOTHING, UNBOUNDED, Kind, Terms

Moves: TypeAlias = tuple[tuple[int, int], ...]
"""Pairs of a mask of classes and the term after a character of them."""


class Derivatives:
    """Derivatives of the terms of one automaton, remembered. Owned by it; not thread-safe."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self._partials: dict[int | tuple[int, int], Moves] = {}
        self._steps: dict[int | tuple[int, int], Moves] = {}

    def step(self, term: int, passed: int) -> Moves:
        """The deterministic moves of a term: masks are disjoint, and no term after is NOTHING.

        Args:
            passed: bit i is set where the text so far is in history i.
        """
        key: int | tuple[int, int] = (term, passed) if self.terms.needs_history[term] else term
        found = self._steps.get(key)
        if found is None:
            found = self._steps[key] = self._determinised(self.partials(term, passed))
        return found

    def partials(self, term: int, passed: int) -> Moves:
        """Moves whose masks may overlap; their union is what follows."""
        key: int | tuple[int, int] = (term, passed) if self.terms.needs_history[term] else term
        found = self._partials.get(key)
        if found is not None:
            return found
        terms = self.terms
        terms.budget.spend()
        kind = terms.kind[term]
        if kind is Kind.CHARACTERS:
            moves: Moves = ((terms.first[term], EMPTY_TEXT),) if terms.first[term] else ()
        elif kind is Kind.CONCATENATION:
            moves = self._of_concatenation(term, passed)
        elif kind is Kind.ALTERNATION:
            joined: list[tuple[int, int]] = []
            for part in terms.parts[term]:
                joined += self.partials(part, passed)
            moves = tuple(joined)
        elif kind is Kind.REPETITION:
            item, low, high = terms.first[term], terms.low[term], terms.high[term]
            if terms.sees_beyond[item]:
                moves = self._unfolded(term, EMPTY_TEXT, passed)
            else:
                others = terms.repetition(item, max(low - 1, 0), high if high == UNBOUNDED else high - 1)
                moves = tuple([(mask, terms.concatenation(rest, others)) for mask, rest in self.partials(item, passed)])
        elif kind is Kind.MACHINE:
            machine = terms.machines[terms.first[term]]
            row = machine.rows[terms.second[term]]
            moves = tuple(
                [
                    (terms.partition.mask(points), terms.machine(terms.first[term], target))
                    for points, target in zip(machine.symbols, row, strict=True)
                    if target >= 0
                ]
            )
        elif kind is Kind.BOTH:
            moves = self._of_both(term, passed)
        elif kind is Kind.NEGATION:
            moves = self._of_negation(terms.first[term], passed)
        else:
            moves = ()
        self._partials[key] = moves
        return moves

    def _of_concatenation(self, term: int, passed: int) -> Moves:
        terms = self.terms
        moves: list[tuple[int, int]] = []
        while terms.kind[term] is Kind.CONCATENATION:
            head, tail = terms.first[term], terms.second[term]
            terms.budget.spend()
            if terms.sees_beyond[head]:
                moves += self._unfolded(head, tail, passed)
                return tuple(moves)
            for mask, rest in self.partials(head, passed):
                moves.append((mask, terms.concatenation(rest, tail)))
            if not terms.is_nullable(head, passed):
                return tuple(moves)
            term = tail
        moves += self.partials(term, passed)
        return tuple(moves)

    def _unfolded(self, head: int, tail: int, passed: int) -> Moves:
        """The moves of `head` followed by `tail`, where something in the head sees the tail."""
        terms = self.terms
        kind = terms.kind[head]
        if kind is Kind.CONCATENATION:
            return self.partials(
                terms.concatenation(terms.first[head], terms.concatenation(terms.second[head], tail)), passed
            )
        if kind is Kind.ALTERNATION:
            moves: list[tuple[int, int]] = []
            for part in terms.parts[head]:
                moves += self.partials(terms.concatenation(part, tail), passed)
            return tuple(moves)
        if kind is Kind.REPETITION:
            item, low, high = terms.first[head], terms.low[head], terms.high[head]
            others = terms.repetition(item, max(low - 1, 0), high if high == UNBOUNDED else high - 1)
            turn = self.partials(terms.concatenation(item, terms.concatenation(others, tail)), passed)
            return turn if low else (*turn, *self.partials(tail, passed))
        if kind is Kind.BEHIND:
            holds = (passed >> terms.first[head]) & 1 != terms.second[head]
            return self.partials(tail, passed) if holds else ()
        assert kind is Kind.AHEAD, kind
        return self._product(self.step(terms.first[head], passed), self.partials(tail, passed), 0, UNBOUNDED)

    def _product(self, one: Moves, other: Moves, low: int, high: int) -> Moves:
        moves = []
        for mask, rest in one:
            for other_mask, other_rest in other:
                if mask & other_mask:
                    after = self.terms.both((rest, other_rest), low, high)
                    if after != NOTHING:
                        moves.append((mask & other_mask, after))
        return tuple(moves)

    def _of_both(self, term: int, passed: int) -> Moves:
        terms = self.terms
        low, high = terms.low[term], terms.high[term]
        if high == 0:
            return ()
        low, high = max(low - 1, 0), high if high == UNBOUNDED else high - 1
        parts = terms.parts[term]
        combined: list[tuple[int, tuple[int, ...]]] = [(terms.partition.all_mask, ())]
        for part in parts:
            moves = self.step(part, passed)
            crossed = []
            for mask, rests in combined:
                for other_mask, rest in moves:
                    if mask & other_mask:
                        crossed.append((mask & other_mask, (*rests, rest)))
            combined = crossed
            terms.budget.spend()
        by_term: dict[int, int] = {}
        for mask, rests in combined:
            after = terms.both(rests, low, high)
            if after != NOTHING:
                by_term[after] = by_term.get(after, 0) | mask
        return tuple([(mask, after) for after, mask in by_term.items()])

    def _of_negation(self, item: int, passed: int) -> Moves:
        terms = self.terms
        moves = []
        others = terms.partition.all_mask
        for mask, rest in self.step(item, passed):
            others &= ~mask
            after = terms.negation(rest)
            if after != NOTHING:
                moves.append((mask, after))
        if others:
            moves.append((others, ANY_TEXT))
        return tuple(moves)

    def _determinised(self, moves: Moves) -> Moves:
        """The same moves with disjoint masks."""
        if len(moves) <= 1:
            return moves
        terms = self.terms
        by_mask: dict[int, list[int]] = {}
        for mask, rest in moves:
            by_mask.setdefault(mask, []).append(rest)
        pieces: list[tuple[int, list[int]]] = []
        union = 0
        for mask, rests in by_mask.items():
            if not union & mask:  # most are disjoint
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
