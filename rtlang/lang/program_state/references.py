"""Functions of programs by reference, as pickles hold them: the module and the qualified name under which the program is found.

`pickle` pickles a function by its name, and finds the program there instead of the function. So programs are pickled as their function's
name, their bound arguments and their options.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from types import FunctionType
from typing import Any


@dataclass(frozen=True, slots=True)
class FunctionReference:
    """A function of a module: under its qualified name there is the function, or a program or a program method made from it."""

    module: str
    qualname: str

    def function(self) -> Callable[..., Any]:
        """The function.

        Raises:
            ImportError, AttributeError: the module or the name does not exist.
        """
        *outer, name = self.qualname.split(".")
        owner: Any = import_module(self.module)
        for each in outer:
            owner = getattr(owner, each)
        found = inspect.getattr_static(owner, name)
        if isinstance(found, FunctionType):
            return found
        wrapped = getattr(found, "__wrapped__", None)
        if not callable(wrapped):
            raise AttributeError(f"{self.module}:{self.qualname} is no program, but {found!r}")
        return wrapped  # type: ignore[no-any-return]


def reference_to(function: Callable[..., Any]) -> FunctionReference | Callable[..., Any]:
    """A reference to a function; another callable itself, such as a partial function, which may be pickled as others are.

    Raises:
        TypeError: the function is not found by its name, because it was defined inside a function or is a lambda.
    """
    if not isinstance(function, FunctionType):
        return function
    reference = FunctionReference(function.__module__, function.__qualname__)
    try:
        found = reference.function()
    except (ImportError, AttributeError):
        found = None
    if found is not function:
        raise TypeError(
            f"program {function.__name__}: {reference.module}:{reference.qualname} is not found by this name; only programs at the top "
            "level of a module or of a class can be pickled"
        )
    return reference


def is_by_value() -> bool:
    """Whether an object is being pickled by cloudpickle or dill, which pickle functions by value where a name is not enough."""
    frame = sys._getframe(1).f_back
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if "cloudpickle" in module or module.partition(".")[0] == "dill":
            return True
        frame = frame.f_back
    return False
