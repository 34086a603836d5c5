"""Values that tools return, as plain data and back: a durable run keeps the data, and makes the value again from the annotation."""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable
from typing import Any

from rtlang.contract.graph.host_calls import to_plain
from rtlang.contract.graph.value_size import check_plain

_PLAIN = frozenset((str, int, float, bool, type(None), dict, list, object, Any, inspect.Signature.empty))


def plain_of(value: Any) -> Any:
    """A value as plain data: dates, sets, bytes and others in the form of JSON.

    Raises:
        ValueError: it has none.
    """
    plain = to_plain(value)
    if check_plain(plain) is None:
        return plain
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(plain)


def reader_of_result(function: Callable[..., Any] | None) -> Callable[[Any], Any]:
    """Makes the value of a function from its plain data, of the annotated type. Data that does not fit stays as it is."""
    try:
        return _reader(function)
    except TypeError:  # not hashable
        return _reader.__wrapped__(function)


@functools.lru_cache(maxsize=256)
def _reader(function: Callable[..., Any] | None) -> Callable[[Any], Any]:
    given = _annotation(function)
    if given in _PLAIN or isinstance(given, str):
        return _same
    from pydantic import TypeAdapter

    try:
        adapter: TypeAdapter[Any] = TypeAdapter(given)
    except Exception:  # no type that pydantic knows: its values are plain data, or an error where they are made
        return _same

    def read(plain: Any) -> Any:
        try:
            return adapter.validate_python(plain)
        except ValueError:
            return plain

    return read


def _annotation(function: Callable[..., Any] | None) -> Any:
    if function is None:
        return Any
    while isinstance(function, functools.partial):
        function = function.func
    target = function if isinstance(function, (types.FunctionType, types.MethodType)) else type(function).__call__
    try:
        return typing.get_type_hints(target).get("return", Any)
    except Exception:  # names that are not defined
        return Any


def _same(plain: Any) -> Any:
    return plain
