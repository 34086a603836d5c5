"""Compiled grammars on disk, for later processes.

A grammar is stored if its compile took more than `min_seconds` (reading a file takes about as long as most compiles) and if all its rows
can be built within bounds; see `serialize`. The key covers everything that the tables depend on: the canonical source, style, options and
limits, the sources of this package, and the versions of its dependencies. The tables do not depend on a vocabulary. Errors are not stored,
since some depend on the load of the machine.
"""

from __future__ import annotations

import functools
import hashlib
import sys
import unicodedata
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import TypeVar

from rtlang_grammars.lowering.compilation import Built, Compilation
from rtlang_grammars.machine.lexer_run.lexer_tables import BoundTables
from rtlang_grammars.storage.disk_cache import KEY_BYTES, MAX_BYTES, CacheCounts, DiskCache, Entry
from rtlang_grammars.storage.lexed_entry import StoredTables
from rtlang_grammars.storage.lexed_entry import dump as dump_lexed
from rtlang_grammars.storage.serialize import complete_rows, dump, load

MIN_SECONDS = 0.002
"""Minimum CPU time of a compile whose result is written to a file."""
_MAX_UNFIT = 10_000

_Restored = TypeVar("_Restored")


class GrammarStore:
    """Grammars in the files of one directory. Safe to use from several threads and processes. No method raises.

    Attributes:
        min_seconds: Minimum CPU time of a compile whose result is written to a file.
    """

    def __init__(self, directory: Path, max_bytes: int = MAX_BYTES, min_seconds: float = MIN_SECONDS) -> None:
        revision()  # computed now, from the sources that were loaded
        self._cache, self.min_seconds = DiskCache(directory, max_bytes), min_seconds
        self._unfit: set[bytes] = set()  # keys of grammars that could not be stored; not tried again

    @property
    def counts(self) -> CacheCounts:
        """Counts of lookups and writes in this process."""
        return self._cache.counts

    def find(self, compilation: Compilation) -> Built | None:
        """Look up a compiled grammar; None if there is none."""
        return self._found(compilation, lambda entry: _built(entry, compilation))

    def find_rules(self, compilation: Compilation, compiled: Callable[[], BoundTables]) -> Built | BoundTables | None:
        """Look up a compiled grammar without a lexer, in either form; None if there is none. `compiled`: see `StoredTables`."""

        def restored(entry: Entry) -> Built | BoundTables:
            return _built(entry, compilation) if "tables" in entry[0] else StoredTables(*entry, compiled)

        return self._found(compilation, restored)

    def find_lexed(self, compilation: Compilation, compiled: Callable[[], BoundTables]) -> BoundTables | None:
        """Look up a compiled grammar with a lexer; None if there is none. `compiled`: see `StoredTables`."""
        return self._found(compilation, lambda entry: StoredTables(*entry, compiled))

    def _found(self, compilation: Compilation, restored: Callable[[Entry], _Restored]) -> _Restored | None:
        key = _key(compilation)
        entry = self._cache.get(key)
        if entry is None:
            return None
        try:
            return restored(entry)
        except Exception as error:  # an intact file that this class did not write
            self._cache.reject(key, f"{type(error).__name__}: {error}")
            return None

    def keep_lexed(self, compilation: Compilation, tables: BoundTables, *, is_new: bool) -> None:
        """Store a compiled grammar with a lexer, on a thread of the cache, again after its 1st, 2nd, 4th... join of contexts.

        Args:
            is_new: False: it was found in the store.
        """
        num_found = len(tables.joined)

        def after_join() -> None:
            num_joins = len(tables.joined) - num_found
            if num_joins & (num_joins - 1) == 0:
                self._put_lexed(compilation, tables, replaces=True)

        tables.on_join = after_join
        if is_new:
            self._put_lexed(compilation, tables, replaces=False)

    def _put_lexed(self, compilation: Compilation, tables: BoundTables, *, replaces: bool) -> None:
        entry = dump_lexed(tables)
        self._cache.offer(_key(compilation), lambda: entry, replaces=replaces)

    def put(self, compilation: Compilation, built: Built) -> None:
        """Store a compiled grammar, on a thread of the cache."""
        key = _key(compilation)

        def make() -> Entry | None:
            self._unfit.add(key)
            entry = _entry(compilation, built)
            if entry is not None:
                self._unfit.discard(key)
            return entry

        if key not in self._unfit and len(self._unfit) < _MAX_UNFIT:
            self._cache.offer(key, make)

    def flush(self) -> None:
        """Wait until all pending grammars are written or given up."""
        self._cache.flush()


@functools.cache
def revision() -> str:
    """A digest of the code that builds tables and of its dependencies."""
    digest = hashlib.blake2b(digest_size=16)
    root = Path(__file__).parents[1]
    for path in sorted(path for path in root.rglob("*") if path.suffix in (".py", ".lark")):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    versions = [sys.version, sys.byteorder, unicodedata.unidata_version]
    versions += [
        metadata.version(name) for name in ("numpy", "numba", "regex", "idna", "jsonschema-specifications", "lark")
    ]
    digest.update("\n".join(versions).encode())
    return digest.hexdigest()


def _key(compilation: Compilation) -> bytes:
    """A digest that differs between any two compiles whose tables may differ."""
    text = f"{revision()}\n{compilation.identity}"
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=KEY_BYTES).digest()


def _entry(compilation: Compilation, built: Built) -> Entry | None:
    """A grammar as plain data; None if not every row can be built within bounds."""
    if not complete_rows(built.tables):
        return None
    dumped = dump(built.tables, compilation.base_tables)
    return None if dumped is None else ({"tables": dumped[0], **built.to_plain()}, dumped[1])


def _built(entry: Entry, compilation: Compilation) -> Built:
    plain, arrays = entry
    tables = compilation.new_tables()
    load(plain["tables"], arrays, tables)
    return compilation.from_plain(plain, tables)
