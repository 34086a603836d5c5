"""Compilation of host functions with numba.

Compiled functions release the interpreter lock and are cached on disk if a cache directory is writable, otherwise in memory. Without a
usable numba, functions stay plain Python: planning for a GPU still works, but slowly; the CPU backend does not work.

Floating point: with `is_exact`, nothing is fused or reordered, as sampling requires. Otherwise sums may be reordered and multiply-adds
fused, but infinities and NaN keep their meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from types import FunctionType
from typing import Any, TypeVar, cast

import numpy as np

try:
    import numba
except ImportError:  # not installed, or incompatible with this numpy
    numba = None

Function = TypeVar("Function", bound=Callable[..., Any])

HAS_NUMBA = numba is not None
RELAXED = {"reassoc", "contract", "nsz", "arcp"}


def kernel(*, is_exact: bool = False, inline: bool = False) -> Callable[[Function], Function]:
    """Return a decorator that compiles a function on its first call per signature.

    The function may refer to constants of a function around it: numbers, texts, tuples of them, and other kernels.
    """
    options: dict[str, Any] = {"nogil": True, "fastmath": False if is_exact else RELAXED, "error_model": "numpy"}
    if inline:
        options["inline"] = "always"

    def decorate(function: Function) -> Function:
        if not HAS_NUMBA:
            return function
        function.__qualname__ += _suffix(cast(FunctionType, function))
        try:
            compiled = numba.njit(cache=not inline, **options)(function)
        except RuntimeError:  # numba found no writable cache directory
            compiled = numba.njit(**options)(function)
        return cast(Function, compiled)

    return decorate


def _suffix(function: FunctionType) -> str:
    """Distinguish functions that differ only in their constants.

    numba names machine code after the function and a number that counts within a process. Code that different processes cached on disk can
    therefore have equal names, and a process that loads both gets the first for either.
    """
    names, cells = function.__code__.co_freevars, function.__closure__ or ()
    if not names:
        return ""
    constants = [(name, cell.cell_contents) for name, cell in zip(names, cells, strict=True)]
    # `digest` is that of the sources, which is in the key of the cache already.
    text = ", ".join(f"{name}={_described(name, value)}" for name, value in constants if name != "digest")
    return f"_{blake2b(text.encode(), digest_size=8).hexdigest()}"


def _described(name: str, value: object) -> str:
    """A constant as a text that no other constant has."""
    if isinstance(value, (int, float, str, np.generic)):
        return repr(value)
    if isinstance(value, tuple):
        return f"({', '.join(_described(name, item) for item in value)})"
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    raise TypeError(f"{name} = {value!r}: expected a number, a text, a tuple of them, or a function")
