"""Compiled actions on registers: counts, and the set of names that an object has seen."""
# mypy: disable-error-code="no-untyped-def, untyped-decorator, misc, no-untyped-call"

from __future__ import annotations

import numpy as np
from numba import njit

from rtlang_grammars.machine.automaton.layout import (
    AT_LEAST,
    AT_MOST,
    BITS,
    CLOSE,
    COMMA,
    COUNT,
    IN_ANY_ORDER,
    KEY_BRANCH,
    KEY_END,
    KEY_OTHER,
    KEY_PHASE,
    NEW_OBJECT,
    OBJ_CAP,
    OBJ_IS_OPEN,
    OBJ_LEAVES,
    OBJ_MAX,
    OBJ_MIN,
    OBJ_NAMES,
    OBJ_NUM_LEAVES,
    OBJ_ORDER,
    OBJ_REQUIRED,
    OBJ_WORDS,
    OTHERS_LAST,
)
from rtlang_grammars.machine.native.native_code import compiled

_WORD = (1 << BITS) - 1


@njit(inline="always")
def seen_word(X, W, o, r, i):  # pragma: no cover
    """Word `i` of the names that the object with description X[o:] has seen."""
    if X[o + OBJ_WORDS] == 0:
        return (r >> (BITS * i)) & _WORD
    return W[r + 1 + i]


@njit(inline="always")
def is_seen(X, W, o, r, name):  # pragma: no cover
    return (seen_word(X, W, o, r, name // BITS) >> (name % BITS)) & 1


@compiled(inner=True)
def count_missing(X, W, o, r):  # pragma: no cover
    """Number of required names that were not seen."""
    missing = 0
    for i in range((X[o + OBJ_NAMES] + BITS - 1) // BITS):
        word = X[X[o + OBJ_REQUIRED] + i] & ~seen_word(X, W, o, r, i)
        while word:
            word &= word - 1
            missing += 1
    return missing


@njit(inline="always")
def is_required(X, o, name):  # pragma: no cover
    return (X[X[o + OBJ_REQUIRED] + name // BITS] >> (name % BITS)) & 1


@compiled(inner=True)
def slack(X, W, o, r):  # pragma: no cover
    """Number of properties allowed in addition to the missing ones; a large number if it is unbounded."""
    most = X[o + OBJ_MAX]
    if most < 0:
        return 1 << 30
    return most - W[r] - count_missing(X, W, o, r)


@compiled(inner=True)
def is_in_order(X, W, o, r, name):  # pragma: no cover
    """Whether an ordered object may continue with a name: it skips no required name and leaves enough names behind it."""
    last = name // BITS
    for i in range(last + 1):
        word = X[X[o + OBJ_REQUIRED] + i] & ~seen_word(X, W, o, r, i)
        if i == last:
            word &= (1 << (name % BITS)) - 1
        if word != 0:
            return False
    if X[o + OBJ_WORDS] == 0 or X[o + OBJ_IS_OPEN] != 0:
        return True
    return W[r] + X[o + OBJ_NAMES] - name >= X[o + OBJ_MIN]


@compiled(inner=True)
def may_come(X, W, o, r, low, high):  # pragma: no cover
    """Whether a name of the leaves low..high is still allowed."""
    free = slack(X, W, o, r)
    leaves = X[o + OBJ_LEAVES]
    for leaf in range(low, high):
        name = X[leaves + 2 * leaf]
        if is_seen(X, W, o, r, name) or not (free > 0 or is_required(X, o, name)):
            continue
        if X[o + OBJ_ORDER] == IN_ANY_ORDER or is_in_order(X, W, o, r, name):
            return True
    return False


@compiled(inner=True)
def may_close(X, W, o, r):  # pragma: no cover
    if X[o + OBJ_WORDS] != 0 and W[r] < X[o + OBJ_MIN]:
        return False
    required = X[o + OBJ_REQUIRED]
    lacks = False
    for i in range((X[o + OBJ_NAMES] + BITS - 1) // BITS):
        lacks = lacks or (X[required + i] & ~seen_word(X, W, o, r, i)) != 0
    return not lacks


@compiled(inner=True)
def with_property(X, W, o, r, name, top):  # pragma: no cover
    """The register after one more property (`name` < 0: undeclared), and the new top of the arena; top 0: no space."""
    num_words, is_ordered = X[o + OBJ_WORDS], X[o + OBJ_ORDER] != IN_ANY_ORDER
    is_last = name < 0 and X[o + OBJ_ORDER] == OTHERS_LAST  # declared names are no longer allowed
    if num_words == 0:
        if name >= 0:
            r |= np.int64(1) << np.int64(name)
            if is_ordered:  # earlier names are no longer allowed
                r |= (np.int64(1) << np.int64(name)) - 1
        elif is_last:
            r = (np.int64(1) << np.int64(X[o + OBJ_NAMES])) - 1
        return r, top
    if top + num_words + 1 > W.shape[0]:
        return r, np.int64(0)
    for i in range(num_words + 1):
        W[top + i] = W[r + i]
    W[top] = min(W[top] + 1, X[o + OBJ_CAP])
    if is_last:
        for i in range(num_words):
            W[top + 1 + i] = _WORD
    if name >= 0:
        W[top + 1 + name // BITS] |= np.int64(1) << np.int64(name % BITS)
        if is_ordered:
            for i in range(name // BITS):
                W[top + 1 + i] = _WORD
            W[top + 1 + name // BITS] |= (np.int64(1) << np.int64(name % BITS)) - 1
    return top, top + num_words + 1


@compiled(inner=True)
def act(X, W, a, r, top):  # pragma: no cover
    """Execute the action at X[a], which reads or writes the register: (next state or -1, register, top; top 0: no space)."""
    kind = X[a]
    target = np.int64(-1)
    if kind == COUNT:
        if r < X[a + 2]:
            target = np.int64(X[a + 1])
            r = min(r + 1, np.int64(X[a + 3]))
        return target, r, top
    if kind == AT_LEAST:
        if r >= X[a + 2]:
            target = np.int64(X[a + 1])
        return target, np.int64(0), top
    if kind == AT_MOST:
        if r <= X[a + 2]:
            target = np.int64(X[a + 1])
        return target, r, top
    o = np.int64(X[a + 1])
    if kind == KEY_BRANCH:
        if may_come(X, W, o, r, np.int64(X[a + 3]), np.int64(X[a + 4])):
            target = np.int64(X[a + 2])
    elif kind == KEY_END:
        leaf = np.int64(X[a + 2])
        if may_come(X, W, o, r, leaf, leaf + 1):
            target = np.int64(X[X[o + OBJ_LEAVES] + 2 * leaf + 1])
            r, top = with_property(X, W, o, r, np.int64(X[X[o + OBJ_LEAVES] + 2 * leaf]), top)
    elif kind == KEY_OTHER:
        is_early = X[o + OBJ_ORDER] == OTHERS_LAST and count_missing(X, W, o, r) > 0
        if slack(X, W, o, r) > 0 and not is_early:
            target = np.int64(X[a + 2])
            r, top = with_property(X, W, o, r, np.int64(-1), top)
    elif kind == KEY_PHASE:
        target = np.int64(X[a + 2] if count_missing(X, W, o, r) > 0 else X[a + 3])
    elif kind == CLOSE:
        if may_close(X, W, o, r):
            target = np.int64(X[a + 2])
            r = np.int64(0)
    elif kind == COMMA:
        is_possible = X[o + OBJ_IS_OPEN] != 0 and slack(X, W, o, r) > 0
        if is_possible or may_come(X, W, o, r, np.int64(0), np.int64(X[o + OBJ_NUM_LEAVES])):
            target = np.int64(X[a + 2])
    elif kind == NEW_OBJECT:
        target = np.int64(X[a + 2])
        size = X[o + OBJ_WORDS] + 1
        if top + size > W.shape[0]:
            return target, r, np.int64(0)
        W[top] = 0
        for i in range(size - 1):
            W[top + 1 + i] = X[X[o + OBJ_REQUIRED] + size - 1 + i]
        r, top = top, top + size
    return target, r, top


@compiled(is_rare=True)
def act_alone(X, W, a, r, top):  # pragma: no cover
    """`act`, callable from Python."""
    return act(X, W, a, r, top)
