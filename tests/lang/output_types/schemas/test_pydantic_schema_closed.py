"""Objects of Python types have their declared keys, each at most once, at every depth; `extra="allow"` opens a type.

The texts are fed byte by byte to the matcher that constrains generations.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NotRequired

import pytest
from pydantic import BaseModel, ConfigDict, RootModel
from typing_extensions import TypedDict

import rtlang as rt
from rtlang.lang.output_types.types import output_type
from rtlang_grammars import Constraint, RtlangBackend, Vocabulary


@functools.cache
def backend() -> RtlangBackend:
    tokens = (*(bytes([byte]) for byte in range(256)), b"<end>")
    return RtlangBackend.create(Vocabulary(tokens, frozenset({256}), frozenset({256}), 257), allow_checked=True)


def allows(constraint: Constraint | None, text: str) -> bool:
    assert constraint is not None
    matcher = backend().compile(constraint).matcher()
    return all(matcher.accept_token(byte) for byte in text.encode()) and matcher.is_accepting


class City(TypedDict):
    name: str
    size: NotRequired[int]


@dataclass
class Point:
    x: int
    city: City


class Inner(BaseModel):
    point: Point


class Outer(BaseModel):
    inner: Inner
    listed: list[Point] = []


class Open(BaseModel, extra="allow"):
    a: int


class OpenDict(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    a: int


class Holder(BaseModel):
    open: Open


class Free(RootModel[dict[str, int]]): ...


def function(a: int, b: str = "") -> None: ...


POINT = '{"x":1,"city":{"name":"y"}}'
ALLOWED: list[tuple[Any, str]] = [
    (Outer, '{"inner":{"point":' + POINT + '},"listed":[' + POINT + "," + POINT + "]}"),
    (City, '{"name":"y","size":3}'),
    (Open, '{"a":1,"b":[2]}'),
    (OpenDict, '{"a":1,"b":2}'),
    (Holder, '{"open":{"a":1,"more":null}}'),
    (Free, '{"any":1,"key":2}'),
    (dict[str, Point], '{"any":' + POINT + "}"),
    (function, '{"a":1,"b":"c"}'),
]
REFUSED: list[tuple[Any, str]] = [
    (Outer, '{"inner":{"point":' + POINT + '},"more":1}'),
    (Outer, '{"inner":{"point":' + POINT + ',"more":1}}'),
    (Outer, '{"inner":{"point":{"x":1,"city":{"name":"y"},"more":1}}}'),
    (Outer, '{"inner":{"point":{"x":1,"city":{"name":"y","more":1}}}}'),
    (Outer, '{"inner":{"point":' + POINT + '},"listed":[{"x":1,"city":{"name":"y"},"z":2}]}'),
    (Holder, '{"open":{"a":1},"more":null}'),
    (dict[str, Point], '{"any":{"x":1,"city":{"name":"y"},"z":1}}'),
    (function, '{"a":1,"c":2}'),
]
REPEATED: list[tuple[Any, str]] = [
    (City, '{"name":"y","name":"z"}'),
    (City, '{"name":"y","size":3,"name":"z"}'),
    (City, '{"name":"y","n\\u0061me":"z"}'),
    (Outer, '{"inner":{"point":' + POINT + '},"listed":[],"inner":{"point":' + POINT + "}}"),
    (Outer, '{"inner":{"point":{"x":1,"x":2,"city":{"name":"y"}}}}'),
    (Open, '{"a":1,"a":2}'),
    (Open, '{"a":1,"b":2,"b":3}'),
    (Free, '{"any":1,"any":2}'),
    (function, '{"a":1,"a":2}'),
]


@pytest.mark.parametrize(("kind", "text"), ALLOWED)
def test_declared_keys_and_those_of_open_types_are_allowed(kind: Any, text: str) -> None:
    assert allows(output_type(type=kind).constraint, text)


@pytest.mark.parametrize(("kind", "text"), [*REFUSED, *REPEATED])
def test_undeclared_and_repeated_keys_are_refused(kind: Any, text: str) -> None:
    assert not allows(output_type(schema=kind).constraint, text)


@pytest.mark.parametrize("style", [{}, {"whitespace": "compact", "order": "declared"}, {"separators": (",", ":")}])
def test_styles_keep_objects_closed(style: Any) -> None:
    constraint = rt.json_text(City, **style).constraint
    assert allows(constraint, '{"name":"y","size":3}')
    assert not allows(constraint, '{"name":"y","more":3}')
    assert not allows(constraint, '{"name":"y","name":"z"}')


def test_a_schema_of_ones_own_stays_open() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    assert allows(output_type(schema=schema).constraint, '{"a":1,"b":2}')
