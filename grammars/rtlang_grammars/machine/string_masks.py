"""Masks inside strings that allow nearly all plain tokens: finds the few forbidden ones.

After (?!lucene\\.) any text but a few may follow, and a walk that collects allowed tokens would visit the whole trie. But nearly all
branches soon reach a state after which any plain text is allowed forever, and nothing below needs a visit.
"""
# mypy: disable-error-code="no-untyped-def, untyped-decorator, misc, no-untyped-call"

from __future__ import annotations

import numpy as np

from rtlang_grammars.machine.automaton.json_base_states import BACKSLASH, EMBEDDED_SLICE, QUOTE
from rtlang_grammars.machine.automaton.layout import (
    ACC,
    ENDS_OR_GOES_ON,
    IS_FREE,
    MANY,
    NEED_FREEDOM,
    NEED_ROW,
    NONE,
    OK,
    SLICE,
    UNASKED,
    UNKNOWN,
    WIDTH,
)
from rtlang_grammars.machine.native.array_types import INT, INT32, INT32_TABLE, INT64, UINT32
from rtlang_grammars.machine.native.native_code import compiled
from rtlang_grammars.machine.native.step_functions import value

MAX_FORBIDDEN = 4096
"""Maximum number of forbidden tokens; with more, collecting the allowed ones is as fast."""


@compiled(INT32_TABLE, INT32, INT, INT64, INT, INT64, INT32, INT64, nogil=True)
def walk_forbidden(S, T, state, trie, p, path, ids, out):  # pragma: no cover
    """Write the plain tokens that cannot follow `state` into `ids`, possibly with others, beginning at record `p` (0: from the start).

    OK: out[7] is their number. NEED_ROW, NEED_FREEDOM: out[0] is the state whose row is needed, or whose freedom is unknown; out[1] the
    record to resume from. MANY: `ids` has no room for them, or actions are in the way. `path`: int64, the state at each depth.
    """
    if p == 0:
        path[0] = state
        out[7] = 0
    num = np.uint64(trie.shape[0])
    count = np.uint64(out[7])
    room = np.uint64(ids.shape[0])
    at = np.uint64(p)
    while at < num:
        record = np.uint64(trie[at])
        b = np.int64(record & np.uint64(255))
        d = (record >> np.uint64(8)) & np.uint64(4095)
        end = record >> np.uint64(40)
        if b < 0x20 or b in (QUOTE, BACKSLASH):  # not a plain token
            at = end
            continue
        s = np.uint64(path[d - np.uint64(1)])
        v = np.int64(value(S, T, s, b))
        if v < 0 and v != NONE and v != UNKNOWN:
            return MANY
        if S[s, ACC] == ENDS_OR_GOES_ON:
            return MANY
        if v == NONE:
            while at < end:
                token = (np.uint64(trie[at]) >> np.uint64(20)) & np.uint64(0xFFFFF)
                if token != 0:
                    if count >= room:
                        return MANY
                    ids[count] = token - np.uint64(1)
                    count += np.uint64(1)
                at += np.uint64(1)
            continue
        code = np.int64(OK)
        if v == UNKNOWN:
            out[0] = np.int64(s)
            code = np.int64(NEED_ROW)
        elif S[v, SLICE] == EMBEDDED_SLICE and S[v, WIDTH] == UNASKED:
            out[0] = v
            code = np.int64(NEED_FREEDOM)
        if code != OK:
            out[1] = at
            out[7] = count
            return code
        if S[v, SLICE] == EMBEDDED_SLICE and S[v, WIDTH] == IS_FREE:
            at = end
            continue
        path[d] = v
        at += np.uint64(1)
    out[7] = count
    return OK


@compiled(INT32, UINT32, nogil=True)
def clear(ids, row):  # pragma: no cover
    """Clear the bits of `ids` in a mask."""
    for i in range(ids.shape[0]):
        u = np.uint64(ids[i])
        row[u >> np.uint64(5)] &= ~(np.uint32(1) << np.uint32(u & np.uint64(31)))
