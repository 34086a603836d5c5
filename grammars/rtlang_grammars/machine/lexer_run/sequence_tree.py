"""Compiled making of the tree of terminal sequences: a node for what a walk found, and one node for equal kids.

A node keeps the tokens that end inside a lexeme, by what can win there; tails, tokens that only an earlier match may save; and for each
terminal that ends inside tokens a crossing, with the records to go on with. A kid is made when a parser first takes the terminal. What a
walk leaves out as parts has nodes of its own, which are copied into every node that they are a part of: a visit sees whole nodes only.
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
    CROSSED_FIRST,
    CROSSED_NUM_BYTES,
    CROSSED_STOP,
    CROSSING_AT,
    CROSSINGS,
    END_AT,
    END_WIN,
    ENDS,
    FIRST_BYTE,
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
    PART_MATCH,
    PART_NODE,
    PART_RECORD,
    PART_STATE,
    RANGE_AT,
    RANGES,
    ROW,
    ROWS,
    SAME_CROSSING,
    SAME_NODE,
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
from rtlang_grammars.machine.token_index.byte_kinds import RECORD, SKIP_SHIFT

LARGE = 1200
"""Ends with more tokens than this are kept as rows of bits."""

LARGE_IN_PART = 8192
"""The same in nodes of parts, which are copied a few times, not visited: a row is more memory to write than the ranges."""

PARTS_MISSING = -3
"""An answer from this number down: some parts have no node yet."""


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


@compiled(inner=True)
def _has_room(tree, scratch, num_ends, num_crossings, num_bytes, num_parts, lexer):  # type: ignore[no-untyped-def] # pragma: no cover
    """Whether a node of what a walk and its parts found fits, by upper bounds."""
    num_groups, num_tails, num_ranges, num_items, num_tokens = num_ends, num_ends, num_ends, num_crossings, 0
    for end in range(num_ends):
        num_tokens += scratch.ends[end, STOP_RANK] - scratch.ends[end, FIRST_RANK]
    for part in range(num_parts):
        node = scratch.parts[part, PART_NODE]
        num_groups += tree.nodes[node, NUM_ENDS]
        num_tails += tree.nodes[node, NUM_TAILS]
        for end in range(tree.nodes[node, END_AT], tree.nodes[node, END_AT] + tree.nodes[node, NUM_ENDS]):
            num_ranges += tree.ends[end, NUM_RANGES]
            num_tokens += tree.ends[end, NUM_TOKENS]
        at = tree.nodes[node, CROSSING_AT]
        for crossing in range(at, at + tree.nodes[node, NUM_CROSSINGS]):
            num_items += tree.crossings[crossing, NUM_ITEMS]
    counts, needs = tree.counts, tree.needs
    needs[NODES], needs[ENDS] = counts[NODES] + 1, counts[ENDS] + min(num_groups, lexer.wins.shape[0])
    needs[TAILS], needs[CROSSINGS] = counts[TAILS] + num_tails, counts[CROSSINGS] + scratch.crossing_of.size
    needs[ITEMS], needs[RANGES] = counts[ITEMS] + num_items, counts[RANGES] + num_ranges
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
def _end_of(tree, scratch, first, win):  # type: ignore[no-untyped-def] # pragma: no cover
    """The end with a win among the ends from `first` on; made if there is none."""
    counts, at = tree.counts, np.int64(scratch.end_of[win])
    if at < first or at >= counts[ENDS] or tree.ends[at, END_WIN] != win:
        at = _take(counts, ENDS, 1)
        scratch.end_of[win] = at
        tree.ends[at, END_WIN], tree.ends[at, NUM_RANGES], tree.ends[at, NUM_TOKENS], tree.ends[at, ROW] = win, 0, 0, -1
    return at


@compiled(inner=True)
def _group_ends(tree, scratch, num_ends, num_parts, lexer, order):  # type: ignore[no-untyped-def] # pragma: no cover
    """Make tails, and an end for each win, and count the tokens of each."""
    first, ends = tree.counts[ENDS], scratch.ends
    for index in range(num_ends):
        state, match = ends[index, SEEN_STATE], ends[index, SEEN_MATCH]
        win, is_ahead = lexer.states[state, WIN], lexer.states[state, KEEP] > 0
        if is_ahead or (match >= 0 and _needs_way_back(state, match, lexer)):
            _add_tail(tree, scratch, index, win, order[ends[index, FIRST_RANK]], is_ahead)
            scratch.groups[index] = -1
        else:
            to = _end_of(tree, scratch, first, win)
            tree.ends[to, NUM_RANGES] += 1
            tree.ends[to, NUM_TOKENS] += ends[index, STOP_RANK] - ends[index, FIRST_RANK]
            scratch.groups[index] = to
    for part in range(num_parts):
        node = scratch.parts[part, PART_NODE]
        for end in range(tree.nodes[node, END_AT], tree.nodes[node, END_AT] + tree.nodes[node, NUM_ENDS]):
            to = _end_of(tree, scratch, first, tree.ends[end, END_WIN])
            tree.ends[to, NUM_RANGES] += tree.ends[end, NUM_RANGES]
            tree.ends[to, NUM_TOKENS] += tree.ends[end, NUM_TOKENS]
        for tail in range(tree.nodes[node, TAIL_AT], tree.nodes[node, TAIL_AT] + tree.nodes[node, NUM_TAILS]):
            to = _take(tree.counts, TAILS, 1)
            for column in range(tree.tails.shape[1]):
                tree.tails[to, column] = tree.tails[tail, column]


@compiled(inner=True)
def add_tokens(mask, tree, end, order):  # type: ignore[no-untyped-def] # pragma: no cover
    """Allow all tokens of an end."""
    row = tree.ends[end, ROW]
    if row >= 0:
        for word in range(mask.size):
            mask[word] |= tree.rows[row, word]
    else:
        for at in range(tree.ends[end, RANGE_AT], tree.ends[end, RANGE_AT] + tree.ends[end, NUM_RANGES]):
            set_range(mask, order, tree.ranges[at, 0], tree.ranges[at, 1])


@compiled(inner=True)
def _add_range(tree, end, begin, stop, order):  # type: ignore[no-untyped-def] # pragma: no cover
    """Add tokens to an end that has room for them."""
    row = tree.ends[end, ROW]
    if row >= 0:
        set_range(tree.rows[row], order, begin, stop)
    else:
        at = tree.ends[end, RANGE_AT] + tree.ends[end, NUM_RANGES]
        tree.ranges[at, 0], tree.ranges[at, 1] = begin, stop
        tree.ends[end, NUM_RANGES] += 1


@compiled(inner=True)
def _fill_ends(tree, scratch, num_ends, num_parts, first, large, order):  # type: ignore[no-untyped-def] # pragma: no cover
    """Write the tokens of the ends from `first` on, as ranges or as a row."""
    counts = tree.counts
    for end in range(first, counts[ENDS]):
        if tree.ends[end, NUM_TOKENS] > large:
            tree.ends[end, ROW] = _take(counts, ROWS, 1)
            for word in range(tree.rows.shape[1]):
                tree.rows[tree.ends[end, ROW], word] = 0
        else:
            tree.ends[end, RANGE_AT] = _take(counts, RANGES, tree.ends[end, NUM_RANGES])
        tree.ends[end, NUM_RANGES] = 0
    for index in range(num_ends):
        if scratch.groups[index] >= 0:
            begin, stop = scratch.ends[index, FIRST_RANK], scratch.ends[index, STOP_RANK]
            _add_range(tree, scratch.groups[index], begin, stop, order)
    for part in range(num_parts):
        node = scratch.parts[part, PART_NODE]
        for end in range(tree.nodes[node, END_AT], tree.nodes[node, END_AT] + tree.nodes[node, NUM_ENDS]):
            to = _end_of(tree, scratch, first, tree.ends[end, END_WIN])
            if tree.ends[end, ROW] >= 0:  # and so has the larger end
                add_tokens(tree.rows[tree.ends[to, ROW]], tree, end, order)
                continue
            for at in range(tree.ends[end, RANGE_AT], tree.ends[end, RANGE_AT] + tree.ends[end, NUM_RANGES]):
                _add_range(tree, to, tree.ranges[at, 0], tree.ranges[at, 1], order)


@compiled(inner=True)
def _crossing_of(tree, scratch, first, terminal):  # type: ignore[no-untyped-def] # pragma: no cover
    """The crossing of a terminal among those from `first` on; made if there is none."""
    counts, at = tree.counts, np.int64(scratch.crossing_of[terminal])
    if at < first or at >= counts[CROSSINGS] or tree.crossings[at, TERMINAL] != terminal:
        at = _take(counts, CROSSINGS, 1)
        scratch.crossing_of[terminal] = at
        tree.crossings[at, TERMINAL], tree.crossings[at, NUM_ITEMS] = terminal, 0
    return at


@compiled(inner=True)
def _group_crossings(tree, scratch, num_crossings, num_parts):  # type: ignore[no-untyped-def] # pragma: no cover
    """Make a crossing for each terminal that ended, with its items: those of the walk, then those of its parts."""
    found, crossings, first = scratch.crossings, tree.crossings, tree.counts[CROSSINGS]
    for index in range(num_crossings):
        crossings[_crossing_of(tree, scratch, first, found[index, CROSSED]), NUM_ITEMS] += 1
    for part in range(num_parts):
        node = scratch.parts[part, PART_NODE]
        at = tree.nodes[node, CROSSING_AT]
        for crossing in range(at, at + tree.nodes[node, NUM_CROSSINGS]):
            to = _crossing_of(tree, scratch, first, crossings[crossing, TERMINAL])
            crossings[to, NUM_ITEMS] += crossings[crossing, NUM_ITEMS]
    for crossing in range(first, tree.counts[CROSSINGS]):
        crossings[crossing, ITEM_AT] = _take(tree.counts, ITEMS, crossings[crossing, NUM_ITEMS])
        crossings[crossing, NUM_ITEMS], crossings[crossing, FIRST_KID] = 0, -1
    for index in range(num_crossings):
        to = _crossing_of(tree, scratch, first, found[index, CROSSED])
        item, num_bytes = crossings[to, ITEM_AT] + crossings[to, NUM_ITEMS], found[index, CROSSED_NUM_BYTES]
        crossings[to, NUM_ITEMS] += 1
        tree.items[item, BEGIN], tree.items[item, STOP] = found[index, CROSSED_BEGIN], found[index, CROSSED_STOP]
        tree.items[item, NUM_BYTES], tree.items[item, FIRST_BYTE] = num_bytes, found[index, CROSSED_FIRST]
        tree.items[item, BYTE_AT] = _store(tree, scratch.data, found[index, CROSSED_BYTE_AT], num_bytes)
    for part in range(num_parts):
        node = scratch.parts[part, PART_NODE]
        at = tree.nodes[node, CROSSING_AT]
        for crossing in range(at, at + tree.nodes[node, NUM_CROSSINGS]):
            to = _crossing_of(tree, scratch, first, crossings[crossing, TERMINAL])
            item = crossings[to, ITEM_AT] + crossings[to, NUM_ITEMS]
            for index in range(crossings[crossing, NUM_ITEMS]):
                for column in range(tree.items.shape[1]):
                    tree.items[item + index, column] = tree.items[crossings[crossing, ITEM_AT] + index, column]
            crossings[to, NUM_ITEMS] += crossings[crossing, NUM_ITEMS]


@compiled(inner=True)
def _make_node(tree, items, num_items, data, state, match, match_at, is_fed, shares, lexer, tokens, scratch):  # type: ignore[no-untyped-def] # pragma: no cover
    """`grow`, but PARTS_MISSING - the number of parts where not all of them have nodes."""
    num_ends, num_crossings, num_bytes, num_parts = walk(
        items, num_items, data, state, match, match_at, is_fed, shares, lexer, tokens, scratch
    )
    num_endings = lexer.firsts.shape[0] + 1 + lexer.lists.size  # terminals, and sets of terminals that end at one place
    if num_ends < 0 or scratch.end_of.size < lexer.wins.shape[0] or scratch.crossing_of.size < num_endings:
        return NO_SCRATCH
    num_missing = 0
    for part in range(num_parts):
        node = _part_node(tree, scratch.parts[part], tokens)
        scratch.parts[part, PART_NODE] = node
        num_missing += node < 0
    if num_missing:
        return PARTS_MISSING - num_parts
    if not _has_room(tree, scratch, num_ends, num_crossings, num_bytes, num_parts, lexer):
        return NO_TREE
    counts = tree.counts
    node = _take(counts, NODES, 1)
    first, first_tail, first_crossing = counts[ENDS], counts[TAILS], counts[CROSSINGS]
    _group_ends(tree, scratch, num_ends, num_parts, lexer, tokens.order)
    large = LARGE if shares else LARGE_IN_PART
    _fill_ends(tree, scratch, num_ends, num_parts, first, large, tokens.order)
    _group_crossings(tree, scratch, num_crossings, num_parts)
    tree.nodes[node, END_AT], tree.nodes[node, NUM_ENDS] = first, counts[ENDS] - first
    tree.nodes[node, TAIL_AT], tree.nodes[node, NUM_TAILS] = first_tail, counts[TAILS] - first_tail
    tree.nodes[node, CROSSING_AT], tree.nodes[node, NUM_CROSSINGS] = first_crossing, counts[CROSSINGS] - first_crossing
    return node


@compiled(inner=True)
def grow(tree, items, num_items, data, state, match, match_at, is_fed, lexer, tokens, scratch):  # type: ignore[no-untyped-def] # pragma: no cover
    """A node of what the tokens below `items` do from a lexer state; NO_SCRATCH or NO_TREE for want of room. See `trie_walk.walk`."""
    node = _make_node(tree, items, num_items, data, state, match, match_at, is_fed, True, lexer, tokens, scratch)
    if node > PARTS_MISSING:
        return node
    for part in range(PARTS_MISSING - node):
        if scratch.parts[part, PART_NODE] < 0:
            made = _make_part(tree, scratch.parts[part], lexer, tokens, scratch)
            if made < 0:
                return made
    return _make_node(tree, items, num_items, data, state, match, match_at, is_fed, True, lexer, tokens, scratch)


@compiled(inner=True)
def _hash_of(tree, crossing, state):  # type: ignore[no-untyped-def] # pragma: no cover
    """Hash of the items of a crossing and the state in which they are read."""
    key = np.int64(state)
    item_at = tree.crossings[crossing, ITEM_AT]
    for item in range(item_at, item_at + tree.crossings[crossing, NUM_ITEMS]):
        key = (key * 1000003 + tree.items[item, BEGIN] * 64 + tree.items[item, NUM_BYTES]) & 0xFFFFFFFFFF
    return key ^ (key >> 15)


@compiled(inner=True)
def _are_same(tree, one, other):  # type: ignore[no-untyped-def] # pragma: no cover
    """Whether two crossings have the same items, and if they describe parts, the same match before them."""
    items, count = tree.items, tree.crossings[one, NUM_ITEMS]
    if tree.crossings[other, NUM_ITEMS] != count:
        return False
    if min(tree.crossings[one, TERMINAL], -1) != min(tree.crossings[other, TERMINAL], -1):
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
def _place_of(tree, crossing, state):  # type: ignore[no-untyped-def] # pragma: no cover
    """Where the table of equal nodes has one for the items of a crossing and a state, or has room for it."""
    last = tree.same.shape[0] - 1
    place = _hash_of(tree, crossing, state) & last
    while tree.same[place, SAME_NODE] > 0 and not (
        tree.same[place, SAME_STATE] == state and _are_same(tree, crossing, tree.same[place, SAME_CROSSING])
    ):
        place = (place + 1) & last
    return place


@compiled(inner=True, inline=True)
def _remember(tree, crossing, state, node):  # type: ignore[no-untyped-def] # pragma: no cover
    """Add a node to the table of equal nodes."""
    place = _place_of(tree, crossing, state)
    tree.same[place, SAME_CROSSING], tree.same[place, SAME_STATE], tree.same[place, SAME_NODE] = (
        crossing,
        state,
        node + 1,
    )
    tree.counts[SAMES] += 1


@compiled(inner=True, inline=True)
def _lacks_room(tree, pool, capacity):  # type: ignore[no-untyped-def] # pragma: no cover
    """Whether one more does not fit into a pool; asks for more room."""
    if tree.counts[pool] + 1 < capacity:
        return False
    tree.needs[pool] = 2 * capacity
    return True


@compiled(inner=True)
def _part_crossing(tree, part, tokens):  # type: ignore[no-untyped-def] # pragma: no cover
    """Describe what a part leaves out as the items of a crossing, in the first free one. A part is a node like a kid: they may be equal.

    After a match the record's own byte is one of the bytes before the item, and -2 - the match stands for a terminal.
    """
    crossing, item, byte = tree.counts[CROSSINGS], tree.counts[ITEMS], tree.counts[BYTES]
    record, match = part[PART_RECORD], part[PART_MATCH]
    tree.crossings[crossing, TERMINAL], tree.crossings[crossing, ITEM_AT] = -2 - match if match >= 0 else -1, item
    tree.crossings[crossing, NUM_ITEMS], tree.crossings[crossing, FIRST_KID] = 1, -1
    tree.items[item, BEGIN], tree.items[item, STOP] = record + 1, tokens.records[record, RECORD] >> SKIP_SHIFT
    tree.items[item, BYTE_AT], tree.items[item, NUM_BYTES], tree.items[item, FIRST_BYTE] = byte, match >= 0, -1
    tree.data[byte] = tokens.records[record, RECORD] & 0xFF
    return crossing


@compiled(inner=True)
def _part_node(tree, part, tokens):  # type: ignore[no-untyped-def] # pragma: no cover
    """The node of a part, -1 where there is none yet."""
    return tree.same[_place_of(tree, _part_crossing(tree, part, tokens), part[PART_STATE]), SAME_NODE] - 1


@compiled(inner=True)
def _make_part(tree, part, lexer, tokens, scratch):  # type: ignore[no-untyped-def] # pragma: no cover
    """Make the node of a part; returns as `grow`."""
    if (
        _lacks_room(tree, SAMES, tree.same.shape[0] // 2)
        or _lacks_room(tree, CROSSINGS, tree.crossings.shape[0])
        or _lacks_room(tree, ITEMS, tree.items.shape[0])
        or _lacks_room(tree, BYTES, tree.data.size)
    ):
        return NO_TREE
    if _part_node(tree, part, tokens) >= 0:  # the walk met it twice
        return 0
    crossing, state, match = _part_crossing(tree, part, tokens), part[PART_STATE], part[PART_MATCH]
    item_at = _take(tree.counts, ITEMS, 1)
    tree.counts[CROSSINGS] += 1
    tree.counts[BYTES] += 1
    items = tree.items[item_at : item_at + 1]
    node = _make_node(tree, items, 1, tree.data, state, match, 0, match >= 0, False, lexer, tokens, scratch)
    if node >= 0:
        _remember(tree, crossing, state, node)
    return node


@compiled(inner=True)
def _new_kid(tree, crossing, state, lexer, tokens, scratch):  # type: ignore[no-untyped-def] # pragma: no cover
    """The node of a crossing for the lexer's next state, made or found among equal ones; NO_SCRATCH or NO_TREE for want of room."""
    if _lacks_room(tree, KIDS, tree.kids.shape[0]) or _lacks_room(tree, SAMES, tree.same.shape[0] // 2):
        return NO_TREE
    node = tree.same[_place_of(tree, crossing, state), SAME_NODE] - 1
    if node < 0:
        item_at = tree.crossings[crossing, ITEM_AT]
        items = tree.items[item_at : item_at + tree.crossings[crossing, NUM_ITEMS]]
        node = grow(tree, items, items.shape[0], tree.data, state, -1, 0, False, lexer, tokens, scratch)
        if node < 0:
            return node
        _remember(tree, crossing, state, node)
    kid = _take(tree.counts, KIDS, 1)
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
