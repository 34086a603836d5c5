"""Gives one module other versions of the functions that its class finds in its file.

The library's recurrent layers call functions of their file by name: a convolution, a scan. A subclass is made whose methods are the same
code over other globals, and the module becomes an instance of it. The class, its file and every other model in the process stay as they
are.
"""

from __future__ import annotations

import dis
import inspect
import itertools
from collections.abc import Iterator, Mapping
from types import FunctionType
from typing import Any


def methods_of(kind: type) -> Iterator[tuple[str, FunctionType]]:
    """The functions that a class of the library and its bases define, without decorators; the nearest of each name."""
    seen: set[str] = set()
    for base in kind.__mro__:
        if not base.__module__.startswith("transformers."):
            continue
        for name, value in vars(base).items():
            function = _undecorated(value)
            if function is not None and name not in seen:
                seen.add(name)
                yield name, function


def names_used(kind: type) -> set[str]:
    """Names of attributes and globals that the methods of a class of the library use."""
    return {name for _, function in methods_of(kind) for name in function.__code__.co_names}


def weights_read(kind: type) -> set[str]:
    """Names of modules inside modules of this class whose `weight` its methods read, as in `self.name.weight`."""
    found: set[str] = set()
    for _, function in methods_of(kind):
        for first, second in itertools.pairwise(dis.get_instructions(function)):
            if second.opname == "LOAD_ATTR" and second.argval == "weight" and first.opname == "LOAD_ATTR":
                found.add(first.argval)
    return found


def with_functions(kind: type, functions: Mapping[str, Any], **members: Any) -> type:
    """A subclass of `kind` whose methods find `functions` in the place of the globals of these names.

    Args:
        members: further members of the subclass; a method that it hides is under its name with `stock_` before it.
    """
    made: dict[str, Any] = {}
    for name, function in methods_of(kind):
        if name.startswith("__"):
            continue
        places = {**function.__globals__, **functions}
        copy = FunctionType(function.__code__, places, name, function.__defaults__, function.__closure__)
        copy.__kwdefaults__ = function.__kwdefaults__
        is_static = isinstance(inspect.getattr_static(kind, name), staticmethod)
        made[f"stock_{name}" if name in members else name] = staticmethod(copy) if is_static else copy
    return type(kind.__name__, (kind,), {"__module__": kind.__module__, "__doc__": kind.__doc__, **made, **members})


def _undecorated(value: Any) -> FunctionType | None:
    if isinstance(value, staticmethod):
        value = value.__func__
    if not isinstance(value, FunctionType):
        return None
    found = inspect.unwrap(value)
    return found if isinstance(found, FunctionType) else None
