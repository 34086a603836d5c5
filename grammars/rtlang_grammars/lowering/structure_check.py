"""Checks finished texts of structures against the schemas in them, for keywords that masks cannot enforce.

A text is valid if it can be divided into the parts of the structure such that every value and the arguments of every call are valid. The
divisions are the paths of a graph whose nodes are pairs of the rest of the structure and a position in the text: it is built forwards, then
cut down to the nodes from which the end of the text is reached, and only values on the paths that are left are validated. Everything but
the values is taken to be as the masks have allowed it.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple, TypeAlias

from rtlang_grammars.context_free.cfg import Cfg
from rtlang_grammars.context_free.gbnf_reader import GrammarNotation, read_gbnf
from rtlang_grammars.context_free.prefixes import prefix_ends
from rtlang_grammars.formats.arguments.argument_grammar import reading_of
from rtlang_grammars.formats.arguments.argument_reading import read_arguments
from rtlang_grammars.formats.arguments.value_reading import Incomplete, Malformed
from rtlang_grammars.formats.description import ArgumentStyle
from rtlang_grammars.regular.language import Language, compile_regex
from rtlang_grammars.schema.compiler import compile_shapes
from rtlang_grammars.schema.reading.options import SchemaOptions
from rtlang_grammars.schema.value_checks import MAX_SECONDS, CheckTimeError, ValueCheck, value_check
from rtlang_grammars.spec.constraint import ConstraintKind, PropertyOrder
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.json_source import parsed
from rtlang_grammars.spec.limits import Budget, Limits
from rtlang_grammars.spec.structure_parts import (
    AnyOf,
    Arguments,
    Defined,
    Leaf,
    Literal,
    Mark,
    Members,
    Part,
    RawText,
    Repeat,
    Sequence,
    Tags,
    Token,
)
from rtlang_grammars.spec.tokens import AnyTokens, SpecialTokens

_MAX_NODES = 1_000_000
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_BLANKS = " \t\n\r"

_Checked: TypeAlias = Leaf | RawText | Arguments


class _Edge(NamedTuple):
    """A step from one node to another; `part`, if it is given, must have a valid value from `begin` to `end`."""

    target: tuple[int, int]
    part: _Checked | None = None
    begin: int = 0
    end: int = 0


class _Rest(NamedTuple):
    """The rest of a structure: a part, of which some items were written, and then the rest with the number `then`.

    Attributes:
        written: of a repeat or of tags, how many; of members, the set of those that were written; None: the part has not begun.
    """

    part: Part
    written: int | None
    then: int


_DONE = 0
"""The number of the rest of a text that may end."""


@dataclass(frozen=True, slots=True)
class StructureCheck:
    """Checks texts of one structure. Safe to use from several threads.

    Attributes:
        part: the structure.
        checked: the pointers of the parts whose values the masks do not enforce.
        tokens: of the vocabulary.
        max_seconds: limit on the CPU time for one text.
    """

    part: Part
    checked: frozenset[str]
    options: SchemaOptions
    tokens: SpecialTokens
    marks: tuple[str, ...] | None
    """Texts before which no checked part begins; None: one may begin with the text."""
    max_seconds: float = MAX_SECONDS

    def error_in(self, text: str) -> str | None:
        """The first violation in a text, with the tool or the part and a JSON pointer into the value; None if the text is valid.

        Raises:
            CheckTimeError: the check takes too long.
            GrammarError: a schema is malformed or not supported; names the tool.
        """
        budget = Budget(Limits(max_seconds=self.max_seconds, max_states=_MAX_NODES))
        try:
            return _Division(self, text, budget).error()
        except RecursionError:
            raise CheckTimeError("the text is nested too deeply to be checked") from None
        except GrammarError as error:
            if error.reason.startswith("too complex"):
                raise CheckTimeError("checking the text takes too long") from error
            raise

    def may_begin(self, text: str, num_new: int) -> bool:
        """Whether a part that is checked may begin in the last `num_new` characters of a text, or right after it."""
        if self.marks is None:
            return True
        longest = max(map(len, self.marks), default=0)
        tail = text[max(0, len(text) - num_new - longest) :]
        return any(mark in tail for mark in self.marks)


def structure_check(
    part: Part, checked: Iterable[str], options: SchemaOptions | None = None, tokens: SpecialTokens | None = None
) -> StructureCheck:
    """Create the check of a structure.

    Args:
        checked: see `StructureCheck`.
        options: those with which the structure was compiled.
        tokens: of the vocabulary; None: every token is taken for known.
    """
    pointers = frozenset(checked)
    marks = _marks(part, pointers, ())
    return StructureCheck(
        part,
        pointers,
        options or SchemaOptions(),
        tokens or AnyTokens(),
        None if marks is None else tuple(sorted(marks)),
    )


def _marks(part: Part, checked: frozenset[str], before: tuple[str, ...]) -> set[str] | None:
    """A text before each checked part in a part; `before` are the texts that precede the part."""
    match part:
        case Leaf() | RawText() | Arguments():
            if part.pointer not in checked:
                return set()
            if isinstance(part, Arguments) and part.name in before:
                return {part.name}
            return {before[-1]} if before else None
        case Sequence(parts):
            found: list[set[str] | None] = []
            for each in parts:
                found.append(_marks(each, checked, before))
                if isinstance(each, Literal) and each.text.strip():
                    before = (*before, each.text)
        case AnyOf(parts):
            found = [_marks(each, checked, before) for each in parts]
        case Repeat() | Defined():
            found = [_marks(part.part, checked, before)]
        case Members():
            found = [_marks(each, checked, before) for each, _ in part.parts]
        case Tags():
            begins = [(tag.begin.text,) if isinstance(tag.begin, Literal) else () for tag in part.tags]
            found = [_marks(tag.part, checked, before + begin) for tag, begin in zip(part.tags, begins, strict=True)]
        case _:
            return set()
    marks = set[str]()
    for inner in found:
        if inner is None:
            return None
        marks |= inner
    return marks


class _Division:
    """The divisions of one text into the parts of a structure."""

    def __init__(self, check: StructureCheck, text: str, budget: Budget) -> None:
        self._check, self._text, self._budget = check, text, budget
        self._rests: list[_Rest | None] = [None]
        self._numbers: dict[tuple[int, int | None, int], int] = {}
        self._parts: dict[int, Part] = {}  # keeps the parts whose identities are keys

    def error(self) -> str | None:
        """The first violation on all paths; None if there is a path without one."""
        start, last = (self._rest(self._check.part, None, _DONE), 0), (_DONE, len(self._text))
        edges = self._edges_from(start)
        if last not in edges:
            return "the text cannot be divided into the parts of the structure"
        useful = _leading_to(last, edges)
        waiting, seen = [start], {start}
        failed: tuple[int, str] = (-1, "")
        while waiting:
            node = waiting.pop()
            if node == last:
                return None
            for edge in reversed(edges[node]):
                if edge.target not in useful or edge.target in seen:
                    continue
                reason = None if edge.part is None else self._violation(edge.part, edge.begin, edge.end)
                if reason is None:
                    seen.add(edge.target)
                    waiting.append(edge.target)
                elif edge.end > failed[0]:
                    failed = edge.end, reason
        return failed[1]

    def _edges_from(self, start: tuple[int, int]) -> dict[tuple[int, int], list[_Edge]]:
        edges: dict[tuple[int, int], list[_Edge]] = {}
        waiting = [start]
        while waiting:
            node = waiting.pop()
            if node in edges:
                continue
            self._budget.spend(states=1)
            edges[node] = found = []
            rest = self._rests[node[0]]
            if rest is None:
                continue
            for edge in self._steps(rest, node[1]):
                self._budget.spend(states=1)
                found.append(edge)
                if edge.target not in edges:
                    waiting.append(edge.target)
        return edges

    def _rest(self, part: Part, count: int | None, then: int) -> int:
        """The number of a rest."""
        key = id(part), count, then
        if key not in self._numbers:
            self._numbers[key] = len(self._rests)
            self._rests.append(_Rest(part, count, then))
            self._parts[id(part)] = part
        return self._numbers[key]

    def _mark(self, mark: Mark, then: int) -> int:
        return self._rest(mark, None, then)

    def _steps(self, rest: _Rest, at: int) -> Iterator[_Edge]:
        part, count, then = rest
        match part:
            case Literal(text):
                if self._text.startswith(text, at):
                    yield _Edge((then, at + len(text)))
            case Token():
                for text in self._texts_of(part):
                    if self._text.startswith(text, at):
                        yield _Edge((then, at + len(text)))
            case Leaf() | RawText() | Arguments():
                is_value = not isinstance(part, Leaf) or part.constraint.kind is ConstraintKind.JSON_SCHEMA
                for end in self._ends(part, at):
                    yield _Edge((then, end), part if is_value else None, at, end)
            case Sequence(parts):
                for each in reversed(parts):
                    then = self._rest(each, None, then)
                yield _Edge((then, at))
            case AnyOf(parts):
                for each in parts:
                    yield _Edge((self._rest(each, None, then), at))
            case Defined():
                yield _Edge((self._rest(part.part, None, then), at))
            case Repeat():
                yield from self._repeat(part, count or 0, then, at)
            case Members():
                yield from self._members(part, count or 0, then, at)
            case Tags():
                yield from self._tags(part, count or 0, then, at)

    def _repeat(self, part: Repeat, count: int, then: int, at: int) -> Iterator[_Edge]:
        if count >= part.low:
            yield _Edge((then, at))
        if part.high is None or count < part.high:
            following = count + 1 if part.high is not None else min(count + 1, part.low)
            yield _Edge((self._rest(part.part, None, self._rest(part, following, then)), at))

    def _members(self, part: Members, written: int, then: int, at: int) -> Iterator[_Edge]:
        """`written` has a bit for each member, and in declared order also for those that can no longer come."""
        required = sum(1 << i for i, (_, is_required) in enumerate(part.parts) if is_required)
        if written & required == required:
            yield _Edge((then, at))
        for i, (each, _) in enumerate(part.parts):
            if written >> i & 1 or (part.order is not PropertyOrder.ANY and written >> i):
                continue
            following = self._rest(each, None, self._rest(part, written | 1 << i, then))
            yield _Edge((self._rest(Literal(part.separator), None, following) if written else following, at))

    def _tags(self, part: Tags, count: int, then: int, at: int) -> Iterator[_Edge]:
        """Free text up to the next tag or to the end of the part."""
        text, begins = self._text, [self._mark_texts(tag.begin) for tag in part.tags]
        found = [(start, begin) for texts in begins for begin in texts if (start := text.find(begin, at)) >= 0]
        first = min(found, default=None)
        if count >= part.low:
            marks = [(start, each) for each in part.excludes if (start := text.find(each, at)) >= 0]
            limit = min((start + len(each) - 1 for start, each in (*found, *marks)), default=len(text))
            ends = range(len(text), limit + 1) if then == _DONE else range(at, limit + 1)
            for end in ends:
                yield _Edge((then, end))
        if first is None or (part.high is not None and count >= part.high):
            return
        is_last = part.high is not None and count + 1 == part.high and not part.text_behind
        bound = part.low if part.high is None else part.high
        behind = then if is_last else self._rest(part, min(count + 1, bound), then)
        for tag, texts in zip(part.tags, begins, strict=True):
            for begin in texts:
                if text.startswith(begin, first[0]):
                    inner = self._rest(tag.part, None, self._mark(tag.end, behind))
                    yield _Edge((inner, first[0] + len(begin)))

    def _mark_texts(self, mark: Mark) -> frozenset[str]:
        return frozenset((mark.text,)) if isinstance(mark, Literal) else self._texts_of(mark)

    def _texts_of(self, part: Token) -> frozenset[str]:
        return self._check.tokens.texts(self._check.tokens.resolve(part.tokens))

    def _ends(self, part: _Checked, at: int) -> Iterable[int]:
        """Where a value or a text of another constraint may end that begins at a position."""
        match part:
            case RawText():
                return self._raw_ends(part.excludes, at)
            case Arguments():
                return self._argument_ends(part, at)
        source = part.constraint.source
        match part.constraint.kind:
            case ConstraintKind.JSON_SCHEMA:
                return _json_ends(self._text, at)
            case ConstraintKind.REGEX:
                return _pattern(source).ends(self._text, at, self._budget)
            case ConstraintKind.CHOICE:
                return [at + len(each) for each in parsed(source) if self._text.startswith(each, at)]
        cfg = _grammar(part.constraint.kind, source, self._check.tokens)
        return prefix_ends(cfg, at, functools.partial(self._terminal_ends, cfg), self._budget)

    def _terminal_ends(self, cfg: Cfg, terminal: int, at: int) -> Iterator[int]:
        symbol = cfg.terminals[terminal]
        if symbol.tokens is None:
            yield from symbol.language.ends(self._text, at, self._budget)
            return
        texts = self._check.tokens.texts(symbol.tokens)
        yield from (at + len(each) for each in texts if self._text.startswith(each, at))

    def _raw_ends(self, excludes: Iterable[str], at: int) -> range:
        found = [(start, each) for each in excludes if (start := self._text.find(each, at)) >= 0]
        return range(at, min((start + len(each) - 1 for start, each in found), default=len(self._text)) + 1)

    def _argument_ends(self, part: Arguments, at: int) -> Iterable[int]:
        tool_format, tool = reading_of(part)
        if tool_format.arguments is ArgumentStyle.JSON:
            return _json_ends(self._text, at)
        try:
            _, end = read_arguments(tool_format, tool, self._text, at)
        except Incomplete:  # style TAGGED reads on where the text ends with the arguments
            return (len(self._text),) if tool_format.arguments is ArgumentStyle.TAGGED else ()
        except Malformed:
            return ()
        return range(at + len(self._text[at:end].rstrip(_BLANKS)), end + 1)  # blanks may belong to the next part

    def _violation(self, part: _Checked, begin: int, end: int) -> str | None:
        """Why the value from one position to another is not valid; None if it is."""
        text = self._text[begin:end]
        if isinstance(part, RawText):
            schema = parsed(part.schema)
            return None if schema is True else self._error(f"the text at {part.pointer}", schema, text)
        if isinstance(part, Leaf):
            return self._error(f"the value at {part.pointer}", parsed(part.constraint.source), _value(text))
        tool_format, tool = reading_of(part)
        if tool_format.arguments is ArgumentStyle.JSON:
            return self._error(f"tool {tool.name}", tool.schema, _value(text))
        end_mark = {ArgumentStyle.PYTHON: ")", ArgumentStyle.MARKED: "}"}.get(tool_format.arguments, "\0")
        try:
            arguments, _ = read_arguments(tool_format, tool, text + end_mark, 0)
        except (Incomplete, Malformed) as error:
            return f"tool {tool.name}: {error}"
        return self._error(f"tool {tool.name}", tool.schema, arguments)

    def _error(self, where: str, schema: Any, value: Any) -> str | None:
        if isinstance(value, _Unread):
            return f"{where}: {value.reason}"
        check: ValueCheck = value_check(schema, self._check.options, self._check.max_seconds)
        try:
            reason = check.error(value)
        except CheckTimeError:
            raise
        except GrammarError as error:
            self._budget.check()
            raise GrammarError(f"{where}: {error.reason}", error.location) from error
        except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
            # The schema could not be compiled, so that its keywords may have values of any type.
            try:
                compile_shapes(schema, options=self._check.options, budget=self._budget)
            except GrammarError as found:
                raise GrammarError(f"{where}: {found.reason}", found.location) from error
            raise
        return None if reason is None else f"{where}: {reason}"


class _Unread(NamedTuple):
    """A text that is not JSON."""

    reason: str


def _value(text: str) -> Any:
    try:
        return json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError) as error:  # a number may have too many digits to be read
        return _Unread(f"not JSON: {error}")


def _json_ends(text: str, at: int) -> Iterable[int]:
    """Where a JSON value may end; a number may end before its last digit."""
    while at < len(text) and text[at] in _BLANKS:
        at += 1
    number = _NUMBER.match(text, at)
    if number is not None:
        return [end for end in range(at + 1, number.end() + 1) if _NUMBER.fullmatch(text, at, end)]
    try:
        return (_DECODER.raw_decode(text, at)[1],)
    except ValueError:
        return ()


_DECODER = json.JSONDecoder(parse_int=str, parse_float=str)
"""Finds the end of a value; numbers may have any number of digits."""


def _leading_to(last: tuple[int, int], edges: dict[tuple[int, int], list[_Edge]]) -> set[tuple[int, int]]:
    """The nodes from which a node is reached."""
    sources: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for node, found in edges.items():
        for edge in found:
            sources.setdefault(edge.target, []).append(node)
    useful, waiting = {last}, [last]
    while waiting:
        for node in sources.get(waiting.pop(), ()):
            if node not in useful:
                useful.add(node)
                waiting.append(node)
    return useful


@functools.lru_cache(maxsize=256)
def _pattern(source: str) -> Language:
    return compile_regex(source, dialect="python")


@functools.lru_cache(maxsize=16)
def _grammar(kind: ConstraintKind, source: str, tokens: SpecialTokens) -> Cfg:
    if kind is ConstraintKind.LARK:
        from rtlang_grammars.context_free.lark_reader import read_lark  # lark is imported where it is needed

        return read_lark(source, tokens=tokens)
    return read_gbnf(
        source, notation=GrammarNotation.GBNF if kind is ConstraintKind.GBNF else GrammarNotation.W3C, tokens=tokens
    )
