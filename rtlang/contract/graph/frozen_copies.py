"""Copies of frozen dataclasses with other values, where checking or rebuilding them would cost too much."""

from __future__ import annotations

from typing import Any, TypeVar

_T = TypeVar("_T", bound=Any)


def changed(item: _T, **values: Any) -> _T:
    """A copy of an instance of a frozen dataclass with slots. The values are not checked: cheaper than `dataclasses.replace`."""
    kind = type(item)
    copy = object.__new__(kind)
    for name in kind.__slots__:
        object.__setattr__(copy, name, values[name] if name in values else getattr(item, name))
    return copy
