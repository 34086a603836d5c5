"""The states of a lexer that read kinds of bytes in a loop, so that walks can pass whole subtrees of the token trie.

States are added as contexts join while a text is followed, so the arrays are extended by the new ones: all of python3's 1,800 states take
5 ms, the few of a join a tenth of that.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.context_free.lexer_build.anywhere_automaton import AnywhereAutomaton
from rtlang_grammars.context_free.lexer_build.lexer_automaton import LexerAutomaton
from rtlang_grammars.machine.lexer_run.lexer_layout import Ints
from rtlang_grammars.machine.token_index.byte_kinds import ASCII_KINDS, COUNT_SHIFT, HIGH

_ALL_KINDS = np.int64((1 << COUNT_SHIFT) - 1)
_ORDER = [byte for members in ASCII_KINDS for byte in members]
_BEGINS = np.cumsum([0, *(len(members) for members in ASCII_KINDS[:-1])])

_REST = (0x80, 0xBF)
_LEADS = (
    (0xC2, 0xDF, _REST, 0),
    (0xE0, 0xE0, (0xA0, 0xBF), 1),
    (0xE1, 0xEC, _REST, 1),
    (0xED, 0xED, (0x80, 0x9F), 1),
    (0xEE, 0xEF, _REST, 1),
    (0xF0, 0xF0, (0x90, 0xBF), 2),
    (0xF1, 0xF3, _REST, 2),
    (0xF4, 0xF4, (0x80, 0x8F), 2),
)
"""UTF-8: the first bytes of characters beyond ASCII, the second, and how many more come."""


class LexerLoops:
    """Loops of an automaton that grows.

    Attributes:
        homes: int32 [num_states], see `lexer_layout.LexerArrays.states`.
        exits: int64 [num_states], see `lexer_layout.LexerArrays.exits`.
    """

    def __init__(self) -> None:
        self.homes: Ints = np.empty(0, dtype=np.int32)
        self.exits: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._own_exits = self.exits
        # For ranges of bytes, the state after all of a range, -1 where there is no such state or a terminal ends.
        self._shared: dict[tuple[int, int], Ints] = {second: self.homes for _, _, second, _ in _LEADS}

    def extend(self, automaton: LexerAutomaton | AnywhereAutomaton) -> None:
        """Add the states that are new since the last call."""
        first, count = len(self.homes), len(automaton.following)
        new = np.arange(first, count)
        following = automaton.following[first:]
        is_quiet = automaton.winners[first:] < 0
        is_plain = np.array([not each for each in automaton.pending[first:]], dtype=np.bool_)
        is_sure = np.array(automaton.is_sure[first:], dtype=np.bool_)
        has_begun = (following[:, np.unique(automaton.classes[0x80:0xC0])] >= 0).any(axis=1)
        middle = np.flatnonzero(has_begun)
        after, quiet = np.where(is_plain[middle, None], following[middle], -1), is_quiet[middle]
        for (low, high), known in self._shared.items():
            classes = np.unique(automaton.classes[low : high + 1])
            columns = after[:, classes]
            is_one = (columns == columns[:, :1]).all(axis=1) & quiet[:, classes].all(axis=1)
            found = np.full(len(new), -1, dtype=np.int32)
            found[middle] = np.where(is_one, columns[:, 0], -1)
            self._shared[low, high] = np.concatenate([known, found])
        rest = np.append(self._shared[_REST], -1)  # one more for state -1
        looping = np.flatnonzero((following == new[:, None]).any(axis=1) & is_plain)
        bytes_after = following[looping][:, automaton.classes[:256]]
        stays = is_quiet[looping][:, automaton.classes[:256]] | is_sure[looping, None]
        is_loop = np.logical_and.reduceat(((bytes_after == new[looping, None]) & stays)[:, _ORDER], _BEGINS, axis=1)
        is_high = np.ones(len(looping), dtype=np.bool_)
        for low, high, second, num_rests in _LEADS:
            reached = np.append(self._shared[second], -1)[bytes_after[:, low : high + 1]]
            for _ in range(num_rests):
                reached = rest[reached]
            is_high &= ((reached == new[looping, None]) & stays[:, low : high + 1]).all(axis=1)
        kinds = is_loop @ (np.int64(1) << np.arange(len(ASCII_KINDS), dtype=np.int64))
        own_exits = np.full(len(new), _ALL_KINDS)
        own_exits[looping] &= ~(kinds | is_high.astype(np.int64) << HIGH)
        homes = np.append(np.concatenate([self.homes, np.where(is_plain & ~has_begun, new, -1)]), -1)
        for _ in range(3):
            homes[first + middle] = homes[rest[first + middle]]
        self.homes = homes[:-1].astype(np.int32)
        self._own_exits = np.concatenate([self._own_exits, own_exits])
        self.exits = np.append(self._own_exits, _ALL_KINDS)[self.homes]
