"""Compiled actions on registers: counts, and the set of names that an object has seen."""
# mypy: disable-error-code="no-untyped-def, untyped-decorator, misc, no-untyped-call"

from __future__ import annotations

import numpy as np

from rtlang_grammars.machine.automaton.layout import (
    AT_LEAST,
    AT_MOST,
    BITS,
    CLOSE,
    COMMA,
    COUNT,
    COUNT_UP,
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
    OBJ_ORDERED,
    OBJ_REQUIRED,
    OBJ_WORDS,
    OTHERS_LAST,
)
from rtlang_grammars.machine.native.array_types import INT, INT32, INT64
from rtlang_grammars.machine.native.native_code import EXPORT, compiled

_WORD = (1 << BITS) - 1


@compiled(inner=True, inline=True)
def seen_word(X, W, o, r, i):  # pragma: no cover
    """Word `i` of the names that the object with description X[o:] has seen."""
    if X[o + OBJ_WORDS] == 0:
        return (r >> (BITS * i)) & _WORD
    return W[r + 1 + i]


@compiled(inner=True, inline=True)
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


@compiled(inner=True, inline=True)
def is_required(X, o, name):  # pragma: no cover
    return (X[X[o + OBJ_REQUIRED] + name // BITS] >> (name % BITS)) & 1


@compiled(inner=True)
def slack(X, W, o, r):  # pragma: no cover
    """Number of properties allowed in addition to the missing ones; a large number if it is unbounded."""
    most = X[o + OBJ_MAX]
    if most < 0:
        return 1 << 30
    return most - W[r] - count_missing(X, W, o, r)


@compiled(inner=True, inline=True)
def num_passed(X, o, name):  # pragma: no cover
    """The names below this number cannot follow `name` (-1: an undeclared one)."""
    if 0 <= name < X[o + OBJ_ORDERED]:
        return np.int64(name)
    return np.int64(X[o + OBJ_ORDERED] if X[o + OBJ_ORDER] == OTHERS_LAST else 0)


@compiled(inner=True)
def first_missing(X, W, o, r):  # pragma: no cover
    """The first required name that was not seen; the number of names if there is none."""
    for i in range((X[o + OBJ_NAMES] + BITS - 1) // BITS):
        word = X[X[o + OBJ_REQUIRED] + i] & ~seen_word(X, W, o, r, i)
        if word:
            bit = 0
            while not (word >> bit) & 1:
                bit += 1
            return np.int64(BITS * i + bit)
    return np.int64(X[o + OBJ_NAMES])


@compiled(inner=True)
def leaves_enough(X, W, o, r, passed):  # pragma: no cover
    """Whether the properties so far and the names from `passed` on are as many as a closed object needs."""
    if X[o + OBJ_WORDS] == 0 or X[o + OBJ_IS_OPEN] != 0:
        return True
    num = W[r]
    for i in range(passed // BITS, (X[o + OBJ_NAMES] + BITS - 1) // BITS):
        word = ~seen_word(X, W, o, r, i) & _WORD
        if i == passed // BITS:
            word &= ~((1 << (passed % BITS)) - 1)
        if BITS * (i + 1) > X[o + OBJ_NAMES]:
            word &= (1 << (X[o + OBJ_NAMES] % BITS)) - 1
        while word:
            word &= word - 1
            num += 1
    return num >= X[o + OBJ_MIN]


@compiled(inner=True)
def may_come(X, W, o, r, low, high):  # pragma: no cover
    """Whether a name of the leaves low..high is still allowed."""
    free = slack(X, W, o, r)
    is_ordered = X[o + OBJ_ORDER] != IN_ANY_ORDER
    missing = first_missing(X, W, o, r) if is_ordered else np.int64(0)
    leaves = X[o + OBJ_LEAVES]
    for leaf in range(low, high):
        name = X[leaves + 2 * leaf]
        if is_seen(X, W, o, r, name) or not (free > 0 or is_required(X, o, name)):
            continue
        passed = num_passed(X, o, name)  # a required name must not be skipped
        if not is_ordered or (passed <= missing and leaves_enough(X, W, o, r, passed)):
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
    num_words, passed = X[o + OBJ_WORDS], num_passed(X, o, name)
    if num_words == 0:
        if name >= 0:
            r |= np.int64(1) << np.int64(name)
        return r | ((np.int64(1) << passed) - 1), top
    if top + num_words + 1 > W.shape[0]:
        return r, np.int64(0)
    for i in range(num_words + 1):
        W[top + i] = W[r + i]
    W[top] = min(W[top] + 1, X[o + OBJ_CAP])
    for i in range(passed // BITS):
        W[top + 1 + i] = _WORD
    if passed % BITS:
        W[top + 1 + passed // BITS] |= (np.int64(1) << np.int64(passed % BITS)) - 1
    if name >= 0:
        W[top + 1 + name // BITS] |= np.int64(1) << np.int64(name % BITS)
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
    if kind == COUNT_UP:
        if r < X[a + 4]:
            target = np.int64(X[a + 2] if r + 1 >= X[a + 3] else X[a + 1])
            r = min(r + 1, np.int64(X[a + 5]))
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


@compiled(INT32, INT64, INT, INT, INT, group=EXPORT)
def act_alone(X, W, a, r, top):  # pragma: no cover
    """`act`, callable from Python."""
    return act(X, W, a, r, top)
