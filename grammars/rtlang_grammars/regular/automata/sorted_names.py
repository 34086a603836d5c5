"""Names sorted into classes while they are read: listed ones, those of some languages, and all others.

Where whatever is neither listed nor of a class may follow, nothing is a dead end, and no complement or intersection has to be worked out:
the listed names are followed in their order, every class in its own automaton, side by side, and where the name ends they say what it is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from rtlang_grammars.regular.automata.branching import Branchings
from rtlang_grammars.regular.automata.code_point_automaton import NO_STATE, CodePointAutomaton
from rtlang_grammars.regular.characters.coarse_classes import ALL_LEVELS
from rtlang_grammars.spec.limits import Budget

_NOT_LISTED = -1
"""The place of what no listed name begins with."""

_Situation = tuple[int, ...]
"""A place among the listed names, and the state of each class, NO_STATE where no name of it can come any more."""


class SortedNames:
    """The deterministic automaton of all names. States are numbered from 0 as they are met. Owned by a `ByteAutomaton`, which locks.

    Attributes:
        branchings: of the classes of code points, which tell apart all that the languages do and all letters of the listed names.
        start: the first state.
    """

    def __init__(self, listed: Sequence[str], classes: Sequence[CodePointAutomaton], branchings: Branchings) -> None:
        """Make the first state.

        Args:
            listed: different names, without lone surrogates.
            classes: of languages that share no name that is not listed, none empty, all over the same `branchings`.
        """
        self.branchings, self._classes, self._listed = branchings, classes, sorted(listed)
        # A place is the first and the end of the listed names that begin so, and how many letters have come.
        self._places: list[tuple[int, int, int]] = []
        self._place_numbers: dict[tuple[int, int, int], int] = {}
        self._numbers: dict[_Situation, int] = {}
        self._situations: list[_Situation] = []
        self._vectors: list[tuple[int, ...] | None] = []
        start = self._place(0, len(listed), 0) if listed else _NOT_LISTED
        self.start = self._number((start, *(each.start for each in classes)))

    @property
    def num_states(self) -> int:
        """States made so far."""
        return len(self._situations)

    def label(self, state: int) -> int | None:
        """What the name so far is: the index of its class, their number for all others, None where it is listed."""
        place, *states = self._situations[state]
        if self._is_listed(place):
            return None
        for index, (each, at) in enumerate(zip(self._classes, states, strict=True)):
            if at != NO_STATE and each.is_accepting(at):
                return index
        return len(states)

    def is_accepting(self, state: int) -> bool:
        """Whether the name so far is not listed."""
        return not self._is_listed(self._situations[state][0])

    def moves(self, state: int, budget: Budget) -> tuple[int, ...]:
        """The state after a code point of each class.

        Raises:
            GrammarError: the budget ran out.
        """
        vector = self._vectors[state]
        if vector is not None:
            return vector
        budget.spend()
        place, *states = self._situations[state]
        num_classes = self.branchings.partition.num_classes
        nowhere = (NO_STATE,) * num_classes
        vectors = [
            nowhere if at == NO_STATE else each.moves(at, budget)
            for each, at in zip(self._classes, states, strict=True)
        ]
        number, numbers = self._number, self._numbers
        after = list(zip(*vectors, strict=True)) if vectors else [()] * num_classes
        made: dict[_Situation, int] = {}
        targets = []
        for each in after:
            target = made.get(each)
            if target is None:
                situation = (_NOT_LISTED, *each)
                target = made[each] = numbers[situation] if situation in numbers else number(situation)
            targets.append(target)
        for letter, below in self._below(place):
            targets[letter] = number((below, *after[letter]))
        budget.spend(states=len(made))
        vector = self._vectors[state] = tuple(targets)
        return vector

    def known_moves(self, state: int) -> tuple[int, ...] | None:
        """What `moves` answered before; None where it was not asked."""
        return self._vectors[state]

    def free_length(self, state: int, limit: int, budget: Budget) -> None:
        """How many plain characters may follow, whichever they are: there is no end to it."""

    def is_free(self, state: int) -> bool:
        """Whether any plain text may follow for ever: so it is."""
        return True

    def nearest_end(self, state: int, limit: int, budget: Budget) -> list[int] | None:
        """The classes of the characters of a short text to a name that is not listed.

        Raises:
            GrammarError: the budget ran out.
        """
        found = self.nearest_labels(state, limit, budget, len(self._classes))
        return next(iter(found.values()), None)

    def nearest_labels(self, state: int, limit: int, budget: Budget, wanted: int | None = None) -> dict[int, list[int]]:
        """The same for every label that can be reached within `limit` states.

        Args:
            wanted: stop at this label.
        """
        found: dict[int, list[int]] = {}
        came_from: dict[int, tuple[int, int] | None] = {state: None}
        waiting = [state]
        for each in waiting:  # grows while it is walked
            label = self.label(each)
            if label is not None and label not in found:
                path, at = [], came_from[each]
                while at is not None:
                    path.append(at[1])
                    at = came_from[at[0]]
                found[label] = path[::-1]
                if label == wanted:
                    break
            if len(waiting) > limit:
                continue
            for number, target in enumerate(self.moves(each, budget)):
                if target not in came_from:
                    came_from[target] = (each, number)
                    waiting.append(target)
        return found

    def coarse_levels(self, state: int) -> int:
        """The levels of grains, as bits, of which nothing that may follow tells two characters of one grain apart."""
        place, *states = self._situations[state]
        levels = 0 if self._goes_on(place) else ALL_LEVELS
        for each, at in zip(self._classes, states, strict=True):
            if at != NO_STATE:
                levels &= each.coarse_levels(at)
        return levels

    def missing(self, limit: int, budget: Budget) -> None:
        """How many characters are missing at least in each state: there may be very many."""

    def _is_listed(self, place: int) -> bool:
        if place == _NOT_LISTED:
            return False
        first, _, depth = self._places[place]
        return len(self._listed[first]) == depth

    def _goes_on(self, place: int) -> bool:
        """Whether more letters of a listed name may follow."""
        if place == _NOT_LISTED:
            return False
        first, end, _ = self._places[place]
        return end - first > self._is_listed(place)

    def _below(self, place: int) -> list[tuple[int, int]]:
        """The letters that follow in listed names, each by its class, and the places behind them."""
        if place == _NOT_LISTED:
            return []
        first, end, depth = self._places[place]
        first += self._is_listed(place)
        found = []
        while first < end:
            letter = self._listed[first][depth]
            after = bisect_right(self._listed, letter, lo=first, hi=end, key=lambda name: name[depth])
            found.append((self.branchings.partition.class_of(ord(letter)), self._place(first, after, depth + 1)))
            first = after
        return found

    def _place(self, first: int, end: int, depth: int) -> int:
        key = (first, end, depth)
        number = self._place_numbers.get(key)
        if number is None:
            number = self._place_numbers[key] = len(self._places)
            self._places.append(key)
        return number

    def _number(self, situation: _Situation) -> int:
        number = self._numbers.get(situation)
        if number is None:
            number = self._numbers[situation] = len(self._situations)
            self._situations.append(situation)
            self._vectors.append(None)
        return number
