"""Kernels that run deterministic pushdown automata over tokens: allowed tokens (masks), and the state after a sampled token.

A lane is one token. It follows the bytes of the token from a state; states pushed on the way are an overlay of up to eight 16-bit numbers
in two 64-bit words. Below the overlay lies the row's stack in memory, which a walk reads and never writes. A walk that needs the stack, but
may not read it, is undecided; all other results depend on the state alone and are cached per state. `automaton_store` defines the tables.

Why masked lanes are safe: a lane that does not run loads nothing and keeps its values.
"""

from __future__ import annotations

import triton.language as tl

from rtlang_kernels.triton.primitives.jit import jit

RUNS, DEAD, ALLOWED, UNDECIDED = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2), tl.constexpr(3)
POP, FIRST_CALL = tl.constexpr(-2), tl.constexpr(-3)
OVERLAY = tl.constexpr(8)  # net number of states that one token may push


@jit
def _walk(
    is_lane: tl.tensor,
    state: tl.tensor,
    depth: tl.tensor,
    stack: tl.tensor,
    classes: tl.tensor,
    trans: tl.tensor,
    trans_at: tl.tensor,
    calls: tl.tensor,
    text: tl.tensor,
    begin: tl.tensor,
    end: tl.tensor,
    HAS_STACK: tl.constexpr,
) -> tuple[tl.tensor, ...]:
    """Follow text[begin:end] per lane. Returns verdict, state, overlay (low, high, count) and number of popped stack entries.

    `depth` states lie at `stack` per lane, the outermost first; `classes` is the lane's table of byte classes.
    """
    verdict = tl.where(is_lane & (begin < end), RUNS, DEAD)
    low, high = tl.zeros_like(begin).to(tl.int64), tl.zeros_like(begin).to(tl.int64)
    count, popped, at = tl.zeros_like(begin), tl.zeros_like(begin), begin
    while tl.min(verdict) == RUNS:
        runs = verdict == RUNS
        byte = tl.load(text + at, mask=runs, other=0).to(tl.int32)
        column = tl.load(classes + byte, mask=runs, other=0).to(tl.int32)
        row = tl.load(trans_at + state, mask=runs, other=0)
        entry = tl.load(trans + row + column, mask=runs, other=-1)
        # consume the byte
        goes_on = runs & (entry >= 0)
        state = tl.where(goes_on, entry, state)
        at = tl.where(goes_on, at + 1, at)
        verdict = tl.where(goes_on & (at >= end), ALLOWED, verdict)
        verdict = tl.where(runs & (entry == -1), DEAD, verdict)
        # pop: the return state is in the overlay, or below it
        pops = runs & (entry == POP)
        from_overlay, from_stack = pops & (count > 0), pops & (count == 0)
        state = tl.where(from_overlay, (low & 0xFFFF).to(tl.int32), state)
        low = tl.where(from_overlay, ((low >> 16) & 0xFFFFFFFFFFFF) | (high << 48), low)
        high = tl.where(from_overlay, (high >> 16) & 0xFFFFFFFFFFFF, high)
        count = tl.where(from_overlay, count - 1, count)
        if HAS_STACK:
            reads = from_stack & (popped < depth)
            state = tl.where(reads, tl.load(stack + (depth - 1 - popped), mask=reads, other=0), state)
            popped = tl.where(reads, popped + 1, popped)
            verdict = tl.where(from_stack & ~reads, DEAD, verdict)
        else:
            verdict = tl.where(from_stack, UNDECIDED, verdict)
        # call: a frame begins
        begins = runs & (entry <= FIRST_CALL)
        call = tl.where(begins, FIRST_CALL - entry, 0)
        target = tl.load(calls + 2 * call, mask=begins, other=0)
        back = tl.load(calls + 2 * call + 1, mask=begins, other=-1)
        pushes = begins & (back >= 0)
        verdict = tl.where(pushes & (count >= OVERLAY), DEAD, verdict)
        high = tl.where(pushes, (high << 16) | ((low >> 48) & 0xFFFF), high)
        low = tl.where(pushes, (low << 16) | back.to(tl.int64), low)
        count = tl.where(pushes, count + 1, count)
        state = tl.where(begins, target, state)
    return verdict, state, low, high, count, popped


@jit
def _packed(bits: tl.tensor) -> tl.tensor:
    """Pack [words, 32] booleans into words."""
    lanes = tl.arange(0, 32)[None, :]
    return tl.sum(tl.where(bits, (tl.full([1, 1], 1, tl.int32) << lanes), 0), axis=1)


@jit
def build_masks(
    slots: tl.tensor,
    step: tl.tensor,
    slot_state: tl.tensor,
    slot_depth: tl.tensor,
    slot_stack: tl.tensor,
    slot_grammar: tl.tensor,
    slot_complete: tl.tensor,
    classes: tl.tensor,
    trans: tl.tensor,
    trans_at: tl.tensor,
    calls: tl.tensor,
    text: tl.tensor,
    offsets: tl.tensor,
    end_words: tl.tensor,
    kept_allowed: tl.tensor,
    kept_undecided: tl.tensor,
    built: tl.tensor,
    masks: tl.tensor,
    num_words: tl.tensor,
    vocab_size: tl.tensor,
    MAX_DEPTH: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """Build BLOCK tokens of one row's mask. Grid: (chunks of the vocabulary, rows).

    The stack-independent part of a state is computed once and cached. `built` holds the step that computed it: later steps may read it,
    the same step may not, as its programs are unordered.
    """
    chunk = tl.program_id(0)
    slot = tl.load(slots + tl.program_id(1))
    state = tl.load(slot_state + slot)
    word = chunk * (BLOCK // 32) + tl.arange(0, BLOCK // 32)
    is_word = word < num_words
    place = masks + slot.to(tl.int64) * num_words + word
    if state < 0:
        tl.store(place, tl.zeros([BLOCK // 32], tl.int32), mask=is_word)
        return
    token = (word[:, None] * 32 + tl.arange(0, 32)[None, :]).reshape(BLOCK)
    is_token = token < vocab_size
    begin = tl.load(offsets + token, mask=is_token, other=0)
    end = tl.load(offsets + token + 1, mask=is_token, other=0)
    states = tl.zeros([BLOCK], tl.int32) + state
    depth = tl.zeros([BLOCK], tl.int32) + tl.load(slot_depth + slot)
    stack = slot_stack + slot * MAX_DEPTH
    bytes_of = classes + tl.load(slot_grammar + slot) * 256
    now = tl.load(step)
    flag = built + state.to(tl.int64) * tl.num_programs(0) + chunk
    made = tl.load(flag)
    kept = state.to(tl.int64) * num_words + word
    if (made > 0) & (made < now):
        allowed = tl.load(kept_allowed + kept, mask=is_word, other=0)
        undecided = tl.load(kept_undecided + kept, mask=is_word, other=0)
    else:
        verdict, _, _, _, _, _ = _walk(
            is_token, states, depth, stack, classes + tl.load(slot_grammar + slot) * 256 + token * 0, trans, trans_at,
            calls, text, begin, end, False,
        )  # fmt: skip
        allowed = _packed((verdict == ALLOWED).reshape(BLOCK // 32, 32))
        undecided = _packed((verdict == UNDECIDED).reshape(BLOCK // 32, 32))
        tl.store(kept_allowed + kept, allowed, mask=is_word)
        tl.store(kept_undecided + kept, undecided, mask=is_word)
        tl.store(flag, now)
    if tl.max((undecided != 0).to(tl.int32)) > 0:
        asks = ((undecided[:, None] >> tl.arange(0, 32)[None, :]) & 1) != 0
        verdict, _, _, _, _, _ = _walk(
            is_token & asks.reshape(BLOCK), states, depth, stack + token * 0, bytes_of + token * 0, trans, trans_at,
            calls, text, begin, end, True,
        )  # fmt: skip
        allowed = allowed | _packed((verdict == ALLOWED).reshape(BLOCK // 32, 32))
    if tl.load(slot_complete + slot) != 0:
        allowed = allowed | tl.load(end_words + word, mask=is_word, other=0)
    tl.store(place, allowed, mask=is_word)


@jit
def advance(
    slots: tl.tensor,
    token_ids: tl.tensor,
    places: tl.tensor,
    num_rows: tl.tensor,
    slot_state: tl.tensor,
    slot_depth: tl.tensor,
    slot_stack: tl.tensor,
    slot_grammar: tl.tensor,
    slot_complete: tl.tensor,
    classes: tl.tensor,
    trans: tl.tensor,
    trans_at: tl.tensor,
    calls: tl.tensor,
    may_end: tl.tensor,
    text: tl.tensor,
    offsets: tl.tensor,
    MAX_DEPTH: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """Advance BLOCK rows by the tokens token_ids[places[row]]. Grid: (blocks of rows,).

    A row gets the state -1 and an empty mask if its token has no text (an end token), is forbidden, or overflows the stack.
    """
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    is_row = index < num_rows
    slot = tl.load(slots + index, mask=is_row, other=0)
    token = tl.load(token_ids + tl.load(places + index, mask=is_row, other=0), mask=is_row, other=0)
    begin = tl.load(offsets + token, mask=is_row, other=0)
    end = tl.load(offsets + token + 1, mask=is_row, other=0)
    state = tl.load(slot_state + slot, mask=is_row, other=-1)
    depth = tl.load(slot_depth + slot, mask=is_row, other=0)
    grammar = tl.load(slot_grammar + slot, mask=is_row, other=0)
    is_live = is_row & (state >= 0)
    stack = slot_stack + slot * MAX_DEPTH
    verdict, state, low, high, count, popped = _walk(
        is_live, state, depth, stack, classes + grammar * 256, trans, trans_at, calls, text, begin, end, True
    )
    kept = depth - popped
    new_depth = kept + count
    is_good = is_live & (verdict == ALLOWED) & (new_depth <= MAX_DEPTH)
    # write pushed states to memory, the newest last
    complete = tl.load(may_end + state, mask=is_good, other=0).to(tl.int32)
    rest_low, rest_high = low, high
    for back in range(OVERLAY):
        is_pushed = is_good & (back < count)
        top = (rest_low & 0xFFFF).to(tl.int32)
        tl.store(stack + (new_depth - 1 - back), top, mask=is_pushed)
        ends = tl.load(may_end + top, mask=is_pushed, other=1).to(tl.int32)
        complete = complete & ends
        rest_low = ((rest_low >> 16) & 0xFFFFFFFFFFFF) | (rest_high << 48)
        rest_high = (rest_high >> 16) & 0xFFFFFFFFFFFF
    left = tl.where(is_good & (complete != 0), kept, 0)
    while tl.max(left) > 0:
        below = tl.load(stack + (left - 1), mask=left > 0, other=0)
        ends = tl.load(may_end + below, mask=left > 0, other=1).to(tl.int32)
        complete = complete & ends
        left = tl.where(complete != 0, left - 1, 0)
    tl.store(slot_state + slot, tl.where(is_good, state, -1), mask=is_row)
    tl.store(slot_depth + slot, tl.where(is_good, new_depth, 0), mask=is_row)
    tl.store(slot_complete + slot, tl.where(is_good, complete, 0), mask=is_row)
