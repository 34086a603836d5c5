"""What became of each keyword of a schema: the promise that nothing was ignored in silence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from rtlang_grammars.spec import GrammarError


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


@dataclass(frozen=True, slots=True)
class Report:
    """All keywords that were reached, annotations left out, ordered by pointer and keyword.

    A keyword that can be neither enforced nor checked does not get here: compiling raises `GrammarError`.

    Attributes:
        dialect: short name of the dialect of the root schema, such as `2020-12`.
        entries: one for each keyword and place; where a keyword was met several times the weakest status is kept.
    """

    dialect: str
    entries: tuple[ReportEntry, ...]

    @property
    def is_exact(self) -> bool:
        """The shapes accept exactly the valid values: nothing needs to be checked afterwards."""
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


class ReportBuilder:
    """Collects entries while a schema is compiled; owned by one compile."""

    def __init__(self, dialect: str) -> None:
        self._dialect = dialect
        self._entries: dict[tuple[str, str], ReportEntry] = {}
        self._same: list[tuple[str, str]] = []

    def add(self, pointer: str, keyword: str, status: KeywordStatus, reason: str = "") -> None:
        """Record one keyword; a weaker status (checked, ignored) replaces `enforced`, never the other way."""
        key = (pointer, keyword)
        known = self._entries.get(key)
        if known is None or (known.status is KeywordStatus.ENFORCED and (status is not known.status or reason)):
            self._entries[key] = ReportEntry(pointer, keyword, status, reason)

    def same(self, first: str, other: str) -> None:
        """What becomes of the keywords at one place becomes of the same keywords at another."""
        self._same.append((first, other))

    def build(self) -> Report:
        """The finished report."""
        weak: dict[str, list[ReportEntry]] = {}
        for entry in self._entries.values():
            if entry.status is not KeywordStatus.ENFORCED or entry.reason:
                weak.setdefault(entry.pointer, []).append(entry)
        for first, other in self._same:
            for entry in weak.get(first, ()):
                if (other, entry.keyword) in self._entries:
                    self.add(other, entry.keyword, entry.status, entry.reason)
        return Report(self._dialect, tuple(sorted(self._entries.values())))
