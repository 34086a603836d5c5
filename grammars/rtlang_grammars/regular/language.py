"""Regular languages as immutable values: built from patterns, combined, queried and compiled to byte automata.

A `Language` is a syntax tree and, after the first query, its lazily built automaton. Operations only build trees, so they are cheap and
nothing is unrolled; queries are bounded by the budget they are given.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from rtlang_grammars.regular.automata.branching import decoder_for
from rtlang_grammars.regular.automata.byte_automaton import ByteAutomaton, NamesAutomaton
from rtlang_grammars.regular.automata.code_point_automaton import NO_STATE, CodePointAutomaton, sets_of
from rtlang_grammars.regular.automata.sorted_names import NameClassifier
from rtlang_grammars.regular.characters import code_points
from rtlang_grammars.regular.characters.code_points import CodePoints
from rtlang_grammars.regular.patterns import syntactic_checks, syntax
from rtlang_grammars.regular.patterns.escapes import RegexDialect
from rtlang_grammars.regular.patterns.parser import parse_pattern
from rtlang_grammars.regular.patterns.syntax import PatternNode, ZeroWidth
from rtlang_grammars.regular.patterns.zero_width import resolve_anchors
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget

_PRINTABLE = (0x20, 0x7E)
_MAX_BOUNDED = 8
_SAMPLE_LENGTH = 40
"""Characters after which a random walk takes the shortest path to acceptance."""


class Language:
    """A set of strings of Unicode scalar values, encoded in UTF-8. Immutable; safe to share between threads."""

    __slots__ = ("_alphabet", "_automaton", "_bounded", "_prefix", "_suffix", "_tree")

    def __init__(self, tree: PatternNode) -> None:
        """Wrap a tree without anchors. Callers use `compile_regex` and the class methods."""
        self._tree = tree
        self._automaton: CodePointAutomaton | None = None
        self._prefix: list[CodePoints] | None = None
        self._suffix: list[CodePoints] | None = None
        self._alphabet: CodePoints | None = None
        self._bounded: dict[tuple[int, int | None], Language] = {}

    # Constructors

    @classmethod
    def literal(cls, text: str | bytes) -> Language:
        """The language of one string.

        Raises:
            GrammarError: the bytes are not UTF-8, or the string has a lone surrogate.
        """
        try:
            decoded = text.decode("utf-8") if isinstance(text, bytes) else text
            decoded.encode("utf-8")
        except UnicodeError:
            raise GrammarError("a literal must be valid UTF-8 without lone surrogates") from None
        return cls(syntax.text(decoded))

    @classmethod
    def literals(cls, texts: Iterable[str]) -> Language:
        """The language of the given strings.

        Raises:
            GrammarError: a string has a lone surrogate.
        """
        words = list(texts)
        cls.literal("".join(words))
        return cls(syntax.any_of_texts(words))

    @classmethod
    def any_text(cls) -> Language:
        """The language of all strings."""
        return cls(syntax.ANY_TEXT)

    @classmethod
    def nothing(cls) -> Language:
        """The empty language."""
        return cls(syntax.NOTHING)

    @classmethod
    def code_points(cls, ranges: Iterable[tuple[int, int]]) -> Language:
        """The strings of one character in the given (first, last) ranges."""
        return cls(syntax.characters(code_points.normalize(ranges)))

    # Operations

    def union(self, *others: Language) -> Language:
        """The union with other languages."""
        return Language(syntax.alternation([self._tree, *[other._tree for other in others]]))

    def intersect(self, *others: Language) -> Language:
        """The intersection with other languages."""
        return Language(syntax.intersection([self._tree, *[other._tree for other in others]]))

    def complement(self) -> Language:
        """All strings that are not in this language."""
        return Language(syntax.complement(self._tree))

    def minus(self, other: Language) -> Language:
        """The strings of this language that are not in the other."""
        return self.intersect(other.complement())

    def concat(self, *others: Language) -> Language:
        """The concatenation with other languages, in order.

        Raises:
            GrammarError: one of the others has a lookbehind, which would see the strings before it.
        """
        return Language(syntax.concatenation([self._confined(), *[other._movable() for other in others]]))

    def repeat(self, low: int = 0, high: int | None = None) -> Language:
        """`low` to `high` strings of this language in sequence; `high` None means unbounded.

        Raises:
            GrammarError: this language has a lookbehind.
        """
        return Language(syntax.repetition(self._movable(), low, high))

    def bounded(self, min_code_points: int, max_code_points: int | None) -> Language:
        """The strings with a number of code points within bounds; `max_code_points` None means unbounded. Counted, not unrolled."""
        key = (min_code_points, max_code_points)
        found = self._bounded.get(key)
        if found is None:
            if len(self._bounded) >= _MAX_BOUNDED:
                self._bounded.clear()
            found = self._bounded[key] = Language(syntax.intersection([self._tree], min_code_points, max_code_points))
        return found

    def _confined(self) -> PatternNode:
        """A tree that does not depend on what follows it."""
        sees_ahead = self._tree.zero_width & ZeroWidth.AHEAD
        return syntax.Intersection((self._tree,), 0, None) if sees_ahead else self._tree

    def _movable(self) -> PatternNode:
        """A tree that may be preceded and followed by other strings."""
        if self._tree.zero_width & ZeroWidth.BEHIND:
            raise GrammarError("a lookbehind or \\b is allowed only at the start of a concatenation")
        return self._confined()

    # Lengths

    @property
    def min_length(self) -> int:
        """The lower bound set by `bounded`, in code points; 0 if there is none."""
        return self._tree.low if isinstance(self._tree, syntax.Intersection) else 0

    @property
    def max_length(self) -> int | None:
        """The upper bound set by `bounded`, in code points; None if there is none."""
        return self._tree.high if isinstance(self._tree, syntax.Intersection) else None

    def as_counted_characters(self) -> tuple[Language, int, int | None] | None:
        """If this is `low` to `high` characters of one set by construction: the language of any number of them, `low` and `high`."""
        tree = self._tree
        if not isinstance(tree, syntax.Repetition) or not isinstance(tree.item, syntax.Characters):
            return None
        return Language(syntax.repetition(tree.item, 0, None)), tree.low, tree.high

    def unbounded(self) -> Language:
        """The language without the bounds set by `bounded`, for callers that count characters themselves."""
        return Language(syntax.intersection(self._tree.items)) if isinstance(self._tree, syntax.Intersection) else self

    @property
    def is_any_text(self) -> bool:
        """Whether this is the language of all strings by construction; False may mean unknown."""
        return syntax.is_any_text(self._tree)

    # Queries

    def accepts(self, text: str | bytes, budget: Budget | None = None) -> bool:
        """Whether a string is in the language; False for bytes that are not UTF-8.

        Raises:
            GrammarError: the budget ran out. All queries below may raise this as well.
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

    def ends(self, text: str, at: int, budget: Budget) -> Iterator[int]:
        """The positions in a text where a string of this language that begins at `at` may end, in order; positions are of characters.

        Raises:
            GrammarError: the budget ran out.
        """
        automaton = self._code_point_automaton(budget)
        state = automaton.start
        while state != NO_STATE:
            if automaton.is_accepting(state):
                yield at
            if at == len(text) or "\ud800" <= text[at] <= "\udfff":
                return
            budget.spend()
            state = automaton.moves(state, budget)[automaton.partition.class_of(ord(text[at]))]
            at += 1

    def _may_begin(self, text: str) -> bool:
        """Whether a string is long enough and begins with characters that the prefix sets allow."""
        sets = self._first_sets()
        begins = all(
            code_points.contains(points, ord(character)) for character, points in zip(text, sets, strict=False)
        )
        return begins and len(text) >= len(sets)

    def _first_sets(self) -> list[CodePoints]:
        found = self._prefix
        if found is None:
            found = self._prefix = syntactic_checks.prefix(self._tree)
        return found

    def _last_sets(self) -> list[CodePoints]:
        found = self._suffix
        if found is None:
            found = self._suffix = syntactic_checks.suffix(self._tree)
        return found

    def is_empty(self, budget: Budget | None = None) -> bool:
        """Whether the language has no string."""
        if self._automaton is None and syntactic_checks.has_string(self._tree):
            return False
        return self._code_point_automaton(budget or Budget()).start == NO_STATE

    def is_disjoint(self, other: Language, budget: Budget | None = None) -> bool:
        """Whether the languages have no string in common."""
        are_apart = syntactic_checks.are_apart
        if are_apart(self._first_sets(), other._first_sets()) or are_apart(self._last_sets(), other._last_sets()):
            return True
        return self.intersect(other).is_empty(budget)

    def lacks(self, text: str) -> bool:
        """Whether it is known without a search that no string contains a text; False means unknown."""
        if self._alphabet is None:
            self._alphabet = syntactic_checks.alphabet(self._tree)
        return not all(code_points.contains(self._alphabet, ord(character)) for character in text)

    def includes(self, other: Language, budget: Budget | None = None) -> bool:
        """Whether the other language is a subset of this one."""
        return other.minus(self).is_empty(budget)

    def shortest(self, budget: Budget | None = None) -> str | None:
        """A string with the fewest code points; None if the language is empty."""
        budget = budget or Budget()
        automaton = self._code_point_automaton(budget)
        return None if automaton.start == NO_STATE else self._nearest_end(automaton, automaton.start, budget)

    def finite_words(self, limit: int, budget: Budget | None = None) -> list[str] | None:
        """All strings, shortest first, if there are at most `limit`; else None."""
        if syntactic_checks.has_more_strings_than(self._tree, limit):
            return None
        budget = budget or Budget()
        automaton = self._code_point_automaton(budget)
        words: list[str] = []
        prefixes = [] if automaton.start == NO_STATE else [("", automaton.start)]
        while prefixes:  # distinct live prefixes of one length extend to distinct words
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
        """Return `count` random strings, of printable ASCII where possible; none if the language is empty."""
        budget = budget or Budget()
        automaton = self._code_point_automaton(budget)
        if automaton.start == NO_STATE:
            return []
        return [self._random_walk(automaton, rng, budget) for _ in range(count)]

    # Automata

    def explore(self, num_states: int, budget: Budget | None = None) -> None:
        """Compute the transitions of the `num_states` states nearest to the start; all automata of this language share them.

        Raises:
            GrammarError: the budget ran out.
        """
        budget = budget or Budget()
        automaton = self._code_point_automaton(budget)
        worklist = [] if automaton.start == NO_STATE else [automaton.start]
        seen = set(worklist)
        for state in worklist:  # grows during iteration
            if len(worklist) > num_states:
                return
            for target in automaton.moves(state, budget):
                if target != NO_STATE and target not in seen:
                    seen.add(target)
                    worklist.append(target)

    def automaton(self, budget: Budget | None = None) -> ByteAutomaton:
        """The automaton over UTF-8.

        Raises:
            GrammarError: the language is empty, or the budget ran out.
        """
        budget = budget or Budget()
        return ByteAutomaton(self._code_point_automaton(budget), is_json_string=False, budget=budget)

    def is_endless(self, limit: int, budget: Budget) -> bool:
        """Whether every beginning of a string can be completed in infinitely many ways; False if that takes more than `limit` states.

        Raises:
            GrammarError: the budget ran out.
        """
        return self._code_point_automaton(budget).is_endless(limit, budget)

    def json_string_body(self, budget: Budget | None = None) -> ByteAutomaton:
        """The automaton over the bodies of JSON strings (without the quotes) whose value is in the language, with every escape.

        Raises:
            GrammarError: the language is empty, or the budget ran out.
        """
        budget = budget or Budget()
        return ByteAutomaton(self._code_point_automaton(budget), is_json_string=True, budget=budget)

    def in_json_string(self) -> Language:
        """The same strings, with the automaton of `json_string_body`: for a grammar whose whole text stands in a JSON string."""
        return _InJsonString(self._tree)

    @staticmethod
    def json_string_bodies(languages: Sequence[Language], budget: Budget) -> list[ByteAutomaton]:
        """The `json_string_body` of languages that are followed in parallel. Operands of the last one share its work.

        Raises:
            GrammarError: as `json_string_body`.
        """
        last = languages[-1]._code_point_automaton(budget)
        automata = [last.sibling(each._tree, budget) or each._code_point_automaton(budget) for each in languages[:-1]]
        return [ByteAutomaton(each, is_json_string=True, budget=budget) for each in (*automata, last)]

    @staticmethod
    def names_body(listed: Sequence[str], classes: Sequence[Language], budget: Budget) -> NamesAutomaton:
        """The automaton over the bodies of JSON strings that are not a listed name, which classifies each name.

        Args:
            listed: the names to reject.
            classes: languages that are disjoint except for listed names.
            budget: the limits of the automaton.
        Raises:
            GrammarError: a listed name has a lone surrogate, or the budget ran out.
        """
        letters = "".join(listed)
        Language.literal(letters)
        sets = {code_points.ALL, *map(code_points.single, map(ord, letters))}
        decoder = decoder_for(frozenset(sets.union(*(sets_of(each._tree) for each in classes))))
        automata: list[CodePointAutomaton] = []
        for each in classes:
            sibling = automata[0].sibling(each._tree, budget) if automata else None
            automata.append(sibling or CodePointAutomaton(each._tree, budget, decoder))
        return NamesAutomaton(NameClassifier(listed, automata, decoder), budget)

    def _code_point_automaton(self, budget: Budget) -> CodePointAutomaton:
        automaton = self._automaton
        if automaton is None:  # two threads may both build it, which is harmless
            automaton = self._automaton = CodePointAutomaton(self._tree, budget)
        return automaton

    def _nearest_end(self, automaton: CodePointAutomaton, start: int, budget: Budget) -> str:
        predecessors: dict[int, tuple[int, int] | None] = {start: None}
        worklist = deque([start])
        while not automaton.is_accepting(worklist[0]):
            state = worklist.popleft()
            budget.spend()
            for number, target in enumerate(automaton.moves(state, budget)):
                if target != NO_STATE and target not in predecessors:
                    predecessors[target] = (state, number)
                    worklist.append(target)
        path = []
        step = predecessors[worklist[0]]
        while step is not None:
            path.append(chr(automaton.partition.representatives[step[1]]))
            step = predecessors[step[0]]
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


class _InJsonString(Language):
    """The strings of a language within a JSON string. Questions about strings are about their values."""

    __slots__ = ()

    def automaton(self, budget: Budget | None = None) -> ByteAutomaton:
        """The automaton over the bodies of JSON strings."""
        return self.json_string_body(budget)


def compile_regex(
    pattern: str,
    *,
    dialect: RegexDialect | Literal["ecma", "python", "lark", "rust"] = RegexDialect.ECMA,
    mode: Literal["full", "search"] = "full",
    budget: Budget | None = None,
) -> Language:
    """Compile a pattern to the language of the strings that it matches.

    Args:
        pattern: the pattern.
        dialect: "ecma", ECMA-262 as in JSON Schema's `pattern`; "python" or "lark", Python's `re`; "rust", the crate `regex`.
        mode: "full", the pattern must match the whole string; "search", a part of it, as `pattern` in JSON Schema does.
        budget: the limits of the compilation; default: `Limits()`.
    Returns:
        The language, possibly empty: then `is_empty` is true and it has no automata.
    Raises:
        GrammarError: a syntax error or an unsupported construct, with `line:column`; or the pattern is too large.
    """
    budget = budget or Budget()
    tree = parse_pattern(pattern, RegexDialect(dialect), budget)
    if mode == "search":
        tree = syntax.concatenation([syntax.ANY_TEXT, tree, syntax.ANY_TEXT])
    tree = resolve_anchors(tree, budget)
    budget.check_depth(tree.depth)
    return Language(tree)
