"""Rules with a parameter, `perm::_: "a" perm::set_bit(0) %if bit_clear(0) | ...`, written out for each value that occurs.

A parameter is a number of 64 bits. Source: llguidance's docs/parametric.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rtlang_grammars.context_free.notation.scanner import Definition, TokenKind, definition_in, lines_of, scan
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.places import line_and_column

_MAX_RULES = 5_000
_ALL = (1 << 64) - 1
_LEXED = re.compile(r"\s*(?:(0x[0-9a-fA-F]{1,16}|\d{1,20})|([a-z_]+)|([\[\]():,]))")

Call: TypeAlias = "tuple[str, tuple[Argument, ...]]"
Argument: TypeAlias = "int | tuple[int, int] | Call"
"""A number, bits [first, last), or a function with its arguments; ("_", ()) is the parameter."""

_Compare = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}  # fmt: skip
_COMPARISONS: dict[str, Callable[[int, int], bool]] = _Compare


def with_parameters_written_out(source: str) -> str:
    """The grammar without parameters: rules for the values that occur stand after its end. Lines stay.

    Raises:
        GrammarError: a parameter or condition is malformed, or there are too many values; with `line:column`.
    """
    return _Writer(source).written() if "::" in source or "%if" in source else source


@dataclass(frozen=True, slots=True)
class _Reference:
    name: str
    value: Call | int


@dataclass(frozen=True, slots=True)
class _Way:
    """An alternative: texts and references, and when it is there."""

    parts: tuple[str | _Reference, ...]
    condition: Call


class _Writer:
    def __init__(self, source: str) -> None:
        self._source = source
        self._rules: dict[str, list[_Way]] = {}
        self._parametric: set[str] = set()
        self._mark = "__p"
        while self._mark in source:
            self._mark += "_"

    def written(self) -> str:
        pieces, at = [], 0
        definitions = [definition_in(line) for line in lines_of(scan(self._source))]
        with_parameter = [each for each in definitions if each is not None and _has_parameter(each)]
        self._parametric = {each.name.text for each in with_parameter}
        for each in with_parameter:
            if each.options is not None:
                raise self._error("options are not supported on rules with parameters", each.first.start)
            self._rules[each.name.text] = self._ways(each)
        todo: list[tuple[str, int]] = []
        for definition in definitions:
            if definition is None or not definition.body:
                continue
            begin = definition.body[0].start
            if _has_parameter(definition):
                lost = self._source.count("\n", definition.first.start, definition.end)
                pieces += [self._source[at : definition.first.start], "\n" * lost]
            else:
                pieces.append(self._source[at:begin])
                for way in self._ways(definition, is_plain=True):
                    pieces += [self._text(part, None, todo) for part in way.parts]
            at = definition.end
        pieces.append(self._source[at:])
        return "".join(pieces) + "\n" + "\n".join(self._expanded(todo)) + "\n"

    def _expanded(self, todo: list[tuple[str, int]]) -> list[str]:
        lines: dict[tuple[str, int], str] = {}
        while todo:
            name, value = key = todo.pop()
            if key in lines:
                continue
            if len(lines) >= _MAX_RULES:
                raise GrammarError(
                    f"Lark grammar: rules with parameters: more than {_MAX_RULES} rules once all values are written out"
                )
            ways = []
            for way in self._rules[name]:
                if _holds(way.condition, value):
                    ways.append("".join(self._text(part, value, todo) for part in way.parts).strip() or "()")
            never = f"{self._written(name, value)}: {self._written(name, value)}"
            lines[key] = f"{self._written(name, value)}: {' | '.join(ways)}" if ways else never
        return list(lines.values())

    def _written(self, name: str, value: int) -> str:
        return f"{name}{self._mark}{value}"

    def _text(self, part: str | _Reference, parameter: int | None, todo: list[tuple[str, int]]) -> str:
        """A part of an alternative; rules that it names are written out later."""
        if isinstance(part, str):
            return part
        value = part.value if isinstance(part.value, int) else _value(part.value, parameter)
        todo.append((part.name, value))
        return f"{self._written(part.name, value)} "

    def _error(self, reason: str, at: int) -> GrammarError:
        return GrammarError(f"Lark grammar: {reason}", line_and_column(self._source, at))

    def _ways(self, definition: Definition, *, is_plain: bool = False) -> list[_Way]:
        """The alternatives of a rule; of one without a parameter as one, as it is written."""
        found: list[_Way] = []
        parts: list[str | _Reference] = []
        condition: Call = ("true", ())
        body = definition.body
        at, depth = body[0].start if body else definition.end, 0

        def between(begin: int, end: int) -> str:
            if is_plain:
                return self._source[begin:end]
            inside = (each for each in body if begin <= each.start < end and each.kind is not TokenKind.NEWLINE)
            return " ".join(each.text for each in inside) + " "

        for index, token in enumerate(body):
            if token.start < at:
                continue
            if token.text in ("(", "[", ")", "]"):
                depth += 1 if token.text in ("(", "[") else -1
            if token.text == "::":
                called = body[index - 1]
                if index == 0 or definition.is_terminal or called.kind is not TokenKind.RULE:
                    raise self._error("a parameter is allowed after the name of a rule, in rules only", token.start)
                if called.text not in self._parametric:
                    raise self._error(
                        f"rule {called.text} has no parameter; define it as {called.text}::_", token.start
                    )
                parts.append(between(at, called.start))
                call, at = self._call(token.end)
                if is_plain and _uses_parameter(call):
                    reason = f"{definition.name.text} has no parameter that {called.text} could be given"
                    raise self._error(reason, token.start)
                parts.append(_Reference(called.text, call))
            elif token.text == "%if":
                if is_plain:
                    raise self._error("%if is allowed in rules with parameters (name::_) only", token.start)
                parts.append(between(at, token.start))
                call, at = self._call(token.end)
                condition = call if isinstance(call, tuple) else ("", ())
                try:
                    _holds(condition, 0)
                except GrammarError as error:
                    raise self._error(error.reason.removeprefix("Lark grammar: "), token.start) from None
            elif token.text == "|" and not depth and not is_plain:
                parts.append(between(at, token.start))
                found.append(_Way(tuple(parts), condition))
                parts, condition, at = [], ("true", ()), token.end
        parts.append(between(at, definition.end))
        return [*found, _Way(tuple(parts), condition)]

    def _call(self, at: int) -> tuple[Call | int, int]:
        """A number, or a function of the parameter, and where it ends."""
        found, end = self._argument(at, 0)
        if isinstance(found, tuple) and isinstance(found[0], int):
            raise self._error("expected a number or a function of the parameter", at)
        return found, end

    def _argument(self, at: int, depth: int) -> tuple[Argument, int]:
        token = _LEXED.match(self._source, at)
        if token is None or depth > 16:
            raise self._error("expected a number, bits [x:y] or a function of the parameter", at)
        at = token.end()
        if token[1]:
            number = int(token[1], 0) if token[1].startswith("0x") else int(token[1])
            if number > _ALL:
                raise self._error(f"{number}: expected a number of 64 bits", at)
            return number, at
        if token[3] == "[":
            bits = re.compile(r"\s*(\d{1,3})\s*:\s*(\d{1,3})\s*\]").match(self._source, at)
            if bits is None or not 0 <= int(bits[1]) < int(bits[2]) <= 64:
                raise self._error("expected bits [x:y] with 0 <= x < y <= 64", at)
            return (int(bits[1]), int(bits[2])), bits.end()
        if token[3]:
            raise self._error("expected a number, bits [x:y] or a function of the parameter", at)
        name, arguments = str(token[2]), list[Argument]()
        ahead = _LEXED.match(self._source, at)
        if ahead is None or ahead[3] != "(" or name == "_":
            return (name, ()), at
        at = ahead.end()
        while True:
            ahead = _LEXED.match(self._source, at)
            if ahead is not None and ahead[3] == ")":
                return (name, tuple(arguments)), ahead.end()
            value, at = self._argument(at, depth + 1)
            arguments.append(value)
            ahead = _LEXED.match(self._source, at)
            if ahead is None or ahead[3] not in (",", ")"):
                raise self._error("expected , or )", at)
            at = ahead.end() if ahead[3] == "," else at


def _has_parameter(definition: Definition) -> bool:
    return [each.text for each in definition.parameters] == ["::", "_"]


def _uses_parameter(value: Argument) -> bool:
    return isinstance(value, tuple) and isinstance(value[0], str)


def _bits(value: Argument, parameter: int) -> int:
    """Some bits of the parameter."""
    if value == ("_", ()):
        return parameter
    if not isinstance(value, tuple) or not isinstance(value[0], int) or not isinstance(value[1], int):
        raise GrammarError("Lark grammar: expected _ or bits [x:y]")
    return parameter >> value[0] & (1 << value[1] - value[0]) - 1


def _width(value: Argument) -> tuple[int, int]:
    if isinstance(value, tuple) and isinstance(value[0], int) and isinstance(value[1], int):
        return value[0], value[1] - value[0]
    return 0, 64


def _numbers(arguments: Sequence[Argument], count: int) -> list[int]:
    found = [each for each in arguments if isinstance(each, int)]
    if len(found) != count or len(arguments) != count:
        raise GrammarError(f"Lark grammar: expected {count} numbers")
    return found


def _value(call: Argument, parameter: int | None) -> int:
    """A function of the parameter."""
    if isinstance(call, int):
        return call
    name, arguments = call
    if not isinstance(name, str) or not isinstance(arguments, tuple) or parameter is None:
        raise GrammarError("Lark grammar: expected a number as a parameter")
    if name == "_" and not arguments:
        return parameter
    if name in ("incr", "decr") and len(arguments) == 1:
        bits, (first, width) = _bits(arguments[0], parameter), _width(arguments[0])
        if bits == (((1 << width) - 1) if name == "incr" else 0):
            return parameter
        return parameter + ((1 if name == "incr" else -1) << first) & _ALL
    known = ("set_bit", "clear_bit", "bit_and", "bit_or")
    if name not in known:
        raise GrammarError(f"Lark grammar: {name}: expected one of _, decr, incr, {', '.join(known)}")
    (number,) = _numbers(arguments, 1)
    if name in ("set_bit", "clear_bit") and number > 63:
        raise GrammarError(f"Lark grammar: {name}({number}): expected a bit from 0 to 63")
    if name == "set_bit":
        return parameter | 1 << number
    if name == "clear_bit":
        return parameter & ~(1 << number)
    return parameter & number if name == "bit_and" else parameter | number


def _holds(condition: Argument, parameter: int) -> bool:
    """Whether a condition holds."""
    if not isinstance(condition, tuple) or not isinstance(condition[0], str) or not isinstance(condition[1], tuple):
        raise GrammarError("Lark grammar: %if: expected a condition")
    name, arguments = condition[0], condition[1]
    if name == "true" and not arguments:
        return True
    if name in ("and", "or") and len(arguments) == 2:
        both = [_holds(each, parameter) for each in arguments]
        return all(both) if name == "and" else any(both)
    if name == "not" and len(arguments) == 1:
        return not _holds(arguments[0], parameter)
    if name in ("bit_set", "bit_clear"):
        (number,) = _numbers(arguments, 1)
        return bool(parameter >> number & 1) == (name == "bit_set")
    if name in ("is_ones", "is_zeros") and len(arguments) == 1:
        wanted = (1 << _width(arguments[0])[1]) - 1 if name == "is_ones" else 0
        return _bits(arguments[0], parameter) == wanted
    compare = _COMPARISONS.get(name.removeprefix("bit_count_"))
    if compare is None or len(arguments) != 2 or not isinstance(arguments[1], int):
        known = [
            "and",
            "bit_clear",
            "bit_count_eq",
            "bit_set",
            *_COMPARISONS,
            "is_ones",
            "is_zeros",
            "not",
            "or",
            "true",
        ]
        raise GrammarError(f"Lark grammar: %if: {name}: expected one of {', '.join(known)} with its arguments")
    bits = _bits(arguments[0], parameter)
    return compare(bits.bit_count() if name.startswith("bit_count_") else bits, arguments[1])
