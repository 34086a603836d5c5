"""Actual values for lazy ones, anywhere in plain data.

`value` waits for everything inside an object in one graph break. It looks into lists, tuples, sets, dictionaries, dataclasses and pydantic
models, and returns the object itself where nothing in it is lazy.
"""

from __future__ import annotations

import copy
import dataclasses
import sys
from collections.abc import Callable, Iterable
from typing import Any

from rtlang.contract.errors import TraceError
from rtlang.lang.lazy_values.values import Value, ValueSource, user_location
from rtlang.lang.program_state.body import current_state
from rtlang.lang.program_state.expr import Expr
from rtlang.lang.program_state.state import record_of

MAX_DEPTH = 200
"""Levels of nesting in data that may hold lazy values."""


def value(item: Any) -> Any:
    """`item` with every lazy value in it, at any depth, replaced by the actual one. A graph break at most, however many values there are.

    In an `async def` program it returns a coroutine: write `await rt.value(...)`.

    Raises:
        TraceError: the graph is recorded ahead of time, or `item` is an expression that was not appended, or contains itself.
        RtlangError: the error of a failed generation.
    """
    if isinstance(item, Expr):
        raise TraceError(
            "rt.value() got a generation that is not part of a sequence yet: append it with s += ..., then read s[name]",
            user_location(),
        )
    state = current_state()
    found = _lazy_in(item)
    if (state is not None and record_of(state).recording.is_async) or any(each.is_async for each in _needs(found)):
        return _value_async(item, found, user_location())
    for source, node_ids in _needs(found).items():
        source.require(node_ids, "rt.value()", _named(found))
    return deep_real(item)


async def _value_async(item: Any, found: list[Value], location: str) -> Any:
    for source, node_ids in _needs(found).items():
        await source.require_async(node_ids, _named(found), location)
    return deep_real(item)


def _needs(found: list[Value]) -> dict[ValueSource, tuple[int, ...]]:
    """The nodes that these values need, by recording."""
    needed: dict[ValueSource, dict[int, None]] = {}
    for each in found:
        if each._rt_source is not None:
            needed.setdefault(each._rt_source, {}).update(dict.fromkeys(each._rt_needs))
    return {source: tuple(node_ids) for source, node_ids in needed.items()}


def _named(found: list[Value]) -> str:
    names = list(dict.fromkeys(each._rt_what for each in found))
    return ", ".join(names[:5]) + (f" and {len(names) - 5} others" if len(names) > 5 else "")


def deep_real(item: Any) -> Any:
    """`item` with each `Value` in it replaced by its actual value, one after the other.

    Raises:
        TraceError: `item` contains itself, or is nested more than MAX_DEPTH deep.
    """
    return _real(item, 0)


def returned_value(item: Any, is_inside: Callable[[Iterable[int]], bool]) -> Any:
    """What a program has returned, with actual values. `is_inside` tells whether nodes are inside of branches and loops.

    Raises:
        TraceError: as `deep_real`; also, it has values of generations inside a branch or loop, of which there may be none or many.
        RtlangError: the error of a failed generation.
    """
    inside = [each for each in _lazy_in(item) if is_inside(each._rt_needs)]
    if inside:
        raise TraceError(
            f"the program returns {_named(inside)}, generated inside a branch or loop of the graph; return it from the branch, and use the "
            "value of rt.switch or rt.repeat, or read the result of the run"
        )
    return deep_real(item)


def _real(item: Any, depth: int) -> Any:
    if isinstance(item, Value):
        return _real(item._rt_real("the end of the program"), depth)
    parts = _parts(item, depth)
    if parts is None:
        return item
    real = [_real(each, depth + 1) for each in parts.items]
    return item if all(a is b for a, b in zip(parts.items, real, strict=True)) else parts.rebuild(real)


def _lazy_in(item: Any) -> list[Value]:
    found: list[Value] = []
    todo = [(item, 0)]
    while todo:  # no recursive closure: it would keep the values alive until the next collection
        each, depth = todo.pop()
        if isinstance(each, Value):
            found.append(each)
        elif (parts := _parts(each, depth)) is not None:
            todo.extend((inner, depth + 1) for inner in reversed(parts.items))
    return found


@dataclasses.dataclass(frozen=True, slots=True)
class _Parts:
    """The items of a container, and a function that makes a copy of it with other items."""

    items: list[Any]
    rebuild: Callable[[list[Any]], Any]


def _parts(item: Any, depth: int) -> _Parts | None:
    """The items of a container that may hold lazy values; None for everything else."""
    kind = type(item)
    if kind in (str, int, float, bool, bytes, type(None)):
        return None
    if depth > MAX_DEPTH:
        raise TraceError(
            f"the value contains itself or is nested too deeply: more than {MAX_DEPTH} levels", user_location()
        )
    if isinstance(item, dict):
        return _Parts([*item, *item.values()], lambda real: _filled_dict(item, real))
    if isinstance(item, list):
        return _Parts(list(item), lambda real: _filled(item, real))
    if isinstance(item, tuple):
        return _Parts(list(item), lambda real: tuple(real) if kind is tuple else _of_tuple(kind, real))
    if isinstance(item, (set, frozenset)):
        return _Parts(list(item), kind)
    if dataclasses.is_dataclass(item) and not isinstance(item, type):
        names = [field.name for field in dataclasses.fields(item) if hasattr(item, field.name)]
        return _Parts([getattr(item, name) for name in names], lambda real: _changed(item, names, real))
    if _is_model(kind):
        given = {**vars(item), **(item.__pydantic_extra__ or {})}
        return _Parts(list(given.values()), lambda real: item.model_copy(update=dict(zip(given, real, strict=True))))
    return None


def _filled_dict(item: dict[Any, Any], real: list[Any]) -> dict[Any, Any]:
    made = {} if type(item) is dict else copy.copy(item)
    made.clear()
    made.update(zip(real[: len(item)], real[len(item) :], strict=True))
    return made


def _filled(item: list[Any], real: list[Any]) -> list[Any]:
    if type(item) is list:
        return real
    made = copy.copy(item)
    made[:] = real
    return made


def _of_tuple(kind: type[Any], real: list[Any]) -> Any:
    return kind._make(real) if hasattr(kind, "_make") else kind(real)  # named tuples have _make


def _changed(item: Any, names: Iterable[str], real: list[Any]) -> Any:
    made = copy.copy(item)
    for name, each in zip(names, real, strict=True):
        object.__setattr__(made, name, each)  # frozen dataclasses too
    return made


def _is_model(kind: type[Any]) -> bool:
    models = sys.modules.get("pydantic")  # a model exists only where its module was imported
    return models is not None and issubclass(kind, models.BaseModel)
