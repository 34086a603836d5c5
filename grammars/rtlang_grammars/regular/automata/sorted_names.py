"""Classification of property names as they are read: listed, in one of several languages, or none of these.

Any string is a prefix of some unlisted name, so there are no dead states, and no complement or intersection has to be built. The listed
names are followed in a trie and every language in its own automaton, in parallel; at the end of the name their states give its label.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from rtlang_grammars.regular.automata.branching import CharacterDecoder
from rtlang_grammars.regular.automata.code_point_automaton import NO_STATE, CodePointAutomaton
from rtlang_grammars.regular.characters.coarse_classes import ALL_LEVELS
from rtlang_grammars.spec.limits import Budget

_NO_NODE = -1
"""The trie node of a string that is not a prefix of a listed name."""

_Configuration = tuple[int, ...]
"""A trie node, and the state of each language; NO_STATE where it is dead."""


class NameClassifier:
    """The DFA of all names. States are numbered from 0 as they are discovered. Owned by a `ByteAutomaton`, which does the locking.

    Attributes:
        decoder: its partition contains the sets of the languages and every character of the listed names.
        start: the start state.
    """

    def __init__(self, listed: Sequence[str], classes: Sequence[CodePointAutomaton], decoder: CharacterDecoder) -> None:
        """Create the start state.

        Args:
            listed: distinct names without lone surrogates.
            classes: automata with this decoder of nonempty languages that are disjoint except for listed names.
            decoder: see above.
        """
        self.decoder, self._classes, self._listed = decoder, classes, sorted(listed)
        # A trie node is a range of the sorted names, which share a prefix, and the length of that prefix.
        self._nodes: list[tuple[int, int, int]] = []
        self._node_numbers: dict[tuple[int, int, int], int] = {}
        self._numbers: dict[_Configuration, int] = {}
        self._configurations: list[_Configuration] = []
        self._vectors: list[tuple[int, ...] | None] = []
        start = self._add_node(0, len(listed), 0) if listed else _NO_NODE
        self.start = self._number((start, *(each.start for each in classes)))

    @property
    def num_states(self) -> int:
        """The number of states created so far."""
        return len(self._configurations)

    def label(self, state: int) -> int | None:
        """The label of the name read so far: the index of its language, the number of languages if it is in none, None if it is listed."""
        node, *states = self._configurations[state]
        if self._is_listed(node):
            return None
        for index, (each, at) in enumerate(zip(self._classes, states, strict=True)):
            if at != NO_STATE and each.is_accepting(at):
                return index
        return len(states)

    def is_accepting(self, state: int) -> bool:
        """Whether the name read so far is not listed."""
        return not self._is_listed(self._configurations[state][0])

    def moves(self, state: int, budget: Budget) -> tuple[int, ...]:
        """The next state for each character class.

        Raises:
            GrammarError: the budget ran out.
        """
        vector = self._vectors[state]
        if vector is not None:
            return vector
        budget.spend()
        node, *states = self._configurations[state]
        num_classes = self.decoder.partition.num_classes
        no_moves = (NO_STATE,) * num_classes
        vectors = [
            no_moves if at == NO_STATE else each.moves(at, budget)
            for each, at in zip(self._classes, states, strict=True)
        ]
        number, numbers = self._number, self._numbers
        after = list(zip(*vectors, strict=True)) if vectors else [()] * num_classes
        made: dict[_Configuration, int] = {}
        targets = []
        for each in after:
            target = made.get(each)
            if target is None:
                configuration = (_NO_NODE, *each)
                target = made[each] = numbers[configuration] if configuration in numbers else number(configuration)
            targets.append(target)
        for character, child in self._children(node):
            targets[character] = number((child, *after[character]))
        budget.spend(states=len(made))
        vector = self._vectors[state] = tuple(targets)
        return vector

    def known_moves(self, state: int) -> tuple[int, ...] | None:
        """The result of `moves` if it was computed before, else None."""
        return self._vectors[state]

    def free_length(self, state: int, limit: int, budget: Budget) -> None:
        """The number of arbitrary plain characters that may follow: unbounded."""

    def is_free(self, state: int) -> bool:
        """Whether every plain string is allowed next: always."""
        return True

    def nearest_end(self, state: int, limit: int, budget: Budget) -> list[int] | None:
        """The character classes of a short completion to an unlisted name.

        Raises:
            GrammarError: the budget ran out.
        """
        found = self.nearest_labels(state, limit, budget, len(self._classes))
        return next(iter(found.values()), None)

    def nearest_labels(self, state: int, limit: int, budget: Budget, wanted: int | None = None) -> dict[int, list[int]]:
        """The character classes of a short completion for each label that is reachable within `limit` states.

        Args:
            state: where to start.
            limit: the number of states to visit.
            budget: charged for new states.
            wanted: stop at this label.
        Raises:
            GrammarError: the budget ran out.
        """
        found: dict[int, list[int]] = {}
        predecessors: dict[int, tuple[int, int] | None] = {state: None}
        worklist = [state]
        for each in worklist:  # grows during iteration
            label = self.label(each)
            if label is not None and label not in found:
                path, at = [], predecessors[each]
                while at is not None:
                    path.append(at[1])
                    at = predecessors[at[0]]
                found[label] = path[::-1]
                if label == wanted:
                    break
            if len(worklist) > limit:
                continue
            for number, target in enumerate(self.moves(each, budget)):
                if target not in predecessors:
                    predecessors[target] = (each, number)
                    worklist.append(target)
        return found

    def relaxed(self, state: int, reach: int, budget: Budget) -> int:
        """See `CodePointMoves`."""
        return state

    def coarse_levels(self, state: int) -> int:
        """The levels (as bits) of coarse classes that are never split by anything that may follow."""
        node, *states = self._configurations[state]
        levels = 0 if self._has_children(node) else ALL_LEVELS
        for each, at in zip(self._classes, states, strict=True):
            if at != NO_STATE:
                levels &= each.coarse_levels(at)
        return levels

    def forbidden_classes(self, limit: int, budget: Budget) -> None:
        """What each state forbids: not computed, as `remaining_lengths`."""

    def remaining_lengths(self, limit: int, budget: Budget) -> None:
        """The least number of characters to acceptance per state: not computed, because there may be very many states."""

    def _is_listed(self, node: int) -> bool:
        if node == _NO_NODE:
            return False
        first, _, depth = self._nodes[node]
        return len(self._listed[first]) == depth

    def _has_children(self, node: int) -> bool:
        """Whether a listed name continues after this node."""
        if node == _NO_NODE:
            return False
        first, end, _ = self._nodes[node]
        return end - first > self._is_listed(node)

    def _children(self, node: int) -> list[tuple[int, int]]:
        """The characters that continue a listed name, as classes, and their nodes."""
        if node == _NO_NODE:
            return []
        first, end, depth = self._nodes[node]
        first += self._is_listed(node)
        found = []
        while first < end:
            character = self._listed[first][depth]
            after = bisect_right(self._listed, character, lo=first, hi=end, key=lambda name: name[depth])
            found.append((self.decoder.partition.class_of(ord(character)), self._add_node(first, after, depth + 1)))
            first = after
        return found

    def _add_node(self, first: int, end: int, depth: int) -> int:
        key = (first, end, depth)
        number = self._node_numbers.get(key)
        if number is None:
            number = self._node_numbers[key] = len(self._nodes)
            self._nodes.append(key)
        return number

    def _number(self, configuration: _Configuration) -> int:
        number = self._numbers.get(configuration)
        if number is None:
            number = self._numbers[configuration] = len(self._configurations)
            self._configurations.append(configuration)
            self._vectors.append(None)
        return number
