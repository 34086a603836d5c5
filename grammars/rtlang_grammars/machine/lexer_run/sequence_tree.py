"""Compiled making of the tree of terminal sequences: a node for what a walk found, and one node for equal kids.

A node keeps the tokens that end inside a lexeme, by what can win there; tails, tokens that only an earlier match may save; and for each
terminal that ends inside tokens a crossing, with the records to go on with. A kid is made when a parser first takes the terminal.
"""

from __future__ import annotations

import numpy as np

from rtlang_grammars.machine.lexer_run.lexer_layout import (
    BEGIN,
    BYTE_AT,
    BYTES,
    CROSSED,
    CROSSED_BEGIN,
    CROSSED_BYTE_AT,
    CROSSED_NUM_BYTES,
    CROSSED_STOP,
    CROSSING_AT,
    CROSSINGS,
    END_AT,
    END_WIN,
    ENDS,
    FIRST_KID,
    FIRST_RANK,
    IS_FREE,
    ITEM_AT,
    ITEMS,
    KEEP,
    KID_NODE,
    KID_STATE,
    KIDS,
    NEXT_KID,
    NO_SCRATCH,
    NO_TREE,
    NODES,
    NUM_BYTES,
    NUM_CROSSINGS,
    NUM_ENDS,
    NUM_ITEMS,
    NUM_PAIRS,
    NUM_RANGES,
    NUM_TAILS,
    NUM_TOKENS,
    PAIR_AT,
    PAIR_TERMINAL,
    RANGE_AT,
    RANGES,
    ROW,
    ROWS,
    SAME_CROSSING,
    SAME_STATE,
    SAMES,
    SEEN_BYTE_AT,
    SEEN_MATCH,
    SEEN_NUM_BYTES,
    SEEN_STATE,
    STOP,
    STOP_RANK,
    TAIL_AT,
    TAIL_BYTE_AT,
    TAIL_LAST,
    TAIL_NUM_BYTES,
    TAIL_STATE,
    TAIL_TOKEN,
    TAIL_WIN,
    TAILS,
    TERMINAL,
    WIN,
)
from rtlang_grammars.machine.lexer_run.trie_walk import walk
from rtlang_grammars.machine.native.native_code import compiled

LARGE = 1200
"""Ends with more tokens than this are kept as rows of bits."""


@compiled(inner=True, inline=True)
def set_range(mask, order, begin, stop):  # type: ignore[no-untyped-def] # pragma: no cover
    """Allow a range of tokens."""
    for rank in range(begin, stop):
        token = order[rank]
        mask[token >> 5] |= np.uint32(1) << np.uint32(token & 31)


@compiled(inner=True, inline=True)
def _take(counts, pool, amount):  # type: ignore[no-untyped-def] # pragma: no cover
    """Take room from a pool; returns where it begins."""
    at = counts[pool]
    counts[pool] += amount
    return at


@compiled(inner=True, inline=True)
def _store(tree, data, begin, count):  # type: ignore[no-untyped-def] # pragma: no cover
    """Copy bytes of a walk to the tree; returns where they begin."""
    at = _take(tree.counts, BYTES, count)
    for index in range(count):
        tree.data[at + index] = data[begin + index]
    return at


@compiled(inner=True, inline=True)
def _needs_way_back(state, match, lexer):  # type: ignore[no-untyped-def] # pragma: no cover
    """Whether an earlier match may save a token that ends in a state: not where the same terminal can still win and end freely."""
    win = lexer.states[state, WIN]
    for index in range(lexer.wins[win, PAIR_AT], lexer.wins[win, PAIR_AT] + lexer.wins[win, NUM_PAIRS]):
        pair = lexer.win_pairs[index]
        terminal = lexer.pairs[pair, PAIR_TERMINAL]
        if terminal >= lexer.firsts.shape[0]:  # a newline
            columns = lexer.column_sets[terminal - lexer.firsts.shape[0]]
            if 0 <= match - lexer.newline[0] < columns.size and columns[match - lexer.newline[0]]:
                terminal = match
        if terminal == match and lexer.pairs[pair, IS_FREE] > 0:
            return False
    return True


@compiled(inner=True, inline=True)
def _has_room(tree, scratch, num_ends, num_crossings, num_bytes):  # type: ignore[no-untyped-def] # pragma: no cover
    """Whether a node of what a walk found fits, by upper bounds."""
    num_tokens = 0
    for end in range(num_ends):
        num_tokens += scratch.ends[end, STOP_RANK] - scratch.ends[end, FIRST_RANK]
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


@compiled(inner=True, inline=True)
def _add_tail(tree, scratch, index, win, token, is_ahead):  # type: ignore[no-untyped-def] # pragma: no cover
    """Add the end of one token that an earlier match may save; is_ahead: it stands inside look-ahead, and Python asks about it."""
    tail = _take(tree.counts, TAILS, 1)
    tree.tails[tail, TAIL_WIN], tree.tails[tail, TAIL_TOKEN], tree.tails[tail, TAIL_LAST] = win, token, -1
    if not is_ahead:
        ends = scratch.ends
        num_bytes = ends[index, SEEN_NUM_BYTES]
        tree.tails[tail, TAIL_STATE] = ends[index, SEEN_STATE]
        tree.tails[tail, TAIL_LAST], tree.tails[tail, TAIL_NUM_BYTES] = ends[index, SEEN_MATCH], num_bytes
        tree.tails[tail, TAIL_BYTE_AT] = _store(tree, scratch.data, ends[index, SEEN_BYTE_AT], num_bytes)


@compiled(inner=True, inline=True)
def _end_of(tree, first, win, hint):  # type: ignore[no-untyped-def] # pragma: no cover
    """The end with a win among the ends from `first` on; made if there is none. hint: the one found before, -1."""
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


@compiled(inner=True, inline=True)
def _group_ends(tree, scratch, num_ends, lexer, order):  # type: ignore[no-untyped-def] # pragma: no cover
    """Make tails, and an end for each win, and count the tokens of each."""
    first, hint, ends = tree.counts[ENDS], -1, scratch.ends
    for index in range(num_ends):
        state, match = ends[index, SEEN_STATE], ends[index, SEEN_MATCH]
        win, is_ahead = lexer.states[state, WIN], lexer.states[state, KEEP] > 0
        if is_ahead or (match >= 0 and _needs_way_back(state, match, lexer)):
            _add_tail(tree, scratch, index, win, order[ends[index, FIRST_RANK]], is_ahead)
            scratch.groups[index] = -1
        else:
            hint = _end_of(tree, first, win, hint)
            tree.ends[hint, NUM_RANGES] += 1
            tree.ends[hint, NUM_TOKENS] += ends[index, STOP_RANK] - ends[index, FIRST_RANK]
            scratch.groups[index] = hint


@compiled(inner=True, inline=True)
def _fill_ends(tree, scratch, num_ends, first, order):  # type: ignore[no-untyped-def] # pragma: no cover
    """Write the tokens of the ends from `first` on, as ranges or as a row."""
    counts = tree.counts
    for end in range(first, counts[ENDS]):
        scratch.fill[end - first] = 0
        if tree.ends[end, NUM_TOKENS] > LARGE:
            tree.ends[end, NUM_RANGES], tree.ends[end, ROW] = 0, _take(counts, ROWS, 1)
            for word in range(tree.rows.shape[1]):
                tree.rows[tree.ends[end, ROW], word] = 0
        else:
            tree.ends[end, RANGE_AT] = _take(counts, RANGES, tree.ends[end, NUM_RANGES])
    for index in range(num_ends):
        end = scratch.groups[index]
        if end < 0:
            continue
        begin, stop, row = scratch.ends[index, FIRST_RANK], scratch.ends[index, STOP_RANK], tree.ends[end, ROW]
        if row >= 0:
            set_range(tree.rows[row], order, begin, stop)
        else:
            at = tree.ends[end, RANGE_AT] + scratch.fill[end - first]
            tree.ranges[at, 0], tree.ranges[at, 1] = begin, stop
            scratch.fill[end - first] += 1


@compiled(inner=True, inline=True)
def _group_crossings(tree, scratch, num_crossings):  # type: ignore[no-untyped-def] # pragma: no cover
    """Make a crossing for each terminal that ended, with its items in the order in which they were found."""
    found, tally, cursor = scratch.crossings, scratch.tally, scratch.cursor
    for terminal in range(tally.size):
        tally[terminal] = 0
    for index in range(num_crossings):
        tally[found[index, CROSSED]] += 1
    for terminal in range(tally.size):
        if tally[terminal]:
            crossing = _take(tree.counts, CROSSINGS, 1)
            cursor[terminal] = _take(tree.counts, ITEMS, tally[terminal])
            tree.crossings[crossing, TERMINAL], tree.crossings[crossing, ITEM_AT] = terminal, cursor[terminal]
            tree.crossings[crossing, NUM_ITEMS], tree.crossings[crossing, FIRST_KID] = tally[terminal], -1
    for index in range(num_crossings):
        item, num_bytes = cursor[found[index, CROSSED]], found[index, CROSSED_NUM_BYTES]
        cursor[found[index, CROSSED]] += 1
        tree.items[item, BEGIN], tree.items[item, STOP] = found[index, CROSSED_BEGIN], found[index, CROSSED_STOP]
        tree.items[item, NUM_BYTES] = num_bytes
        tree.items[item, BYTE_AT] = _store(tree, scratch.data, found[index, CROSSED_BYTE_AT], num_bytes)


@compiled(inner=True)
def grow(tree, items, num_items, data, state, match, match_at, is_fed, lexer, tokens, scratch):  # type: ignore[no-untyped-def] # pragma: no cover
    """A node of what the tokens below `items` do from a lexer state; NO_SCRATCH or NO_TREE for want of room. See `trie_walk.walk`."""
    num_ends, num_crossings, num_bytes = walk(
        items, num_items, data, state, match, match_at, is_fed, lexer, tokens, scratch
    )
    if num_ends < 0:
        return NO_SCRATCH
    if not _has_room(tree, scratch, num_ends, num_crossings, num_bytes):
        return NO_TREE
    counts = tree.counts
    node = _take(counts, NODES, 1)
    first, first_tail, first_crossing = counts[ENDS], counts[TAILS], counts[CROSSINGS]
    _group_ends(tree, scratch, num_ends, lexer, tokens.order)
    _fill_ends(tree, scratch, num_ends, first, tokens.order)
    _group_crossings(tree, scratch, num_crossings)
    tree.nodes[node, END_AT], tree.nodes[node, NUM_ENDS] = first, counts[ENDS] - first
    tree.nodes[node, TAIL_AT], tree.nodes[node, NUM_TAILS] = first_tail, counts[TAILS] - first_tail
    tree.nodes[node, CROSSING_AT], tree.nodes[node, NUM_CROSSINGS] = first_crossing, counts[CROSSINGS] - first_crossing
    return node


@compiled(inner=True)
def _hash_of(tree, crossing, state):  # type: ignore[no-untyped-def] # pragma: no cover
    """Hash of the items of a crossing and the state in which they are read."""
    key = np.int64(state)
    item_at = tree.crossings[crossing, ITEM_AT]
    for item in range(item_at, item_at + tree.crossings[crossing, NUM_ITEMS]):
        key = (key * 1000003 + tree.items[item, BEGIN] * 64 + tree.items[item, NUM_BYTES]) & 0xFFFFFFFFFF
    return key


@compiled(inner=True)
def _are_same(tree, one, other):  # type: ignore[no-untyped-def] # pragma: no cover
    """Whether two crossings have the same items."""
    items, count = tree.items, tree.crossings[one, NUM_ITEMS]
    if tree.crossings[other, NUM_ITEMS] != count:
        return False
    for index in range(count):
        here, there = tree.crossings[one, ITEM_AT] + index, tree.crossings[other, ITEM_AT] + index
        if (
            items[here, BEGIN] != items[there, BEGIN]
            or items[here, STOP] != items[there, STOP]
            or items[here, NUM_BYTES] != items[there, NUM_BYTES]
        ):
            return False
        for at in range(items[here, NUM_BYTES]):
            if tree.data[items[here, BYTE_AT] + at] != tree.data[items[there, BYTE_AT] + at]:
                return False
    return True


@compiled(inner=True)
def _new_kid(tree, crossing, state, lexer, tokens, scratch):  # type: ignore[no-untyped-def] # pragma: no cover
    """The node of a crossing for the lexer's next state, made or found among equal ones; NO_SCRATCH or NO_TREE for want of room."""
    counts, size = tree.counts, tree.same_nodes.size
    if counts[KIDS] + 1 >= tree.kids.shape[0]:
        tree.needs[KIDS] = 2 * tree.kids.shape[0]
        return NO_TREE
    if 2 * counts[SAMES] >= size:
        tree.needs[SAMES] = 2 * size
        return NO_TREE
    place = _hash_of(tree, crossing, state) % size
    node = -1
    while node < 0 and tree.same_nodes[place] >= 0:
        if tree.same_keys[place, SAME_STATE] == state and _are_same(
            tree, crossing, tree.same_keys[place, SAME_CROSSING]
        ):
            node = tree.same_nodes[place]
        else:
            place = (place + 1) % size
    if node < 0:
        item_at = tree.crossings[crossing, ITEM_AT]
        items = tree.items[item_at : item_at + tree.crossings[crossing, NUM_ITEMS]]
        node = grow(tree, items, items.shape[0], tree.data, state, -1, 0, False, lexer, tokens, scratch)
        if node < 0:
            return node
        tree.same_keys[place, SAME_CROSSING], tree.same_keys[place, SAME_STATE] = crossing, state
        tree.same_nodes[place] = node
        counts[SAMES] += 1
    kid = _take(counts, KIDS, 1)
    tree.kids[kid, KID_STATE], tree.kids[kid, KID_NODE] = state, node
    tree.kids[kid, NEXT_KID] = tree.crossings[crossing, FIRST_KID]
    tree.crossings[crossing, FIRST_KID] = kid
    return node


@compiled(inner=True, inline=True)
def kid_of(tree, crossing, state, lexer, tokens, scratch):  # type: ignore[no-untyped-def] # pragma: no cover
    """The node after a crossing for the lexer's next state; returns as `grow`."""
    known = tree.crossings[crossing, FIRST_KID]
    while known >= 0 and tree.kids[known, KID_STATE] != state:
        known = tree.kids[known, NEXT_KID]
    if known >= 0:
        return tree.kids[known, KID_NODE]
    return _new_kid(tree, crossing, state, lexer, tokens, scratch)
