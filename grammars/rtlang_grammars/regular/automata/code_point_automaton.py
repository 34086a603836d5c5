"""The DFA of a syntax tree over code points, with states created on demand.

A state is a term (the derivative by the string read so far) and, where the tree has lookbehinds, the derivative of each of them. The
alphabet is the classes of a partition of all code points. Transitions to dead states are dropped.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Iterable

from rtlang_grammars.regular.automata.branching import CharacterDecoder, decoder_for
from rtlang_grammars.regular.automata.dead_ends import Configuration, DeadEnds
from rtlang_grammars.regular.automata.derivatives import Derivatives, Moves
from rtlang_grammars.regular.automata.relaxation import Relaxation
from rtlang_grammars.regular.automata.terms import NOTHING, Terms
from rtlang_grammars.regular.characters import code_points
from rtlang_grammars.regular.characters.code_points import CodePoints
from rtlang_grammars.regular.patterns import syntax
from rtlang_grammars.spec.limits import Budget

NO_STATE = -1
_MAX_EXPLORED = 1000
"""With more states than this, `free_length` does not create new ones."""


class CodePointAutomaton:
    """A lazy DFA whose states are numbered from 0 as they are discovered. Safe to share between threads.

    Attributes:
        partition, decoder: the character classes, and the byte transitions of their encodings.
        start: the start state; NO_STATE if the language is empty.
    """

    def __init__(self, tree: syntax.PatternNode, budget: Budget, decoder: CharacterDecoder | None = None) -> None:
        """Create the start state.

        Args:
            tree: a tree without anchors.
            decoder: its partition must contain the sets of the tree; default: the coarsest such partition.
        Raises:
            GrammarError: the budget ran out.
        """
        budget.check_depth(tree.depth)
        self.decoder = decoder or decoder_for(frozenset([code_points.ALL, *sets_of(tree)]))
        self.partition = self.decoder.partition
        self._terms = Terms(self.partition, budget)
        self._derivatives = Derivatives(self._terms)
        plain = sum(1 << number for number in self.decoder.plain_classes())
        self._dead_ends = DeadEnds(self._terms, self._successors, self._accepts, plain)
        self._relaxations: dict[int, Relaxation] = {}
        self._lock = threading.Lock()
        self._begin(tree)

    def _begin(self, tree: syntax.PatternNode) -> None:
        self._numbers: dict[Configuration, int] = {}
        self._configurations: list[Configuration] = []
        self._vectors: list[tuple[int, ...] | None] = []
        self._remaining_lengths: dict[int, dict[int, int] | None] = {}
        first = self._terms.load(tree)
        self.start = self._number((first, tuple(self._terms.lookbehinds)))

    def sibling(self, tree: syntax.PatternNode, budget: Budget) -> CodePointAutomaton | None:
        """The automaton of another tree that shares terms, derivatives and classes with this one.

        Returns:
            None if the partition does not contain the sets of the tree, or if either tree has a lookbehind.
        Raises:
            GrammarError: the budget ran out.
        """
        budget.check_depth(tree.depth)
        looks_behind = self._terms.lookbehinds or tree.zero_width & syntax.ZeroWidth.BEHIND
        if looks_behind or not all(map(self.partition.knows, sets_of(tree))):
            return None
        other = CodePointAutomaton.__new__(CodePointAutomaton)
        other.decoder, other.partition, other._lock = self.decoder, self.partition, self._lock
        other._terms, other._derivatives, other._dead_ends = self._terms, self._derivatives, self._dead_ends
        other._relaxations = self._relaxations
        with self._lock:
            self._terms.budget = budget
            other._begin(tree)
        return other

    @property
    def num_states(self) -> int:
        """The number of states created so far."""
        return len(self._configurations)

    def moves(self, state: int, budget: Budget) -> tuple[int, ...]:
        """The next state for each character class; NO_STATE where no character of the class is allowed.

        Raises:
            GrammarError: the budget ran out.
        """
        vector = self._vectors[state]
        if vector is not None:
            return vector
        with self._lock:
            self._terms.budget = budget
            targets = [NO_STATE] * self.partition.num_classes
            for mask, configuration in self._transitions(self._configurations[state]):
                number = self._number(configuration)
                while mask:
                    low = mask & -mask
                    targets[low.bit_length() - 1] = number
                    mask ^= low
            vector = self._vectors[state] = tuple(targets)
        return vector

    def known_moves(self, state: int) -> tuple[int, ...] | None:
        """The result of `moves` if it was computed before, else None."""
        return self._vectors[state]

    def free_length(self, state: int, limit: int, budget: Budget) -> int | None:
        """The number of arbitrary plain characters that may follow: at most `limit`, None if unbounded.

        Raises:
            GrammarError: the budget ran out.
        """
        if self._dead_ends.has_all_plain_prefixes(self._configurations[state][0]):
            return None
        plain = self.decoder.plain_classes()
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

    def remaining_lengths(self, limit: int, budget: Budget) -> dict[int, int] | None:
        """For each state, the least number of characters to acceptance; None if there are more than `limit` states. Cached.

        Raises:
            GrammarError: the budget ran out.
        """
        if limit not in self._remaining_lengths:
            self._remaining_lengths[limit] = self._find_remaining_lengths(limit, budget)
        return self._remaining_lengths[limit]

    def _find_remaining_lengths(self, limit: int, budget: Budget) -> dict[int, int] | None:
        before: dict[int, list[int]] = {self.start: []}
        for state in (worklist := [self.start]):  # grows during iteration
            for following in set(self.moves(state, budget.renewed())) - {NO_STATE}:
                if following not in before:
                    if len(worklist) >= limit:
                        return None
                    before[following] = []
                    worklist.append(following)
                before[following].append(state)
        found = {state: 0 for state in worklist if self.is_accepting(state)}
        for state in (near := list(found)):
            for earlier in before[state]:
                if earlier not in found:
                    found[earlier] = found[state] + 1
                    near.append(earlier)
        return found

    def forbidden_classes(self, limit: int, budget: Budget) -> dict[int, int] | None:
        """For each state, the classes (as bits) without which a string never leads to NO_STATE; None if there are more than `limit` states.

        Raises:
            GrammarError: the budget ran out.
        """
        found: dict[int, int] = {}
        order = [self.start]
        for state in order:  # grows during iteration
            moves = self.moves(state, budget.renewed())
            found[state] = sum(1 << number for number, target in enumerate(moves) if target == NO_STATE)
            order += [target for target in dict.fromkeys(moves) if target != NO_STATE and target not in order]
            if len(order) > limit:
                return None
        is_changed = True
        while is_changed:
            is_changed = False
            for state in reversed(order):
                classes = found[state]
                for target in set(self.moves(state, budget)) - {NO_STATE}:
                    classes |= found[target]
                is_changed |= classes != found[state]
                found[state] = classes
        return found

    def is_endless(self, limit: int, budget: Budget) -> bool:
        """Whether every beginning of a string can be completed in infinitely many ways; False if there are more than `limit` states.

        Raises:
            GrammarError: the budget ran out.
        """
        found = {self.start}
        for state in (worklist := [self.start]):  # grows during iteration
            following = set(self.moves(state, budget.renewed())) - {NO_STATE}
            if not following or len(worklist) > limit:
                return False
            worklist += following - found
            found |= following
        return True

    def is_free(self, state: int) -> bool:
        """Whether every plain string is known to be allowed next; False may mean unknown."""
        with self._lock:
            return self._dead_ends.has_all_plain_prefixes(self._configurations[state][0])

    def relaxed(self, state: int, reach: int, budget: Budget) -> int:
        """A state after which the same strings of up to `reach` characters are allowed and accepted; see `relaxation`.

        Raises:
            GrammarError: the budget ran out.
        """
        term, lookbehinds = self._configurations[state]
        if lookbehinds:
            return state
        with self._lock:
            self._terms.budget = budget
            relaxation = self._relaxations.get(reach)
            if relaxation is None:
                relaxation = Relaxation(self._terms, self._dead_ends.min_length, reach)
                self._relaxations[reach] = relaxation
            relaxed = relaxation.relaxed(term)
            return state if relaxed == term else self._number((relaxed, ()))

    def nearest_end(self, state: int, limit: int, budget: Budget) -> list[int] | None:
        """The character classes of a short completion, found by A* search; None if it visits more than `limit` states.

        Raises:
            GrammarError: the budget ran out.
        """
        predecessors: dict[int, tuple[int, int] | None] = {state: None}
        queue = [(0, 0, state)]  # (least total length, -depth, state)
        done: set[int] = set()
        while queue:
            _, depth, each = heapq.heappop(queue)
            if each in done:
                continue
            done.add(each)
            if self.is_accepting(each):
                path = []
                while (step := predecessors[each]) is not None:
                    each, number = step
                    path.append(number)
                return path[::-1]
            if len(done) > limit:
                return None
            for number, target in enumerate(self.moves(each, budget)):
                if target != NO_STATE and target not in predecessors:
                    predecessors[target] = (each, number)
                    min_length = self._dead_ends.min_length(self._configurations[target][0])
                    heapq.heappush(queue, (1 - depth + min_length, depth - 1, target))
        return None

    def coarse_levels(self, state: int) -> int:
        """The levels (as bits) of coarse classes that are never split by anything that may follow."""
        term, lookbehinds = self._configurations[state]
        levels = self._terms.coarse_levels[term]
        for lookbehind in lookbehinds:
            levels &= self._terms.coarse_levels[lookbehind]
        return levels

    def is_accepting(self, state: int) -> bool:
        """Whether the string read so far is in the language."""
        return self._accepts(self._configurations[state])

    def _number(self, configuration: Configuration) -> int:
        number = self._numbers.get(configuration)
        if number is None:
            number = NO_STATE
            if self._dead_ends.is_live(configuration):
                self._terms.budget.spend(states=1)
                number = len(self._configurations)
                self._configurations.append(configuration)
                self._vectors.append(None)
            self._numbers[configuration] = number
        return number

    def _matched(self, lookbehinds: tuple[int, ...]) -> int:
        """Bit i is set if the string read so far matches lookbehind i."""
        matched = 0
        for index, lookbehind in enumerate(lookbehinds):
            if self._terms.is_nullable(lookbehind, matched):
                matched |= 1 << index
        return matched

    def _accepts(self, configuration: Configuration) -> bool:
        term, lookbehinds = configuration
        return self._terms.is_nullable(term, self._matched(lookbehinds) if lookbehinds else 0)

    def _successors(self, configuration: Configuration) -> list[Configuration]:
        return [following for _, following in self._transitions(configuration)]

    def _transitions(self, configuration: Configuration) -> list[tuple[int, Configuration]]:
        """Disjoint class masks, each with the configuration it leads to."""
        term, lookbehinds = configuration
        matched = self._matched(lookbehinds) if lookbehinds else 0
        found: list[tuple[int, Configuration]] = [
            (mask, (after, ())) for mask, after in self._derivatives.step(term, matched)
        ]
        for lookbehind in lookbehinds:
            moves = _complete_moves(self._derivatives.step(lookbehind, matched), self.partition.all_mask)
            found = [
                (mask & other_mask, (after, (*others, rest)))
                for mask, (after, others) in found
                for other_mask, rest in moves
                if mask & other_mask
            ]
        return found


def _complete_moves(moves: Moves, all_mask: int) -> Moves:
    """Add a transition to NOTHING for the classes that have none."""
    for mask, _ in moves:
        all_mask &= ~mask
    return (*moves, (all_mask, NOTHING)) if all_mask else moves


def sets_of(tree: syntax.PatternNode) -> Iterable[CodePoints]:
    """The sets of code points in a tree, without duplicates."""
    found: dict[CodePoints, None] = {}
    worklist = [tree]
    while worklist:
        node = worklist.pop()
        if isinstance(node, syntax.Characters):
            found[node.points] = None
        elif isinstance(node, syntax.Dfa):
            found.update(dict.fromkeys(node.symbols))
        elif isinstance(node, syntax.Concatenation | syntax.Alternation | syntax.Intersection):
            worklist.extend(node.items)
        elif isinstance(node, syntax.Repetition | syntax.Complement | syntax.Lookaround):
            worklist.append(node.item)
    return found
