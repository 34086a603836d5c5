"""Frozen data classes as maps of plain values, and back: for HTTP, and for an engine in another process.

A field holds a number, a text, a boolean, None where its type allows that, or a tuple of such data classes. A named tuple stays an array.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

_T = TypeVar("_T")


def record_to_plain(record: Any) -> dict[str, Any]:
    """The record as a map under the names of its fields."""
    kind: Any = type(record)
    plain = {name: getattr(record, name) for name in _names(kind)}
    for name in _lists(kind):
        plain[name] = [record_to_plain(each) if is_dataclass(each) else each for each in plain[name]]
    return plain


def record_from_plain(kind: type[_T], plain: Any) -> _T:
    """The record of a map that `record_to_plain` made; unknown fields, of a later version, are ignored.

    Raises:
        ValueError: a field is missing or has another type; names it.
    """
    if not isinstance(plain, Mapping):
        raise ValueError(f"expected a map for {kind.__name__}, got {plain!r}")
    record: Any = kind
    hints, lists = _hints(record), _lists(record)
    return kind(**{name: _value(name, hints[name], plain.get(name), lists) for name in _names(record)})


def _value(name: str, hint: Any, value: Any, lists: Mapping[str, type]) -> Any:
    if name in lists:
        if not isinstance(value, list | tuple):
            raise ValueError(f"{name} = {value!r}: expected an array")
        item = lists[name]
        if is_dataclass(item):
            return tuple(record_from_plain(item, each) for each in value)
        return tuple(_named_tuple(name, item, each) for each in value)
    allowed = get_args(hint) or (hint,)
    if float in allowed and type(value) is int:
        value = float(value)
    if type(value) not in allowed:
        names = " or ".join(getattr(each, "__name__", str(each)) for each in allowed)
        raise ValueError(f"{name} = {value!r}: expected {names}")
    return value


def _named_tuple(name: str, kind: type, plain: Any) -> Any:
    kinds = list(_hints(kind).values())
    if not isinstance(plain, list | tuple) or [type(each) for each in plain] != kinds:
        raise ValueError(f"{name}: {plain!r}: expected an array of {', '.join(_hints(kind))}")
    return kind(*plain)


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(item.name for item in fields(kind))


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


@cache
def _lists(kind: Any) -> dict[str, type]:
    """The item type of each field that holds a tuple."""
    return {name: get_args(hint)[0] for name, hint in _hints(kind).items() if get_origin(hint) is tuple}
