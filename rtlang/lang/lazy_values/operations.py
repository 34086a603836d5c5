"""Pure operations on values that do not exist yet: which of them a graph computes, and as what.

A `Term` is an expression of operands and functions of `contract.pure_functions`; together with the kind of its value it is a `Lazy`. Each
function here returns the `Lazy` of an operation's result, or None if the graph cannot compute the same result as Python.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rtlang.contract.request_graph import Const, Operand, Part, RoleEnd, RoleStart, TokenIds
from rtlang.lang.output_types.kinds import (
    ANY,
    BOOL,
    FLOAT,
    INT,
    NULL,
    NUMBER,
    STR,
    Kind,
    Listed,
    Mapped,
    NullableKind,
    Reading,
    Record,
    Scalar,
)


@dataclass(frozen=True, slots=True)
class Operation:
    """A function of the table applied to terms."""

    function: str
    args: tuple[Term, ...]

    @property
    def is_too_deep(self) -> bool:
        """Whether it has more than MAX_DEPTH operations within each other."""
        depth, level = 0, [self]
        while level and depth <= MAX_DEPTH:
            depth += 1
            level = [arg for each in level for arg in each.args if type(arg) is Operation]
        return depth > MAX_DEPTH


MAX_DEPTH = 50
"""Operations within each other that are recorded as one expression; deeper ones are computed by Python."""

Term = Operand | Operation


@dataclass(frozen=True, slots=True)
class Lazy:
    """A value that a graph can compute: its kind and its term.

    Attributes:
        is_certain: whether Python code would use it without a test before: it can neither be None nor be missing.
    """

    kind: Kind
    term: Term
    is_certain: bool = True


_METHODS: dict[str, tuple[int, int, Kind]] = {  # fewest and most arguments, and the kind of the result
    "strip": (0, 1, STR),
    "lstrip": (0, 1, STR),
    "rstrip": (0, 1, STR),
    "removeprefix": (1, 1, STR),
    "removesuffix": (1, 1, STR),
    "lower": (0, 0, STR),
    "upper": (0, 0, STR),
    "title": (0, 0, STR),
    "capitalize": (0, 0, STR),
    "replace": (2, 2, STR),
    "split": (0, 2, Listed(STR)),
    "splitlines": (0, 1, Listed(STR)),
    "startswith": (1, 1, BOOL),
    "endswith": (1, 1, BOOL),
}
_NUMBERS = (INT, FLOAT, BOOL, NUMBER)
_ORDERS = frozenset(("lt", "le", "gt", "ge"))
_MAX_INT = 1 << 63
_SURROGATE = re.compile("[\ud800-\udfff]")
_SIMPLE_READERS = frozenset(("parse_int", "parse_float", "parse_bool"))


def is_method(kind: Kind | None, name: str) -> bool:
    """Whether values of this kind have a method that a graph can compute."""
    return kind in (STR, NullableKind(STR)) and name in _METHODS


def is_shown(kind: Kind) -> bool:
    """Whether a value of this kind stands in text as `str` formats it."""
    return isinstance(kind.item if isinstance(kind, NullableKind) else kind, Scalar)


def shown(value: Lazy) -> Term:
    """The term of a value as a part of text; None in place of a value is an error."""
    return _present(value).term


def parsed(reading: Reading, text: Term) -> Lazy:
    """The value that a text spells."""
    term: Term = Operation(reading.function, (text, *map(Const, reading.args)))
    for step in reading.path:
        term = Operation("item", (term, Const(step)))
    return Lazy(reading.kind, term) if reading.function in _SIMPLE_READERS else _read(reading.kind, term)


def constant(value: Any) -> Lazy | None:
    """A Python value that fits into every message."""
    match value:
        case str() if type(value) is str and (value.isascii() or not _SURROGATE.search(value)):
            return Lazy(STR, Const(value))
        case bool():
            return Lazy(BOOL, Const(value))
        case int() if type(value) is int and -_MAX_INT <= value < _MAX_INT:
            return Lazy(INT, Const(value))
        case float() if type(value) is float and math.isfinite(value):
            return Lazy(FLOAT, Const(value))
        case None:
            return Lazy(NULL, Const(None))
        case _:
            return None


def text_of_parts(parts: Sequence[Part]) -> Lazy | None:
    """The text that parts make."""
    operands: list[Term] = []
    for part in parts:
        if isinstance(part, (RoleStart, RoleEnd, TokenIds)):
            return None
        operands.append(Const(part) if isinstance(part, str) else part)
    if len(operands) == 1:
        return Lazy(STR, operands[0])
    return Lazy(STR, Operation("join", (Const(""), Operation("list", tuple(operands)))))


def method(value: Lazy, name: str, args: Sequence[Lazy | None]) -> Lazy | None:
    """A method of a string, with these positional arguments."""
    value = _present(value)
    fewest, most, kind = _METHODS[name]
    if not fewest <= len(args) <= most:
        return None
    terms: list[Term] = [value.term]
    for index, arg in enumerate(args):
        expected = {("split", 1): INT, ("splitlines", 0): BOOL}.get((name, index), STR)
        arg = None if arg is None else _present(arg)
        if arg is None or arg.kind != expected:
            return None
        terms.append(arg.term)
    return Lazy(kind, Operation(name, tuple(terms)))


def field(value: Lazy, name: str) -> Lazy | None:
    """An attribute of a model or dataclass."""
    value = _present(value)
    if isinstance(value.kind, Record) and not value.kind.by_key:
        return _of_record(value, name)
    return None


def item(value: Lazy, key: Lazy) -> Lazy | None:
    """An item of a string, a list, a dict or a TypedDict."""
    value, key = _present(value), _present(key)
    match value.kind:
        case Record(by_key=True) if isinstance(key.term, Const) and key.kind == STR:
            return _of_record(value, key.term.value)
        case Mapped(found) if found is not None and key.kind == STR:
            return _item(found, value, key)
        case Listed(found) if found is not None and key.kind in (INT, BOOL):
            return _item(found, value, key)
        case Scalar("str") if key.kind in (INT, BOOL):
            return Lazy(STR, Operation("item", (value.term, key.term)))
        case _:
            return None


def cut(value: Lazy, bounds: slice) -> Lazy | None:
    """A slice of a string or a list, with integers as bounds."""
    value, given = _present(value), (bounds.start, bounds.stop, bounds.step)
    if not (value.kind == STR or isinstance(value.kind, Listed)) or bounds.step == 0:
        return None
    if not all(each is None or (type(each) is int and abs(each) < _MAX_INT) for each in given):
        return None
    return Lazy(value.kind, Operation("slice", (value.term, *map(Const, given))))


def binary(name: str, left: Lazy, right: Lazy) -> Lazy | None:
    """An operator between two values, by its name in the `operator` module."""
    if name in ("eq", "ne"):
        are_plain = all(each.kind == NULL or is_shown(each.kind) for each in (left, right))
        is_test_for_none = NULL in (left.kind, right.kind)  # plain data is None where the Python value is
        return Lazy(BOOL, Operation(name, (left.term, right.term))) if are_plain or is_test_for_none else None
    left, right = _present(left), _present(right)
    both = (left.kind, right.kind)
    are_numbers, are_texts = all(each in _NUMBERS for each in both), both == (STR, STR)
    term = Operation(name, (left.term, right.term))
    if name in _ORDERS:
        return Lazy(BOOL, term) if are_numbers or are_texts else None
    if name == "add" and are_texts:
        return Lazy(STR, term)
    if are_numbers and name in ("add", "sub", "mul", "truediv", "floordiv", "mod"):
        return Lazy(_result(name, both), term)
    return None


def negative(value: Lazy) -> Lazy | None:
    """`-value`."""
    value = _present(value)
    if value.kind not in _NUMBERS:
        return None
    return Lazy(_result("neg", (value.kind,)), Operation("neg", (value.term,)))


def length(value: Lazy) -> Lazy | None:
    """`len(value)`, for the kinds whose number of items in JSON is that in Python."""
    value = _present(value)
    if value.kind == STR or isinstance(value.kind, (Listed, Mapped)):
        return Lazy(INT, Operation("len", (value.term,)))
    return None


def tool_text(value: Lazy) -> Lazy | None:
    """A value of any kind as the text of a tool's result."""
    return Lazy(STR, Operation("json_or_text", (value.term,))) if value.kind == ANY else None


def joined(separator: Lazy, items: Sequence[Lazy | None] | Lazy) -> Lazy | None:
    """`separator.join(...)` of scalars, or of a list of strings."""
    if separator.kind != STR:
        return None
    if isinstance(items, Lazy):
        is_list = isinstance(items.kind, Listed) and items.kind.item == STR
        return Lazy(STR, Operation("join", (separator.term, items.term))) if is_list else None
    terms = [shown(each) for each in items if each is not None and is_shown(each.kind)]
    if len(terms) != len(items):
        return None
    return Lazy(STR, Operation("join", (separator.term, Operation("list", tuple(terms)))))


def formatted(template: Lazy, values: Sequence[Lazy | None]) -> Lazy | None:
    """`template.format(*values)` of scalars, for templates without specifications; the caller checks these."""
    terms = [shown(each) for each in values if each is not None and is_shown(each.kind)]
    if len(terms) != len(values) or template.kind != STR:
        return None
    return Lazy(STR, Operation("format", (template.term, *terms)))


def _of_record(value: Lazy, name: str) -> Lazy | None:
    assert isinstance(value.kind, Record)
    found = value.kind.field(name)
    if found is None:
        return None
    default = () if found.default is None else (Const(found.default[0]),)
    term = Operation("field", (value.term, Const(found.key), *default))
    lazy = _read(found.kind, term)
    return replace(lazy, is_certain=found.is_certain and not isinstance(found.kind, NullableKind))


def _item(kind: Kind, value: Lazy, key: Lazy) -> Lazy:
    lazy = _read(kind, Operation("item", (value.term, key.term)))
    return replace(lazy, is_certain=not isinstance(kind, NullableKind))


def _present(value: Lazy) -> Lazy:
    """A value that may be None as one that is not: None is an error."""
    if not isinstance(value.kind, NullableKind) or value.kind.item is None:
        return value
    return _read(value.kind.item, Operation("present", (value.term,)))


def _read(kind: Kind, term: Term) -> Lazy:
    """A value read from JSON, where 3 may be a float and 3.0 an int."""
    return Lazy(kind, Operation(kind.name, (term,)) if kind in (INT, FLOAT) and isinstance(kind, Scalar) else term)


def _result(name: str, kinds: tuple[Kind, ...]) -> Kind:
    """The kind of the number that an operator gives."""
    if name == "truediv" or FLOAT in kinds:
        return FLOAT
    return NUMBER if NUMBER in kinds else INT
