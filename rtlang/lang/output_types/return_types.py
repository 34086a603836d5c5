"""Values of host calls as the types that their functions declare.

A graph holds plain data, also where a recording, a journal or another process answers a call. So a value is made from plain data by the
annotation of the function, as if the function had returned it just now.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import json
import typing
from collections.abc import Callable
from typing import Any

Reader = Callable[[Any], Any]


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
        annotation = typing.get_type_hints(plain, include_extras=True).get("return")
        return _reader(annotation) if _is_made(annotation) else None
    except Exception:  # annotations are any Python: names that do not exist, types that pydantic does not know
        return None


def _is_made(annotation: Any) -> bool:
    """Whether a type holds objects that plain data loses: models, dataclasses, enums, tuples."""
    if isinstance(annotation, type) and not typing.get_args(annotation):
        is_object = hasattr(annotation, "model_validate_json") or dataclasses.is_dataclass(annotation)
        return is_object or issubclass(annotation, (enum.Enum, tuple))
    return typing.get_origin(annotation) is tuple or any(map(_is_made, typing.get_args(annotation)))


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
