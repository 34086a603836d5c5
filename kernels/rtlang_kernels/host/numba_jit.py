"""Compilation of host functions with numba.

Compiled functions release the interpreter lock and are cached on disk if a cache directory is writable, otherwise in memory. Without a
usable numba, functions stay plain Python: planning for a GPU still works, but slowly; the CPU backend does not work.

Floating point: with `is_exact`, nothing is fused or reordered, as sampling requires. Otherwise sums may be reordered and multiply-adds
fused, but infinities and NaN keep their meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

try:
    import numba
except ImportError:  # not installed, or incompatible with this numpy
    numba = None

Function = TypeVar("Function", bound=Callable[..., Any])

HAS_NUMBA = numba is not None
RELAXED = {"reassoc", "contract", "nsz", "arcp"}


def kernel(*, is_exact: bool = False, inline: bool = False) -> Callable[[Function], Function]:
    """Return a decorator that compiles a function on its first call per signature."""
    options: dict[str, Any] = {"nogil": True, "fastmath": False if is_exact else RELAXED, "error_model": "numpy"}
    if inline:
        options["inline"] = "always"

    def decorate(function: Function) -> Function:
        if not HAS_NUMBA:
            return function
        try:
            compiled = numba.njit(cache=not inline, **options)(function)
        except RuntimeError:  # numba found no writable cache directory
            compiled = numba.njit(**options)(function)
        return cast(Function, compiled)

    return decorate
