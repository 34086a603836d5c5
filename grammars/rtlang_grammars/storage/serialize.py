"""Serializes complete tables as flat arrays and plain data.

Rows that are built on demand come from objects that cannot be stored, so a grammar is stored only after every row is built
(`complete_rows`), which is possible for most grammars. The tables are then plain numbers, plus the completions of strings and frames, which
are computed for every state. The base states, with which all tables begin, are left out.

Invariant: loaded tables accept exactly what the dumped tables accept.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.lowering.json_shapes.closers import (
    ArrayCloser,
    CountedCloser,
    DistinctCloser,
    Names,
    ObjectCloser,
    names_of,
)
from rtlang_grammars.lowering.json_shapes.joints import Joints
from rtlang_grammars.lowering.languages.counted_embedding import TextCloser
from rtlang_grammars.lowering.languages.raw_text import FillCloser
from rtlang_grammars.machine.automaton.layout import OBJ_MIN, STATE_WORDS
from rtlang_grammars.machine.automaton.tables import Closer, Tables, TextFacts

MAX_ROWS = 2048
"""Maximum rows of complete tables; building one takes about 40 us."""
MAX_SECONDS = 0.5
"""CPU time limit for completing rows."""
Array = NDArray[np.int32]


def complete_rows(tables: Tables, max_rows: int = MAX_ROWS, max_seconds: float = MAX_SECONDS) -> bool:
    """Build every open row, within bounds; returns whether none is left open. Other threads may use the tables in the meantime.

    Raises:
        GrammarError: the budget of the grammar is used up.
    """
    deadline = time.thread_time() + max_seconds
    while tables.makers:
        if tables.num_rows > max_rows + len(tables.makers) or time.thread_time() > deadline:
            return False
        with tables.lock:
            waiting = list(tables.makers)
        for state in waiting:
            tables.complete(state)
            time.sleep(0)  # lets threads waiting for the interpreter run first
            if tables.num_rows > max_rows or time.thread_time() > deadline:
                return not tables.makers
    return True


def dump(tables: Tables, base: Tables) -> tuple[dict[str, Any], list[Array]] | None:
    """Tables without open rows as plain data and int32 arrays; None if they do not begin with `base`.

    Raises:
        GrammarError: a budget is used up.
    """
    assert not tables.makers, "finished tables are asked for"
    num_states, num_words, num_rows = len(base.states), len(base.words), base.num_rows
    states, words = np.array(tables.states, dtype=np.int32), np.array(tables.words, dtype=np.int32)
    if not (
        np.array_equal(states[:num_states], base.states)
        and np.array_equal(words[:num_words], base.words)
        and np.array_equal(tables.rows[:num_rows], base.rows)
    ):
        return None
    cells = tables.rows[num_rows:].reshape(-1)
    is_new = np.ones(len(cells), dtype=np.bool_)
    is_new[1:] = cells[1:] != cells[:-1]
    begins = np.flatnonzero(is_new)
    lengths = np.diff(begins, append=len(cells)).astype(np.int32)
    closers, of_state = _closers(tables)
    counted = np.array([(state, *bounds) for state, bounds in tables.counted.items()], dtype=np.int32)
    bounds = np.array([(state, *each) for state, each in tables.token_bounds.items()], dtype=np.int32)
    ends, embedded = _embedded(tables)
    texts = [
        [each.start, _latin(each.last), _latin(each.follow), each.most, _latin(each.others)] for each in tables.texts
    ]
    plain = {"base": [num_states, num_words, num_rows], "closers": closers, "ends": ends, "texts": texts}
    numbers = [of_state, counted.reshape(-1), bounds.reshape(-1), embedded]
    return plain, [states[num_states:], words[num_words:], cells[begins], lengths, *numbers]


def load(plain: dict[str, Any], arrays: Sequence[Array], tables: Tables) -> None:
    """Restore dumped tables: the inverse of `dump`.

    Args:
        tables: fresh tables that begin with the base; completed in place.
    Raises:
        ValueError, KeyError, TypeError, IndexError: `plain` and `arrays` do not come from `dump` with this base.
    """
    if plain["base"] != [len(tables.states), len(tables.words), tables.num_rows]:
        raise ValueError("the tables do not begin with the base of the dump")
    states, words, values, lengths, of_state, counted, bounds, embedded = arrays
    tables.states.frombytes(states.tobytes())
    tables.words.frombytes(words.tobytes())
    cells = np.repeat(values, lengths)
    if len(cells) % 256 or len(tables.states) % STATE_WORDS:
        raise ValueError("an incomplete row or state")
    first = tables.add_rows(len(cells) // 256)
    tables.rows[first:] = cells.reshape(-1, 256)
    closers = [_closer(each, tables) for each in plain["closers"]]
    tables.closers.update({state: closers[index] for state, index in of_state.reshape(-1, 2).tolist()})
    for start, last, follow, most, others in plain["texts"]:
        last, others = (None if each is None else each.encode("latin-1") for each in (last, others))
        tables.texts.append(TextFacts(start, last, follow.encode("latin-1"), most, others))
    tables.counted.update({state: (low, high) for state, low, high in counted.reshape(-1, 3).tolist()})
    tables.token_bounds.update({state: (most, ended) for state, most, ended in bounds.reshape(-1, 3).tolist()})
    known = _StoredStrings({}, [[text.encode("latin-1") for text in texts] for texts in plain["ends"]])
    for state, *what in embedded.reshape(-1, 5).tolist():
        known.by_state[state] = tuple(what)
        tables.embedded[state] = known


def _latin(data: bytes | None) -> str | None:
    return None if data is None else data.decode("latin-1")


@dataclass(frozen=True, slots=True)
class _StoredStrings:
    """Stored answers of `tables.Embedded`.

    Attributes:
        by_state: free length (-1: unbounded), coarse levels, index of the nearest ends, whether it is quoted.
    """

    by_state: dict[int, tuple[int, ...]]
    ends: list[list[bytes]]

    def is_quoted(self, number: int) -> bool:
        return self.by_state[number][3] != 0

    def free_length(self, number: int) -> int | None:
        length = self.by_state[number][0]
        return None if length < 0 else length

    def is_free(self, number: int) -> bool:
        return self.by_state[number][0] < 0

    def relaxed(self, number: int, reach: int) -> int:
        """See `tables.Embedded`: all rows are there, and only those."""
        return number

    def coarse_levels(self, number: int) -> int:
        return self.by_state[number][1]

    def nearest_ends(self, number: int) -> list[bytes]:
        return self.ends[self.by_state[number][2]]


def _embedded(tables: Tables) -> tuple[list[list[str]], Array]:
    """Answers for states inside strings: the distinct lists of nearest ends, and for each state its number and `_StoredStrings` fields."""
    numbers: dict[tuple[bytes, ...], int] = {}
    found = []
    for state, strings in tables.embedded.items():
        with tables.lock:
            length, levels = strings.free_length(state), strings.coarse_levels(state)
            ends = tuple(strings.nearest_ends(state))
        time.sleep(0)
        number = numbers.setdefault(ends, len(numbers))
        found.append((state, -1 if length is None else length, levels, number, strings.is_quoted(state)))
    texts = [[text.decode("latin-1") for text in ends] for ends in numbers]
    return texts, np.array(found, dtype=np.int32).reshape(-1)


def _closers(tables: Tables) -> tuple[list[list[Any]], Array]:
    """All closers as plain data, and for each state with a closer its number and the index of the closer."""
    numbers: dict[int, int] = {}
    plain: list[list[Any]] = []
    of_state = []
    for state, closer in tables.closers.items():
        number = numbers.get(id(closer))
        if number is None:
            number = numbers[id(closer)] = len(plain)
            plain.append(_plain(closer, tables))
        of_state.append((state, number))
    return plain, np.array(of_state, dtype=np.int32).reshape(-1)


def _plain(closer: Closer, tables: Tables) -> list[Any]:
    match closer:
        case CountedCloser(least):
            return ["counted", least]
        case FillCloser(least, filler):
            return ["fill", least, filler.decode("latin-1")]
        case TextCloser(end):
            return ["text", end.decode("latin-1")]
        case ArrayCloser(done, min_items, prefix, items, joints):
            return ["array", done, min_items, prefix, items, _joints(joints)]
        case DistinctCloser(_, description, texts, is_first, joints):
            return ["distinct", description, [text.decode("latin-1") for text in texts], is_first, _joints(joints)]
        case ObjectCloser(_, description, members, others, is_first, joints):
            least = tables.words[description + OBJ_MIN]
            names = [(_few(each, least), starts) for each, starts in others]
            named = [(n.decode("latin-1"), s) for n, s in members]
            return ["object", description, named, names, is_first, _joints(joints)]
    raise TypeError(f"no plain form of {type(closer).__name__}")


def _joints(joints: Joints) -> list[str]:
    return [text.decode() for text in astuple(joints)]


def _few(names: Names, count: int) -> list[str] | None:
    """As many names as may be needed; None if any will do."""
    if names is None or isinstance(names, tuple):
        return None if names is None else list(names)
    return list(dict.fromkeys(names_of(names, count))) if count > 0 else []


def _closer(plain: list[Any], tables: Tables) -> Closer:
    match plain:
        case ["counted", int(least)]:
            return CountedCloser(least)
        case ["fill", int(least), str(filler)]:
            return FillCloser(least, filler.encode("latin-1"))
        case ["text", str(end)]:
            return TextCloser(end.encode("latin-1"))
        case ["array", int(done), int(min_items), prefix, items, texts]:
            joints = Joints(*(text.encode() for text in texts))
            return ArrayCloser(done, min_items, tuple(tuple(starts) for starts in prefix), tuple(items), joints)
        case ["distinct", int(description), values, bool(is_first), texts]:
            joints = Joints(*(text.encode() for text in texts))
            values = tuple(text.encode("latin-1") for text in values)
            return DistinctCloser(tables.words, description, values, is_first, joints)
        case ["object", int(description), members, others, bool(is_first), texts]:
            return ObjectCloser(
                tables.words,
                description,
                tuple((name.encode("latin-1"), tuple(starts)) for name, starts in members),
                tuple((None if names is None else tuple(names), tuple(starts)) for names, starts in others),
                is_first,
                Joints(*(text.encode() for text in texts)),
            )
    raise ValueError("no closer")
