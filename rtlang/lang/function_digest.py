"""Digests of functions: what tells pure functions of one name apart.

Functions of the same name may be defined anew for each row of a batch, with other values around them, and may be edited between two
runs over one recording. The digest covers the code, the defaults, and the plain values that the function refers to outside of itself in
its closure; of other objects only their types. Functions that it calls by a global name are not looked into.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable, Mapping
from types import CodeType
from typing import Any

_MAX_DEPTH = 8
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def function_digest(functions: Iterable[Callable[..., Any]]) -> str:
    """A digest of some functions, as 16 hexadecimal digits; the same in every process with one version of Python."""
    described = repr([_function(each, 0) for each in functions])
    return hashlib.sha256(described.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _function(function: Any, depth: int) -> Any:
    if isinstance(function, functools.partial):
        given = _value(function.args, depth + 1), _value(function.keywords, depth + 1)
        return "partial", _function(function.func, depth + 1), given
    owner = _value(getattr(function, "__self__", None), depth + 1)
    inner = getattr(function, "__func__", function)
    code = getattr(inner, "__code__", None)
    if not isinstance(code, CodeType):
        return _type_name(function), owner
    cells = []
    for cell in inner.__closure__ or ():
        try:
            cells.append(_value(cell.cell_contents, depth + 1))
        except ValueError:  # not assigned yet
            cells.append(None)
    defaults = _value(inner.__defaults__, depth + 1), _value(inner.__kwdefaults__, depth + 1)
    return _code(code), cells, defaults, owner


def _code(code: CodeType) -> Any:
    """The instructions and constants of code, without lines and names of files."""
    constants = [_code(each) if isinstance(each, CodeType) else _value(each, 1) for each in code.co_consts]
    return code.co_code.hex(), code.co_names, constants


def _value(value: Any, depth: int) -> Any:
    if isinstance(value, _PLAIN):
        return value if type(value) in _PLAIN else (_type_name(value), repr(value))
    if depth >= _MAX_DEPTH:
        return _type_name(value)
    if isinstance(value, (list, tuple)):
        return _type_name(value), [_value(each, depth + 1) for each in value]
    if isinstance(value, (set, frozenset)):
        return _type_name(value), sorted(repr(_value(each, depth + 1)) for each in value)
    if isinstance(value, Mapping) and type(value) is dict:
        return "dict", [(_value(key, depth + 1), _value(each, depth + 1)) for key, each in value.items()]
    if callable(value) and not isinstance(value, type):
        return _function(value, depth + 1)
    return _type_name(value if isinstance(value, type) else type(value))


def _type_name(value: Any) -> str:
    kind = value if isinstance(value, type) else type(value)
    return f"{kind.__module__}.{kind.__qualname__}"
