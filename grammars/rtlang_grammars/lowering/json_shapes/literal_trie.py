"""Tries of literal texts and of an object's keys, written as states by compiled code.

A chain of bytes takes one state per byte and no row. A trie may lie *over* an automaton of all other keys: bytes that leave the trie are
read as after any other key of as many characters, and PARAM of each node is the node, to which the frame of an escape returns.
"""
# mypy: disable-error-code="no-untyped-def, untyped-decorator, misc, no-untyped-call"

from __future__ import annotations

import numpy as np

from rtlang_grammars.machine.automaton.layout import (
    ACC,
    BLOCK,
    BYTE,
    DEAD_ROW,
    ENDS,
    FIRST_ACTION,
    KEY_BRANCH,
    KEY_END,
    NONE,
    PARAM,
    ROW,
    SLICE,
    STATE_WORDS,
    TARGET,
)
from rtlang_grammars.machine.native.array_types import INT, INT32, INT32_TABLE, INT64, INT64_TABLE, TEXT
from rtlang_grammars.machine.native.native_code import compiled

LITERALS, CLOSED_KEYS, OPEN_KEYS = 0, 1, 2
NO_STATES, NO_ROWS, NO_WORDS = (np.zeros(shape, dtype=np.int32) for shape in ((0, STATE_WORDS), (0, 256), 0))
"""Arguments of a call that only counts states, rows and words."""
_QUOTE = 0x22


@compiled(TEXT, INT64, INT, INT64, INT32_TABLE, INT32_TABLE, INT32, INT64_TABLE)
def build_trie(data, offsets, mode, plan, S, T, X, stack):  # pragma: no cover
    """Write the states, rows and actions of a trie; with empty S only count them.

    Args:
        data, offsets: uint8 and int64 [n + 1]: the texts, sorted and distinct.
        mode: LITERALS (a text ends its frame), CLOSED_KEYS, OPEN_KEYS (a quote ends a name).
        plan: int64: first state, first row, first word of X, the object's description in X, its block, and for OPEN_KEYS the slice of the
            nodes and their row for bytes that leave the trie.
        S, X: the new parts only, from the first state and the first word on. T: all rows, [rows, 256].
        stack: int64 [n + 1, 4], pending nodes: low, high (of the texts), depth, state. Pending nodes share no text, so there are at most as
            many as texts.
    Returns:
        Numbers of states, of rows and of words of X.
    """
    writes = S.shape[0] > 0
    first_state, first_row, first_word = plan[0], plan[1], plan[2]
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 0, offsets.shape[0] - 1, 0, 0
    outside = plan[6] if mode == OPEN_KEYS else np.int64(DEAD_ROW)
    size = 1
    states, rows, words = 1, 0, 0
    while size > 0:
        size -= 1
        low, high, depth, state = stack[size, 0], stack[size, 1], stack[size, 2], stack[size, 3]
        is_end = offsets[low + 1] - offsets[low] == depth
        first = low + 1 if is_end else low
        num_marked = 1 if is_end and mode != LITERALS else 0
        i = first
        while i < high:
            i = _group(data, offsets, i, high, depth)
            num_marked += 1
        row = outside
        has_row = num_marked > 1
        if has_row:
            if writes:
                for b in range(256):
                    T[first_row + rows, b] = T[row, b]
            row = first_row + rows
            rows += 1
        if writes:
            S[state, ROW], S[state, BYTE], S[state, TARGET], S[state, PARAM] = row, 256, NONE, -1
            S[state, ACC] = ENDS if is_end and mode == LITERALS else 0
            S[state, BLOCK] = plan[4]
            if mode == OPEN_KEYS:
                S[state, PARAM], S[state, SLICE] = first_state + state, plan[5]
        if is_end and mode != LITERALS:
            if writes:
                X[words], X[words + 1], X[words + 2] = KEY_END, plan[3], low
                _set(S, T, state, row, has_row, np.int64(_QUOTE), FIRST_ACTION - (first_word + words))
            words += 3
        i = first
        while i < high:
            end = _group(data, offsets, i, high, depth)
            byte = data[offsets[i] + depth]
            target = first_state + states
            # If only names of the trie can follow, one of them must still be allowed. (Checked only at the first byte of a chain.)
            is_checked = mode == CLOSED_KEYS and end - i < high - low
            if writes:
                entry = target
                if is_checked:
                    X[words], X[words + 1], X[words + 2], X[words + 3], X[words + 4] = (
                        KEY_BRANCH,
                        plan[3],
                        target,
                        i,
                        end,
                    )
                    entry = FIRST_ACTION - (first_word + words)
                _set(S, T, state, row, has_row, np.int64(byte), entry)
            if is_checked:
                words += 5
            stack[size, 0], stack[size, 1], stack[size, 2], stack[size, 3] = i, end, depth + 1, states
            size += 1
            states += 1
            i = end
    return states, rows, words


@compiled(inner=True)
def _group(data, offsets, i, high, depth):  # pragma: no cover
    """The end of the texts from `i` on that share its byte at `depth`."""
    byte = data[offsets[i] + depth]
    i += 1
    while i < high and data[offsets[i] + depth] == byte:
        i += 1
    return i


@compiled(inner=True)
def _set(S, T, state, row, has_row, byte, entry):  # pragma: no cover
    if has_row:
        T[row, byte] = entry
    else:
        S[state, BYTE], S[state, TARGET] = byte, entry
