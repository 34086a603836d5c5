"""Compiles functions with numba and caches them on disk, under a name that changes with the sources they may contain.

numba's own cache is keyed by one source file and misses changes in inlined functions from other files.

Compiling everything takes ten seconds or more if nothing is cached. All arithmetic here is on integers, so Python can run the same sources
meanwhile: `interpret`, then `use_compiled`. Arrays are the only state between calls, so either can continue the work of the other.
Interpreted, a step takes milliseconds with a small vocabulary, but seconds with a large one or with hundreds of parallel heads.
"""

from __future__ import annotations

import functools
import hashlib
import re
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
    "machine/native/pointers.py",
    "machine/native/registers.py",
    "machine/native/step_functions.py",
    "machine/native/walks.py",
    "machine/native/repeated_names.py",
    "machine/string_masks.py",
    "machine/raw_masks.py",
    "machine/token_index/mask.py",
    "machine/token_index/token_trie.py",
    "machine/token_index/coarse_token_trie.py",
    "machine/token_index/byte_kinds.py",
    "machine/lexer_run/lexer_layout.py",
    "machine/lexer_run/lexeme_rules.py",
    "machine/lexer_run/graph_stack.py",
    "machine/lexer_run/parser_feed.py",
    "machine/lexer_run/viability.py",
    "machine/lexer_run/trie_walk.py",
    "machine/lexer_run/sequence_tree.py",
    "machine/lexer_run/tree_visit.py",
    "lowering/json_shapes/literal_trie.py",
)
"""Files with compiled functions, or with constants that these functions contain."""


class _Here(threading.local):
    """Per thread: whether it runs compiled code while others interpret."""

    is_compiled = False


_here = _Here()


class CompiledEntry:
    """A compiled function called from Python."""

    __slots__ = ("_dispatcher", "_is_fixed", "_run")

    def __init__(self, dispatcher: Any, *, is_fixed: bool = False) -> None:
        self._dispatcher = self._run = dispatcher
        self._is_fixed = is_fixed

    def __call__(self, *arguments: Any) -> Any:
        found = self._run(*arguments)
        if self._is_fixed and self._run is self._dispatcher:
            versions = list(getattr(self._dispatcher, "overloads", {}).values())
            if len(versions) == 1:
                self._run = versions[0].entry_point
        return found

    @property
    def is_missing_on_disk(self) -> bool:
        """Whether it could be cached on disk but is not, for the current sources and this Python version."""
        cache = getattr(self._dispatcher, "_cache", None)  # a plain function if numba is disabled
        folder = None if cache is None else cache.cache_path
        name = self._dispatcher.__qualname__
        version = f"py{sys.version_info[0]}{sys.version_info[1]}"
        # numba keeps an index for every function.
        return folder is not None and not any(Path(folder).glob(f"*.{name}-*.{version}*.nbi"))

    @property
    def is_interpreted(self) -> bool:
        """Whether Python interprets the source."""
        return self._run is not self._dispatcher and isinstance(self._run, FunctionType)

    def interpret(self) -> None:
        """Interpret the source from now on."""
        code, source = self._dispatcher, as_python(self._dispatcher)
        self._run = lambda *arguments: (code if _here.is_compiled else source)(*arguments)

    def use_compiled(self) -> None:
        """Undo `interpret`."""
        self._run = self._dispatcher


_entries: list[CompiledEntry] = []


def is_any_missing_on_disk() -> bool:
    """Whether some function of the modules imported so far has no cached code."""
    return any(entry.is_missing_on_disk for entry in _entries)


def is_interpreted() -> bool:
    """Whether the sources are interpreted."""
    return any(entry.is_interpreted for entry in _entries)


def interpret() -> None:
    """Interpret all sources until `use_compiled`. The results are the same."""
    if not is_interpreted():
        for entry in _entries:
            entry.interpret()


def use_compiled() -> None:
    """Run compiled code, the default; functions without cached code are compiled when first called."""
    for entry in _entries:
        entry.use_compiled()


@contextmanager
def use_compiled_here() -> Iterator[None]:
    """Run compiled code in this thread, whatever other threads do."""
    _here.is_compiled = True
    try:
        yield
    finally:
        _here.is_compiled = False


def compiled(
    *, inner: bool = False, is_rare: bool = False, is_fixed: bool = False, **options: Any
) -> Callable[[Callable[..., Any]], Any]:
    """Compile with numba on the first call, and cache the result beside the source or in the user's cache directory.

    Args:
        inner: called by compiled code only: the function has no Python entry and is cached as part of its callers. All other functions are
            called from Python only (`CompiledEntry`).
        is_fixed: all calls have arguments of the same types, with arrays in C order that can be written to. After the first call numba no
            longer looks at them, which takes 0.1 us for each array.
        is_rare: most processes never call it, so it is neither compiled ahead of time nor interpreted.

    No function here allocates arrays, so all are compiled without numba's reference counting, which would take longer than a step of a
    walk (atomic additions for every array argument). numba compiles a function again for every combination of argument types, so callers
    pass int64 everywhere.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        function.__qualname__ += f"_{_digest(function.__module__)}"
        options.update(_nrt=False, no_cfunc_wrapper=True, no_cpython_wrapper=inner)
        try:
            dispatcher = njit(cache=not inner, **options)(function)
        except RuntimeError:  # numba found no writable cache directory
            dispatcher = njit(**options)(function)
        if inner or is_rare:
            return dispatcher
        _entries.append(CompiledEntry(dispatcher, is_fixed=is_fixed))
        return _entries[-1]

    return decorate


@functools.cache
def as_python(dispatcher: Any) -> FunctionType:
    """The source of a compiled function as a Python function, which calls only such functions."""
    source = getattr(dispatcher, "py_func", dispatcher)
    names = {**source.__globals__}
    function = FunctionType(source.__code__, names, source.__name__, source.__defaults__, source.__closure__)
    for name in source.__code__.co_names:
        if isinstance(names.get(name), Dispatcher):
            names[name] = as_python(names[name])
    return function


@functools.cache
def _digest(module: str) -> str:
    """The digest of a module's source and of those in `_SOURCES` that it imports, directly or not."""
    found, waiting = {"rtlang_grammars.machine.native.native_code"}, [module]
    while waiting:
        name = waiting.pop()
        if name in found or not (name == module or _path(name) in _SOURCES):
            continue
        found.add(name)
        if _path(name) in _SOURCES:
            waiting += _IMPORTED.findall(_source(name))
    digest = hashlib.blake2b(digest_size=4)
    for name in sorted(found):
        if _path(name) in _SOURCES:
            digest.update(_source(name).encode())
    return digest.hexdigest()


_IMPORTED = re.compile(r"^from (rtlang_grammars[\w.]*) import ", re.MULTILINE)


def _path(module: str) -> str:
    return module.removeprefix("rtlang_grammars.").replace(".", "/") + ".py"


@functools.cache
def _source(module: str) -> str:
    return (Path(__file__).parents[2] / _path(module)).read_text()
