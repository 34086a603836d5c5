"""Refuses tests that a lazy value cannot answer: `is`, and patterns of `match` that look at its class.

`s["x"] is None` would compare the lazy value itself, silently False whatever is generated. Python gives no way to answer it, so the code
that reads a value is followed (`value_flow`) and such a test is refused, with the line and what to write, when the value is read. A test
whose answer is right is left alone: a generated text is never None, so `x is None` may ask whether `x` was assigned at all.
"""

from __future__ import annotations

import enum
import sys
import types
import typing
from types import CodeType, FrameType
from typing import Any

from rtlang.contract.errors import TraceError
from rtlang.contract.request_graph import Ref
from rtlang.lang.lazy_values.value_flow import MAX_CODES, IdentityTest, fate_of, fate_of_parameter
from rtlang.lang.output_types.kinds import ANY, BOOL, NullableKind

_clean: dict[int, tuple[CodeType, set[int]]] = {}
"""The places that read values and give them to no such test: offsets by the id of the code, which is kept with it."""


def check_tests(value: Any, frame: FrameType) -> None:
    """Refuse wrong tests of a value, or of the values in a list, which the current instruction of `frame` gets.

    Raises:
        TraceError: names the line of the test and what to write.
    """
    code, offset = frame.f_code, frame.f_lasti
    clean = _clean.get(id(code))
    if clean is not None and offset in clean[1]:
        return
    if frame.f_globals.get("__name__", "").partition(".")[0] == "rtlang":
        return
    own, of_items = fate_of(code, offset).tests, fate_of(code, offset, is_list=True).tests
    if not (own or of_items):
        if clean is None:
            if len(_clean) >= MAX_CODES:
                _clean.clear()
            clean = _clean[id(code)] = code, set()
        clean[1].add(offset)
        return
    if isinstance(value, list):
        for each in value:
            _refuse(each, of_items, code)
    else:
        _refuse(value, own, code)


def check_read(value: Any) -> Any:
    """`check_tests` for the code that calls the caller of this function; returns the value."""
    check_tests(value, sys._getframe(2))
    return value


def check_argument(value: Any, code: CodeType, name: str) -> None:
    """Refuse wrong tests of a value that a function gets as the parameter `name`. Raises as `check_tests`."""
    if _is_lazy(value):
        _refuse(value, fate_of_parameter(code, name).tests, code)


def _is_lazy(value: object) -> bool:
    """Whether an object is a `Value`, whose module imports this one."""
    return hasattr(type(value), "_rt_what")


def _refuse(value: Any, tests: tuple[IdentityTest, ...], code: CodeType) -> None:
    if not tests or not _is_lazy(value):
        return
    for test in tests:
        hint = _hint(test, value)
        if hint is not None:
            raise TraceError(hint, f"{code.co_filename}:{test.line}")


def _hint(test: IdentityTest, value: Any) -> str | None:
    """The error of a test whose answer may be wrong; None if it is right."""
    is_async = value._rt_source is not None and value._rt_source.is_async
    forced = "await rt.value(...)" if is_async else "rt.value(...)"
    if test.operator == "match":
        return f"a pattern of `match` cannot see {value._rt_what}, which is generated later: write `match {forced}:`"
    if test.constant is not None:
        other, is_wrong = repr(test.constant[0]), _may_be(value, test.constant[0])
    else:
        found = next((each for each in _enums(value) if test.name in each.__members__), None)
        other, is_wrong = ("", False) if found is None else (f"{found.__name__}.{test.name}", True)
    if not is_wrong:
        return None
    return (
        f"a test with `is` cannot see {value._rt_what}, which is generated later: write `== {other}` or `!= {other}`, or test "
        f"`{forced} is {other}`"
    )


def _may_be(value: Any, constant: object) -> bool:
    """Whether the generated value may be identical with a constant."""
    if constant is not None and not isinstance(constant, bool):
        return constant is not Ellipsis  # a literal: its identity has no meaning
    if value._rt_is_text:
        return False
    kinds = (types.NoneType,) if constant is None else (bool,)
    return any(each in (*kinds, Any, object) or each is constant for each in _leaves(value))


def _enums(value: Any) -> list[type[enum.Enum]]:
    if value._rt_is_text:
        return []
    types_of_items = [type(each) if isinstance(each, enum.Enum) else each for each in _leaves(value)]
    return [each for each in types_of_items if isinstance(each, type) and issubclass(each, enum.Enum)]


def _leaves(value: Any) -> list[Any]:
    """The types, or members of a `Literal`, of which the generated value is one; Any where that is not known."""
    parts, source = value._rt_parts, value._rt_source
    ref = parts[0] if parts is not None and len(parts) == 1 else None
    output_type = source.type_of(ref) if source is not None and isinstance(ref, Ref) else None
    if output_type is not None and output_type.python_type is not None:
        return _alternatives(output_type.python_type)
    lazy = value._rt_form()
    if lazy is None:
        return [Any] if parts is not None else []  # messages, metadata and trees are not None
    if isinstance(lazy.kind, NullableKind):
        return [types.NoneType, *([bool] if lazy.kind.item == BOOL else [])]
    return [Any] if lazy.kind == ANY else [bool] if lazy.kind == BOOL else []


def _alternatives(given: Any) -> list[Any]:
    origin = typing.get_origin(given)
    if origin in (typing.Union, types.UnionType):
        return [leaf for each in typing.get_args(given) for leaf in _alternatives(each)]
    if origin is typing.Annotated:
        return _alternatives(typing.get_args(given)[0])
    if origin is typing.Literal:
        return [types.NoneType if each is None else each for each in typing.get_args(given)]
    if hasattr(given, "__value__"):  # type X = ...
        return _alternatives(given.__value__)
    if given is None:
        return [types.NoneType]
    found = given if origin is None else origin
    return [found if isinstance(found, type) else Any]
