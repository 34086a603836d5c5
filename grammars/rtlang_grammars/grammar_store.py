"""Compiled grammars on disk: what took long to compile is kept, and found by later processes.

A grammar is kept when its compile took more than `min_seconds` (many compiles take no longer than reading a file does) and when all its
rows can be made within bounds; see `machine.frozen`. Its key is of everything that its tables depend on: the canonical source, style,
options and limits, the sources of this package, and the versions of what they use. They do not depend on a vocabulary. Errors are not
kept: some depend on how busy a machine was.
"""

from __future__ import annotations

import functools
import hashlib
import json
import sys
import unicodedata
from dataclasses import astuple, dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from rtlang_grammars.canonical import canonical
from rtlang_grammars.disk_cache import KEY_BYTES, MAX_BYTES, CacheCounts, DiskCache, Entry
from rtlang_grammars.limits import Budget, Limits
from rtlang_grammars.machine.frozen import finish, freeze, thaw
from rtlang_grammars.machine.prelude import prelude
from rtlang_grammars.machine.tables import Tables
from rtlang_grammars.schema.options import SchemaOptions
from rtlang_grammars.schema.report import KeywordStatus, Notes, Report, ReportEntry
from rtlang_grammars.spec import Constraint, ConstraintKind, Whitespace
from rtlang_grammars.value_checks import ValueCheck, value_check

MIN_SECONDS = 0.002
"""CPU time from which on a compile is worth a file."""
_MAX_UNFIT = 10_000
_STATUS = {str(status): status for status in KeywordStatus}


@dataclass(frozen=True, slots=True)
class Built:
    """What a constraint became, which no vocabulary has a part in. Fields as in `MachineGrammar` and `EngineGrammar`."""

    tables: Tables
    start: int
    report: Report | None
    check: ValueCheck | None


@dataclass(frozen=True)
class Compilation:
    """What a compile depends on beside the code."""

    constraint: Constraint
    options: SchemaOptions | None
    limits: Limits
    allow_checked: bool

    @functools.cached_property
    def key(self) -> bytes:
        """A digest that is different for all that may become different tables."""
        constraint = canonical(self.constraint)
        options = self.options or SchemaOptions()
        parts = (
            revision(),
            replace(constraint, source="").to_plain(),
            [sorted(each) if isinstance(each, frozenset) else each for each in astuple(options)],
            astuple(replace(self.limits, max_seconds=0.0)),
            self.allow_checked,
        )
        text = f"{json.dumps(parts)}\n{constraint.source}"
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=KEY_BYTES).digest()


class GrammarStore:
    """Grammars in the files of one directory. Safe to use from several threads and processes. No method raises.

    Attributes:
        min_seconds: CPU time from which on a compile is worth a file.
    """

    def __init__(self, directory: Path, max_bytes: int = MAX_BYTES, min_seconds: float = MIN_SECONDS) -> None:
        revision()  # of the sources as they are now, when they are loaded
        self._cache, self.min_seconds = DiskCache(directory, max_bytes), min_seconds
        self._unfit: set[bytes] = set()  # what could not be kept, and is not tried again

    @property
    def counts(self) -> CacheCounts:
        """What became of what was looked for and offered."""
        return self._cache.counts

    def find(self, compilation: Compilation, budget: Budget) -> Built | None:
        """What was kept of a compilation; None where there is nothing."""
        key = compilation.key
        entry = self._cache.get(key)
        if entry is None:
            return None
        try:
            return _built(entry, compilation, budget)
        except Exception as error:  # whole, and yet not what `_entry` made: as good as nothing
            self._cache.reject(key, f"{type(error).__name__}: {error}")
            return None

    def keep(self, compilation: Compilation, built: Built) -> None:
        """Keep what was compiled, later and on another thread."""
        key = compilation.key

        def make() -> Entry | None:
            self._unfit.add(key)
            entry = _entry(compilation, built)
            if entry is not None:
                self._unfit.discard(key)
            return entry

        if key not in self._unfit and len(self._unfit) < _MAX_UNFIT:
            self._cache.offer(key, make)

    def flush(self) -> None:
        """Wait until all that is to be kept is written or given up."""
        self._cache.flush()


@functools.cache
def revision() -> str:
    """A digest of the code that makes tables and of what it depends on."""
    digest = hashlib.blake2b(digest_size=16)
    root = Path(__file__).parent
    for path in sorted(path for path in root.rglob("*") if path.suffix in (".py", ".lark")):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    versions = [sys.version, sys.byteorder, unicodedata.unidata_version]
    versions += [metadata.version(name) for name in ("numpy", "numba", "lark", "regex", "jsonschema-specifications")]
    digest.update("\n".join(versions).encode())
    return digest.hexdigest()


def _base(constraint: Constraint) -> Tables:
    """What the tables of a constraint begin with."""
    has_style = constraint.kind in (ConstraintKind.JSON_SCHEMA, ConstraintKind.STRUCTURE)
    return prelude(constraint.style.whitespace if has_style else Whitespace.FREE).tables


def _entry(compilation: Compilation, built: Built) -> Entry | None:
    """A grammar as plain data; None where it cannot be brought to that within bounds."""
    if not finish(built.tables):
        return None
    frozen = freeze(built.tables, _base(compilation.constraint))
    if frozen is None:
        return None
    plain: dict[str, Any] = {"tables": frozen[0], "start": built.start, "is_checked": built.check is not None}
    if built.report is not None:
        entries = [[each.pointer, each.keyword, str(each.status), each.reason] for each in built.report.entries]
        plain["report"] = [built.report.dialect, entries]
    return plain, frozen[1]


class _KeptNotes(Notes):
    """The entries of a report as they were kept."""

    __slots__ = ("_kept",)

    def __init__(self, kept: list[list[str]], has_checked: bool) -> None:
        super().__init__()
        self._kept, self.has_checked = kept, has_checked

    def written_out(self) -> tuple[ReportEntry, ...]:
        """The entries of the report."""
        return tuple(
            ReportEntry(pointer, keyword, _STATUS[status], reason) for pointer, keyword, status, reason in self._kept
        )


def _built(entry: Entry, compilation: Compilation, budget: Budget) -> Built:
    plain, arrays = entry
    tables = thaw(plain["tables"], arrays, _base(compilation.constraint), budget)
    start, report = int(plain["start"]), plain.get("report")
    if report is not None:
        dialect, entries = report
        report = Report(dialect, _KeptNotes(entries, plain["is_checked"]))
    check = None
    if plain["is_checked"]:
        check = value_check(json.loads(compilation.constraint.source), compilation.options)
    return Built(tables, start, report, check)
