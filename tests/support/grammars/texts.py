"""Texts, patterns and byte walks for the tests of regular languages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from hypothesis import strategies as st

from rtlang_grammars.regular.automata.byte_automaton import Automaton

SHARED = Path(__file__).parents[4] / "shared"

_ATOMS = ["a", "b", "c", ".", "[ab]", "[^a]", "[b-d]", r"\d", r"\w", r"\s", r"\.", "é", "-", "1", r"[\w-]", " "]
_ENDS = ["^", "$", r"\b", r"\B"]
_COUNTS = ["*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}", "*?", "+?"]

ALPHABET = "abcd1 -é\n_."
short_texts = st.text(alphabet=ALPHABET, max_size=7)


def patterns(*, assertions: bool) -> st.SearchStrategy[str]:
    """Patterns that ECMA-262 and Python read alike on ALPHABET, but for what `\\w` and the line ends are there."""
    atoms = st.sampled_from(_ATOMS + (_ENDS if assertions else []))

    def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        group = st.builds("({})".format, inner)
        ways = [
            st.builds(lambda one, other: one + other, inner, inner),
            st.builds("(?:{}|{})".format, inner, inner),
            st.builds(lambda item, count: f"(?:{item}){count}", inner, st.sampled_from(_COUNTS)),
            group,
        ]
        if assertions:
            kinds = st.sampled_from(["?=", "?!"])
            ways.append(st.builds("({}{})".format, kinds, inner))
            ways.append(st.builds("({}{})".format, st.sampled_from(["?<=", "?<!"]), st.sampled_from(_ATOMS)))
        return st.one_of(ways)

    return st.recursive(atoms, grow, max_leaves=7)


def walk(automaton: Automaton, data: bytes) -> int | None:
    """The state after some bytes; None where they cannot follow."""
    state = automaton.start
    for byte in data:
        state = int(automaton.row(state)[byte])
        if state < 0:
            return None
    return state


def accepts(automaton: Automaton, data: bytes) -> bool:
    """Whether the automaton accepts exactly these bytes."""
    state = walk(automaton, data)
    return state is not None and automaton.is_accepting(state)


def completion(automaton: Automaton, state: int, limit: int = 20_000) -> bytes | None:
    """Some shortest bytes to acceptance, found without any help of the automaton; None where none was found among `limit` states."""
    seen = {state}
    waiting = [(state, b"")]
    for at, data in waiting:
        if automaton.is_accepting(at):
            return data
        row = automaton.row(at)
        for byte in range(256):
            target = int(row[byte])
            if target >= 0 and target not in seen and len(seen) < limit:
                seen.add(target)
                waiting.append((target, data + bytes([byte])))
    return None


def reachable(automaton: Automaton, limit: int) -> list[int]:
    """Up to `limit` states, breadth first."""
    found = {automaton.start: None}
    for state in iter_growing(found):
        for target in set(automaton.row(state).tolist()):
            if target >= 0 and len(found) < limit:
                found.setdefault(target)
    return list(found)


def iter_growing(mapping: dict[int, None]) -> Iterator[int]:
    """The keys of a mapping that grows meanwhile."""
    done = 0
    while done < len(mapping):
        for key in list(mapping)[done:]:
            done += 1
            yield key


def spellings(text: str) -> list[str]:
    """Some spellings of a text within a JSON string, the plain ones first."""
    plain = json.dumps(text, ensure_ascii=False)[1:-1]
    escaped = json.dumps(text)[1:-1]
    units = text.encode("utf-16-be")
    upper = "".join(f"\\u{units[at] << 8 | units[at + 1]:04X}" for at in range(0, len(units), 2))
    return [plain, escaped, upper, upper.lower(), plain.replace("/", "\\/")]
