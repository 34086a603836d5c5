"""Kernels that run pushdown automata with registers over tokens: allowed tokens (masks), and the place after a sampled token.

A lane is one token. It follows the bytes of the token from the place of its row; frames pushed on the way are an overlay of up to eight
states, in two 64-bit words, and their registers. Below the overlay lies the row's stack in memory, which a walk reads and never writes.

Most tokens depend on the state alone, or on the state and a count that stays far from its bounds. They are decided once, and cached in a
*line*. A lane that needs more (the stack, an object's register, or the names seen) is undecided, and is walked again for each row. A lane
that meets a hole of the tables, or has no room, makes its row *lost*: the host decides that row's token.

Why masked lanes are safe: a lane that does not run loads nothing and keeps its values.
"""

from __future__ import annotations

import triton.language as tl

from rtlang_kernels.triton.grammar.block_kernel import BLOCK_WORDS, LARGE, act_on_block, write_block
from rtlang_kernels.triton.grammar.name_kernel import (
    BEFORE_NAME,
    CLOSES,
    COMMA,
    NAME_ENDS,
    OPENS_ARRAY,
    OPENS_OBJECT,
    read_byte,
)
from rtlang_kernels.triton.grammar.register_kernel import OP_WORDS, RANGE, act
from rtlang_kernels.triton.primitives.jit import jit

RUNS, DEAD, ALLOWED, UNDECIDED, LOST = (
    tl.constexpr(0),
    tl.constexpr(1),
    tl.constexpr(2),
    tl.constexpr(3),
    tl.constexpr(4),
)
NOWHERE, HOLE, FIRST_OP = tl.constexpr(-1), tl.constexpr(-2), tl.constexpr(-3)
CALL, CALL_NEXT, CALL_TO, SPELL = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2), tl.constexpr(3)
OPEN, ENDS_OR_GOES_ON = tl.constexpr(0), tl.constexpr(2)  # whether a frame may end in a state
OVERLAY = tl.constexpr(8)  # net number of frames that one token may push
MAX_IDLE = tl.constexpr(32)  # calls and pops on one byte
WAYS = tl.constexpr(8)  # lines in which a key may be
# Columns of a slot.
STATE, DEPTH, GRAMMAR, COMPLETE, LINE, LOST_AT, MODE = (tl.constexpr(each) for each in range(7))
SLOT_WORDS = tl.constexpr(8)
REGISTER, CODE, DIGEST, NUM_CONTAINERS, NUM_NAMES = (tl.constexpr(each) for each in range(5))
WIDE_WORDS = tl.constexpr(8)
# Columns of a grammar.
STATES_AT, ROWS_AT, OPS_AT, NUM_CLASSES, HAS_NAMES, SERIAL = (tl.constexpr(each) for each in range(6))
GRAMMAR_WORDS = tl.constexpr(8)
STATE_WORDS = tl.constexpr(8)
REGISTER_SIZE = tl.constexpr(7)  # column of a state


@jit
def _walk(
    is_lane: tl.tensor,
    slot: tl.tensor,
    slots: tl.tensor,
    wide: tl.tensor,
    stack_states: tl.tensor,
    stack_registers: tl.tensor,
    blocks: tl.tensor,
    containers: tl.tensor,
    names: tl.tensor,
    grammars: tl.tensor,
    classes: tl.tensor,
    states: tl.tensor,
    rows: tl.tensor,
    ops: tl.tensor,
    text: tl.tensor,
    begin: tl.tensor,
    end: tl.tensor,
    for_row: tl.tensor,
    MAX_DEPTH: tl.constexpr,
    MAX_NAMES: tl.constexpr,
    TRACKS: tl.constexpr,
) -> tuple[tl.tensor, ...]:
    """Follow text[begin:end] per lane from the place of a slot.

    Args:
        for_row: 1: use the row's stack, register and names; 0: the result depends on the key of its line alone.
        TRACKS: keep names distinct.
    Returns:
        Verdict, state, register, overlay of states (low, high) and of registers (eight), number of its frames, and of popped stack entries.
    """
    grammar = tl.load(slots + slot * SLOT_WORDS + GRAMMAR)
    about = grammars + grammar * GRAMMAR_WORDS
    states = states + tl.load(about + STATES_AT)
    rows = rows + tl.load(about + ROWS_AT)
    ops = ops + tl.load(about + OPS_AT)
    num_classes = tl.load(about + NUM_CLASSES).to(tl.int32)
    has_names = tl.load(about + HAS_NAMES)
    classes = classes + grammar * 256
    start = tl.load(slots + slot * SLOT_WORDS + STATE)
    depth = tl.load(slots + slot * SLOT_WORDS + DEPTH)
    first_register = tl.load(wide + slot * WIDE_WORDS + REGISTER)
    stack_states, stack_registers = stack_states + slot * MAX_DEPTH, stack_registers + slot * MAX_DEPTH
    blocks = blocks + slot.to(tl.int64) * (MAX_DEPTH * BLOCK_WORDS)
    containers, names = containers + slot * MAX_DEPTH, names + slot * MAX_NAMES
    num_containers = tl.load(wide + slot * WIDE_WORDS + NUM_CONTAINERS).to(tl.int32)
    num_names = tl.load(wide + slot * WIDE_WORDS + NUM_NAMES).to(tl.int32)
    # a line's key holds the register of states that count characters
    counter = tl.load(states + start * STATE_WORDS + 5)

    verdict = tl.where(is_lane & (begin < end), RUNS, DEAD)
    nothing = tl.zeros_like(begin)
    with_row = nothing + for_row
    none = nothing.to(tl.int64)
    state, register = nothing + start, none + first_register
    low, high, count, popped, at, idle, spelled = none, none, nothing, nothing, begin, nothing, nothing - 1
    r0, r1, r2, r3, r4, r5, r6, r7 = none, none, none, none, none, none, none, none
    mode_word = tl.load(slots + slot * SLOT_WORDS + MODE)
    mode, escape = nothing + (mode_word & 7), nothing + (mode_word >> 3)
    code = nothing + tl.load(wide + slot * WIDE_WORDS + CODE).to(tl.int32)
    digest = none + tl.load(wide + slot * WIDE_WORDS + DIGEST)
    opened, kinds, closed, num_found, found = nothing, nothing, nothing, nothing, none
    while tl.min(verdict) == RUNS:
        runs = verdict == RUNS
        read = tl.load(text + at, mask=runs, other=0).to(tl.int32)
        byte = tl.where(spelled >= 0, spelled, read)
        record = states + state * STATE_WORDS
        is_single = tl.load(record + 1, mask=runs, other=-1) == byte
        column = tl.load(classes + byte, mask=runs, other=0)
        row = tl.load(record, mask=runs, other=0)
        entry = tl.load(rows + row * num_classes + column, mask=runs & ~is_single, other=-1)
        entry = tl.where(is_single, tl.load(record + 2, mask=is_single & runs, other=-1), entry)
        ending = tl.load(record + 4, mask=runs, other=0)
        at_root = (count == 0) & (popped == depth)
        ends = (ending != OPEN) & ~at_root
        verdict = tl.where(runs & (entry == HOLE), LOST, verdict)
        verdict = tl.where(runs & (entry != NOWHERE) & ends & (ending == ENDS_OR_GOES_ON), LOST, verdict)
        verdict = tl.where(runs & (entry == NOWHERE) & ~ends, DEAD, verdict)
        pops = runs & (entry == NOWHERE) & ends
        goes_on = runs & (verdict == RUNS) & (entry >= 0)
        after = entry
        does = runs & (verdict == RUNS) & (entry <= FIRST_OP)
        if tl.max(does.to(tl.int32)) > 0:
            words = ops + tl.where(does, FIRST_OP - entry, 0) * OP_WORDS
            kind = tl.load(words, mask=does, other=-1).to(tl.int32)
            acts = does & (kind >= RANGE)
            known = count + with_row + tl.where(counter >= 0, 1, 0)
            verdict = tl.where(acts & (known == 0), UNDECIDED, verdict)
            acts = acts & (known > 0)
            if tl.max(acts.to(tl.int32)) > 0:
                may, target, changed = act(acts & (kind < LARGE), kind, words, register)
                on_block = acts & (kind >= LARGE)
                if tl.max(on_block.to(tl.int32)) > 0:
                    # only the frame where the row was, or one below it, has a block that a walk reads
                    block = blocks + tl.minimum(depth - popped, MAX_DEPTH - 1) * BLOCK_WORDS
                    may_large, to_large, large, is_lost = act_on_block(on_block, kind, words, ops, register, block)
                    may, target = tl.where(on_block, may_large, may), tl.where(on_block, to_large, target)
                    changed = tl.where(on_block, large, changed)
                    verdict = tl.where(is_lost, LOST, verdict)
                verdict = tl.where(acts & ~may & (verdict == RUNS), DEAD, verdict)
                after = tl.where(may, target, after)
                register = tl.where(may, changed, register)
                goes_on = goes_on | may
            first = tl.load(words + 1, mask=does, other=0)
            calls, spells = does & (kind <= CALL_TO), does & (kind == SPELL)
            back = tl.load(record + 3, mask=calls & (kind == CALL), other=-1)
            back = tl.where(kind == CALL_NEXT, state + 1, back)
            back = tl.where(kind == CALL_TO, tl.load(words + 3, mask=calls, other=-1).to(tl.int32), back)
            pushes = calls & (back >= 0)
            verdict = tl.where(pushes & (count >= OVERLAY), LOST, verdict)
            high = tl.where(pushes, (high << 16) | ((low >> 48) & 0xFFFF), high)
            low = tl.where(pushes, (low << 16) | back.to(tl.int64), low)
            r7, r6, r5 = tl.where(pushes, r6, r7), tl.where(pushes, r5, r6), tl.where(pushes, r4, r5)
            r4, r3, r2 = tl.where(pushes, r3, r4), tl.where(pushes, r2, r3), tl.where(pushes, r1, r2)
            r1, r0 = tl.where(pushes, r0, r1), tl.where(pushes, register, r0)
            count = tl.where(pushes, count + 1, count)
            state = tl.where(calls, first.to(tl.int32), state)
            register = tl.where(calls, tl.load(words + 2, mask=calls, other=0), register)
            verdict = tl.where(spells & at_root, DEAD, verdict)
            pops = pops | (spells & ~at_root)
            spelled = tl.where(spells, first.to(tl.int32), spelled)
        if tl.max(pops.to(tl.int32)) > 0:
            inner, below = pops & (count > 0), pops & (count == 0)
            state = tl.where(inner, (low & 0xFFFF).to(tl.int32), state)
            register = tl.where(inner, r0, register)
            low = tl.where(inner, ((low >> 16) & 0xFFFFFFFFFFFF) | (high << 48), low)
            high = tl.where(inner, (high >> 16) & 0xFFFFFFFFFFFF, high)
            r0, r1, r2 = tl.where(inner, r1, r0), tl.where(inner, r2, r1), tl.where(inner, r3, r2)
            r3, r4, r5 = tl.where(inner, r4, r3), tl.where(inner, r5, r4), tl.where(inner, r6, r5)
            r6 = tl.where(inner, r7, r6)
            count = tl.where(inner, count - 1, count)
            place, reads = depth - 1 - popped, below & (with_row != 0)
            state = tl.where(reads, tl.load(stack_states + place, mask=reads, other=0), state)
            register = tl.where(reads, tl.load(stack_registers + place, mask=reads, other=0), register)
            popped = tl.where(reads, popped + 1, popped)
            verdict = tl.where(below & (with_row == 0), UNDECIDED, verdict)
        state = tl.where(goes_on, after, state)
        at = tl.where(goes_on, at + 1, at)
        spelled = tl.where(goes_on, -1, spelled)
        idle = tl.where(goes_on, 0, idle + 1)
        verdict = tl.where((verdict == RUNS) & (idle > MAX_IDLE), LOST, verdict)
        if TRACKS:  # noqa: SIM102 - the outer one is decided at compile time
            if has_names != 0:
                mode, escape, code, digest, event = read_byte(goes_on, read, mode, escape, code, digest)
                happens = event != 0
                if tl.max(happens.to(tl.int32)) > 0:
                    # a comma: is it in an object?
                    asks = (event == COMMA) & (opened == 0)
                    place = num_containers - 1 - closed
                    verdict = tl.where(asks & (closed > 0) & (with_row == 0), UNDECIDED, verdict)
                    around = tl.load(containers + place, mask=asks & (place >= 0), other=0)
                    is_object = (tl.where(opened > 0, kinds, around) & 1) != 0
                    mode = tl.where((event == COMMA) & is_object, BEFORE_NAME, mode)
                    # a name ends: has its object another of this name?
                    ends_name = event == NAME_ENDS
                    in_row = ends_name & (opened == 0)
                    verdict = tl.where(in_row & (verdict == RUNS) & (with_row == 0), UNDECIDED, verdict)
                    in_row = in_row & (with_row != 0)
                    at_name = tl.load(containers + place, mask=in_row & (place >= 0), other=0) >> 1
                    stop = tl.load(containers + place + 1, mask=in_row & (closed > 0), other=0) >> 1
                    stop = tl.where(in_row, tl.where(closed > 0, stop, num_names), 0)
                    at_name = tl.where(in_row, at_name, 0)
                    while tl.max(stop - at_name) > 0:
                        compares = at_name < stop
                        same = tl.load(names + at_name, mask=compares, other=0) == digest
                        verdict = tl.where(compares & same, DEAD, verdict)
                        at_name = at_name + 1
                    is_again = ends_name & (((num_found > 0) & (digest == found)) | (num_found > 1))
                    verdict = tl.where(is_again & (verdict == RUNS), LOST, verdict)
                    found = tl.where(ends_name, digest, found)
                    num_found = tl.where(ends_name, num_found + 1, num_found)
                    opens = (event == OPENS_OBJECT) | (event == OPENS_ARRAY)
                    closes_own, closes_row = (event == CLOSES) & (opened > 0), (event == CLOSES) & (opened == 0)
                    kinds = tl.where(opens, (kinds << 1) | (event == OPENS_OBJECT).to(tl.int32), kinds)
                    opened = tl.where(opens, opened + 1, opened)
                    kinds = tl.where(closes_own, kinds >> 1, kinds)
                    opened = tl.where(closes_own, opened - 1, opened)
                    closed = tl.where(closes_row, closed + 1, closed)
                    verdict = tl.where((verdict == RUNS) & (opened > 30), LOST, verdict)
        verdict = tl.where((verdict == RUNS) & goes_on & (at >= end), ALLOWED, verdict)
    return verdict, state, register, low, high, r0, r1, r2, r3, r4, r5, r6, r7, count, popped


@jit
def _packed(bits: tl.tensor) -> tl.tensor:
    """Pack [words, 32] booleans into words."""
    lanes = tl.arange(0, 32)[None, :]
    return tl.sum(tl.where(bits, (tl.full([1, 1], 1, tl.int32) << lanes), 0), axis=1)


@jit
def _key(
    slot: tl.tensor,
    is_row: tl.tensor,
    reach: tl.tensor,
    slots: tl.tensor,
    wide: tl.tensor,
    containers: tl.tensor,
    grammars: tl.tensor,
    states: tl.tensor,
    MAX_DEPTH: tl.constexpr,
) -> tl.tensor:
    """What a row's cached mask depends on, in 64 bits; 0: it is not cached.

    A count that no token can carry to a bound is replaced by another such count.
    """
    state = tl.load(slots + slot * SLOT_WORDS + STATE, mask=is_row, other=-1)
    is_row = is_row & (state >= 0)
    grammar = tl.load(slots + slot * SLOT_WORDS + GRAMMAR, mask=is_row, other=0)
    about = grammars + grammar * GRAMMAR_WORDS
    record = states + tl.load(about + STATES_AT, mask=is_row, other=0) + state * STATE_WORDS
    least = tl.load(record + 5, mask=is_row, other=-1).to(tl.int64)
    most = tl.load(record + 6, mask=is_row, other=-1).to(tl.int64)
    register = tl.load(wide + slot * WIDE_WORDS + REGISTER, mask=is_row, other=0)
    is_far = register + reach < most
    register = tl.where(is_far & (register + reach < least), 0, register)
    register = tl.where(is_far & (register >= least), least, register)
    register = tl.where(least >= 0, register, 0)
    mode = tl.load(slots + slot * SLOT_WORDS + MODE, mask=is_row, other=0)
    depth = tl.load(slots + slot * SLOT_WORDS + DEPTH, mask=is_row, other=0)
    num = tl.load(wide + slot * WIDE_WORDS + NUM_CONTAINERS, mask=is_row, other=0)
    in_object = tl.load(containers + slot * MAX_DEPTH + num - 1, mask=is_row & (num > 0), other=0) & 1
    bits = mode | (in_object << 6) | ((depth == 0).to(tl.int32) << 7)
    serial = tl.load(about + SERIAL, mask=is_row, other=0)
    key = (((serial << 16) | state) << 32) | (register << 8) | bits
    return tl.where(is_row & (register < (1 << 24)), key, 0)


@jit
def find_lines(
    rows: tl.tensor,
    num_rows: tl.tensor,
    step: tl.tensor,
    reach: tl.tensor,
    slots: tl.tensor,
    wide: tl.tensor,
    containers: tl.tensor,
    grammars: tl.tensor,
    states: tl.tensor,
    tags: tl.tensor,
    used: tl.tensor,
    made: tl.tensor,
    num_sets: tl.tensor,
    MAX_DEPTH: tl.constexpr,
    ATTEMPTS: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """Find or make the line of each row. One program.

    A new line takes the place of the least recently used one of its set. Lines found in this step are marked first, so that none of them
    leaves; a row that finds no place has no line, and its mask is not cached. The last tag belongs to no line.
    """
    now = tl.load(step)
    ways = tl.arange(0, WAYS)[None, :]
    for block in range(tl.cdiv(num_rows, BLOCK)):
        index = block * BLOCK + tl.arange(0, BLOCK)
        is_row = index < num_rows
        slot = tl.load(rows + index, mask=is_row, other=0)
        key = _key(slot, is_row, reach, slots, wide, containers, grammars, states, MAX_DEPTH)
        mixed = (key ^ (key >> 29)) * 0x2545F4914F6CDD1D
        lines = ((((mixed >> 33) & 0x3FFFFFFF) % num_sets) * WAYS).to(tl.int32)[:, None] + ways
        matches = (tl.load(tags + lines) == key[:, None]) & (key != 0)[:, None]
        line = tl.max(tl.where(matches, lines, -1), axis=1)
        tl.store(used + line, now, mask=line >= 0)
        tl.store(slots + slot * SLOT_WORDS + LINE, line, mask=is_row)
    tl.debug_barrier()
    for block in range(tl.cdiv(num_rows, BLOCK)):
        index = block * BLOCK + tl.arange(0, BLOCK)
        is_row = index < num_rows
        slot = tl.load(rows + index, mask=is_row, other=0)
        key = _key(slot, is_row, reach, slots, wide, containers, grammars, states, MAX_DEPTH)
        mixed = (key ^ (key >> 29)) * 0x2545F4914F6CDD1D
        lines = ((((mixed >> 33) & 0x3FFFFFFF) % num_sets) * WAYS).to(tl.int32)[:, None] + ways
        line = tl.load(slots + slot * SLOT_WORDS + LINE, mask=is_row, other=0)
        seeks = is_row & (line < 0) & (key != 0)
        for _ in range(ATTEMPTS):
            if tl.max(seeks.to(tl.int32)) > 0:
                there = tl.load(tags + lines)
                last = tl.load(used + lines)
                matches = (there == key[:, None]) & seeks[:, None]
                oldest = tl.min(last, axis=1)
                may_leave = (last == oldest[:, None]) & (last < now)
                victim = tl.max(tl.where(may_leave, lines, -1), axis=1)
                hit = tl.max(tl.where(matches, lines, -1), axis=1)
                takes = seeks & (hit < 0) & (victim >= 0)
                old = tl.sum(tl.where(lines == victim[:, None], there, 0), axis=1)
                place = tl.where(takes, victim, num_sets * WAYS)
                was = tl.atomic_cas(tags + place, tl.where(takes, old, 0), tl.where(takes, key, 0))
                is_made = takes & (was == old)
                tl.store(made + victim, now, mask=is_made)
                tl.store(used + victim, now, mask=is_made)
                line = tl.where(seeks & (hit >= 0), hit, tl.where(takes & ((was == old) | (was == key)), victim, line))
                seeks = seeks & (line < 0)
                tl.debug_barrier()
        tl.store(slots + slot * SLOT_WORDS + LINE, line, mask=is_row)


@jit
def build_masks(
    rows_of: tl.tensor,
    step: tl.tensor,
    slots: tl.tensor,
    wide: tl.tensor,
    stack_states: tl.tensor,
    stack_registers: tl.tensor,
    blocks: tl.tensor,
    containers: tl.tensor,
    names: tl.tensor,
    grammars: tl.tensor,
    classes: tl.tensor,
    states: tl.tensor,
    rows: tl.tensor,
    ops: tl.tensor,
    text: tl.tensor,
    offsets: tl.tensor,
    end_words: tl.tensor,
    made: tl.tensor,
    built: tl.tensor,
    kept_allowed: tl.tensor,
    kept_undecided: tl.tensor,
    masks: tl.tensor,
    num_words: tl.tensor,
    vocab_size: tl.tensor,
    MAX_DEPTH: tl.constexpr,
    MAX_NAMES: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """Build BLOCK tokens of one row's mask. Grid: (chunks of the vocabulary, rows).

    `built` holds twice the step that computed a chunk of a line, and whether a token is lost: later steps may read it, the same step may
    not, as its programs are unordered.
    """
    chunk = tl.program_id(0)
    slot = tl.load(rows_of + tl.program_id(1))
    now = tl.load(step)
    word = chunk * (BLOCK // 32) + tl.arange(0, BLOCK // 32)
    is_word = word < num_words
    place = masks + slot.to(tl.int64) * num_words + word
    if tl.load(slots + slot * SLOT_WORDS + STATE) < 0:
        tl.store(place, tl.zeros([BLOCK // 32], tl.int32), mask=is_word)
        tl.store(slots + slot * SLOT_WORDS + LOST_AT, now)
        return
    token = (word[:, None] * 32 + tl.arange(0, 32)[None, :]).reshape(BLOCK)
    is_token = token < vocab_size
    begin = tl.load(offsets + token, mask=is_token, other=0)
    end = tl.load(offsets + token + 1, mask=is_token, other=0)
    line = tl.load(slots + slot * SLOT_WORDS + LINE)
    cached = tl.maximum(line, 0).to(tl.int64)
    flag = built + cached * tl.num_programs(0) + chunk
    state_of = tl.load(flag)
    kept = cached * num_words + word
    is_made = (line >= 0) & ((state_of >> 1) >= tl.load(made + cached)) & ((state_of >> 1) < now)
    num_made = tl.where(is_made, 1, 0)
    is_kept = is_word & (word * 0 + num_made > 0)
    allowed = tl.load(kept_allowed + kept, mask=is_kept, other=0)
    undecided = tl.load(kept_undecided + kept, mask=is_kept, other=0)
    is_lost = tl.where(is_made, state_of & 1, 0)
    asks = is_token & (token * 0 + num_made == 0)
    for for_row in range(2):  # one walk in a loop: two were compiled twice
        if tl.max(asks.to(tl.int32)) > 0:
            verdict, _, _, _, _, _, _, _, _, _, _, _, _, _, _ = _walk(
                asks, slot, slots, wide, stack_states, stack_registers, blocks, containers, names, grammars, classes, states,
                rows, ops, text, begin, end, for_row, MAX_DEPTH, MAX_NAMES, True,
            )  # fmt: skip
            allowed = allowed | _packed((verdict == ALLOWED).reshape(BLOCK // 32, 32))
            is_lost = is_lost | tl.max((verdict == LOST).to(tl.int32))
            if for_row == 0:
                undecided = _packed((verdict == UNDECIDED).reshape(BLOCK // 32, 32))
                if line >= 0:
                    tl.store(kept_allowed + kept, allowed, mask=is_word)
                    tl.store(kept_undecided + kept, undecided, mask=is_word)
                    tl.store(flag, 2 * now + is_lost)
        asks = is_token & (((undecided[:, None] >> tl.arange(0, 32)[None, :]) & 1) != 0).reshape(BLOCK)
    if is_lost != 0:
        tl.store(slots + slot * SLOT_WORDS + LOST_AT, now)
    if tl.load(slots + slot * SLOT_WORDS + COMPLETE) != 0:
        allowed = allowed | tl.load(end_words + word, mask=is_word, other=0)
    tl.store(place, allowed, mask=is_word)


@jit
def keep_lost(
    rows_of: tl.tensor,
    places: tl.tensor,
    step: tl.tensor,
    slots: tl.tensor,
    logits: tl.tensor,
    kept: tl.tensor,
    row_stride: tl.tensor,
    vocab_size: tl.tensor,
    BLOCK: tl.constexpr,
) -> None:
    """Copy BLOCK logits of a lost row. Grid: (chunks of the vocabulary, rows)."""
    row = tl.program_id(1)
    slot = tl.load(rows_of + row)
    if tl.load(slots + slot * SLOT_WORDS + LOST_AT) == tl.load(step):
        column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        is_token = column < vocab_size
        line = tl.load(places + row).to(tl.int64)
        found = tl.load(logits + line * row_stride + column, mask=is_token)
        tl.store(kept + row.to(tl.int64) * vocab_size + column, found, mask=is_token)


@jit
def _follow_names(
    slot: tl.tensor,
    slots: tl.tensor,
    wide: tl.tensor,
    containers: tl.tensor,
    names: tl.tensor,
    text: tl.tensor,
    begin: tl.tensor,
    end: tl.tensor,
    MAX_DEPTH: tl.constexpr,
    MAX_NAMES: tl.constexpr,
) -> tl.tensor:
    """Take the names and containers of text[begin:end] into the memory of a slot; returns whether there was room."""
    containers, names = containers + slot * MAX_DEPTH, names + slot * MAX_NAMES
    word = tl.load(slots + slot * SLOT_WORDS + MODE)
    mode, escape = word & 7, word >> 3
    code = tl.load(wide + slot * WIDE_WORDS + CODE).to(tl.int32)
    digest = tl.load(wide + slot * WIDE_WORDS + DIGEST)
    num_containers = tl.load(wide + slot * WIDE_WORDS + NUM_CONTAINERS).to(tl.int32)
    num_names = tl.load(wide + slot * WIDE_WORDS + NUM_NAMES).to(tl.int32)
    has_room = begin == begin
    for at in range(tl.min(begin), tl.max(end)):
        byte = tl.load(text + at + tl.zeros_like(begin)).to(tl.int32)
        mode, escape, code, digest, event = read_byte(byte >= 0, byte, mode, escape, code, digest)
        if tl.max(event) > 0:
            opens = (event == OPENS_OBJECT) | (event == OPENS_ARRAY)
            has_room = has_room & ~(opens & (num_containers >= MAX_DEPTH))
            has_room = has_room & ~((event == NAME_ENDS) & (num_names >= MAX_NAMES))
            kind = (num_names << 1) | (event == OPENS_OBJECT).to(tl.int32)
            tl.store(containers + num_containers, kind, mask=opens & has_room)
            tl.store(names + num_names, digest, mask=(event == NAME_ENDS) & has_room)
            tl.debug_barrier()
            around = tl.load(containers + num_containers - 1, mask=(num_containers > 0) & has_room, other=0)
            mode = tl.where((event == COMMA) & ((around & 1) != 0), BEFORE_NAME, mode)
            closes = (event == CLOSES) & (num_containers > 0)
            num_names = tl.where(closes, around >> 1, tl.where(event == NAME_ENDS, num_names + 1, num_names))
            num_containers = num_containers + (opens & has_room).to(tl.int32) - closes.to(tl.int32)
    tl.store(slots + slot * SLOT_WORDS + MODE, mode | (escape << 3))
    tl.store(wide + slot * WIDE_WORDS + CODE, code.to(tl.int64))
    tl.store(wide + slot * WIDE_WORDS + DIGEST, digest)
    tl.store(wide + slot * WIDE_WORDS + NUM_CONTAINERS, num_containers.to(tl.int64))
    tl.store(wide + slot * WIDE_WORDS + NUM_NAMES, num_names.to(tl.int64))
    return has_room


@jit
def advance(
    rows_of: tl.tensor,
    token_ids: tl.tensor,
    places: tl.tensor,
    step: tl.tensor,
    slots: tl.tensor,
    wide: tl.tensor,
    stack_states: tl.tensor,
    stack_registers: tl.tensor,
    blocks: tl.tensor,
    containers: tl.tensor,
    names: tl.tensor,
    grammars: tl.tensor,
    classes: tl.tensor,
    states: tl.tensor,
    rows: tl.tensor,
    ops: tl.tensor,
    text: tl.tensor,
    offsets: tl.tensor,
    MAX_DEPTH: tl.constexpr,
    MAX_NAMES: tl.constexpr,
) -> None:
    """Advance a row by the token token_ids[places[row]]. Grid: (rows,).

    A row gets the state -1 if it is lost, or if its token has no text (an end token), is forbidden, or has no room.
    """
    row = tl.program_id(0)
    slot = tl.load(rows_of + row)
    token = tl.load(token_ids + tl.load(places + row))
    one = tl.zeros([1], tl.int32)
    begin, end = tl.load(offsets + token) + one, tl.load(offsets + token + 1) + one
    was_lost = tl.load(slots + slot * SLOT_WORDS + LOST_AT) == tl.load(step)
    is_live = (tl.load(slots + slot * SLOT_WORDS + STATE) >= 0) & ~was_lost
    depth = tl.load(slots + slot * SLOT_WORDS + DEPTH) + one
    about = grammars + tl.load(slots + slot * SLOT_WORDS + GRAMMAR) * GRAMMAR_WORDS
    verdict, state, register, low, high, r0, r1, r2, r3, r4, r5, r6, r7, count, popped = _walk(
        is_live & (one == 0), slot, slots, wide, stack_states, stack_registers, blocks, containers, names, grammars, classes, states, rows,
        ops, text, begin, end, 1, MAX_DEPTH, MAX_NAMES, False,
    )  # fmt: skip
    kept = depth - popped
    new_depth = kept + count
    is_good = (verdict == ALLOWED) & (new_depth <= MAX_DEPTH)
    endings = states + tl.load(about + STATES_AT) + 4
    complete = tl.load(endings + state * STATE_WORDS, mask=is_good, other=0) != OPEN
    frames = stack_states + slot * MAX_DEPTH
    values = stack_registers + slot * MAX_DEPTH
    blocks = blocks + slot.to(tl.int64) * (MAX_DEPTH * BLOCK_WORDS)
    ops = ops + tl.load(about + OPS_AT)
    sizes = states + tl.load(about + STATES_AT) + REGISTER_SIZE
    register = write_block(
        is_good & (tl.load(sizes + state * STATE_WORDS, mask=is_good, other=0) > 2), register, ops,
        blocks + tl.where(is_good, tl.minimum(new_depth, MAX_DEPTH - 1), 0) * BLOCK_WORDS,
    )  # fmt: skip
    # write pushed frames to memory, the newest last
    for back in range(OVERLAY):
        is_pushed = is_good & (back < count)
        top = (low & 0xFFFF).to(tl.int32)
        place = tl.where(is_pushed, new_depth - 1 - back, 0)
        is_large = tl.load(sizes + top * STATE_WORDS, mask=is_pushed, other=0) > 2
        r0 = write_block(is_pushed & is_large, r0, ops, blocks + place * BLOCK_WORDS)
        tl.store(frames + (new_depth - 1 - back), top, mask=is_pushed)
        tl.store(values + (new_depth - 1 - back), r0, mask=is_pushed)
        complete = complete & (tl.load(endings + top * STATE_WORDS, mask=is_pushed, other=1) != OPEN)
        low = ((low >> 16) & 0xFFFFFFFFFFFF) | (high << 48)
        high = (high >> 16) & 0xFFFFFFFFFFFF
        r0, r1, r2, r3, r4, r5, r6 = r1, r2, r3, r4, r5, r6, r7
    left = tl.where(is_good & complete, kept, 0)
    while tl.max(left) > 0:
        below = tl.load(frames + (left - 1), mask=left > 0, other=0)
        complete = complete & (tl.load(endings + below * STATE_WORDS, mask=left > 0, other=1) != OPEN)
        left = tl.where(complete, left - 1, 0)
    if (tl.load(about + HAS_NAMES) != 0) & (tl.max(is_good.to(tl.int32)) > 0):
        has_room = _follow_names(slot + one, slots, wide, containers, names, text, begin, end, MAX_DEPTH, MAX_NAMES)
        is_good = is_good & has_room
    place = slots + slot * SLOT_WORDS + one
    tl.store(place + STATE, tl.where(is_good, state, -1))
    tl.store(place + DEPTH, tl.where(is_good, new_depth, 0))
    tl.store(place + COMPLETE, (is_good & complete).to(tl.int32))
    tl.store(wide + slot * WIDE_WORDS + REGISTER + one, register)
