"""What became of each keyword of a schema: the promise that nothing was ignored in silence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, TypeAlias

from rtlang_grammars.schema.reading.dialects import ANNOTATIONS, escape
from rtlang_grammars.spec.errors import GrammarError

Place: TypeAlias = str | tuple[Any, ...]
"""A JSON pointer, or a place and the tokens below it: most pointers are never asked for."""
Spot: TypeAlias = tuple[str, Place]
"""The URI of a document, empty for the given one, and a place in it."""


def pointer_of(place: Place) -> str:
    """The JSON pointer of a place."""
    parts: list[str] = []
    while not isinstance(place, str):
        parts += [f"/{escape(str(token))}" for token in place[:0:-1]]
        place = place[0]
    return place + "".join(reversed(parts))


def location_of(spot: Spot) -> str:
    """A place as a URI, for messages."""
    uri, place = spot
    return f"{uri}#{pointer_of(place)}"


class KeywordStatus(StrEnum):
    """How a keyword is honoured."""

    ENFORCED = "enforced"  # the shapes accept what the keyword allows and nothing else; a reason says if they leave something out
    CHECKED = "checked"  # the shapes accept more: the finished value must be validated
    IGNORED = "ignored"  # not an assertion in this dialect (unknown keyword, unknown format), or given up by `lenient`


@dataclass(frozen=True, slots=True, order=True)
class ReportEntry:
    """One keyword in one place.

    Attributes:
        pointer: JSON pointer of the schema that holds it, as a URI fragment (`#/properties/a`); a full URI where
            the schema is not part of the given document.
        keyword: its name.
        status: how it is honoured.
        reason: why it is not enforced; where it is: what valid values are left out, mostly empty.
    """

    pointer: str
    keyword: str
    status: KeywordStatus
    reason: str = ""


class Report:
    """All keywords that were reached, annotations left out, ordered by pointer and keyword.

    A keyword that can be neither enforced nor checked does not get here: compiling raises `GrammarError`. What a compile has noted is
    written out when it is first asked for. Immutable; safe to share between threads.

    Attributes:
        dialect: short name of the dialect of the root schema, such as `2020-12`.
    """

    __slots__ = ("_entries", "_notes", "dialect")

    def __init__(self, dialect: str, entries: tuple[ReportEntry, ...] | Notes) -> None:
        """`entries`: in order, or what they are made from."""
        self.dialect = dialect
        self._notes = entries if isinstance(entries, Notes) else None
        self._entries = None if isinstance(entries, Notes) else entries

    @property
    def entries(self) -> tuple[ReportEntry, ...]:
        """One for each keyword and place; where a keyword was met several times the weakest status is kept."""
        notes = self._notes  # first: it is forgotten only once the entries are there
        entries = self._entries
        if entries is None:  # written out twice in a race, both right
            assert notes is not None
            entries = self._entries = notes.written_out()
            self._notes = None
        return entries

    @property
    def is_exact(self) -> bool:
        """The shapes accept exactly the valid values: nothing needs to be checked afterwards."""
        notes = self._notes
        if notes is not None and not notes.has_checked:
            return True
        return all(entry.status is not KeywordStatus.CHECKED for entry in self.entries)

    def refuse_checked(self) -> None:
        """Refuse what would have to be checked, for those who cannot.

        Raises:
            GrammarError: a keyword is not enforced in full; with its place.
        """
        for entry in self.with_status(KeywordStatus.CHECKED):
            raise GrammarError(f"{entry.keyword} cannot be enforced here: {entry.reason}", entry.pointer)

    def with_status(self, status: KeywordStatus) -> Iterator[ReportEntry]:
        """The entries of one status, in order."""
        return (entry for entry in self.entries if entry.status is status)


class Notes:
    """What a compile says of keywords, as it says it. Owned by that compile, and then by its report.

    Attributes:
        has_checked: something may have to be checked.
    """

    __slots__ = ("_said", "_same", "has_checked")

    def __init__(self) -> None:
        self._said: list[ReportEntry | _Met] = []
        self._same: list[tuple[Spot, Spot]] = []
        self.has_checked = False

    def add(self, pointer: str, keyword: str, status: KeywordStatus, reason: str = "") -> None:
        """Record one keyword; a weaker status (checked, ignored) replaces `enforced`, never the other way."""
        self._said.append(ReportEntry(pointer, keyword, status, reason))
        self.has_checked = self.has_checked or status is KeywordStatus.CHECKED

    def met(self, spot: Spot, keywords: tuple[str, ...], known: frozenset[str], rule: ReadingRule) -> None:
        """Record all keywords of a schema.

        Args:
            known: those that assert something in its dialect.
            rule: what else decides how they are read.
        """
        self._said.append((spot, keywords, known, rule))

    def same(self, first: Spot, other: Spot) -> None:
        """What becomes of the keywords at one place becomes of the same keywords at another."""
        self._same.append((first, other))

    def written_out(self) -> tuple[ReportEntry, ...]:
        """The entries of the report."""
        entries: dict[tuple[str, str], ReportEntry] = {}

        def enter(entry: ReportEntry) -> None:
            key = (entry.pointer, entry.keyword)
            old = entries.get(key)
            if old is None or (
                old.status is KeywordStatus.ENFORCED and (entry.status is not old.status or entry.reason)
            ):
                entries[key] = entry

        for said in self._said:
            if isinstance(said, ReportEntry):
                enter(said)
                continue
            spot, keywords, known, rule = said
            pointer = location_of(spot)
            for keyword in keywords:
                if keyword not in ANNOTATIONS:
                    enter(ReportEntry(pointer, keyword, *rule.status(keyword, known)))
        weak: dict[str, list[ReportEntry]] = {}
        for entry in entries.values():
            if entry.status is not KeywordStatus.ENFORCED or entry.reason:
                weak.setdefault(entry.pointer, []).append(entry)
        for first, other in self._same:
            for entry in weak.get(location_of(first), ()):
                place = location_of(other)
                if (place, entry.keyword) in entries:
                    enter(replace(entry, pointer=place))
        return tuple(sorted(entries.values()))


@dataclass(frozen=True, slots=True)
class ReadingRule:
    """How the keywords of a schema are read.

    Attributes:
        dialect: its name.
        lenient: keywords that the caller wants left out.
        only_ref: whatever stands beside `$ref` is ignored.
    """

    dialect: str
    lenient: frozenset[str]
    only_ref: bool

    def status(self, keyword: str, known: frozenset[str]) -> tuple[KeywordStatus, str]:
        """What becomes of a keyword that is no annotation, where nothing else is said of it."""
        if keyword in self.lenient:
            return KeywordStatus.IGNORED, "left out, as the caller asked"
        if keyword not in known:
            return KeywordStatus.IGNORED, f"not a keyword of {self.dialect}"
        if self.only_ref and keyword != "$ref":
            return KeywordStatus.IGNORED, f"{self.dialect} ignores it beside $ref"
        return KeywordStatus.ENFORCED, ""


_Met: TypeAlias = tuple[Spot, tuple[str, ...], frozenset[str], ReadingRule]
