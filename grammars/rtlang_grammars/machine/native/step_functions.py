"""Compiled steps: one byte from a set of heads, over frames, registers and alternatives.

`step_one` follows a single head as long as everything is determined, which is nearly always; `step_many` handles sets of heads and
ambiguity. Both read the tables S, T, X (`layout.py`) and write new frames after the configuration in the arena W; returning to an earlier
depth of a walk resets the arena's top. If a row is not built yet, the step ends with NEED_ROW and leaves everything but the arena's top
unchanged; the caller has the row built and repeats the step.
"""
# mypy: disable-error-code="no-untyped-def, untyped-decorator, misc, no-untyped-call"

from __future__ import annotations

import numpy as np

from rtlang_grammars.machine.automaton.layout import (
    ACC,
    ALTERNATIVES,
    BLOCK,
    BOUNDS,
    BUCKETS,
    BYTE,
    CALL,
    CALL_NEXT,
    CALL_TO,
    DEAD_ROW,
    EDGE_NEXT,
    EDGE_PARENT,
    EDGE_REGISTER,
    EDGE_RETURN,
    EDGE_WORDS,
    ENDS_OR_GOES_ON,
    FIRST_ACTION,
    LENGTH,
    MANY,
    MAX_LEVELS,
    NEED_ROW,
    NO_SPACE,
    NODE_EDGE,
    NODE_NEXT,
    NODE_REGISTER,
    NODE_START,
    NODE_WORDS,
    NONE,
    NUM_LEVELS,
    OK,
    OPEN,
    OUT_WORDS,
    PARAM,
    REJECTED,
    ROOT,
    ROW,
    SPELL,
    TARGET,
    TOUCHED,
    UNKNOWN,
)
from rtlang_grammars.machine.native.native_code import compiled
from rtlang_grammars.machine.native.registers import act

_FEW = 8  # heads; if there are more, they are found by hash
_TRIED = 2  # bytes at one depth before `may_follow` collects what is allowed

# Columns of D after the first head, the end and the top.
NUM_TRIED, FIRST_BYTES = 3, 4
DEPTH_WORDS = 8


@compiled(inner=True, inline=True)
def value(S, T, s, b):  # pragma: no cover
    """Where state `s` goes on byte `b`."""
    u = np.uint64(s)
    if S[u, BYTE] == b:
        return S[u, TARGET]
    return T[np.uint64(S[u, ROW]) * np.uint64(256) + np.uint64(b)]


@compiled(inner=True)
def touch(W, node):  # pragma: no cover
    """Record that a frame of the configuration was read."""
    if node < W[LENGTH]:
        level = 1
        while level < W[NUM_LEVELS] and node >= W[BOUNDS + min(level, MAX_LEVELS - 1)] and level < MAX_LEVELS:
            level += 1
        W[TOUCHED] = max(W[TOUCHED], level)


@compiled(inner=True, inline=True)
def return_state(S, X, s, a):  # pragma: no cover
    """Where the call at X[a] in state `s` returns to."""
    kind = X[a]
    if kind == CALL:
        return S[s, PARAM]
    if kind == CALL_NEXT:
        return s + 1
    return X[a + 3]


@compiled(inner=True, inline=True)
def push(W, top, start, start_r, ret, r, parent):  # pragma: no cover
    at = np.uint64(top)
    W[at + np.uint64(NODE_START)] = start
    W[at + np.uint64(NODE_REGISTER)] = start_r
    W[at + np.uint64(NODE_NEXT)] = 0
    W[at + np.uint64(NODE_EDGE + EDGE_RETURN)] = ret
    W[at + np.uint64(NODE_EDGE + EDGE_REGISTER)] = r
    W[at + np.uint64(NODE_EDGE + EDGE_PARENT)] = parent
    W[at + np.uint64(NODE_EDGE + EDGE_NEXT)] = 0


@compiled(inner=True, inline=True)
def step_one(S, T, X, W, top, s, r, n, b):  # pragma: no cover
    """One byte from one head: (code, state, register, node, top). NEED_ROW: the row of that state; MANY: see `step_many`.

    Inlined into its callers: a call took three times as long, mostly for passing arrays.
    """
    code = np.int64(MANY)
    t = np.int64(0)
    while True:
        v = value(S, T, s, b)
        acc = S[np.uint64(s), ACC]
        if acc == ENDS_OR_GOES_ON and n != ROOT:
            break
        if v >= 0:
            t = np.int64(v)
            code = np.int64(OK)
            break
        if v == NONE:
            if acc == OPEN or n == ROOT:
                code = np.int64(REJECTED)
                break
            if n >= W[BOUNDS + min(W[TOUCHED], MAX_LEVELS - 1)] and n < W[LENGTH]:
                touch(W, n)
            e = np.uint64(n + NODE_EDGE)
            if W[e + np.uint64(EDGE_NEXT)] != 0:
                break
            s, r, n = W[e + np.uint64(EDGE_RETURN)], W[e + np.uint64(EDGE_REGISTER)], W[e + np.uint64(EDGE_PARENT)]
            continue
        if v == UNKNOWN:
            t = s
            code = np.int64(NEED_ROW)
            break
        a = np.int64(FIRST_ACTION - v)
        u = np.uint64(a)
        kind = X[u]
        if kind <= CALL_TO:
            ret = np.int64(return_state(S, X, s, a))
            if ret >= 0:
                if top + NODE_WORDS > W.shape[0]:
                    code = np.int64(NO_SPACE)
                    break
                push(W, top, X[u + np.uint64(1)], X[u + np.uint64(2)], ret, r, n)
                n = top
                top += NODE_WORDS
            s, r = np.int64(X[u + np.uint64(1)]), np.int64(X[u + np.uint64(2)])
            continue
        if kind == ALTERNATIVES:
            break
        if kind == SPELL:
            touch(W, n)
            e = np.uint64(n + NODE_EDGE)
            if W[e + np.uint64(EDGE_NEXT)] != 0:
                break
            s, r, n = W[e + np.uint64(EDGE_RETURN)], W[e + np.uint64(EDGE_REGISTER)], W[e + np.uint64(EDGE_PARENT)]
            b = np.int64(X[u + np.uint64(1)])
            continue
        code = np.int64(REJECTED)
        t, r, top = act(X, W, a, r, top)
        if top == 0:
            code = np.int64(NO_SPACE)
        elif t >= 0:
            code = np.int64(OK)
        break
    return code, t, r, n, top


@compiled(inner=True)
def same_register(S, W, s, a, b):  # pragma: no cover
    """Whether two registers of state `s` are equal."""
    if a == b:
        return True
    size = S[s, BLOCK]
    if size == 0 or a == 0 or b == 0:
        return False
    differs = False
    for i in range(size):
        differs = differs or W[a + i] != W[b + i]
    return not differs


@compiled(inner=True)
def add_head(S, W, H, low, high, s, r, n, out, buckets):  # pragma: no cover
    """Add a head to H[low:high] unless it is already there; returns the new end, or -1 without space.

    With `buckets` > 0 the heads are found through chains (their fourth column) from out[buckets:buckets + BUCKETS].
    """
    if buckets == 0:
        for i in range(low, high):
            if H[i, 0] == s and H[i, 2] == n and same_register(S, W, s, H[i, 1], r):
                return high
        if high >= H.shape[0]:
            return -1
        H[high, 0], H[high, 1], H[high, 2] = s, r, n
        return high + 1
    bucket = buckets + ((s * 31 + n) & (BUCKETS - 1))
    i = out[bucket] - 1
    while i >= 0:
        if H[i, 0] == s and H[i, 2] == n and same_register(S, W, s, H[i, 1], r):
            return high
        i = H[i, 3] - 1
    if high >= H.shape[0]:
        return -1
    H[high, 0], H[high, 1], H[high, 2], H[high, 3] = s, r, n, out[bucket]
    out[bucket] = high + 1
    return high + 1


@compiled(inner=True)
def step_many(S, T, X, W, H, Q, low, high, top, b, out):  # pragma: no cover
    """One byte from the heads H[low:high]; the next heads are written after them. OK: out[0] is their end, out[3] the top."""
    end = np.int64(high)
    num = np.int64(0)
    at_heads, at_queue = np.int64(0), np.int64(0)
    at_made, mask = np.int64(OUT_WORDS + 2 * BUCKETS), np.int64(0)  # the nodes of this step, in lists by their start
    out[at_made] = 0
    if high - low > _FEW:
        at_heads, at_queue, mask = np.int64(OUT_WORDS), np.int64(OUT_WORDS + BUCKETS), np.int64(BUCKETS - 1)
        for i in range(3 * BUCKETS):
            out[OUT_WORDS + i] = 0
    for i in range(low, high):
        s, r, n = H[i, 0], H[i, 1], H[i, 2]
        v, acc = value(S, T, s, b), S[s, ACC]
        if v >= 0 and (acc != ENDS_OR_GOES_ON or n == ROOT):
            # Heads that become equal here are merged if there are few, otherwise later, when their frame ends.
            if at_heads == 0:
                end = add_head(S, W, H, high, end, np.int64(v), r, n, out, np.int64(0))
            elif end < H.shape[0]:
                H[end, 0], H[end, 1], H[end, 2] = v, r, n
                end += 1
            else:
                end = np.int64(-1)
            if end < 0:
                return NO_SPACE
        elif v != NONE or (acc != OPEN and n != ROOT):
            num = add_head(S, W, Q, np.int64(0), num, s, r, n, out, at_queue)
            if num < 0:
                return NO_SPACE
    at = 0
    while at < num:
        s, r, n = Q[at, 0], Q[at, 1], Q[at, 2]
        at += 1
        v = value(S, T, s, b)
        if v == UNKNOWN:
            out[0] = s
            return NEED_ROW
        acc = S[s, ACC]
        if acc != OPEN and n != ROOT and (v == NONE or acc == ENDS_OR_GOES_ON):
            touch(W, n)
            e = n + NODE_EDGE
            while True:
                num = add_head(
                    S,
                    W,
                    Q,
                    np.int64(0),
                    num,
                    W[e + EDGE_RETURN],
                    W[e + EDGE_REGISTER],
                    W[e + EDGE_PARENT],
                    out,
                    at_queue,
                )
                if num < 0:
                    return NO_SPACE
                e = W[e + EDGE_NEXT]
                if e == 0:
                    break
        count = 1
        a = FIRST_ACTION - v
        has_alternatives = v <= FIRST_ACTION and X[a] == ALTERNATIVES
        if has_alternatives:
            count = X[a + 1]
        for i in range(count):
            if has_alternatives:
                v = X[a + 2 + i]
            if v == NONE:
                continue
            if v >= 0:
                end = add_head(S, W, H, high, end, np.int64(v), r, n, out, at_heads)
                if end < 0:
                    return NO_SPACE
                continue
            c = FIRST_ACTION - v
            if X[c] == SPELL:
                touch(W, n)
                e = n + NODE_EDGE
                while e != 0:
                    # Inside a name: its states go on or act on the object's register, but neither call nor end.
                    ret, ret_r = W[e + EDGE_RETURN], W[e + EDGE_REGISTER]
                    t = np.int64(value(S, T, ret, X[c + 1]))
                    if t <= FIRST_ACTION:
                        t, ret_r, new_top = act(X, W, FIRST_ACTION - t, ret_r, top)
                        if new_top == 0:
                            return NO_SPACE
                        top = new_top
                    if t >= 0:
                        end = add_head(S, W, H, high, end, t, ret_r, W[e + EDGE_PARENT], out, at_heads)
                        if end < 0:
                            return NO_SPACE
                    e = W[e + EDGE_NEXT]
                continue
            if X[c] > CALL_TO:
                t, new_r, new_top = act(X, W, c, r, top)
                if new_top == 0:
                    return NO_SPACE
                top = new_top
                if t >= 0:
                    end = add_head(S, W, H, high, end, t, new_r, n, out, at_heads)
                    if end < 0:
                        return NO_SPACE
                continue
            start, start_r = np.int64(X[c + 1]), np.int64(X[c + 2])
            ret = np.int64(return_state(S, X, s, c))
            if ret < 0:
                num = add_head(S, W, Q, np.int64(0), num, start, start_r, n, out, at_queue)
                if num < 0:
                    return NO_SPACE
                continue
            bucket = at_made + ((start * 31 + start_r) & mask)
            node = out[bucket]
            while node != 0 and (W[node + NODE_START] != start or W[node + NODE_REGISTER] != start_r):
                node = W[node + NODE_NEXT]
            if top + NODE_WORDS > W.shape[0]:
                return NO_SPACE
            if node == 0:
                push(W, top, start, start_r, ret, r, n)
                W[top + NODE_NEXT] = out[bucket]
                out[bucket] = node = top
                top += NODE_WORDS
                num = add_head(S, W, Q, np.int64(0), num, start, start_r, node, out, at_queue)
                if num < 0:
                    return NO_SPACE
                continue
            # Add an edge after the first. Equal edges are searched for only if there are few; a duplicate costs a little time.
            first = node + NODE_EDGE
            e = first if at_heads == 0 else ROOT
            while e != ROOT:
                if W[e] == ret and W[e + EDGE_PARENT] == n and same_register(S, W, ret, W[e + EDGE_REGISTER], r):
                    break
                e = W[e + EDGE_NEXT]
            if e == ROOT:
                W[top + EDGE_RETURN], W[top + EDGE_REGISTER] = ret, r
                W[top + EDGE_PARENT], W[top + EDGE_NEXT] = n, W[first + EDGE_NEXT]
                W[first + EDGE_NEXT] = top
                top += EDGE_WORDS
    if end == high:
        return REJECTED
    out[0], out[3] = end, top
    return OK


@compiled(inner=True, inline=True)
def add_bytes(S, T, D, d, s):  # pragma: no cover
    """Add the bytes on which a state goes on to the bits of D[d]."""
    byte = np.int64(S[s, BYTE])
    if byte < 256:
        D[d, FIRST_BYTES + (byte >> 6)] |= np.int64(1) << (byte & 63)
    row = np.uint64(S[s, ROW])
    if row == DEAD_ROW:
        return
    for word in range(4):
        found = np.int64(0)
        for bit in range(64):
            found |= np.int64(T[row * np.uint64(256) + np.uint64(64 * word + bit)] != NONE) << np.int64(bit)
        D[d, FIRST_BYTES + word] |= found


@compiled(inner=True)
def may_follow(S, T, W, H, Q, D, d, b, out):  # pragma: no cover
    """Whether byte `b` may follow the heads at depth d: 1 (it is not certain), 0 or NO_SPACE.

    With many heads, or many frames to return to, a step takes microseconds, and most bytes of the trie are rejected. So from the third byte
    at a depth on, the bytes on which a head goes on, or a frame that it may return to, are kept as bits of D[d].
    """
    if D[d, NUM_TRIED] < _TRIED:
        D[d, NUM_TRIED] += 1
        return 1
    if D[d, NUM_TRIED] == _TRIED:
        D[d, NUM_TRIED] += 1
        num, at_queue = np.int64(0), np.int64(OUT_WORDS + BUCKETS)
        for i in range(BUCKETS):
            out[at_queue + i] = 0
        for word in range(4):
            D[d, FIRST_BYTES + word] = 0
        low, high = D[d, 0], D[d, 1]
        at = low
        while at < high or at - high < num:
            if at < high:
                s, n = H[at, 0], H[at, 2]
            else:
                s, n = Q[at - high, 0], Q[at - high, 2]
            at += 1
            add_bytes(S, T, D, d, s)
            if S[s, ACC] != OPEN and n != ROOT:
                touch(W, n)
                e = n + NODE_EDGE
                while e != 0:
                    ret, parent = W[e + EDGE_RETURN], W[e + EDGE_PARENT]
                    num = add_head(S, W, Q, np.int64(0), num, ret, np.int64(0), parent, out, at_queue)
                    if num < 0:
                        return NO_SPACE
                    e = W[e + EDGE_NEXT]
    return (D[d, FIRST_BYTES + (b >> 6)] >> (b & 63)) & 1


@compiled(inner=True)
def step(S, T, X, W, H, Q, D, d, b, out):  # pragma: no cover
    """One byte from the heads at depth d - 1 (D[d - 1]: first head, end, top) to depth d. NEED_ROW: out[0] is the state."""
    low, high, top = D[d - 1, 0], D[d - 1, 1], D[d - 1, 2]
    code = MANY
    if high - low == 1:
        code, s, r, n, new_top = step_one(S, T, X, W, top, H[low, 0], H[low, 1], H[low, 2], b)
        if code == OK:
            if high >= H.shape[0]:
                return NO_SPACE
            H[high, 0], H[high, 1], H[high, 2] = s, r, n
            D[d, 0], D[d, 1], D[d, 2], D[d, NUM_TRIED] = high, high + 1, new_top, 0
            return OK
        out[0] = s
    if code == MANY:
        code = step_many(S, T, X, W, H, Q, low, high, top, b, out)
        if code == OK:
            D[d, 0], D[d, 1], D[d, 2], D[d, NUM_TRIED] = high, out[0], out[3], 0
    return code
