"""Typed access to the fields of a wire message. Each function returns the field, or raises a ProtocolError that names it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar

from rtlang.contract.errors import ProtocolError, RtlangError

MAX_ID = (1 << 53) - 1
_T = TypeVar("_T")
_P = ParamSpec("_P")


def check_int(message: Mapping[str, Any], name: str, low: int, high: int) -> int:
    """The field as an integer from `low` to `high`."""
    value = message.get(name)
    if type(value) is not int or not low <= value <= high:
        raise _wrong(name, value, f"an integer from {low} to {high}")
    return value


def check_float(message: Mapping[str, Any], name: str) -> float:
    """The field as a float; integers are converted."""
    value = message.get(name)
    if type(value) is not float and type(value) is not int:
        raise _wrong(name, value, "a number")
    return float(value)


def check_str(message: Mapping[str, Any], name: str) -> str:
    """The field as a string."""
    value = message.get(name)
    if type(value) is not str:
        raise _wrong(name, value, "a string")
    return value


def check_list(message: Mapping[str, Any], name: str) -> list[Any]:
    """The field as a list."""
    value = message.get(name)
    if type(value) is not list:
        raise _wrong(name, value, "a list")
    return value


def check_ints(message: Mapping[str, Any], name: str) -> tuple[int, ...]:
    """The field as a tuple of integers."""
    values = check_list(message, name)
    if not all(type(value) is int for value in values):
        raise _wrong(name, values, "a list of integers")
    return tuple(values)


def check_map(message: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The field as a map."""
    value = message.get(name)
    if type(value) is not dict:
        raise _wrong(name, value, "a map")
    return value


def error_facts(message: Mapping[str, Any]) -> dict[str, Any]:
    """The field `facts` as attributes that an error may have; empty if it is missing."""
    return {
        name: value
        for name, value in (optional(check_map, message, "facts") or {}).items()
        if name.isidentifier() and not name.startswith("_") and name != "message" and not hasattr(RtlangError, name)
    }


def optional(
    check: Callable[Concatenate[Mapping[str, Any], str, _P], _T],
    message: Mapping[str, Any],
    name: str,
    *args: _P.args,
    **kwargs: _P.kwargs,
) -> _T | None:
    """The result of `check`, or None if the field is missing or None."""
    return None if message.get(name) is None else check(message, name, *args, **kwargs)


def _wrong(name: str, value: object, allowed: str) -> ProtocolError:
    if value is None:
        return ProtocolError(f"{name} is missing: expected {allowed}", param=name)
    return ProtocolError(f"{name} = {repr(value)[:80]}: expected {allowed}", param=name)
