"""The decorator of compiled functions: kept on disk under a name that changes with any source they are made of.

numba keeps what it compiled per source file and does not see that a function it built in comes from another file that has changed.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit

_SOURCES = (
    "compiled.py",
    "layout.py",
    "registers.py",
    "kernels.py",
    "walks.py",
    "denied.py",
    "tries.py",
    "trie.py",
    "grained.py",
)


def compiled(*, inner: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile with numba when first called, and keep the result beside the source or in the user's cache directory.

    Args:
        inner: only compiled code calls the function: it has no entry from Python (a call from there crashes), and is kept on disk as part
            of those that call it.

    Nothing here makes arrays, so all go without numba's counting of references, which takes longer than a step of a walk (atomic additions
    for every array handed on). numba compiles a function again for every combination of the types it is called with, so calls hand over
    int64 everywhere.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        function.__qualname__ += f"_{_digest()}"
        return njit(cache=not inner, _nrt=False, no_cfunc_wrapper=True, no_cpython_wrapper=inner, **options)(function)

    return decorate


@functools.cache
def _digest() -> str:
    digest = hashlib.blake2b(digest_size=4)
    for name in _SOURCES:
        digest.update((Path(__file__).parent / name).read_bytes())
    return digest.hexdigest()
