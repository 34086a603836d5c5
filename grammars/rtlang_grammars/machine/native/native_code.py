"""The decorator of compiled functions: kept on disk under a name that changes with any source they are made of.

numba keeps what it compiled per source file and does not see that a function it built in comes from another file that has changed.

Compiling takes ten seconds and more where nothing is on disk. All arithmetic here is on integers, so until the code is there Python itself
can run the same sources: `interpret`, and `use_compiled` once it is. Arrays are all that is kept from call to call, so either may go on
where the other stopped. A step usually takes Python milliseconds with a small vocabulary; a walk over a large one, or along hundreds of
ways at once, takes it seconds.
"""

from __future__ import annotations

import functools
import hashlib
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType
from typing import Any

from numba import njit
from numba.core.dispatcher import Dispatcher

_SOURCES = (
    "machine/native/native_code.py",
    "machine/automaton/layout.py",
    "machine/native/registers.py",
    "machine/native/step_functions.py",
    "machine/native/walks.py",
    "machine/string_masks.py",
    "machine/token_index/token_trie.py",
    "machine/token_index/coarse_token_trie.py",
    "lowering/json_shapes/literal_trie.py",
)
"""Files with compiled functions or with constants that these contain."""


class _Here(threading.local):
    """Of a thread: whether it runs compiled code where others interpret."""

    is_compiled = False


_here = _Here()


class Entry:
    """A compiled function that Python calls."""

    __slots__ = ("_dispatcher", "_run")

    def __init__(self, dispatcher: Any) -> None:
        self._dispatcher = self._run = dispatcher

    def __call__(self, *arguments: Any) -> Any:
        return self._run(*arguments)

    @property
    def is_missing_on_disk(self) -> bool:
        """Whether it was never compiled from the present sources for this Python, and can be kept where it is."""
        cache = getattr(self._dispatcher, "_cache", None)  # a plain function, if numba compiles nothing
        folder = None if cache is None else cache.cache_path
        name = self._dispatcher.__qualname__
        version = f"py{sys.version_info[0]}{sys.version_info[1]}"
        # numba keeps an index for every function.
        return folder is not None and not any(Path(folder).glob(f"*.{name}-*.{version}*.nbi"))

    @property
    def is_interpreted(self) -> bool:
        """Whether Python runs the source."""
        return self._run is not self._dispatcher

    def interpret(self) -> None:
        """Have Python run the source from now on."""
        code, source = self._dispatcher, _interpreted(self._dispatcher)
        self._run = lambda *arguments: (code if _here.is_compiled else source)(*arguments)

    def use_compiled(self) -> None:
        """Undo `interpret`."""
        self._run = self._dispatcher


_entries: list[Entry] = []


def is_any_missing_on_disk() -> bool:
    """Whether there is something to compile ahead of time, of the modules imported so far."""
    return any(entry.is_missing_on_disk for entry in _entries)


def is_interpreted() -> bool:
    """Whether Python runs the sources."""
    return any(entry.is_interpreted for entry in _entries)


def interpret() -> None:
    """Have Python run all sources, until `use_compiled`. The results are the same."""
    if not is_interpreted():
        for entry in _entries:
            entry.interpret()


def use_compiled() -> None:
    """Run compiled code, as from the start; what is not on disk is compiled when first called."""
    for entry in _entries:
        entry.use_compiled()


@contextmanager
def use_compiled_here() -> Iterator[None]:
    """Run compiled code in this thread, whatever others do."""
    _here.is_compiled = True
    try:
        yield
    finally:
        _here.is_compiled = False


def compiled(*, inner: bool = False, is_rare: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile with numba when first called, and keep the result beside the source or in the user's cache directory.

    Args:
        inner: only compiled code calls the function: it has no entry from Python, and is kept on disk as part of those that call it. Others
            are for Python alone (`Entry`).
        is_rare: most processes never call it, so it is not compiled ahead of time, nor interpreted.

    Nothing here makes arrays, so all go without numba's counting of references, which takes longer than a step of a walk (atomic additions
    for every array handed on). numba compiles a function again for every combination of the types it is called with, so calls hand over
    int64 everywhere.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        function.__qualname__ += f"_{_digest()}"
        options.update(_nrt=False, no_cfunc_wrapper=True, no_cpython_wrapper=inner)
        try:
            dispatcher = njit(cache=not inner, **options)(function)
        except RuntimeError:  # numba found no directory that it may write its cache to
            dispatcher = njit(**options)(function)
        if inner or is_rare:
            return dispatcher
        _entries.append(Entry(dispatcher))
        return _entries[-1]

    return decorate


@functools.cache
def _interpreted(dispatcher: Any) -> FunctionType:
    """The source of a compiled function as a function of Python, which calls such functions only."""
    source = getattr(dispatcher, "py_func", dispatcher)
    names = {**source.__globals__}
    function = FunctionType(source.__code__, names, source.__name__, source.__defaults__, source.__closure__)
    for name in source.__code__.co_names:
        if isinstance(names.get(name), Dispatcher):
            names[name] = _interpreted(names[name])
    return function


@functools.cache
def _digest() -> str:
    digest = hashlib.blake2b(digest_size=4)
    for name in _SOURCES:
        digest.update((Path(__file__).parents[2] / name).read_bytes())
    return digest.hexdigest()
