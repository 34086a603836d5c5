"""Finds the stops of one growing text: strings and patterns, one character at a time.

A text ends with the first character that makes a stop certain: a match that stands whatever follows. Of the stops that become certain
with this character, the one that begins first is cut off together with all that follows it; of those that begin at one place, the one
listed first. So the result depends on the text alone, never on how tokens divide it. A pattern that looks ahead (`$`, `\\b`, `(?=`) is
certain only once the characters that it looks at are there, or the text has ended. In a constrained text only stops count that begin where
it is complete; all others are parts of it.

The work for a character is bounded by the patterns, not by the text: a string follows its longest beginning (Knuth, Morris, Pratt 1977),
a pattern the states of its complete automaton (`rtlang_grammars`), each with the first place from which it was reached. Nothing
backtracks and no state is built here, since this runs on the engine thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from rtlang.contract.errors import ParameterError, RequestError
from rtlang_grammars import GrammarError
from rtlang_grammars.regular.automata.code_point_automaton import NO_STATE
from rtlang_grammars.regular.automata.search_automaton import SearchTables, compile_search
from rtlang_grammars.spec.limits import Budget, Limits

MOVES_PER_CHARACTER = 256
"""States that the patterns of one request may follow for each character on average; above that the request fails."""
MAX_STATES = 4_000
"""States of the automata of all patterns of one request."""
_MAX_TERMS, _MAX_SECONDS = 100_000, 1.0
_FIRST_MOVES = 10_000
_MAX_KNOWN_CLASSES = 4096


@dataclass(frozen=True, slots=True)
class Stop:
    """A stop that was found, and the end of the text in characters."""

    match: str
    offset: int


@dataclass(frozen=True, slots=True)
class StopPattern:
    """A compiled pattern of `stop_regex`."""

    source: str
    tables: SearchTables


def compile_stop_patterns(sources: Sequence[str], cancelled: threading.Event | None = None) -> tuple[StopPattern, ...]:
    """Compile the patterns of one request, with one budget for all of them. Not for the engine thread: it may take a second.

    A pattern that is listed again is left out: it can stop no text that the first one does not stop at the same place.

    Args:
        cancelled: stops the compilation; asked every half millisecond.
    Raises:
        ParameterError: a pattern is invalid, needs backtracking (backreferences, atomic groups, possessive quantifiers, conditionals), or
            all together need more than `MAX_STATES` states.
    """
    budget = Budget(Limits(max_states=_MAX_TERMS, max_seconds=_MAX_SECONDS), cancelled)
    found: list[StopPattern] = []
    num_states = 0
    for source in dict.fromkeys(sources):
        try:
            tables = compile_search(source, max_states=MAX_STATES, budget=budget)
        except GrammarError as error:
            place = "" if error.location is None else f" at {error.location}"
            raise ParameterError(
                "stop_regex", source, f"expected a pattern that automata can search: {error.reason}{place}"
            ) from None
        except RecursionError:
            raise ParameterError(
                "stop_regex", source, "expected a pattern with fewer groups within each other"
            ) from None
        num_states += len(tables.moves)
        if num_states > MAX_STATES:
            raise ParameterError(
                "stop_regex", source, f"the patterns need more than {MAX_STATES} states together; expected simpler ones"
            )
        found.append(StopPattern(source, tables))
    return tuple(found)


class StopSearch:
    """The search for the stops of one text. Owned by its request.

    Args:
        strings, patterns: the stops. A place at which several end and begin is decided by this order.
        may_begin: whether a stop may begin at an offset of the text, which has been read up to it; None: anywhere.
    """

    def __init__(
        self,
        strings: Sequence[str],
        patterns: Sequence[StopPattern],
        may_begin: Callable[[int], bool] | None = None,
    ) -> None:
        self._may_begin = may_begin
        self._strings = [_StringSearch(each) for each in strings]
        self._patterns = [_PatternSearch(each) for each in patterns]
        self._num_chars = 0
        self._moves_left = _FIRST_MOVES

    @property
    def num_chars(self) -> int:
        """The number of characters that were read: after a stop, up to the character that made it certain."""
        return self._num_chars

    def skip(self, text: str) -> None:
        """Read text in which no stop begins or ends, but which patterns may look back at."""
        for character in text:
            for pattern in self._patterns:
                pattern.skip(character)
        self._num_chars += len(text)

    def push(self, text: str) -> Stop | None:
        """Read text; returns the stop that ends it. Read nothing after that.

        Raises:
            RequestError: the patterns follow more states than `MOVES_PER_CHARACTER` for each character.
        """
        may_begin = self._may_begin
        for pattern in self._patterns:
            stop = pattern.first_stop(self._num_chars)
            if stop is not None and (may_begin is None or may_begin(stop.offset)):
                return stop
        if not self._patterns and not any(each.concerns(text) for each in self._strings):
            self._num_chars += len(text)
            return None
        for character in text:
            found: Stop | None = None
            end = self._num_chars = self._num_chars + 1
            for string in self._strings:
                start = string.push(character, end, may_begin)
                if start is not None and (found is None or start < found.offset):
                    found = Stop(string.text, start)
            for pattern in self._patterns:
                start = pattern.push(character, end, may_begin)
                if start is not None and (found is None or start < found.offset):
                    found = Stop(pattern.source, start)
                self._moves_left -= len(pattern.threads)
            if found is not None:
                return found
            self._moves_left += MOVES_PER_CHARACTER
            if self._moves_left < 0:
                raise RequestError(
                    f"stop_regex = {[each.source for each in self._patterns]!r:.200}: the search follows more than "
                    f"{MOVES_PER_CHARACTER} places for each character; use shorter repetitions"
                )
        return None

    def finish(self) -> Stop | None:
        """The text has ended; returns the stop that its end makes certain."""
        found: Stop | None = None
        for pattern in self._patterns:
            start = pattern.finish(self._num_chars, self._may_begin)
            if start is not None and (found is None or start < found.offset):
                found = Stop(pattern.source, start)
        return found

    @property
    def open_from(self) -> int:
        """The first place at which a stop may begin that is not certain yet; the length of the text if there is none."""
        return min(
            (
                *(string.open_from(self._num_chars, self._may_begin) for string in self._strings),
                *(pattern.open_from for pattern in self._patterns if pattern.open_from is not None),
            ),
            default=self._num_chars,
        )


class _StringSearch:
    """The longest beginning of a string with which the text ends."""

    __slots__ = ("_borders", "num_matched", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.num_matched = 0
        self._borders = _borders(text)

    def concerns(self, text: str) -> bool:
        """Whether the string may begin in a text or go on in it."""
        return self.num_matched > 0 or self.text[0] in text

    def open_from(self, num_chars: int, may_begin: Callable[[int], bool] | None) -> int:
        """The first place at which the string may have begun; the length of the text if there is none."""
        matched = self.num_matched
        if may_begin is not None:
            while matched and not may_begin(num_chars - matched):
                matched = self._borders[matched - 1]
        return num_chars - matched

    def push(self, character: str, end: int, may_begin: Callable[[int], bool] | None) -> int | None:
        """Read a character; returns where the string begins if it ends with it."""
        text, matched = self.text, self.num_matched
        while matched and text[matched] != character:
            matched = self._borders[matched - 1]
        if text[matched] == character:
            matched += 1
        self.num_matched = matched
        if matched < len(text):
            return None
        if may_begin is not None and not may_begin(end - len(text)):
            self.num_matched = self._borders[matched - 1]  # a later occurrence may begin within this one
            return None
        self.num_matched = 0
        return end - len(text)


@lru_cache(maxsize=256)
def _borders(text: str) -> tuple[int, ...]:
    """For each beginning of a text, the length of the longest shorter one with which it ends."""
    found = [0] * len(text)
    matched = 0
    for index in range(1, len(text)):
        while matched and text[matched] != text[index]:
            matched = found[matched - 1]
        if text[matched] == text[index]:
            matched += 1
        found[index] = matched
    return tuple(found)


class _PatternSearch:
    """The states of one pattern, each with the first place from which it is reached, in the order of these places."""

    __slots__ = ("_begins_at", "_classes", "_context", "_tables", "source", "threads")

    def __init__(self, pattern: StopPattern) -> None:
        self.source = pattern.source
        self._tables = tables = pattern.tables
        self._classes: dict[str, int] = {}
        self._context = tables.context
        self._begins_at = tables.first
        self.threads: dict[int, int] = {}

    @property
    def open_from(self) -> int | None:
        """The first place from which a match may follow; None if there is none."""
        return next(iter(self.threads.values()), None)

    def first_stop(self, num_chars: int) -> Stop | None:
        """The stop of a pattern that matches before a character is read."""
        begins = self._begins_at
        return Stop(self.source, num_chars) if begins != NO_STATE and self._tables.is_certain[begins] else None

    def skip(self, character: str) -> None:
        """Read a character at which no match begins."""
        self._context = self._tables.moves[self._context][self._class_of(character)]
        self._begins_at = self._tables.later[self._context]

    def push(self, character: str, end: int, may_begin: Callable[[int], bool] | None) -> int | None:
        """Read a character; returns the first place from which a match is certain now."""
        tables, number = self._tables, self._class_of(character)
        moves = tables.moves
        begins = self._begins_at
        threads = self.threads
        if (
            begins != NO_STATE
            and moves[begins][number] != NO_STATE
            and begins not in threads
            and (may_begin is None or may_begin(end - 1))
        ):
            threads[begins] = end - 1
        found: int | None = None
        if threads:
            self.threads = following = {}
            for state, start in threads.items():
                target = moves[state][number]
                if target != NO_STATE and target not in following:
                    following[target] = start
                    if found is None and tables.is_certain[target]:
                        found = start
        self._context = moves[self._context][number]
        self._begins_at = begins = tables.later[self._context]
        if found is None and begins != NO_STATE and tables.is_certain[begins] and (may_begin is None or may_begin(end)):
            found = end
        return found

    def finish(self, num_chars: int, may_begin: Callable[[int], bool] | None) -> int | None:
        """The text has ended; returns the first place from which a match stands."""
        accepts = self._tables.accepts_at_end
        for state, start in self.threads.items():
            if accepts[state]:
                return start
        if self._begins_at == NO_STATE or not accepts[self._begins_at]:
            return None
        return num_chars if may_begin is None or may_begin(num_chars) else None

    def _class_of(self, character: str) -> int:
        classes = self._classes
        found = classes.get(character)
        if found is None:
            if len(classes) >= _MAX_KNOWN_CLASSES:
                classes.clear()
            found = classes[character] = self._tables.partition.class_of(ord(character))
        return found
