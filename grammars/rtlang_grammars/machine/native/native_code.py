"""Registers compiled functions, loads or compiles their code, and interprets their sources while there is none.

Functions are compiled in groups, each to one file of object code (`code_compiler`, `code_files`): all that tables need, and all that a
lexer needs. A group is loaded with the first call of one of its functions, in milliseconds, and compiled if no file fits: for some seconds.

All arithmetic here is on integers, so Python can run the same sources meanwhile: `interpret`, then `use_compiled`. Arrays are the only
state between calls, so either can continue the work of the other. Interpreted, most steps take milliseconds, but those that traverse a
large vocabulary or have hundreds of parallel heads take seconds (`api.precompile.is_ready`).
"""

from __future__ import annotations

import functools
import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any

from rtlang_grammars.machine.native import code_files
from rtlang_grammars.machine.native.array_types import ArgumentType, arrays_of
from rtlang_grammars.machine.native.object_code import ObjectCode

TABLES, LEXER, EXPORT = "tables", "lexer", "export"
GROUPS = {
    TABLES: (
        "lowering.json_shapes.literal_trie",
        "machine.token_index.mask",
        "machine.native.repeated_names",
        "machine.native.walks",
        "machine.token_index.token_trie",
        "machine.token_index.byte_kinds",
        "machine.token_index.coarse_token_trie",
        "machine.raw_masks",
        "machine.string_masks",
    ),
    LEXER: (
        "machine.lexer_run.parser_feed",
        "machine.lexer_run.viability",
        "machine.lexer_run.tree_visit",
    ),
    EXPORT: ("machine.native.registers",),
}
"""The modules with the entries of each group."""
AHEAD = (TABLES, LEXER)
"""Groups that are compiled ahead of time, the first one first. Few processes need the others."""
_PACKAGE = "rtlang_grammars"


class _Here(threading.local):
    """Per thread: whether it runs compiled code while others interpret."""

    is_compiled = False


_here = _Here()


class CompiledEntry:
    """A compiled function called from Python.

    Attributes:
        function: its source.
        types: of its arguments.
        is_nogil: whether it runs without the interpreter's lock.
    """

    __slots__ = ("_code", "_group", "_run", "function", "is_nogil", "types")

    def __init__(self, group: str, function: FunctionType, types: tuple[ArgumentType, ...], *, is_nogil: bool) -> None:
        self.function, self.types, self.is_nogil, self._group = function, types, is_nogil, group
        self._code: Callable[..., Any] = self._first_call
        self._run = self._code

    def __call__(self, *arguments: Any) -> Any:
        return self._run(*arguments)

    def _first_call(self, *arguments: Any) -> Any:
        load(self._group)
        return self._code(*arguments)

    @property
    def is_interpreted(self) -> bool:
        """Whether Python interprets the source."""
        return self._run is not self._code

    def interpret(self) -> None:
        """Interpret the source from now on."""
        self._run = lambda *arguments: (self._code if _here.is_compiled else self.function)(*arguments)

    def use_compiled(self) -> None:
        """Undo `interpret`."""
        self._run = self._code

    def take(self, code: Callable[..., Any]) -> None:
        """Use the compiled code."""
        is_interpreted, self._code = self.is_interpreted, code
        if not is_interpreted:
            self._run = code


_entries: dict[str, dict[str, CompiledEntry]] = {name: {} for name in GROUPS}
_inner: dict[FunctionType, bool] = {}
_locks = {name: threading.Lock() for name in GROUPS}
_loaded: set[str] = set()


def compiled(
    *types: ArgumentType, inner: bool = False, group: str = TABLES, nogil: bool = False, inline: bool = False
) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function.

    Args:
        types: of the arguments. Others are refused: compiling the function again for these would take seconds.
        inner: called by compiled code only, with any types; all integers are int64. Other functions are called from Python
            only (`CompiledEntry`).
        group: the group that it is compiled with. Its module is in GROUPS.
        nogil: runs without the interpreter's lock.
        inline: inlined into its callers, however long it is.

    No function here allocates arrays or raises errors.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        assert isinstance(function, FunctionType)
        if inner:
            _inner[function] = inline
            return function
        name = f"rtlang_{group}_{function.__name__.strip('_')}"
        _entries[group][name] = entry = CompiledEntry(group, function, types, is_nogil=nogil)
        return entry

    return decorate


def load(group: str) -> None:
    """Load the code of a group; compile it if no file of it fits this processor."""
    with _locks[group]:
        if group in _loaded:
            return
        entries = _entries_of(group)
        if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
            code: dict[str, Callable[..., Any]] = {name: each.function for name, each in entries.items()}
        else:
            found = code_files.find(group, digest(group)) or _compiled_in_turn(group)
            code = found.functions({each for entry in entries.values() for each in entry.types})
        for name, each in entries.items():
            each.take(code[name])
        _loaded.add(group)


def prepare(group: str) -> None:
    """Load the code of a group, unless this thread interprets."""
    if _here.is_compiled or not is_interpreted():
        load(group)


def _compiled_in_turn(group: str) -> ObjectCode:
    with code_files.turn():
        found = code_files.find(group, digest(group))  # by the process that compiled before
        if found is None:
            found = compile_group(group)
            code_files.keep(group, digest(group), found)
        return found


def compile_group(group: str) -> ObjectCode:
    """The code of a group for this processor, or for the one that NUMBA_CPU_NAME and NUMBA_CPU_FEATURES name."""
    from rtlang_grammars.machine.native import code_compiler  # loads numba

    entries = {name: (each.function, each.types, each.is_nogil) for name, each in _entries_of(group).items()}
    return code_compiler.compile_group(entries, _inner)


def _entries_of(group: str) -> dict[str, CompiledEntry]:
    for name in GROUPS[group]:
        import_module(f"{_PACKAGE}.{name}")
    return _entries[group]


def is_missing_on_disk(group: str) -> bool:
    """Whether a group has no code on disk that this process can run."""
    return group not in _loaded and code_files.find(group, digest(group)) is None


def is_any_missing_on_disk() -> bool:
    """Whether one of the groups that are compiled ahead of time has no code on disk."""
    return any(is_missing_on_disk(group) for group in AHEAD)


def is_interpreted() -> bool:
    """Whether the sources are interpreted."""
    return any(entry.is_interpreted for entries in _entries.values() for entry in entries.values())


def interpret() -> None:
    """Interpret all sources until `use_compiled`. The results are the same."""
    for group in GROUPS:
        for entry in _entries_of(group).values():
            entry.interpret()


def use_compiled() -> None:
    """Run compiled code, the default; a group without code is loaded or compiled with the first call of one of its functions."""
    for entries in _entries.values():
        for entry in entries.values():
            entry.use_compiled()


@contextmanager
def use_compiled_here() -> Iterator[None]:
    """Run compiled code in this thread, whatever other threads do."""
    _here.is_compiled = True
    try:
        yield
    finally:
        _here.is_compiled = False


@functools.cache
def digest(group: str) -> str:
    """A digest of everything from which the code of a group is made.

    These are the lines of its functions, the constants that they name, the types of their arguments, and the compiler's sources.
    The versions of numba and LLVM are no part of it: object code needs neither, so wheels serve processes with any of them.
    """
    entries = _entries_of(group)
    summed = hashlib.blake2b(digest_size=8)
    for file in _COMPILER:
        summed.update(file.read_bytes())
    for name, entry in sorted(entries.items()):
        arguments = [arrays_of(each) if isinstance(each, type) else each for each in entry.types]
        summed.update(f"{name} {entry.is_nogil} {arguments}\n".encode())
    for text in sorted(_made_from([entry.function for entry in entries.values()])):
        summed.update(text.encode())
    return summed.hexdigest()


_COMPILER = tuple(Path(__file__).with_name(f"{name}.py") for name in ("code_compiler", "object_code"))


def _made_from(functions: list[FunctionType]) -> Iterator[str]:
    """The sources of functions and of the functions that they call, and the constants that they name."""
    waiting, seen = functions, set(functions)
    while waiting:
        function = waiting.pop()
        code = function.__code__
        last = max(line for _, _, line in code.co_lines() if line is not None)
        yield "".join(_lines(code.co_filename)[code.co_firstlineno - 1 : last])
        for name in code.co_names:
            value = function.__globals__.get(name)
            if isinstance(value, int | tuple | str):
                yield f"{function.__module__}.{name} = {value!r}\n"
            elif isinstance(value, FunctionType) and value in _inner and value not in seen:
                seen.add(value)
                waiting.append(value)
                yield f"{_inner[value]}\n"


@functools.cache
def _lines(file: str) -> list[str]:
    return Path(file).read_text(encoding="utf-8").splitlines(keepends=True)


def _unlock_child() -> None:
    """Forget the locks that another thread of the parent may hold."""
    for name in GROUPS:
        _locks[name] = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock_child)
