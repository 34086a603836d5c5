"""How functions of the host are compiled.

`kernel` compiles with numba: without the interpreter lock while it runs, cached on disk where a cache directory can be written,
in memory otherwise. Where there is no numba that runs here the function stays plain Python: planning for a GPU then works too, only slowly;
the CPU's kernels do not.

Floating point: with `is_exact` nothing is fused or reordered, as sampling needs; otherwise sums may be reordered and multiply-adds
fused, but infinities and NaN keep their meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

try:
    import numba
except ImportError:  # it is missing, or does not take this numpy
    numba = None

Function = TypeVar("Function", bound=Callable[..., Any])

IS_COMPILED = numba is not None
RELAXED = {"reassoc", "contract", "nsz", "arcp"}


def kernel(*, is_exact: bool = False, inline: bool = False) -> Callable[[Function], Function]:
    """Decorator that compiles a function on its first call per signature."""
    options: dict[str, Any] = {"nogil": True, "fastmath": False if is_exact else RELAXED, "error_model": "numpy"}
    if inline:
        options["inline"] = "always"

    def decorate(function: Function) -> Function:
        if not IS_COMPILED:
            return function
        try:
            compiled = numba.njit(cache=not inline, **options)(function)
        except RuntimeError:  # numba found no directory that it may write its cache to
            compiled = numba.njit(**options)(function)
        return cast(Function, compiled)

    return decorate
