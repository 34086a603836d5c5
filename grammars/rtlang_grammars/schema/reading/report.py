"""The report of a compile: for each keyword of a schema, whether it is enforced, checked afterwards or ignored.

No keyword is ignored silently: each has an entry, or the compile fails.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, TypeAlias

from rtlang_grammars.schema.reading.dialects import ANNOTATIONS, escape
from rtlang_grammars.spec.errors import GrammarError

MAX_ROWS = 200
"""Number of entries that a notebook shows."""

_UNSHOWN = dict.fromkeys(
    (*range(0x20), 0x7F, *range(0xD800, 0xE000), 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)), 0xFFFD
)

LazyPointer: TypeAlias = str | tuple[Any, ...]
"""A JSON pointer, or a lazy pointer followed by tokens: most pointers are never formatted."""
LazyLocation: TypeAlias = tuple[str, LazyPointer]
"""The URI of a document, empty for the given one, and a pointer into it."""


def pointer_of(pointer: LazyPointer) -> str:
    """Format a lazy pointer as a JSON pointer (RFC 6901)."""
    parts: list[str] = []
    while not isinstance(pointer, str):
        parts += [f"/{escape(str(token))}" for token in pointer[:0:-1]]
        pointer = pointer[0]
    return pointer + "".join(reversed(parts))


def location_of(location: LazyLocation) -> str:
    """Format a lazy location as a URI with a JSON pointer as its fragment, for messages."""
    uri, pointer = location
    return f"{uri}#{pointer_of(pointer)}"


class KeywordStatus(StrEnum):
    """How a keyword is applied."""

    ENFORCED = "enforced"  # the shapes accept only valid instances; a reason names the valid instances that they exclude, if any
    CHECKED = "checked"  # the shapes accept invalid instances too: the finished instance must be validated
    IGNORED = (
        "ignored"  # not an assertion of the dialect (unknown keyword or format), or listed in `SchemaOptions.lenient`
    )


@dataclass(frozen=True, slots=True, order=True)
class ReportEntry:
    """One keyword at one location.

    Attributes:
        pointer: JSON pointer of the schema that holds it, as a URI fragment (`#/properties/a`); a full URI if the schema is not part
            of the given document.
        keyword: its name.
        status: how it is applied.
        reason: why it is not enforced; for an enforced keyword, the valid instances that are excluded, usually empty.
    """

    pointer: str
    keyword: str
    status: KeywordStatus
    reason: str = ""


class Report:
    """The status of all keywords that a compile has reached, except annotations, ordered by pointer and keyword.

    A keyword that can be neither enforced nor checked has no entry: the compile raises `GrammarError`. The entries are built on first
    use. Immutable; safe to share between threads.

    Attributes:
        dialect: name of the dialect of the root schema, such as `2020-12`.
    """

    __slots__ = ("_builder", "_entries", "dialect")

    def __init__(self, dialect: str, entries: tuple[ReportEntry, ...] | ReportBuilder) -> None:
        """Create a report from its entries, in order, or from a builder of them."""
        self.dialect = dialect
        self._builder = entries if isinstance(entries, ReportBuilder) else None
        self._entries = None if isinstance(entries, ReportBuilder) else entries

    @property
    def entries(self) -> tuple[ReportEntry, ...]:
        """One entry for each keyword and location, with the weakest status that was recorded for it."""
        builder = self._builder  # read before the entries: another thread sets it to None only after storing them
        entries = self._entries
        if entries is None:  # two threads may both build the entries, with equal results
            assert builder is not None
            entries = self._entries = builder.build()
            self._builder = None
        return entries

    @property
    def is_exact(self) -> bool:
        """Whether no keyword has the status `checked`, so that finished instances need no validation."""
        builder = self._builder
        if builder is not None and not builder.has_checked:
            return True
        return all(entry.status is not KeywordStatus.CHECKED for entry in self.entries)

    def __repr__(self) -> str:
        return f"<Report {self.dialect}: {self._counted()}>"

    def _repr_html_(self) -> str:
        """The entries as a table for a notebook; the strongest statuses last."""
        order = {KeywordStatus.CHECKED: 0, KeywordStatus.IGNORED: 1, KeywordStatus.ENFORCED: 2}
        entries = sorted(self.entries, key=lambda entry: (order[entry.status], not entry.reason))
        cell = 'style="text-align:left;vertical-align:top;padding:3px 16px 3px 0;color:inherit;background:none"'
        rows = "".join(
            "<tr>"
            + "".join(
                f"<td {cell}>{_shown(each)}</td>"
                for each in (entry.pointer, entry.keyword, entry.status.value, entry.reason)
            )
            + "</tr>"
            for entry in entries[:MAX_ROWS]
        )
        head = "".join(f"<th {cell}>{name}</th>" for name in ("schema", "keyword", "status", "reason"))
        more = f"<div>{len(entries) - MAX_ROWS} more</div>" if len(entries) > MAX_ROWS else ""
        return (
            '<div style="color:var(--jp-content-font-color1,var(--vscode-foreground,currentColor))">'
            f"<b>{_shown(self.dialect)}</b>: {self._counted()}"
            f'<table style="border-collapse:collapse;font-size:13px"><tr>{head}</tr>{rows}</table>{more}</div>'
        )

    def _counted(self) -> str:
        counts = Counter(entry.status for entry in self.entries)
        return (
            ", ".join(f"{counts[status]} {status.value}" for status in KeywordStatus if counts[status]) or "no keywords"
        )

    def refuse_checked(self) -> None:
        """Refuse keywords that must be checked, for callers that cannot validate finished instances.

        Raises:
            GrammarError: a keyword has the status `checked`; with its location.
        """
        for entry in self.with_status(KeywordStatus.CHECKED):
            raise GrammarError(f"{entry.keyword} cannot be enforced here: {entry.reason}", entry.pointer)

    def with_status(self, status: KeywordStatus) -> Iterator[ReportEntry]:
        """Return the entries with one status, in order."""
        return (entry for entry in self.entries if entry.status is status)


def _shown(text: str) -> str:
    """Text for HTML, without characters that are invisible or change the direction of the text around them."""
    return html.escape(text.translate(_UNSHOWN))


class ReportBuilder:
    """Records the status of keywords during a compile and builds the entries of the report. Owned by the compile, then by its report.

    Attributes:
        has_checked: a keyword was recorded as `checked`.
    """

    __slots__ = ("_aliases", "_records", "has_checked")

    def __init__(self) -> None:
        self._records: list[ReportEntry | _SchemaRecord] = []
        self._aliases: list[tuple[LazyLocation, LazyLocation]] = []
        self.has_checked = False

    def add(self, pointer: str, keyword: str, status: KeywordStatus, reason: str = "") -> None:
        """Record the status of one keyword; `checked` and `ignored` take precedence over `enforced`."""
        self._records.append(ReportEntry(pointer, keyword, status, reason))
        self.has_checked = self.has_checked or status is KeywordStatus.CHECKED

    def add_schema(
        self, location: LazyLocation, keywords: tuple[str, ...], known: frozenset[str], rule: ReadingRule
    ) -> None:
        """Record all keywords of a schema, with the status that `rule` gives them.

        Args:
            location: location of the schema.
            keywords: its keywords.
            known: the assertions, applicators and references of its dialect.
            rule: the other conditions on their status.
        """
        self._records.append((location, keywords, known, rule))

    def add_alias(self, first: LazyLocation, other: LazyLocation) -> None:
        """Record that the keywords at `other` have the status of the same keywords at `first`."""
        self._aliases.append((first, other))

    def build(self) -> tuple[ReportEntry, ...]:
        """Return the entries of the report, in order."""
        entries: dict[tuple[str, str], ReportEntry] = {}

        def enter(entry: ReportEntry) -> None:
            key = (entry.pointer, entry.keyword)
            old = entries.get(key)
            if old is None or (
                old.status is KeywordStatus.ENFORCED and (entry.status is not old.status or entry.reason)
            ):
                entries[key] = entry

        for record in self._records:
            if isinstance(record, ReportEntry):
                enter(record)
                continue
            location, keywords, known, rule = record
            pointer = location_of(location)
            for keyword in keywords:
                if keyword not in ANNOTATIONS:
                    enter(ReportEntry(pointer, keyword, *rule.status(keyword, known)))
        weak: dict[str, list[ReportEntry]] = {}
        for entry in entries.values():
            if entry.status is not KeywordStatus.ENFORCED or entry.reason:
                weak.setdefault(entry.pointer, []).append(entry)
        for first, other in self._aliases:
            for entry in weak.get(location_of(first), ()):
                pointer = location_of(other)
                if (pointer, entry.keyword) in entries:
                    enter(replace(entry, pointer=pointer))
        return tuple(sorted(entries.values()))


@dataclass(frozen=True, slots=True)
class ReadingRule:
    """The conditions on the status of the keywords of a schema.

    Attributes:
        dialect: name of its dialect.
        lenient: keywords that the caller wants to be ignored.
        only_ref: keywords adjacent to `$ref` are ignored.
    """

    dialect: str
    lenient: frozenset[str]
    only_ref: bool

    def status(self, keyword: str, known: frozenset[str]) -> tuple[KeywordStatus, str]:
        """Return the default status and reason of a keyword that is not an annotation; `known` are the keywords of the dialect."""
        if keyword in self.lenient:
            return KeywordStatus.IGNORED, "ignored at the request of the caller (lenient)"
        if keyword not in known:
            return KeywordStatus.IGNORED, f"not a keyword of {self.dialect}"
        if self.only_ref and keyword != "$ref":
            return KeywordStatus.IGNORED, f"{self.dialect} ignores keywords adjacent to $ref"
        return KeywordStatus.ENFORCED, ""


_SchemaRecord: TypeAlias = tuple[LazyLocation, tuple[str, ...], frozenset[str], ReadingRule]
