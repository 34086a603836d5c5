"""The deterministic automaton of a tree over code points, its states made when asked for.

A state is a term (what may still follow) and, where the tree has lookbehinds, how far the text so far is towards each of them. Moves are
a vector over the classes of a partition of all code points; a move into a dead end is no move.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Iterable

from rtlang_grammars.regular.automata.branching import Branchings, branchings_of
from rtlang_grammars.regular.automata.dead_ends import DeadEnds, Situation
from rtlang_grammars.regular.automata.derivatives import Derivatives, Moves
from rtlang_grammars.regular.automata.terms import NOTHING, Terms
from rtlang_grammars.regular.characters import code_points
from rtlang_grammars.regular.characters.code_points import CodePoints
from rtlang_grammars.regular.patterns import syntax
from rtlang_grammars.spec.limits import Budget

NO_STATE = -1
_MAX_EXPLORED = 1000
"""States; with more than these, no state is made only to find out how long any text may follow."""


class CodePointAutomaton:
    """States are numbered from 0 as they are met. Safe to share between threads.

    Attributes:
        partition, branchings: the classes of code points, and their spellings.
        start: the first state; NO_STATE where the language is empty.
    """

    def __init__(self, tree: syntax.Node, budget: Budget, branchings: Branchings | None = None) -> None:
        """Make the first state.

        Args:
            branchings: of a partition that knows the sets of the tree; default: of the coarsest.

        Raises:
            GrammarError: the budget ran out.
        """
        budget.check_depth(tree.depth)
        self.branchings = branchings or branchings_of(frozenset([code_points.ALL, *sets_of(tree)]))
        self.partition = self.branchings.partition
        self._terms = Terms(self.partition, budget)
        self._derivatives = Derivatives(self._terms)
        plain = sum(1 << number for number in self.branchings.plain())
        self._dead_ends = DeadEnds(self._terms, self._following, self._accepts, plain)
        self._lock = threading.Lock()
        self._begin(tree)

    def _begin(self, tree: syntax.Node) -> None:
        self._numbers: dict[Situation, int] = {}
        self._situations: list[Situation] = []
        self._vectors: list[tuple[int, ...] | None] = []
        self._missing: dict[int, dict[int, int] | None] = {}
        first = self._terms.load(tree)
        self.start = self._number((first, tuple(self._terms.histories)))

    def beside(self, tree: syntax.Node, budget: Budget) -> CodePointAutomaton | None:
        """The automaton of another tree over the same classes: what is worked out for one the other need not work out again.

        None where the classes do not tell apart all that the tree does, or one of the two looks behind.

        Raises:
            GrammarError: the budget ran out.
        """
        budget.check_depth(tree.depth)
        looks_behind = self._terms.histories or tree.zero_width & syntax.ZeroWidth.BEHIND
        if looks_behind or not all(map(self.partition.knows, sets_of(tree))):
            return None
        other = CodePointAutomaton.__new__(CodePointAutomaton)
        other.branchings, other.partition, other._lock = self.branchings, self.partition, self._lock
        other._terms, other._derivatives, other._dead_ends = self._terms, self._derivatives, self._dead_ends
        with self._lock:
            self._terms.budget = budget
            other._begin(tree)
        return other

    @property
    def num_states(self) -> int:
        """States made so far."""
        return len(self._situations)

    def moves(self, state: int, budget: Budget) -> tuple[int, ...]:
        """The state after a code point of each class; NO_STATE where nothing can follow.

        Raises:
            GrammarError: the budget ran out.
        """
        vector = self._vectors[state]
        if vector is not None:
            return vector
        with self._lock:
            self._terms.budget = budget
            targets = [NO_STATE] * self.partition.num_classes
            for mask, situation in self._transitions(self._situations[state]):
                number = self._number(situation)
                while mask:
                    low = mask & -mask
                    targets[low.bit_length() - 1] = number
                    mask ^= low
            vector = self._vectors[state] = tuple(targets)
        return vector

    def known_moves(self, state: int) -> tuple[int, ...] | None:
        """What `moves` answered before; None where it was not asked."""
        return self._vectors[state]

    def free_length(self, state: int, limit: int, budget: Budget) -> int | None:
        """How many plain characters may follow, whichever they are: up to `limit`, None where there is no end to it.

        Raises:
            GrammarError: the budget ran out.
        """
        if self._dead_ends.can_wait(self._situations[state][0]):
            return None
        plain = self.branchings.plain()
        seen, level = {state}, [state]
        for length in range(limit):
            following: list[int] = []
            for each in level:
                if len(self._vectors) > _MAX_EXPLORED and self._vectors[each] is None:
                    return length
                moves = self.moves(each, budget)
                for number in plain:
                    target = moves[number]
                    if target == NO_STATE:
                        return length
                    if target not in seen:
                        seen.add(target)
                        following.append(target)
            if not following:
                return None
            level = following
        return limit

    def missing(self, limit: int, budget: Budget) -> dict[int, int] | None:
        """For each state, how many characters are missing at least; None where there are more states than `limit`. The answer is kept.

        Raises:
            GrammarError: the budget ran out.
        """
        if limit not in self._missing:
            self._missing[limit] = self._find_missing(limit, budget)
        return self._missing[limit]

    def _find_missing(self, limit: int, budget: Budget) -> dict[int, int] | None:
        before: dict[int, list[int]] = {self.start: []}
        for state in (waiting := [self.start]):  # grows while it is walked
            for following in set(self.moves(state, budget.renewed())) - {NO_STATE}:
                if following not in before:
                    if len(waiting) >= limit:
                        return None
                    before[following] = []
                    waiting.append(following)
                before[following].append(state)
        found = {state: 0 for state in waiting if self.is_accepting(state)}
        for state in (near := list(found)):
            for earlier in before[state]:
                if earlier not in found:
                    found[earlier] = found[state] + 1
                    near.append(earlier)
        return found

    def is_free(self, state: int) -> bool:
        """Whether any plain text may certainly follow for ever; False says nothing."""
        with self._lock:
            return self._dead_ends.can_wait(self._situations[state][0])

    def nearest_end(self, state: int, limit: int, budget: Budget) -> list[int] | None:
        """The classes of the characters of a short text to acceptance; None where more than `limit` states would have to be looked at.

        Raises:
            GrammarError: the budget ran out.
        """
        came_from: dict[int, tuple[int, int] | None] = {state: None}
        queue = [(0, 0, state)]  # characters in all at least, minus those so far, state
        done: set[int] = set()
        while queue:
            _, depth, each = heapq.heappop(queue)
            if each in done:
                continue
            done.add(each)
            if self.is_accepting(each):
                path = []
                while (step := came_from[each]) is not None:
                    each, number = step
                    path.append(number)
                return path[::-1]
            if len(done) > limit:
                return None
            for number, target in enumerate(self.moves(each, budget)):
                if target != NO_STATE and target not in came_from:
                    came_from[target] = (each, number)
                    least = self._dead_ends.least(self._situations[target][0])
                    heapq.heappush(queue, (1 - depth + least, depth - 1, target))
        return None

    def coarse_levels(self, state: int) -> int:
        """The levels of grains, as bits, of which nothing that may follow tells two characters of one grain apart."""
        term, histories = self._situations[state]
        levels = self._terms.coarse_levels[term]
        for history in histories:
            levels &= self._terms.coarse_levels[history]
        return levels

    def is_accepting(self, state: int) -> bool:
        """Whether the text so far is in the language."""
        return self._accepts(self._situations[state])

    def _number(self, situation: Situation) -> int:
        number = self._numbers.get(situation)
        if number is None:
            number = NO_STATE
            if self._dead_ends.is_live(situation):
                self._terms.budget.spend(states=1)
                number = len(self._situations)
                self._situations.append(situation)
                self._vectors.append(None)
            self._numbers[situation] = number
        return number

    def _passed(self, histories: tuple[int, ...]) -> int:
        """Bit i is set where the text so far is in history i."""
        passed = 0
        for index, history in enumerate(histories):
            if self._terms.is_nullable(history, passed):
                passed |= 1 << index
        return passed

    def _accepts(self, situation: Situation) -> bool:
        term, histories = situation
        return self._terms.is_nullable(term, self._passed(histories) if histories else 0)

    def _following(self, situation: Situation) -> list[Situation]:
        return [following for _, following in self._transitions(situation)]

    def _transitions(self, situation: Situation) -> list[tuple[int, Situation]]:
        """Disjoint masks and the situation after each."""
        term, histories = situation
        passed = self._passed(histories) if histories else 0
        found: list[tuple[int, Situation]] = [
            (mask, (after, ())) for mask, after in self._derivatives.step(term, passed)
        ]
        for history in histories:
            moves = _completed(self._derivatives.step(history, passed), self.partition.all_mask)
            found = [
                (mask & other_mask, (after, (*others, rest)))
                for mask, (after, others) in found
                for other_mask, rest in moves
                if mask & other_mask
            ]
        return found


def _completed(moves: Moves, all_mask: int) -> Moves:
    """The moves, with NOTHING after every class that has none."""
    for mask, _ in moves:
        all_mask &= ~mask
    return (*moves, (all_mask, NOTHING)) if all_mask else moves


def sets_of(tree: syntax.Node) -> Iterable[CodePoints]:
    """The sets of code points in a tree."""
    found: dict[CodePoints, None] = {}
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, syntax.Characters):
            found[node.points] = None
        elif isinstance(node, syntax.Machine):
            found.update(dict.fromkeys(node.symbols))
        elif isinstance(node, syntax.Concatenation | syntax.Alternation | syntax.Both):
            waiting.extend(node.items)
        elif isinstance(node, syntax.Repetition | syntax.Negation | syntax.Lookaround):
            waiting.append(node.item)
    return found
