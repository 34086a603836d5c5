"""Compiled walks over configurations: along a text, over the token trie, and back into a new configuration.

The workspace of a walk is seven arrays, owned by one thread at a time: the arena W (it begins with a copy of the configuration), the heads
H and the worklist Q, int64 [n, 4], the depths D, int64 [max_depth + 2, 8], P and R, int64 [max_depth + 2] (of `walk`), and `out`, int64.
"""
# mypy: disable-error-code="no-untyped-def, untyped-decorator, misc, no-untyped-call"

from __future__ import annotations

import numpy as np

from rtlang_grammars.machine.automaton.layout import (
    ACC,
    BLOCK,
    BOUNDS,
    COUNT,
    EDGE_NEXT,
    EDGE_PARENT,
    EDGE_REGISTER,
    EDGE_RETURN,
    EDGE_WORDS,
    ENDS_OR_GOES_ON,
    FIRST_ACTION,
    HEADS,
    LENGTH,
    MANY,
    MAX_LEVELS,
    NEED_ROW,
    NO_SPACE,
    NODE_EDGE,
    NODE_NEXT,
    NONE,
    NUM_HEADS,
    NUM_LEVELS,
    OK,
    OPEN,
    REJECTED,
    ROOT,
    TOUCHED,
)
from rtlang_grammars.machine.native.array_types import INT, INT32, INT32_TABLE, INT64, INT64_TABLE, TEXT, UINT8
from rtlang_grammars.machine.native.native_code import compiled
from rtlang_grammars.machine.native.repeated_names import RISK, ROOM, follow
from rtlang_grammars.machine.native.step_functions import (
    NUM_TRIED,
    may_follow,
    step,
    step_many,
    step_one,
    touch,
    value,
)

_MARK = 1  # an offset at which no node lies
_ABOVE = ~0xFFFFFFFF
_ON_PLACES = (INT32_TABLE, INT32, INT32, INT64, INT64, INT64_TABLE, INT64_TABLE, INT64_TABLE)  # S, T, X, C, W, H, Q, D


@compiled(inner=True)
def load(C, W, H, D):  # pragma: no cover
    """Copy a configuration to the beginning of the workspace; False if it does not fit."""
    length, num = C[LENGTH], C[NUM_HEADS]
    if length > W.shape[0] or num > H.shape[0]:
        return False
    for i in range(length):
        W[i] = C[i]
    W[TOUCHED] = 0
    for i in range(num):
        H[i, 0], H[i, 1], H[i, 2] = C[HEADS + 3 * i], C[HEADS + 3 * i + 1], C[HEADS + 3 * i + 2]
    D[0, 0], D[0, 1], D[0, 2], D[0, NUM_TRIED] = 0, num, length, 0
    return True


@compiled(inner=True)
def enlist(W, Q, num, n):  # pragma: no cover
    """Add a node to the list Q[:num] unless it is marked; returns the new length, -1 without space."""
    if W[n + NODE_NEXT] == _MARK:
        return num
    if num >= Q.shape[0]:
        return -1
    W[n + NODE_NEXT] = _MARK
    Q[num, 0] = n
    return num + 1


@compiled(inner=True)
def is_complete(S, W, H, Q, end):  # pragma: no cover
    """Whether one of the heads H[:end] may end with no frame to return to: 1, 0 or NO_SPACE."""
    num = np.int64(0)
    answer = 0
    for i in range(end):
        if S[H[i, 0], ACC] != OPEN:
            if H[i, 2] == ROOT:
                answer = 1
                break
            num = enlist(W, Q, num, H[i, 2])
            if num < 0:
                return NO_SPACE
    at = 0
    while at < num and answer == 0:
        n = Q[at, 0]
        at += 1
        touch(W, n)
        e = n + NODE_EDGE
        while e != 0:
            if S[W[e + EDGE_RETURN], ACC] != OPEN:
                if W[e + EDGE_PARENT] == ROOT:
                    answer = 1
                    break
                num = enlist(W, Q, num, W[e + EDGE_PARENT])
                if num < 0:
                    return NO_SPACE
            e = W[e + EDGE_NEXT]
    for i in range(num):
        W[Q[i, 0] + NODE_NEXT] = 0
    return answer


@compiled(*_ON_PLACES, INT64, INT64, INT64, INT, INT32, INT64, nogil=True)
def walk(S, T, X, C, W, H, Q, D, P, R, trie, p, ids, out):  # pragma: no cover
    """Write the tokens of `trie` that can follow the configuration C into `ids`, beginning at record `p` (0: from the start).

    OK: out[1] is the deepest level of frames that was read, out[5] whether the text is complete, out[6] the number of records visited,
    out[7] the number of tokens. Otherwise out[1] is the record to resume from, and with NEED_ROW out[0] the state whose row is needed.

    Nearly all bytes lead one head from one state to another within the same frame. Then a depth only stores P[depth], the state with the
    depth of the head that has the frame in the upper bits, and R[depth], the register. Everything else is left to `step`.
    """
    if p == 0:
        if not load(C, W, H, D):
            return NO_SPACE
        out[5] = is_complete(S, W, H, Q, D[0, 1])
        out[6] = out[7] = 0
        if out[5] < 0:
            return NO_SPACE
        P[0] = H[0, 0] if D[0, 1] == 1 else -1
        R[0] = H[0, 1]
    num = np.uint64(trie.shape[0])
    looks = np.int64(0)
    count = np.uint64(out[7])
    at = np.uint64(p)
    while at < num:
        record = np.uint64(trie[at])
        b = record & np.uint64(255)
        d = (record >> np.uint64(8)) & np.uint64(4095)
        looks += 1
        before = P[d - np.uint64(1)]
        code = np.int64(MANY)
        if before >= 0:
            s = np.uint64(before) & np.uint64(0xFFFFFFFF)
            v = np.int64(value(S, T, s, b))
            acc = S[s, ACC]
            register = R[d - np.uint64(1)]
            new_r = register
            if v <= FIRST_ACTION and acc != ENDS_OR_GOES_ON:
                a = np.uint64(FIRST_ACTION - v)
                if X[a] == COUNT:
                    if register >= X[a + np.uint64(2)]:
                        at = record >> np.uint64(40)
                        continue
                    v = X[a + np.uint64(1)]
                    new_r = min(register + 1, np.int64(X[a + np.uint64(3)]))
            if v >= 0 and acc != ENDS_OR_GOES_ON:
                P[d] = (before & _ABOVE) | np.int64(v)
                R[d] = new_r
                token = (record >> np.uint64(20)) & np.uint64(0xFFFFF)
                if token != 0:
                    ids[count] = token - np.uint64(1)
                    count += np.uint64(1)
                at += np.uint64(1)
                continue
            if v == NONE and acc == OPEN:
                at = record >> np.uint64(40)
                continue
            kept = np.uint64(before >> 32)
            low, end, top = D[kept, 0], D[kept, 1], D[kept, 2]
            n = H[np.uint64(low), 2]
            code, t, new_r, new_n, new_top = step_one(S, T, X, W, top, np.int64(s), register, n, np.int64(b))
            if code == OK:
                if new_n == n and new_top == top:
                    P[d] = (before & _ABOVE) | t
                else:
                    if end >= H.shape[0]:
                        out[1] = at
                        out[6] += looks
                        out[7] = count
                        return NO_SPACE
                    u = np.uint64(end)
                    H[u, 0], H[u, 1], H[u, 2] = t, new_r, new_n
                    D[d, 0], D[d, 1], D[d, 2], D[d, NUM_TRIED] = end, end + 1, new_top, 0
                    P[d] = (np.int64(d) << 32) | t
                R[d] = new_r
            elif code == MANY:
                if kept != d - np.uint64(1):
                    if end >= H.shape[0]:
                        out[1] = at
                        out[6] += looks
                        out[7] = count
                        return NO_SPACE
                    H[end, 0], H[end, 1], H[end, 2] = np.int64(s), register, n
                    above = d - np.uint64(1)
                    D[above, 0], D[above, 1], D[above, 2], D[above, NUM_TRIED] = end, end + 1, top, 0
                    P[d - np.uint64(1)] = ((np.int64(d) - 1) << 32) | np.int64(s)
            elif code == NEED_ROW:
                out[0] = t
        if code == MANY:
            low, end = D[d - np.uint64(1), 0], D[d - np.uint64(1), 1]
            may = may_follow(S, T, W, H, Q, D, np.int64(d) - 1, np.int64(b), out)
            if may == 0:
                at = record >> np.uint64(40)
                continue
            code = np.int64(NO_SPACE)
            if may == 1:
                code = np.int64(step_many(S, T, X, W, H, Q, low, end, D[d - np.uint64(1), 2], np.int64(b), out))
            if code == NEED_ROW:
                D[d - np.uint64(1), NUM_TRIED] = 0
            if code == OK:
                D[d, 0], D[d, 1], D[d, 2], D[d, NUM_TRIED] = end, out[0], out[3], 0
                P[d] = (np.int64(d) << 32) | H[end, 0] if out[0] - end == 1 else -1
                R[d] = H[end, 1]
        if code == OK:
            token = (record >> np.uint64(20)) & np.uint64(0xFFFFF)
            if token != 0:
                ids[count] = token - np.uint64(1)
                count += np.uint64(1)
            at += np.uint64(1)
        elif code == REJECTED:
            at = record >> np.uint64(40)
        else:
            out[1] = at
            out[6] += looks
            out[7] = count
            return code
    out[1] = W[TOUCHED]
    out[6] += looks
    out[7] = count
    return OK


@compiled(inner=True)
def copy_block(S, W, s, at, C, top):  # pragma: no cover
    """Move the block of words of the register at C[at] of state `s`, if it has one, after `top`; returns the new top, -1 without space."""
    size = S[s, BLOCK]
    r = C[at]
    if size == 0 or r == 0:
        return top
    if top + size > C.shape[0]:
        return np.int64(-1)
    for i in range(size):
        C[top + i] = W[r + i]
    C[at] = top
    return top + size


@compiled(inner=True)
def place(W, C, at, top):  # pragma: no cover
    """The place in C of the node named at C[at], reserved after `top` if it has none; returns the new top, -1 without space."""
    n = C[at]
    if n == ROOT:
        return top
    if W[n + NODE_NEXT] >= 0:
        size = NODE_EDGE
        e = n + NODE_EDGE
        while e != 0:
            size += EDGE_WORDS
            e = W[e + EDGE_NEXT]
        if top + size > C.shape[0]:
            return np.int64(-1)
        W[n + NODE_NEXT] = -top
        C[top] = n  # the node in W, until `compact` writes the copy here
        top += size
    C[at] = -W[n + NODE_NEXT]
    return top


@compiled(inner=True)
def compact(S, W, H, D, C):  # pragma: no cover
    """Write the heads of D[0] and all they reach as a configuration into C; returns its length, -1 without room. Overwrites W."""
    num = D[0, 1]
    top = HEADS + 3 * num
    if top > C.shape[0]:
        return -1
    C[TOUCHED] = 0
    C[NUM_HEADS] = num
    for i in range(num):
        C[HEADS + 3 * i], C[HEADS + 3 * i + 1], C[HEADS + 3 * i + 2] = H[i, 0], H[i, 1], H[i, 2]
    for i in range(num):
        top = copy_block(S, W, H[i, 0], HEADS + 3 * i + 1, C, top)
        if top < 0:
            return -1
    bound = top
    C[BOUNDS] = bound
    levels = 1
    for i in range(num):
        top = place(W, C, HEADS + 3 * i + 2, top)
        if top < 0:
            return -1
    at = bound
    while at < top:
        # One level of nodes lies in C[at:level]; their edges are written, their parents placed after.
        level = top
        first = at
        while at < level:
            n = C[at]
            C[at + 1] = W[n + 1]
            C[at + NODE_NEXT] = 0
            C[at] = W[n]
            to = at + NODE_EDGE
            e = n + NODE_EDGE
            while e != 0:
                for i in range(3):
                    C[to + i] = W[e + i]
                e = W[e + EDGE_NEXT]
                C[to + EDGE_NEXT] = 0 if e == 0 else to + EDGE_WORDS
                to += EDGE_WORDS
            at = to
        at = first
        while at < level:  # blocks, which belong to this level
            e = at + NODE_EDGE
            while e != 0:
                top = copy_block(S, W, C[e + EDGE_RETURN], e + EDGE_REGISTER, C, top)
                if top < 0:
                    return -1
                at = e + EDGE_WORDS
                e = C[e + EDGE_NEXT]
        if levels < MAX_LEVELS:
            C[BOUNDS + levels] = top
        levels += 1
        behind = top
        at = first
        while at < level:
            e = at + NODE_EDGE
            while e != 0:
                top = place(W, C, e + EDGE_PARENT, top)
                if top < 0:
                    return -1
                at = e + EDGE_WORDS
                e = C[e + EDGE_NEXT]
        at = behind
    C[NUM_LEVELS] = levels
    C[LENGTH] = top
    return top


@compiled(*_ON_PLACES, TEXT, INT, INT, INT64, INT64, nogil=True)
def advance(S, T, X, C, W, H, Q, D, data, start, end, into, out):  # pragma: no cover
    """Follow data[start:end] from the configuration C and write the next configuration, with its trail, to `into`. Overwrites W.

    OK: out[1] is its length, out[5] whether the text may end there. Otherwise as `walk`.
    """
    if not load(C, W, H, D):
        return NO_SPACE
    for at in range(start, end):
        code = step(S, T, X, W, H, Q, D, np.int64(1), np.int64(data[at]), out)
        if code != OK:
            return code
        low, count = D[1, 0], D[1, 1] - D[1, 0]
        for i in range(count):
            H[i, 0], H[i, 1], H[i, 2] = H[low + i, 0], H[low + i, 1], H[low + i, 2]
        D[0, 0], D[0, 1], D[0, 2] = 0, count, D[1, 2]
    out[5] = is_complete(S, W, H, Q, D[0, 1])
    if out[5] < 0:
        return NO_SPACE
    length = compact(S, W, H, D, into)
    if length < 0:
        return NO_SPACE
    out[1] = length
    begin = C[LENGTH]
    if begin < C.shape[0]:
        if length + ROOM > into.shape[0]:
            return NO_SPACE
        size = follow(C[begin:], data, start, end, into[length:])
        if size < 0:
            return REJECTED
        into[TOUCHED] = into[length + RISK]
        out[1] = length + size
    return OK


@compiled(*_ON_PLACES, UINT8, INT64, nogil=True)
def forced(S, T, X, C, W, H, Q, D, text, out):  # pragma: no cover
    """Write the bytes that must come next into `text`, as many as fit.

    OK: out[1] is their number, and the heads after them are those of D[0]. NEED_ROW, NO_SPACE: as `walk`.
    """
    if not load(C, W, H, D):
        return NO_SPACE
    count = 0
    while count < text.shape[0]:
        complete = is_complete(S, W, H, Q, D[0, 1])
        if complete < 0:
            out[1] = count
            return NO_SPACE
        if complete:
            break
        only = -1
        for b in range(256):
            may = may_follow(S, T, W, H, Q, D, np.int64(0), np.int64(b), out)
            if may < 0:
                out[1] = count
                return NO_SPACE
            if may == 0:
                continue
            code = step(S, T, X, W, H, Q, D, np.int64(1), np.int64(b), out)
            if code == OK:
                if only >= 0:
                    only = -2
                    break
                only = b
            elif code != REJECTED:
                out[1] = count
                return code
        if only < 0:
            break
        step(S, T, X, W, H, Q, D, np.int64(1), np.int64(only), out)
        text[count] = only
        count += 1
        low, num = D[1, 0], D[1, 1] - D[1, 0]
        for i in range(num):
            H[i, 0], H[i, 1], H[i, 2] = H[low + i, 0], H[low + i, 1], H[low + i, 2]
        D[0, 0], D[0, 1], D[0, 2], D[0, NUM_TRIED] = 0, num, D[1, 2], 0
    out[1] = count
    return OK
