"""Compiled walks of the token trie through the lexer, and the nodes of the tree made from them."""

from __future__ import annotations

import numpy as np

from rtlang_grammars.machine.lexing.layout import (
    BEGIN,
    BYTE_AT,
    BYTES,
    CROSSING_AT,
    CROSSINGS,
    END_AT,
    END_WIN,
    ENDS,
    FIRST_KID,
    HOME,
    IS_SURE,
    ITEM_AT,
    ITEMS,
    KEEP,
    MAX_BACK,
    NO_SCRATCH,
    NO_TREE,
    NODES,
    NUM_BYTES,
    NUM_CROSSINGS,
    NUM_ENDS,
    NUM_ITEMS,
    NUM_RANGES,
    NUM_TAILS,
    NUM_TOKENS,
    RANGE_AT,
    RANGES,
    ROW,
    ROWS,
    STEP_BITS,
    STOP,
    TAIL_AT,
    TAIL_BYTE_AT,
    TAIL_LAST,
    TAIL_NUM_BYTES,
    TAIL_TOKEN,
    TAIL_WIN,
    TAILS,
    TERMINAL,
    WIN,
    WINNER_BITS,
)
from rtlang_grammars.machine.native.native_code import compiled
from rtlang_grammars.machine.token_index.byte_kinds import COUNT_SHIFT, DEPTH_SHIFT, RANK_SHIFT, SKIP_SHIFT, TOKEN_SHIFT

AHEAD = 6
"""Items whose records are fetched before they are walked."""

LARGE = 1200
"""Ends with more tokens than this are kept as rows of bits."""


@compiled(inner=True, inline="always")
def _walk(items, num_items, data, state, last, last_at, is_fed, lexer, tokens, scratch):  # type: ignore[no-untyped-def] # pragma: no cover
    """Lex the records of `items` from a lexer state; returns the numbers of ends, crossings and bytes, or -1 for want of room.

    is_fed: the bytes before each item were read already to reach `state`; the last match was after `last_at` of them.
    """
    ends, crossings, path, text, out = scratch.ends, scratch.crossings, scratch.path, scratch.text, scratch.data
    records, kinds = tokens.records, tokens.below
    every_kind = (1 << COUNT_SHIFT) - 1
    rank_mask = (1 << (SKIP_SHIFT - RANK_SHIFT)) - 1
    steps, states, exits, classes = lexer.steps, lexer.states, lexer.exits, lexer.classes
    step_mask, winner_mask = (1 << STEP_BITS) - 1, (1 << WINNER_BITS) - 1
    num_ends = num_crossings = num_bytes = 0
    soon = np.int64(0)
    for item in range(num_items):
        at, stop = items[item, BEGIN], items[item, STOP]
        soon ^= records[items[min(item + AHEAD, num_items - 1), BEGIN]]  # the items lie apart in memory
        num_before, byte_at = items[item, NUM_BYTES], items[item, BYTE_AT]
        for index in range(num_before):
            text[index] = data[byte_at + index]
        base = num_before - ((records[at] >> DEPTH_SHIFT) & 0x3FF) if at < stop else 0
        fed = num_before if is_fed else 0
        path[fed, 0], path[fed, 1], path[fed, 2] = state, last, last_at
        while at < stop:
            is_pending = fed < num_before
            record = records[at]
            below = record >> SKIP_SHIFT
            rank = (record >> RANK_SHIFT) & rank_mask
            if is_pending:
                depth = fed
                now, match, match_at = path[depth, 0], path[depth, 1], path[depth, 2]
            else:
                depth = base + ((record >> DEPTH_SHIFT) & 0x3FF)
                now, match, match_at = path[depth, 0], path[depth, 1], path[depth, 2]
                exit_kinds = exits[now]
                if (
                    exit_kinds != every_kind
                    and kinds[at] & exit_kinds == 0
                    and (match < 0 or states[states[now, HOME], IS_SURE] > 0)
                    and (states[now, HOME] == now or record & 0xC0 == 0x80)
                ):
                    # Every token of the subtree ends in the state `home`.
                    home, rank_below = states[now, HOME], rank + ((kinds[at] >> COUNT_SHIFT) & rank_mask)
                    if (
                        num_ends > 0
                        and ends[num_ends - 1, 5] == rank
                        and ends[num_ends - 1, 0] == home
                        and ends[num_ends - 1, 1] < 0
                    ):
                        ends[num_ends - 1, 5] = rank_below
                    else:
                        ends[num_ends, 0], ends[num_ends, 1] = home, -1
                        ends[num_ends, 4], ends[num_ends, 5] = rank, rank_below
                        num_ends += 1
                    at = below
                    continue
                text[depth] = record & 0xFF
            step = steps[now, classes[text[depth]]]
            reached = (step & step_mask) - 1
            if step > step_mask:  # something ends
                winner = ((step >> STEP_BITS) & winner_mask) - 1
                ended = depth - (step >> (STEP_BITS + WINNER_BITS))
                if match < 0 or ended > match_at or (ended == match_at and winner < match) or lexer.order[0]:
                    match, match_at = winner, ended
            if reached >= 0:
                if match >= 0 and (depth + 1 - match_at > MAX_BACK or states[reached, IS_SURE] > 0):
                    match = -1
                path[depth + 1, 0], path[depth + 1, 1], path[depth + 1, 2] = reached, match, match_at
                if is_pending:
                    fed += 1
                    continue
                if record & (1 << TOKEN_SHIFT):
                    ends[num_ends, 0], ends[num_ends, 1] = reached, match
                    ends[num_ends, 4], ends[num_ends, 5] = rank, rank + 1
                    if match >= 0:
                        ends[num_ends, 2], ends[num_ends, 3] = num_bytes, depth + 1 - match_at
                        if num_bytes + 1100 >= out.size:
                            return -1, 0, 0
                        for index in range(match_at, depth + 1):
                            out[num_bytes] = text[index]
                            num_bytes += 1
                    num_ends += 1
                at += 1
                continue
            if match >= 0:
                end = num_before if is_pending else depth
                if num_crossings >= crossings.shape[0] or num_bytes + 1100 >= out.size:
                    return -1, 0, 0
                crossings[num_crossings, 0] = match
                crossings[num_crossings, 1] = at
                crossings[num_crossings, 2] = stop if is_pending else below
                crossings[num_crossings, 3], crossings[num_crossings, 4] = num_bytes, end - match_at
                for index in range(match_at, end):
                    out[num_bytes] = text[index]
                    num_bytes += 1
                num_crossings += 1
            if is_pending:
                break
            at = below
    path[0, 0] = soon & 1  # so that what was read ahead is used
    return num_ends, num_crossings, num_bytes


@compiled(inner=True, inline="always")
def _needs_way_back(state, last, lexer):  # type: ignore[no-untyped-def] # pragma: no cover
    """Whether an earlier match may save a token that ends in a state: not where the same terminal can still win before anything."""
    win = lexer.states[state, WIN]
    for index in range(lexer.wins[win, 0], lexer.wins[win, 0] + lexer.wins[win, 1]):
        pair = lexer.win_pairs[index]
        terminal = lexer.pairs[pair, 0]
        if terminal >= lexer.firsts.shape[0]:  # a newline
            columns = lexer.column_sets[terminal - lexer.firsts.shape[0]]
            if 0 <= last - lexer.newline[0] < columns.size and columns[last - lexer.newline[0]]:
                terminal = last
        if terminal == last and lexer.pairs[pair, 2] > 0:
            return False
    return True


@compiled(inner=True, inline="always")
def _end_of(tree, first, win, hint):  # type: ignore[no-untyped-def] # pragma: no cover
    """The end with a win among those from `first` on; made if there is none."""
    counts = tree.counts
    if hint >= first and tree.ends[hint, END_WIN] == win:
        return hint
    at = first
    while at < counts[ENDS] and tree.ends[at, END_WIN] != win:
        at += 1
    if at == counts[ENDS]:
        counts[ENDS] += 1
        tree.ends[at, END_WIN], tree.ends[at, NUM_RANGES], tree.ends[at, NUM_TOKENS], tree.ends[at, ROW] = win, 0, 0, -1
    return at


@compiled(inner=True, inline="always")
def set_range(mask, order, begin, stop):  # type: ignore[no-untyped-def] # pragma: no cover
    """Allow a range of tokens."""
    for rank in range(begin, stop):
        token = order[rank]
        mask[token >> 5] |= np.uint32(1) << np.uint32(token & 31)


@compiled(inner=True, inline="always")
def _put(tree, scratch, end, first, begin, stop, order):  # type: ignore[no-untyped-def] # pragma: no cover
    """Add a range of tokens to an end."""
    row = tree.ends[end, ROW]
    if row >= 0:
        set_range(tree.rows[row], order, begin, stop)
    else:
        at = tree.ends[end, RANGE_AT] + scratch.fill[end - first]
        tree.ranges[at, 0], tree.ranges[at, 1] = begin, stop
        scratch.fill[end - first] += 1


@compiled(inner=True, inline="always")
def _has_room(tree, scratch, num_ends, num_crossings, num_bytes):  # type: ignore[no-untyped-def] # pragma: no cover
    """Whether a node of what a walk found fits, by upper bounds."""
    num_tokens = 0
    for end in range(num_ends):
        num_tokens += scratch.ends[end, 5] - scratch.ends[end, 4]
    counts, needs = tree.counts, tree.needs
    needs[NODES], needs[ENDS] = counts[NODES] + 1, counts[ENDS] + min(num_ends, scratch.fill.size - 1)
    needs[TAILS], needs[CROSSINGS] = (
        counts[TAILS] + num_ends,
        counts[CROSSINGS] + min(num_crossings, scratch.tally.size),
    )
    needs[ITEMS], needs[RANGES] = counts[ITEMS] + num_crossings, counts[RANGES] + num_ends
    needs[BYTES], needs[ROWS] = counts[BYTES] + num_bytes, counts[ROWS] + num_tokens // LARGE + 1
    return (
        needs[NODES] < tree.nodes.shape[0]
        and needs[ENDS] < tree.ends.shape[0]
        and needs[TAILS] < tree.tails.shape[0]
        and needs[CROSSINGS] < tree.crossings.shape[0]
        and needs[ITEMS] < tree.items.shape[0]
        and needs[RANGES] < tree.ranges.shape[0]
        and needs[BYTES] < tree.data.size
        and needs[ROWS] < tree.rows.shape[0]
    )


@compiled(inner=True, inline="always")
def _collect(tree, scratch, num_ends, num_crossings, num_bytes, lexer, order):  # type: ignore[no-untyped-def] # pragma: no cover
    """A node of what a walk found; NO_TREE for want of room."""
    if not _has_room(tree, scratch, num_ends, num_crossings, num_bytes):
        return NO_TREE
    counts, ends, groups = tree.counts, scratch.ends, scratch.groups
    node = counts[NODES]
    counts[NODES] += 1
    first, first_tail, first_crossing = counts[ENDS], counts[TAILS], counts[CROSSINGS]
    hint = -1
    for index in range(num_ends):
        state, last = ends[index, 0], ends[index, 1]
        is_ahead = lexer.states[state, KEEP] > 0  # inside look-ahead: Python is asked
        if is_ahead or (last >= 0 and _needs_way_back(state, last, lexer)):
            tail = counts[TAILS]
            counts[TAILS] += 1
            tree.tails[tail, TAIL_WIN], tree.tails[tail, TAIL_TOKEN] = lexer.states[state, WIN], order[ends[index, 4]]
            groups[index] = -1
            if is_ahead:
                tree.tails[tail, TAIL_LAST] = -1
                continue
            tree.tails[tail, TAIL_LAST], tree.tails[tail, TAIL_BYTE_AT] = last, counts[BYTES]
            tree.tails[tail, TAIL_NUM_BYTES] = ends[index, 3]
            for at in range(ends[index, 3]):
                tree.data[counts[BYTES] + at] = scratch.data[ends[index, 2] + at]
            counts[BYTES] += ends[index, 3]
        else:
            hint = _end_of(tree, first, lexer.states[state, WIN], hint)
            tree.ends[hint, NUM_RANGES] += 1
            tree.ends[hint, NUM_TOKENS] += ends[index, 5] - ends[index, 4]
            groups[index] = hint
    for terminal in range(scratch.tally.size):
        scratch.tally[terminal] = 0
    for end in range(first, counts[ENDS]):
        scratch.fill[end - first] = 0
        if tree.ends[end, NUM_TOKENS] > LARGE:
            tree.ends[end, ROW] = counts[ROWS]
            tree.ends[end, NUM_RANGES] = 0
            for word in range(tree.rows.shape[1]):
                tree.rows[counts[ROWS], word] = 0
            counts[ROWS] += 1
        else:
            tree.ends[end, RANGE_AT] = counts[RANGES]
            counts[RANGES] += tree.ends[end, NUM_RANGES]
    for index in range(num_ends):
        if groups[index] >= 0:
            _put(tree, scratch, groups[index], first, ends[index, 4], ends[index, 5], order)
    for index in range(num_crossings):
        scratch.tally[scratch.crossings[index, 0]] += 1
    for terminal in range(scratch.tally.size):
        if scratch.tally[terminal]:
            crossing = counts[CROSSINGS]
            counts[CROSSINGS] += 1
            tree.crossings[crossing, TERMINAL], tree.crossings[crossing, ITEM_AT] = terminal, counts[ITEMS]
            tree.crossings[crossing, NUM_ITEMS], tree.crossings[crossing, FIRST_KID] = scratch.tally[terminal], -1
            scratch.cursor[terminal] = counts[ITEMS]
            counts[ITEMS] += scratch.tally[terminal]
    for index in range(num_crossings):
        item = scratch.cursor[scratch.crossings[index, 0]]
        scratch.cursor[scratch.crossings[index, 0]] += 1
        tree.items[item, BEGIN], tree.items[item, STOP] = scratch.crossings[index, 1], scratch.crossings[index, 2]
        tree.items[item, BYTE_AT], tree.items[item, NUM_BYTES] = counts[BYTES], scratch.crossings[index, 4]
        for at in range(scratch.crossings[index, 4]):
            tree.data[counts[BYTES] + at] = scratch.data[scratch.crossings[index, 3] + at]
        counts[BYTES] += scratch.crossings[index, 4]
    tree.nodes[node, END_AT], tree.nodes[node, NUM_ENDS] = first, counts[ENDS] - first
    tree.nodes[node, TAIL_AT], tree.nodes[node, NUM_TAILS] = first_tail, counts[TAILS] - first_tail
    tree.nodes[node, CROSSING_AT], tree.nodes[node, NUM_CROSSINGS] = first_crossing, counts[CROSSINGS] - first_crossing
    return node


@compiled(inner=True)
def grow(tree, items, num_items, data, state, last, last_at, is_fed, lexer, tokens, scratch):  # type: ignore[no-untyped-def] # pragma: no cover
    """A node of what the tokens below `items` do from a lexer state; NO_SCRATCH or NO_TREE for want of room."""
    num_ends, num_crossings, num_bytes = _walk(
        items, num_items, data, state, last, last_at, is_fed, lexer, tokens, scratch
    )
    if num_ends < 0:
        return NO_SCRATCH
    return _collect(tree, scratch, num_ends, num_crossings, num_bytes, lexer, tokens.order)
