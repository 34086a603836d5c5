r"""Terminals as programs of byte threads, the form that `lexer_automaton` determinizes.

An instruction reads one byte of a set, splits in order of preference, asks for the byte before or after, or matches. So a look-ahead at
the end of a terminal sees the text that really follows, in whichever lexeme it stands: `/if(?![a-z])/`, `/[a-z]+\b/`. Where that
has several bytes, the match is found after them and says how many they are. Look-ahead inside a pattern may reach beyond its end, too.

The ordered threads and what they mean: Cox, "Regular Expression Matching: the Virtual Machine Approach" (2009). Patterns are read by
Python's own parser. Other look-around is handed to `regular.language`, which sees the text of the terminal only and keeps no order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from re import _constants as ops  # type: ignore[attr-defined]
from re import _parser as sre_parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

from rtlang_grammars.context_free.lark_source import SourceTerminal
from rtlang_grammars.context_free.lexer_build.terminal_programs.built_threads import emit_built
from rtlang_grammars.context_free.lexer_build.terminal_programs.instructions import (
    END,
    MAX_LOOK_AHEAD,
    Ahead,
    Instruction,
    LookAhead,
    LookBehind,
    Read,
    Split,
    TerminalMatch,
    without_aheads,
)
from rtlang_grammars.context_free.notation.terminal_expressions import BuiltTerminal
from rtlang_grammars.regular.characters import code_points, unicode_sets
from rtlang_grammars.regular.characters.code_points import CodePoints
from rtlang_grammars.regular.language import compile_regex
from rtlang_grammars.regular.patterns.python_items import (
    any_case,
    category_of,
    characters_of,
    last_characters,
    one_character,
)
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget
from rtlang_grammars.spec.tokens import TOKEN_LEAD, Ranges, SpellingAutomaton

_BEFORE_END = 1 << END
_BEYOND_ASCII = (1 << TOKEN_LEAD) - (1 << 128)
_BEFORE_TOKEN = 1 << TOKEN_LEAD
_MAX_REPEAT = 10_000


class _Condition(NamedTuple):
    """What may follow a terminal: a character of a set, the end of the text, or a special token."""

    points: CodePoints
    or_end: bool
    or_token: bool


class _NoThreadsError(Exception):
    """The pattern needs look-around that threads do not have."""


class TerminalProgram:
    """The instructions of all terminals of a grammar.

    Attributes:
        code: the instructions.
        entries: where each terminal begins.
        owners: the terminal of each instruction.
        is_ordered: for each terminal, whether Python's order decides which of its matches counts: it has lazy quantifiers.
        lazy_ends: matches at which the lexeme ends, whatever other terminals would read.
        max_tokens: for terminals with a budget of tokens, that budget.
        expired: for instructions of these, the instruction after the budget.
    """

    def __init__(self, terminals: Sequence[SourceTerminal], budget: Budget, *, keeps_order: bool) -> None:
        """Compile terminals, numbered as given.

        Args:
            keeps_order: threads must be in the order that Python's `re` prefers.
        Raises:
            GrammarError: a terminal is not supported or may be empty.
        """
        self.code: list[Instruction] = []
        self._places: dict[Any, int] = {}  # of instructions and loops of the present terminal: equal ones are one
        self._budget = budget
        self.entries: list[int] = []
        self.owners: list[int] = []
        self.is_ordered: list[bool] = []
        self.lazy_ends: set[int] = set()
        self.max_tokens: dict[int, int] = {}
        self.expired: dict[int, int] = {}
        self._has_tokens = any(each.tokens is not None for each in terminals)
        for number, each in enumerate(terminals):
            self.is_ordered.append(False)
            self._places.clear()
            self.entries.append(self._terminal(number, each, keeps_order))
            self.owners += [number] * (len(self.code) - len(self.owners))

    def _terminal(self, number: int, terminal: SourceTerminal, keeps_order: bool) -> int:
        if terminal.tokens is not None:
            return self._tokens(number, terminal.tokens)
        try:
            if terminal.built is not None:
                if keeps_order:
                    raise GrammarError(
                        "options of rules, %regex, & and ~ are not supported by lexer=lark; use lexer=longest"
                    )
                return self._built(number, terminal.built)
            if terminal.text and set(terminal.flags) <= {"i"}:
                return self._literal(number, terminal.text, re.IGNORECASE if terminal.flags else 0)
            tree = sre_parser.parse(terminal.pattern)
            if tree.getwidth()[0] == 0:
                raise GrammarError("the pattern can match the empty string, which no lexer can find")
            if tree.state.flags & re.LOCALE:
                raise GrammarError("the flag L is not supported")
            begin = len(self.code)
            try:
                entry = self._sequence(list(tree), tree.state.flags, self._emit(TerminalMatch(number, 0)), number)
                if any(isinstance(each, Ahead) for each in self.code[begin:]):
                    code = list(self.code)
                    self._forget_from(begin)
                    entry = without_aheads(code, entry, self._reserve, self.code.__setitem__)
            except _NoThreadsError as error:
                if keeps_order:
                    raise GrammarError(f"{error} is not supported by lexer=lark") from None
                _check_edges(tree, 0, 0)
                if _is_lazy(tree):
                    raise GrammarError(f"{error} together with a lazy quantifier is not supported") from None
                self._forget_from(begin)
                entry = self._language(number, terminal.pattern)
            self._check_start(entry)
            return entry
        except re.error as error:
            raise GrammarError(f"Lark grammar: terminal {terminal.name}: {error}") from None
        except RecursionError:
            raise GrammarError(f"Lark grammar: terminal {terminal.name}: nested too deeply") from None
        except GrammarError as error:
            self._budget.check()
            raise GrammarError(f"Lark grammar: terminal {terminal.name}: {error.reason}", error.location) from None

    def _literal(self, number: int, text: str, flags: int) -> int:
        to = self._emit(TerminalMatch(number, 0))
        for char in reversed(text):
            to = self._characters(any_case(code_points.single(ord(char)), flags), to)
        return to

    def _tokens(self, number: int, ranges: Ranges) -> int:
        """Read one of some tokens, as spelled."""
        states = SpellingAutomaton.of(ranges).states
        places = [self._reserve() if moves else self._emit(TerminalMatch(number, 0)) for moves in states]
        for place, moves in zip(places, states, strict=True):
            if moves:
                reads = [self._emit(Read((1 << last + 1) - (1 << first), places[to])) for first, last, to in moves]
                self.code[place] = Split(tuple(reads))
        return places[0]

    def _built(self, number: int, terminal: BuiltTerminal) -> int:
        """A terminal that is given as a language."""

        def fill(at: int, moves: list[tuple[int, int]], is_match: bool, is_used_up: bool) -> None:
            # A budget goes with instructions, so equal ones of other states are not the same.
            heads = [self._reserve(Read(symbols, to)) for to, symbols in moves]
            if is_match:
                heads.append(self._reserve(TerminalMatch(number, 0)))
                if terminal.is_lazy and not is_used_up:
                    self.lazy_ends.add(heads[-1])
            self.code[at] = Split(tuple(heads))

        entry, expired = emit_built(terminal, self._budget, self._reserve, fill)
        if terminal.max_tokens is not None:
            self.max_tokens[number] = terminal.max_tokens
            for at, after in expired.items():
                instruction = self.code[at]
                assert isinstance(instruction, Split)
                self.expired |= dict.fromkeys(instruction.targets, after)
        return entry

    def _check_start(self, entry: int) -> None:
        todo, seen = [entry], {entry}
        while todo:
            instruction = self.code[todo.pop()]
            if isinstance(instruction, LookBehind):
                raise GrammarError(
                    "look-behind at the start of a terminal, which sees the text before it, is not supported"
                )
            targets = instruction.targets if isinstance(instruction, Split) else ()
            for target in (instruction.to,) if isinstance(instruction, LookAhead) else targets:
                if target not in seen:
                    seen.add(target)
                    todo.append(target)

    def _emit(self, instruction: Instruction) -> int:
        """The place of an instruction that nothing changes."""
        key = type(instruction), instruction
        found = self._places.get(key)
        if found is None:
            found = self._places[key] = self._reserve(instruction)
        return found

    def _reserve(self, instruction: Instruction | None = None) -> int:
        """A place of its own; None: for an instruction that is known later."""
        self._budget.spend(states=1)
        self.code.append(Split(()) if instruction is None else instruction)
        return len(self.code) - 1

    def _forget_from(self, begin: int) -> None:
        """Take back the instructions of the present terminal."""
        del self.code[begin:]
        self._places.clear()

    def _sequence(self, items: list[Any], flags: int, to: int, ends: int | None) -> int:
        """Instructions of items one after another; `ends`: the terminal that ends after them, None elsewhere."""
        if ends is not None:
            conditions = []
            while items and items[-1][0] in (ops.ASSERT, ops.ASSERT_NOT, ops.AT):
                conditions.append(items.pop())
            if conditions:
                to = self._followed(conditions, items, flags, ends)
                ends = None
        for position in range(len(items) - 1, -1, -1):
            operation, argument = items[position]
            to = self._item(operation, argument, flags, to, ends if position == len(items) - 1 else None)
        return to

    def _item(self, operation: Any, argument: Any, flags: int, to: int, ends: int | None) -> int:
        points = characters_of(operation, argument, flags)
        if points is not None:
            return self._characters(points, to)
        if operation in (ops.ASSERT, ops.ASSERT_NOT):
            try:
                return self._emit(self._one_byte(operation, argument, flags, to))
            except _NoThreadsError:
                if argument[0] < 0:
                    raise
                return self._ahead(operation, argument[1], flags, to)
        if operation is ops.BRANCH:
            return self._emit(Split(tuple(self._sequence(list(each), flags, to, ends) for each in argument[1])))
        if operation is ops.SUBPATTERN:
            _, added, removed, body = argument
            return self._sequence(list(body), (flags | added) & ~removed, to, ends)
        if operation in (ops.MAX_REPEAT, ops.MIN_REPEAT):
            return self._repeat(argument, flags, to, is_lazy=operation is ops.MIN_REPEAT)
        name = str(operation).lower().replace("_", " ")
        if operation is ops.AT:
            name = f"{str(argument).lower().removeprefix('at_').replace('_', ' ')} inside the pattern"
        raise GrammarError(f"{'a back-reference' if operation is ops.GROUPREF else name} is not supported")

    def _one_byte(self, operation: Any, argument: Any, flags: int, to: int) -> LookAhead | LookBehind:
        """Look-around inside a pattern at one character, which must be of ASCII, or any character beyond."""
        direction, body = argument
        points = one_character(body, flags)
        if points is None:
            raise _NoThreadsError("look-around over several characters inside the pattern")
        beyond = code_points.intersection(points, ((128, code_points.MAX_CODE_POINT),))
        if code_points.size(beyond) not in (0, code_points.size(code_points.ALL) - 128):
            raise _NoThreadsError("look-around for some but not all non-ASCII characters inside the pattern")
        symbols = _BEYOND_ASCII if beyond else 0
        for first, last in code_points.intersection(points, ((0, 127),)):
            symbols |= (1 << last + 1) - (1 << first)
        if operation is ops.ASSERT_NOT:
            symbols ^= (1 << 257) - 1
        return LookAhead(symbols, to) if direction > 0 else LookBehind(symbols, to)

    def _repeat(self, argument: Any, flags: int, to: int, *, is_lazy: bool) -> int:
        low, high, body = argument
        body = list(body)
        if max(int(low), 0 if high is ops.MAXREPEAT else int(high)) > _MAX_REPEAT:
            raise GrammarError(f"a quantifier counts to more than {_MAX_REPEAT}")
        self.is_ordered[-1] |= is_lazy
        if high is ops.MAXREPEAT:
            # Names without keywords repeat their last characters in hundreds of branches: one loop, so one state of the automaton.
            key = (repr(body), flags, is_lazy, to)
            if key not in self._places:
                loop = self._places[key] = self._reserve()
                inner = self._sequence(body, flags, loop, None)
                self.code[loop] = Split((to, inner) if is_lazy else (inner, to))
            to = self._places[key]
        else:
            after = to
            for _ in range(int(high) - int(low)):
                inner = self._sequence(body, flags, to, None)
                to = self._emit(Split((after, inner) if is_lazy else (inner, after)))
        for _ in range(int(low)):
            to = self._sequence(body, flags, to, None)
        return to

    def _characters(self, points: CodePoints, to: int) -> int:
        """Read one character of a set, in UTF-8."""
        rests: dict[tuple[tuple[int, int], ...], int] = {}
        for first, last in points:
            for spelling in _utf8(first, last):
                low, high = spelling[0]
                rests[spelling[1:]] = rests.get(spelling[1:], 0) | (1 << high + 1) - (1 << low)
        tails: dict[tuple[tuple[int, int], ...], int] = {(): to}

        def tail(rest: tuple[tuple[int, int], ...]) -> int:
            if rest not in tails:
                low, high = rest[0]
                tails[rest] = self._emit(Read((1 << high + 1) - (1 << low), tail(rest[1:])))
            return tails[rest]

        heads = tuple(self._emit(Read(symbols, tail(rest))) for rest, symbols in rests.items())
        return heads[0] if len(heads) == 1 else self._emit(Split(heads))

    def _followed(self, conditions: list[Any], items: list[Any], flags: int, number: int) -> int:
        """The end of a terminal with look-ahead."""
        if not conditions:
            return self._emit(TerminalMatch(number, 0))
        for position, (operation, argument) in enumerate(conditions):
            is_ahead = operation is not ops.AT and argument[0] > 0
            if is_ahead and one_character(argument[1], flags) is None:
                others = conditions[:position] + conditions[position + 1 :]
                return self._ahead(operation, argument[1], flags, self._followed(others, items, flags, number))
        if any(operation is not ops.AT and argument[0] < 0 for operation, argument in conditions):
            to = self._emit(TerminalMatch(number, 0))
            for operation, argument in conditions:
                if operation is ops.AT:
                    raise GrammarError("look-behind next to an anchor is not supported")
                to = self._emit(self._one_byte(operation, argument, flags, to))
            return to
        found = _Condition(code_points.ALL, True, self._has_tokens)
        for operation, argument in conditions:
            each = self._condition(operation, argument, items, flags)
            points = code_points.intersection(found.points, each.points)
            found = _Condition(points, found.or_end and each.or_end, found.or_token and each.or_token)
        follow, points = code_points.decided_by_first_byte(found.points)
        if points == code_points.intersection(found.points, ((0, 0x7F),)) and follow.bit_count() == 51:
            follow = _BEYOND_ASCII
        heads, follow = [], follow | (_BEFORE_END if found.or_end else 0) | (_BEFORE_TOKEN if found.or_token else 0)
        behind: dict[tuple[tuple[int, int], ...], int] = {}
        for first, last in points:
            for spelling in _utf8(first, last):
                low, high = spelling[-1]
                behind[spelling[:-1]] = behind.get(spelling[:-1], 0) | (1 << high + 1) - (1 << low)
        follow |= behind.pop((), 0)
        if follow:
            heads.append(self._emit(LookAhead(follow, self._emit(TerminalMatch(number, 0)))))
        shared: dict[tuple[int, int], int] = {}
        for leads, symbols in behind.items():
            key = (symbols, len(leads))
            at = shared.get(key)
            if at is None:
                match = self._emit(TerminalMatch(number, len(leads)))
                at = shared[key] = self._emit(LookAhead(symbols, match))
            for low, high in reversed(leads):
                at = self._emit(Read((1 << high + 1) - (1 << low), at))
            heads.append(at)
        return heads[0] if len(heads) == 1 else self._emit(Split(tuple(heads)))

    def _ahead(self, operation: Any, body: Any, flags: int, to: int) -> int:
        """A look-ahead of several characters."""
        if body.getwidth()[1] > MAX_LOOK_AHEAD:
            raise _NoThreadsError(f"look-ahead over more than {MAX_LOOK_AHEAD} characters")
        begin, is_ordered, number = len(self.code), self.is_ordered[-1], len(self.is_ordered) - 1
        entry = self._sequence(list(body), flags, self._emit(TerminalMatch(number, 0)), number)
        self.is_ordered[-1] = is_ordered
        if any(isinstance(each, LookBehind | Ahead) for each in self.code[begin:]):
            raise _NoThreadsError("look-around of several characters within a look-ahead")
        return self._emit(Ahead(entry, operation is ops.ASSERT_NOT, to))

    def _condition(self, operation: Any, argument: Any, items: list[Any], flags: int) -> _Condition:
        if operation is ops.AT:
            if argument in (ops.AT_BOUNDARY, ops.AT_NON_BOUNDARY):
                word = category_of(ops.CATEGORY_WORD, flags)
                last = last_characters(items, flags)
                if last is None or (code_points.intersection(last, word) not in ((), last)):
                    raise GrammarError(r"\b after a character that may or may not be a word character is not supported")
                is_word_next = (not code_points.intersection(last, word)) == (argument is ops.AT_BOUNDARY)
                if is_word_next:
                    return _Condition(word, False, False)
                return _Condition(code_points.complement(word), True, True)
            if argument is ops.AT_END_STRING:
                return _Condition((), True, False)
            if argument is ops.AT_END and flags & re.MULTILINE:
                return _Condition(unicode_sets.NEWLINE, True, False)
            raise GrammarError(
                f"{'$' if argument is ops.AT_END else '^'} is not supported; use the flag m with $, or \\Z"
            )
        points = one_character(argument[1], flags)
        assert points is not None
        is_not = operation is ops.ASSERT_NOT
        return _Condition(code_points.complement(points) if is_not else points, is_not, is_not)

    def _language(self, number: int, pattern: str) -> int:
        """A pattern whose look-around sees the text of the terminal only, as an automaton."""
        language = compile_regex(pattern, dialect="python", budget=self._budget)
        if language.is_empty(self._budget):
            raise GrammarError("the pattern matches no string")
        automaton = language.automaton(self._budget)
        place: dict[int, int] = {}
        todo = [automaton.start]
        place[automaton.start] = self._reserve()
        while todo:
            state = todo.pop()
            targets: dict[int, int] = {}
            for byte, following in enumerate(automaton.row(state).tolist()):
                if following >= 0:
                    targets[following] = targets.get(following, 0) | 1 << byte
            heads = []
            for following, symbols in targets.items():
                if following not in place:
                    place[following] = self._reserve()
                    todo.append(following)
                heads.append(self._emit(Read(symbols, place[following])))
            if automaton.is_accepting(state):
                heads.append(self._emit(TerminalMatch(number, 0)))
            self.code[place[state]] = Split(tuple(heads))
        return place[automaton.start]


def _check_edges(items: Any, before: int, after: int) -> None:
    """Refuse look-around that may see beyond a terminal of which at least `before` and `after` characters surround the items."""
    widths = [_width(*each) for each in items]
    for position, (operation, argument) in enumerate(items):
        earlier = before + sum(low for low, _ in widths[:position])
        later = after + sum(low for low, _ in widths[position + 1 :])
        if operation in (ops.ASSERT, ops.ASSERT_NOT):
            direction, body = argument
            if body.getwidth()[1] > (later if direction > 0 else earlier):
                raise GrammarError(
                    f"look-around of several characters that may see beyond the terminal is not supported, "
                    f"but for look-ahead over at most {MAX_LOOK_AHEAD} characters"
                )
        elif operation is ops.AT:
            raise GrammarError("an anchor or \\b combined with look-around of several characters is not supported")
        elif operation is ops.BRANCH:
            for each in argument[1]:
                _check_edges(each, earlier, later)
        elif operation is ops.SUBPATTERN:
            _check_edges(argument[3], earlier, later)
        elif operation in (ops.MAX_REPEAT, ops.MIN_REPEAT):
            _check_edges(argument[2], earlier, later)


def _is_lazy(items: Any) -> bool:
    """Whether there is a lazy quantifier somewhere in a parsed pattern."""
    if isinstance(items, sre_parser.SubPattern | list | tuple):
        return any(_is_lazy(each) for each in items)
    return items is ops.MIN_REPEAT


def _width(operation: Any, argument: Any) -> tuple[int, int]:
    pattern = sre_parser.SubPattern(sre_parser.State(), [(operation, argument)])
    low, high = pattern.getwidth()
    return int(low), int(high)


_LAST_OF_LENGTH = (0x7F, 0x7FF, 0xFFFF, 0x10FFFF)


@lru_cache(maxsize=1 << 12)
def _utf8(first: int, last: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """The encodings of a range of characters without surrogates, as sequences of byte ranges."""
    found: list[tuple[tuple[int, int], ...]] = []
    todo = [(first, last)]
    while todo:
        first, last = todo.pop()
        length = next(n for n, bound in enumerate(_LAST_OF_LENGTH, 1) if first <= bound)
        bound = _LAST_OF_LENGTH[length - 1]
        if last > bound:
            todo.append((bound + 1, last))
            last = bound
        for level in range(1, length):
            mask = (1 << 6 * level) - 1
            if first & ~mask != last & ~mask:
                if first & mask:
                    todo.append(((first | mask) + 1, last))
                    last = first | mask
                elif last & mask != mask:
                    todo.append((last & ~mask, last))
                    last = (last & ~mask) - 1
        found.append(tuple(zip(chr(first).encode(), chr(last).encode(), strict=True)))
    return tuple(found)
