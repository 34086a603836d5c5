"""Tokens that constraints name: by name, by id, in sets; and the byte strings that stand for them in texts of the machine.

A text of the machine is UTF-8 in which a token taken by name or id stands as TOKEN_LEAD, which no UTF-8 contains, and four bytes with six
bits of the id each. So a token is a terminal like any other, a set of tokens is a small automaton, and no text can spell one by accident.
"""

from __future__ import annotations

import difflib
import functools
import hashlib
import re
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rtlang_grammars.spec.errors import GrammarError

TOKEN_LEAD = 0xFF
"""The first byte of a token in a text of the machine."""
SPELLING_BYTES = 5
"""Bytes of a token in a text of the machine."""
MAX_TOKEN_ID = (1 << 20) - 1

Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""Token ids as (first, last), sorted, disjoint and not adjacent."""

Segment: TypeAlias = str | int
"""Text, or the id of a token."""

_MAX_KNOWN = 8
_BRACKETED = re.compile(r"\[(?P<body>[^\[\]]*)\]")
_ID_RANGE = re.compile(r"\s*([0-9]{1,9})\s*(?:-\s*([0-9]{1,9})\s*)?")


def spelling(token_id: int) -> bytes:
    """The bytes that stand for a token in a text of the machine."""
    return bytes((TOKEN_LEAD, *(0x80 | token_id >> shift & 0x3F for shift in (18, 12, 6, 0))))


def token_at(data: bytes, at: int) -> int | None:
    """The token whose spelling begins at an offset; None if it is cut off."""
    if at + SPELLING_BYTES > len(data):
        return None
    found = 0
    for byte in data[at + 1 : at + SPELLING_BYTES]:
        found = found << 6 | byte & 0x3F
    return found


def segments_of(data: bytes) -> list[bytes | int]:
    """A text of the machine as pieces of text and tokens. A token that is cut off at the end is left out."""
    found: list[bytes | int] = []
    at = 0
    while at < len(data):
        lead = data.find(TOKEN_LEAD, at)
        if lead != at:
            found.append(data[at : lead if lead >= 0 else len(data)])
            at = lead if lead >= 0 else len(data)
            continue
        token_id = token_at(data, at)
        if token_id is not None:
            found.append(token_id)
        at += SPELLING_BYTES
    return found


@dataclass(frozen=True, slots=True)
class TokenSet:
    """A set of tokens as a constraint names them.

    Attributes:
        names: tokens by name.
        ranges: tokens by id, (first, last).
        is_negated: all other tokens are meant.
        source: as written, for messages.
    """

    names: tuple[str, ...] = ()
    ranges: tuple[tuple[int, int], ...] = ()
    is_negated: bool = False
    source: str = ""


def read_token(source: str) -> TokenSet:
    """Read `<name>`, `<[1,5,10-20]>`, `<[^1]>` or `<[*]>`.

    Raises:
        GrammarError: the ids are malformed; without a location.
    """
    inner = source[1:-1]
    bracketed = _BRACKETED.fullmatch(inner)
    if bracketed is None:
        return TokenSet(names=(source,), source=source)
    body = bracketed["body"].strip()
    if body == "*":
        return TokenSet(is_negated=True, source=source)
    is_negated = body.startswith("^")
    ranges = []
    for part in body.removeprefix("^").split(","):
        found = _ID_RANGE.fullmatch(part)
        if found is None:
            raise GrammarError(f"{source}: expected token ids and ranges of ids, such as <[5]>, <[1,10-20]> or <[^5]>")
        first, last = int(found[1]), int(found[2] or found[1])
        if first > last:
            raise GrammarError(f"{source}: the range {first}-{last} is out of order")
        ranges.append((first, last))
    return TokenSet(ranges=tuple(ranges), is_negated=is_negated, source=source)


def token_set(which: object) -> TokenSet:
    """Read a token as structures name it: a name, an id, ids as in `read_token`, or {"except": [name or id, ...]}.

    Raises:
        GrammarError: it is malformed; without a location.
    """
    if isinstance(which, dict) and which.keys() == {"except"} and isinstance(which["except"], list):
        parts = [token_set(each) for each in which["except"]]
        names = tuple(name for part in parts for name in part.names)
        ranges = tuple(ids for part in parts for ids in part.ranges)
        if any(part.is_negated for part in parts):
            raise GrammarError(f"except = {which['except']!r}: expected names and ids of tokens")
        return TokenSet(names, ranges, is_negated=True, source=f"any token except {which['except']}")
    if isinstance(which, int) and not isinstance(which, bool) and 0 <= which <= MAX_TOKEN_ID:
        return TokenSet(ranges=((which, which),), source=f"<[{which}]>")
    if not isinstance(which, str) or not which:
        raise GrammarError(f"token = {which!r}: expected the name of a token, or an id from 0 to {MAX_TOKEN_ID}")
    if not (which.startswith("<[") and which.endswith("]>")):
        return TokenSet(names=(which,), source=which)
    return read_token(which)


class SpecialTokens:
    """The tokens of a vocabulary as constraints name them. Immutable.

    Attributes:
        names: the ids of special tokens by name.
        num_ids: the highest id of a token, plus one.
    """

    def __init__(
        self, token_bytes: Sequence[bytes], silent_ids: Iterable[int] = (), end_ids: Iterable[int] = ()
    ) -> None:
        self._token_bytes = token_bytes
        self._silent_ids, self._end_ids = frozenset(silent_ids), frozenset(end_ids)
        self.num_ids = max(len(token_bytes), max(self._silent_ids, default=-1) + 1)
        self.names: dict[str, int] = {}
        for token_id in sorted(self._silent_ids):
            if token_id < len(token_bytes) and (name := token_bytes[token_id].decode("utf-8", "replace")):
                self.names.setdefault(name, token_id)

    @functools.cached_property
    def digest(self) -> str:
        """A text that differs between any two vocabularies."""
        lengths = array("i", map(len, self._token_bytes))
        found = hashlib.blake2b(repr(sorted(self._silent_ids)).encode(), digest_size=16)
        found.update(lengths.tobytes())
        found.update(b"".join(self._token_bytes))
        return found.hexdigest()

    def name_in(self, text: str) -> str | None:
        """The first special token that a text spells; None if it spells none."""
        found = None if self._pattern is None else self._pattern.search(text)
        return None if found is None else found[0]

    def segments(self, text: str) -> tuple[Segment, ...]:
        """A text with the names of special tokens replaced by them."""
        if self._pattern is None:
            return (text,) if text else ()
        found: list[Segment] = []
        at = 0
        for match in self._pattern.finditer(text):
            found += [text[at : match.start()], self.names[match[0]]]
            at = match.end()
        return tuple(each for each in (*found, text[at:]) if each != "")

    def spell(self, text: str) -> bytes:
        """A text as the machine reads it: the names of special tokens stand for these tokens.

        Raises:
            GrammarError: the text has a lone surrogate.
        """
        try:
            parts = [spelling(each) if isinstance(each, int) else each.encode() for each in self.segments(text)]
        except UnicodeEncodeError as error:
            raise GrammarError("a string contains a lone surrogate, which cannot be encoded") from error
        return b"".join(parts)

    def resolve(self, tokens: TokenSet) -> Ranges:
        """The ids of a set of tokens. End tokens are in it if they are named, not if all but others are meant.

        Raises:
            GrammarError: the vocabulary has no such token, or the set is empty; names the token, without a location.
        """
        for token_id in (each for ends in tokens.ranges for each in ends):
            if token_id >= self.num_ids:
                raise GrammarError(f"the vocabulary has no token {token_id}; its ids go from 0 to {self.num_ids - 1}")
        ranges = [*tokens.ranges, *((found, found) for found in map(self._id_of, tokens.names))]
        found = normalized(ranges)
        if tokens.is_negated:
            ends = [(token_id, token_id) for token_id in self._end_ids]
            found = _complement(normalized([*found, *ends]), self.num_ids)
        found = _common(found, self._existing)
        if not found:
            raise GrammarError(f"{tokens.source}: no token of the vocabulary is left")
        return found

    def texts(self, tokens: Ranges) -> frozenset[str]:
        """The texts of tokens as a reader sees them: special tokens by name. Tokens with parts of characters are left out."""
        names = {token_id: name for name, token_id in self.names.items()}
        found = set[str]()
        for first, last in tokens:
            for token_id in range(first, last + 1):
                data = self._token_bytes[token_id] if token_id < len(self._token_bytes) else b""
                text = names.get(token_id) or data.decode("utf-8", "ignore")
                if text and (token_id in names or text.encode() == data):
                    found.add(text)
        return frozenset(found)

    @functools.cached_property
    def _existing(self) -> Ranges:
        """All ids that a text may have."""
        texts = ((i, i) for i, text in enumerate(self._token_bytes) if text or i in self._silent_ids)
        return normalized([*texts, *((i, i) for i in self._silent_ids)])

    def _id_of(self, name: str) -> int:
        found = self.names.get(name)
        if found is None:
            found = self._ordinary_ids.get(name.encode("utf-8", "replace"))
        if found is None:
            near = difflib.get_close_matches(name, self.names, n=3, cutoff=0.6)
            known = near or sorted(self.names)[:_MAX_KNOWN]
            more = ", ..." if not near and len(self.names) > _MAX_KNOWN else ""
            about = (
                f"; did you mean {' or '.join(near)}?" if near else f"; its special tokens: {', '.join(known)}{more}"
            )
            raise GrammarError(f"the vocabulary has no token {name}" + (about if known else " and no special tokens"))
        return found

    @functools.cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        """Matches names; None if there are none."""
        # A blank or a single character is part of ordinary texts.
        names = sorted((name for name in self.names if len(name) > 1 and name.strip()), key=len, reverse=True)
        return re.compile("|".join(map(re.escape, names))) if names else None

    @functools.cached_property
    def _ordinary_ids(self) -> dict[bytes, int]:
        """The lowest id of each text."""
        ids: dict[bytes, int] = {}
        for token_id, text in enumerate(self._token_bytes):
            if text and token_id not in self._silent_ids:
                ids.setdefault(text, token_id)
        return ids


class AnyTokens(SpecialTokens):
    """Stands for the tokens of a vocabulary that is not known: every name and id is one."""

    def __init__(self) -> None:
        super().__init__(())

    @property
    def _pattern(self) -> None:
        """No text spells a token that is not known."""
        return None

    def resolve(self, tokens: TokenSet) -> Ranges:
        """As many ids as there are names, besides those given."""
        if tokens.is_negated:
            return ((0, MAX_TOKEN_ID),)
        for _, last in tokens.ranges:
            if last > MAX_TOKEN_ID:
                raise GrammarError(f"{tokens.source or last}: token ids go to {MAX_TOKEN_ID} at most")
        made = [(found, found) for found in map(self._id_of, tokens.names)]
        return normalized([*tokens.ranges, *made])

    def _id_of(self, name: str) -> int:
        return self.names.setdefault(name, MAX_TOKEN_ID - len(self.names))


def normalized(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Ranges sorted and joined."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return tuple(found)


def _complement(ranges: Ranges, count: int) -> Ranges:
    found, at = [], 0
    for first, last in ranges:
        if first > at:
            found.append((at, first - 1))
        at = last + 1
    if at < count:
        found.append((at, count - 1))
    return tuple(found)


def _common(ranges: Ranges, others: Ranges) -> Ranges:
    """The ids in both."""
    found, at = [], 0
    for first, last in ranges:
        while at < len(others) and others[at][1] < first:
            at += 1
        i = at
        while i < len(others) and others[i][0] <= last:
            found.append((max(first, others[i][0]), min(last, others[i][1])))
            i += 1
    return normalized(found)


@dataclass(frozen=True, slots=True)
class SpellingAutomaton:
    """The automaton of the spellings of some tokens.

    Attributes:
        states: for each state, (first byte, last byte, next state); the state with no moves accepts. State 0 is the start.
    """

    states: tuple[tuple[tuple[int, int, int], ...], ...]

    @classmethod
    def of(cls, ranges: Ranges) -> SpellingAutomaton:
        """The automaton of ranges of ids; equal rests share a state."""
        states: list[tuple[tuple[int, int, int], ...]] = [()]
        known: dict[tuple[int, Ranges], int] = {}

        def state(shift: int, within: Ranges) -> int:
            """The state before the digit at a shift, for ids relative to the digits read."""
            key = (shift, within)
            if key not in known:
                known[key] = len(states)
                states.append(())
                states[known[key]] = moves(shift, within)
            return known[key]

        def moves(shift: int, within: Ranges) -> tuple[tuple[int, int, int], ...]:
            size = 1 << shift
            parts: dict[int, list[tuple[int, int]]] = {}
            for first, last in within:
                for digit in range(first >> shift, (last >> shift) + 1):
                    low = digit << shift
                    parts.setdefault(digit, []).append((max(first, low) - low, min(last, low + size - 1) - low))
            found: list[tuple[int, int, int]] = []
            for digit, rest in sorted(parts.items()):
                target = state(shift - 6, tuple(rest)) if shift else end
                if found and found[-1][1] == 0x80 + digit - 1 and found[-1][2] == target:
                    found[-1] = (found[-1][0], 0x80 + digit, target)
                else:
                    found.append((0x80 + digit, 0x80 + digit, target))
            return tuple(found)

        end = len(states)
        states.append(())
        states[0] = ((TOKEN_LEAD, TOKEN_LEAD, state(18, ranges)),)
        return cls(tuple(states))
