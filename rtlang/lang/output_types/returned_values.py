"""Values that functions and tools return, as plain data and back.

A graph holds plain data, also where a recording, a journal or another process answers a call. So a value is made again from plain data by
the annotation of its function, as if the function had returned it just now.
"""

from __future__ import annotations

import functools
import inspect
import json
import types
import typing
from collections.abc import Callable
from typing import Any

from rtlang.contract.graph.host_calls import to_plain
from rtlang.contract.graph.value_size import check_plain

Reader = Callable[[Any], Any]

_PLAIN = (str, int, float, bool, type(None), dict, list, object, Any, inspect.Signature.empty)
_CONTAINERS = (dict, list, typing.Union, types.UnionType, typing.Literal)


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


def return_reader(function: Callable[..., Any] | None) -> Reader | None:
    """Makes the value of a call from plain data; None if that is plain data of the declared type already, or no type is declared.

    Data that does not fit the declared type stays as it is.
    """
    while isinstance(function, functools.partial):
        function = function.func
    if function is None:
        return None
    plain = function if inspect.isroutine(function) else type(function).__call__
    try:
        annotation = typing.get_type_hints(plain, include_extras=True).get("return", Any)
        return None if _is_plain(annotation) else _reader(annotation)
    except Exception:  # annotations are any Python: names that do not exist, types that pydantic does not know
        return None


def _is_plain(annotation: Any) -> bool:
    """Whether plain data loses nothing of the values of a type: they are texts, numbers, and lists and dicts of those."""
    if any(annotation is each for each in _PLAIN):
        return True
    if hasattr(annotation, "__required_keys__"):  # a TypedDict, also of typing_extensions
        return all(map(_is_plain, typing.get_type_hints(annotation).values()))
    inner, origin = typing.get_args(annotation), typing.get_origin(annotation)
    if origin is typing.Literal:
        return all(any(type(each) is plain for plain in _PLAIN) for each in inner)
    return any(origin is each for each in _CONTAINERS) and all(map(_is_plain, inner))


@functools.lru_cache(maxsize=512)
def _reader(annotation: Any) -> Reader:
    from pydantic import TypeAdapter, ValidationError

    adapter = TypeAdapter(annotation)

    def read(plain: Any) -> Any:
        try:
            return adapter.validate_json(json.dumps(plain), by_name=True, by_alias=True)
        except (ValidationError, ValueError, TypeError):
            return plain

    return read
