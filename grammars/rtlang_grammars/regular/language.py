"""Languages of texts as values: made from patterns, combined, asked, and turned into automata over bytes.

A `Language` is a syntax tree and, once something is asked of it, the automaton of that tree, made lazily and kept. Operations only build
trees, so they cost nothing and nothing is unrolled; what is expensive is bounded by the budget that it is given.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Literal

from rtlang_grammars.regular.automata.branching import branchings_of
from rtlang_grammars.regular.automata.byte_automaton import ByteAutomaton, NamesAutomaton
from rtlang_grammars.regular.automata.code_point_automaton import NO_STATE, CodePointAutomaton, sets_of
from rtlang_grammars.regular.automata.sorted_names import SortedNames
from rtlang_grammars.regular.characters import code_points
from rtlang_grammars.regular.characters.code_points import CodePoints
from rtlang_grammars.regular.patterns import syntactic_checks, syntax
from rtlang_grammars.regular.patterns.escapes import Dialect
from rtlang_grammars.regular.patterns.parser import parse_pattern
from rtlang_grammars.regular.patterns.syntax import Node, ZeroWidth
from rtlang_grammars.regular.patterns.zero_width import resolved
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget

_PRINTABLE = (0x20, 0x7E)
_MAX_BOUNDED = 8
_SAMPLE_LENGTH = 40
"""Characters after which a random walk heads for the nearest end."""


class Language:
    """A set of texts, each a sequence of Unicode scalar values written in UTF-8. Immutable; safe to share between threads."""

    __slots__ = ("_automaton", "_bounded", "_prefix", "_tree")

    def __init__(self, tree: Node) -> None:
        """The language of a tree without anchors. Callers use `compile_regex` and the class methods."""
        self._tree = tree
        self._automaton: CodePointAutomaton | None = None
        self._prefix: list[CodePoints] | None = None
        self._bounded: dict[tuple[int, int | None], Language] = {}

    # Making

    @classmethod
    def literal(cls, text: str | bytes) -> Language:
        """Exactly one text.

        Raises:
            GrammarError: bytes that are not UTF-8, or a lone surrogate.
        """
        try:
            decoded = text.decode("utf-8") if isinstance(text, bytes) else text
            decoded.encode("utf-8")
        except UnicodeError:
            raise GrammarError("a literal must be text that can be written in UTF-8") from None
        return cls(syntax.text(decoded))

    @classmethod
    def literals(cls, texts: Iterable[str]) -> Language:
        """Any of some texts.

        Raises:
            GrammarError: a lone surrogate is in one of them.
        """
        words = list(texts)
        cls.literal("".join(words))
        return cls(syntax.any_of_texts(words))

    @classmethod
    def any_text(cls) -> Language:
        """All texts."""
        return cls(syntax.ANY_TEXT)

    @classmethod
    def nothing(cls) -> Language:
        """No text, not even the empty one."""
        return cls(syntax.NOTHING)

    @classmethod
    def code_points(cls, ranges: Iterable[tuple[int, int]]) -> Language:
        """One character out of ranges (first, last)."""
        return cls(syntax.characters(code_points.normalised(ranges)))

    # Combining

    def union(self, *others: Language) -> Language:
        """Texts of any of the languages."""
        return Language(syntax.alternation([self._tree, *[other._tree for other in others]]))

    def intersect(self, *others: Language) -> Language:
        """Texts of all the languages."""
        return Language(syntax.both([self._tree, *[other._tree for other in others]]))

    def complement(self) -> Language:
        """All other texts."""
        return Language(syntax.negation(self._tree))

    def minus(self, other: Language) -> Language:
        """Texts of this language that are not in the other."""
        return self.intersect(other.complement())

    def concat(self, *others: Language) -> Language:
        """A text of this language and then one of each of the others.

        Raises:
            GrammarError: one of the others looks behind, which would look into what comes before it.
        """
        return Language(syntax.concatenation([self._confined(), *[other._movable() for other in others]]))

    def starred(self, low: int = 0, high: int | None = None) -> Language:
        """`low` to `high` texts of this language, one after the other; `high` None is without bound.

        Raises:
            GrammarError: this language looks behind.
        """
        return Language(syntax.repetition(self._movable(), low, high))

    def bounded(self, min_code_points: int, max_code_points: int | None) -> Language:
        """Texts with so many code points; `max_code_points` None is without bound. Counted, never unrolled. Remembered for some bounds."""
        key = (min_code_points, max_code_points)
        found = self._bounded.get(key)
        if found is None:
            if len(self._bounded) >= _MAX_BOUNDED:
                self._bounded.clear()
            found = self._bounded[key] = Language(syntax.both([self._tree], min_code_points, max_code_points))
        return found

    def _confined(self) -> Node:
        """A tree that sees nothing of what follows it."""
        sees_ahead = self._tree.zero_width & ZeroWidth.AHEAD
        return syntax.Both((self._tree,), 0, None) if sees_ahead else self._tree

    def _movable(self) -> Node:
        """A tree that may stand anywhere in a text."""
        if self._tree.zero_width & ZeroWidth.BEHIND:
            raise GrammarError("what looks behind (a lookbehind or \\b) can only stand at the start of a text")
        return self._confined()

    # Lengths

    @property
    def min_length(self) -> int:
        """The lower bound on code points that `bounded` set, 0 without one."""
        return self._tree.low if isinstance(self._tree, syntax.Both) else 0

    @property
    def max_length(self) -> int | None:
        """The upper bound on code points that `bounded` set, None without one."""
        return self._tree.high if isinstance(self._tree, syntax.Both) else None

    def as_counted_characters(self) -> tuple[Language, int, int | None] | None:
        """Where it was made as `low` to `high` characters of one set: the language of any number of them, and the two counts."""
        tree = self._tree
        if not isinstance(tree, syntax.Repetition) or not isinstance(tree.item, syntax.Characters):
            return None
        return Language(syntax.repetition(tree.item, 0, None)), tree.low, tree.high

    def unbounded(self) -> Language:
        """The same language without the bounds that `bounded` set; for callers that count themselves."""
        return Language(syntax.both(self._tree.items)) if isinstance(self._tree, syntax.Both) else self

    @property
    def is_any_text(self) -> bool:
        """Whether it was made as the language of all texts; False says nothing."""
        return syntax.is_any_text(self._tree)

    # Asking

    def accepts(self, text: str | bytes, budget: Budget | None = None) -> bool:
        """Whether a text is in the language; bytes that are not UTF-8 are not.

        Raises:
            GrammarError: the budget ran out; so may it in all that follow.
        """
        budget = budget or Budget()
        try:
            decoded = text.decode("utf-8") if isinstance(text, bytes) else text
            decoded.encode("utf-8")
        except UnicodeError:
            return False
        if self._automaton is None and not self._may_begin(decoded):
            return False
        automaton = self._code_point_automaton(budget)
        state = automaton.start
        for character in decoded:
            if state == NO_STATE:
                return False
            budget.spend()
            state = automaton.moves(state, budget)[automaton.partition.class_of(ord(character))]
        return state != NO_STATE and automaton.is_accepting(state)

    def _may_begin(self, text: str) -> bool:
        """Whether a text is long enough and begins as texts of the language do, as far as that is seen at a glance."""
        sets = self._prefix
        if sets is None:
            sets = self._prefix = syntactic_checks.prefix(self._tree)
        begins = all(
            code_points.contains(points, ord(character)) for character, points in zip(text, sets, strict=False)
        )
        return begins and len(text) >= len(sets)

    def is_empty(self, budget: Budget | None = None) -> bool:
        """Whether no text is in the language."""
        if self._automaton is None and syntactic_checks.has_text(self._tree):
            return False
        return self._code_point_automaton(budget or Budget()).start == NO_STATE

    def is_disjoint(self, other: Language, budget: Budget | None = None) -> bool:
        """Whether no text is in both languages."""
        if syntactic_checks.are_disjoint(self._tree, other._tree):
            return True
        return self.intersect(other).is_empty(budget)

    def includes(self, other: Language, budget: Budget | None = None) -> bool:
        """Whether every text of the other language is in this one."""
        return other.minus(self).is_empty(budget)

    def is_equivalent(self, other: Language, budget: Budget | None = None) -> bool:
        """Whether both languages have the same texts."""
        budget = budget or Budget()
        return self.includes(other, budget) and other.includes(self, budget)

    def shortest(self, budget: Budget | None = None) -> str | None:
        """A text with the fewest code points; None where the language is empty."""
        budget = budget or Budget()
        automaton = self._code_point_automaton(budget)
        return None if automaton.start == NO_STATE else self._nearest_end(automaton, automaton.start, budget)

    def finite_words(self, limit: int, budget: Budget | None = None) -> list[str] | None:
        """All texts, shortest first, where there are at most `limit`; None where there are more."""
        if syntactic_checks.has_more_texts(self._tree, limit):
            return None
        budget = budget or Budget()
        automaton = self._code_point_automaton(budget)
        words: list[str] = []
        prefixes = [] if automaton.start == NO_STATE else [("", automaton.start)]
        while prefixes:  # different prefixes of one length are of different words, so there are at least that many
            following: list[tuple[str, int]] = []
            for prefix, state in prefixes:
                if automaton.is_accepting(state):
                    words.append(prefix)
                moves = automaton.moves(state, budget)
                for first, last, number in automaton.partition.ranges_within(0, code_points.MAX_CODE_POINT):
                    if moves[number] == NO_STATE:
                        continue
                    if last - first + 1 + len(following) > limit:
                        return None
                    following += [(prefix + chr(each), moves[number]) for each in range(first, last + 1)]
                budget.spend(num_bytes=len(prefix))
            if len(words) > limit:
                return None
            prefixes = following
        return words

    def samples(self, rng: random.Random, count: int, budget: Budget | None = None) -> list[str]:
        """Random texts, printable ASCII where there is a choice; empty where the language is."""
        budget = budget or Budget()
        automaton = self._code_point_automaton(budget)
        if automaton.start == NO_STATE:
            return []
        return [self._random_walk(automaton, rng, budget) for _ in range(count)]

    # Automata

    def explore(self, num_states: int, budget: Budget | None = None) -> None:
        """Work out what follows in the states that are nearest to the start, once for all automata of this language.

        Raises:
            GrammarError: the budget ran out.
        """
        budget = budget or Budget()
        automaton = self._code_point_automaton(budget)
        waiting = [] if automaton.start == NO_STATE else [automaton.start]
        seen = set(waiting)
        for state in waiting:  # grows while it is walked
            if len(waiting) > num_states:
                return
            for target in automaton.moves(state, budget):
                if target != NO_STATE and target not in seen:
                    seen.add(target)
                    waiting.append(target)

    def automaton(self, budget: Budget | None = None) -> ByteAutomaton:
        """The texts in UTF-8.

        Raises:
            GrammarError: no text matches, or the budget ran out.
        """
        budget = budget or Budget()
        return ByteAutomaton(self._code_point_automaton(budget), is_json_string=False, budget=budget)

    def json_string_body(self, budget: Budget | None = None) -> ByteAutomaton:
        """What may stand between the quotes of a JSON string whose value is in the language, every escape included.

        Raises:
            GrammarError: no text matches, or the budget ran out.
        """
        budget = budget or Budget()
        return ByteAutomaton(self._code_point_automaton(budget), is_json_string=True, budget=budget)

    @staticmethod
    def json_string_bodies(languages: Sequence[Language], budget: Budget) -> list[ByteAutomaton]:
        """`json_string_body` of some languages that are followed side by side. Those that the last was made of share its work.

        Raises:
            GrammarError: as there.
        """
        last = languages[-1]._code_point_automaton(budget)
        automata = [last.beside(each._tree, budget) or each._code_point_automaton(budget) for each in languages[:-1]]
        return [ByteAutomaton(each, is_json_string=True, budget=budget) for each in (*automata, last)]

    @staticmethod
    def names_body(listed: Sequence[str], classes: Sequence[Language], budget: Budget) -> NamesAutomaton:
        """What may stand between the quotes of a JSON string that is any name but the listed ones, and of which class it is.

        Args:
            classes: languages that share no name but listed ones.
        Raises:
            GrammarError: a lone surrogate is in a listed name, or the budget ran out.
        """
        letters = "".join(listed)
        Language.literal(letters)
        sets = {code_points.ALL, *map(code_points.single, map(ord, letters))}
        branchings = branchings_of(frozenset(sets.union(*(sets_of(each._tree) for each in classes))))
        automata: list[CodePointAutomaton] = []
        for each in classes:
            beside = automata[0].beside(each._tree, budget) if automata else None
            automata.append(beside or CodePointAutomaton(each._tree, budget, branchings))
        return NamesAutomaton(SortedNames(listed, automata, branchings), budget)

    def _code_point_automaton(self, budget: Budget) -> CodePointAutomaton:
        automaton = self._automaton
        if automaton is None:  # made twice in a race, both right
            automaton = self._automaton = CodePointAutomaton(self._tree, budget)
        return automaton

    def _nearest_end(self, automaton: CodePointAutomaton, start: int, budget: Budget) -> str:
        came_from: dict[int, tuple[int, int] | None] = {start: None}
        waiting = deque([start])
        while not automaton.is_accepting(waiting[0]):
            state = waiting.popleft()
            budget.spend()
            for number, target in enumerate(automaton.moves(state, budget)):
                if target != NO_STATE and target not in came_from:
                    came_from[target] = (state, number)
                    waiting.append(target)
        path = []
        step = came_from[waiting[0]]
        while step is not None:
            path.append(chr(automaton.partition.representatives[step[1]]))
            step = came_from[step[0]]
        return "".join(reversed(path))

    def _random_walk(self, automaton: CodePointAutomaton, rng: random.Random, budget: Budget) -> str:
        partition = automaton.partition
        state, text = automaton.start, ""
        while len(text) < _SAMPLE_LENGTH:
            budget.spend()
            moves = automaton.moves(state, budget)
            for bounds in (_PRINTABLE, (0, code_points.MAX_CODE_POINT)):
                ranges = [each for each in partition.ranges_within(*bounds) if moves[each[2]] != NO_STATE]
                if ranges:
                    break
            if not ranges or (automaton.is_accepting(state) and rng.random() < 0.15):
                return text
            first, last, number = rng.choice(ranges)
            text += chr(rng.randint(first, last))
            state = moves[number]
        return text + self._nearest_end(automaton, state, budget)


def compile_regex(
    pattern: str,
    *,
    dialect: Dialect | Literal["ecma", "python", "lark"] = Dialect.ECMA,
    mode: Literal["full", "search"] = "full",
    budget: Budget | None = None,
) -> Language:
    """The texts that a pattern matches.

    Args:
        pattern: in ECMA-262 as JSON Schema's `pattern` has it, or in Python's `re`, which is Lark's too.
        mode: "full", the pattern must match the whole text; "search", a part of it, as `pattern` in JSON Schema means it.
    Returns:
        The language, possibly empty: then `is_empty` says so and the automata are refused.
    Raises:
        GrammarError: not a pattern of the dialect, or it uses what no regular language has, with `line:column`; or it is too large.
    """
    budget = budget or Budget()
    tree = parse_pattern(pattern, Dialect(dialect), budget)
    if mode == "search":
        tree = syntax.concatenation([syntax.ANY_TEXT, tree, syntax.ANY_TEXT])
    tree = resolved(tree, budget)
    budget.check_depth(tree.depth)
    return Language(tree)
