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
    NUM_TAILS,
    NUM_TOKENS,
    ROW,
    ROWS,
    SHARES,
    STOP,
    TAIL_AT,
    TAIL_BYTE_AT,
    TAIL_LAST,
    TAIL_NUM_BYTES,
    TAIL_TOKEN,
    TAIL_WIN,
    TAILS,
    TERMINAL,
    TOKEN_AT,
    TOKENS,
    WIN,
)
from rtlang_grammars.machine.native.native_code import compiled

MIN_SHARED, MAX_SHARED = 150, 6000
"""Records below a node whose part of a walk is kept for all walks that enter it in the same state."""

LARGE = 1200
"""Ends with more tokens than this are kept as rows of bits."""


@compiled(inner=True)
def walk(items, num_items, data, state, last, last_at, is_fed, lexer, trie, scratch, may_link):  # type: ignore[no-untyped-def] # pragma: no cover
    """Lex the records of `items` from a lexer state; returns the numbers of ends, crossings, bytes and links, or -1 for want of room.

    is_fed: the bytes before each item were read already to reach `state`; the last match was after `last_at` of them.
    may_link: leave parts of the trie that are shared to the caller.
    """
    ends, crossings, links, path, text, out = (
        scratch.ends,
        scratch.crossings,
        scratch.links,
        scratch.path,
        scratch.text,
        scratch.data,
    )
    following, winners, behind, states, classes = (
        lexer.following,
        lexer.winners,
        lexer.behind,
        lexer.states,
        lexer.classes,
    )
    num_ends = num_crossings = num_bytes = num_links = 0
    for item in range(num_items):
        at, stop = items[item, BEGIN], items[item, STOP]
        num_before, byte_at = items[item, NUM_BYTES], items[item, BYTE_AT]
        for index in range(num_before):
            text[index] = data[byte_at + index]
        base = num_before - ((trie[at] >> 8) & 0xFFF) if at < stop else 0
        fed = num_before if is_fed else 0
        path[fed, 0], path[fed, 1], path[fed, 2] = state, last, last_at
        while at < stop:
            is_pending = fed < num_before
            record = trie[at]
            if is_pending:
                depth = fed
            else:
                depth = base + ((record >> 8) & 0xFFF)
                text[depth] = record & 0xFF
            now, match, match_at = path[depth, 0], path[depth, 1], path[depth, 2]
            symbol = classes[text[depth]]
            winner = winners[now, symbol]
            if winner >= 0:
                ended = depth - behind[now, symbol]
                if match < 0 or ended > match_at or (ended == match_at and winner < match) or lexer.order[0]:
                    match, match_at = winner, ended
            reached = following[now, symbol]
            if reached >= 0:
                if match >= 0 and (depth + 1 - match_at > MAX_BACK or states[reached, IS_SURE] > 0):
                    match = -1
                path[depth + 1, 0], path[depth + 1, 1], path[depth + 1, 2] = reached, match, match_at
                if is_pending:
                    fed += 1
                    continue
                token = ((record >> 20) & 0xFFFFF) - 1
                if token >= 0:
                    ends[num_ends, 0], ends[num_ends, 1], ends[num_ends, 2] = token, reached, match
                    if match >= 0:
                        ends[num_ends, 3], ends[num_ends, 4] = num_bytes, depth + 1 - match_at
                        if num_bytes + 1100 >= out.size:
                            return -1, 0, 0, 0
                        for index in range(match_at, depth + 1):
                            out[num_bytes] = text[index]
                            num_bytes += 1
                    num_ends += 1
                below = record >> 40
                if (
                    may_link
                    and match < 0
                    and below - at >= MIN_SHARED
                    and below - at < MAX_SHARED
                    and states[reached, KEEP] == 0
                ):
                    if num_links >= links.shape[0]:
                        return -1, 0, 0, 0
                    links[num_links, 0], links[num_links, 1] = at, reached
                    num_links += 1
                    at = below
                    continue
                at += 1
                continue
            if match >= 0:
                end = num_before if is_pending else depth
                if num_crossings >= crossings.shape[0] or num_bytes + 1100 >= out.size:
                    return -1, 0, 0, 0
                crossings[num_crossings, 0] = match
                crossings[num_crossings, 1] = at
                crossings[num_crossings, 2] = stop if is_pending else record >> 40
                crossings[num_crossings, 3], crossings[num_crossings, 4] = num_bytes, end - match_at
                for index in range(match_at, end):
                    out[num_bytes] = text[index]
                    num_bytes += 1
                num_crossings += 1
            if is_pending:
                break
            at = record >> 40
    return num_ends, num_crossings, num_bytes, num_links


@compiled(inner=True)
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
        if terminal == last and lexer.enders[lexer.pairs[pair, 1], lexer.enders.shape[1] - 1]:
            return False
    return True


@compiled(inner=True)
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
        tree.ends[at, END_WIN], tree.ends[at, NUM_TOKENS], tree.ends[at, ROW] = win, 0, -1
    return at


@compiled(inner=True)
def _put(tree, scratch, end, first, token):  # type: ignore[no-untyped-def] # pragma: no cover
    row = tree.ends[end, ROW]
    if row >= 0:
        tree.rows[row, token >> 5] |= np.uint32(1) << np.uint32(token & 31)
    else:
        tree.tokens[tree.ends[end, TOKEN_AT] + scratch.fill[end - first]] = token
        scratch.fill[end - first] += 1


@compiled(inner=True)
def _has_room(tree, scratch, num_ends, num_crossings, num_bytes, num_links):  # type: ignore[no-untyped-def] # pragma: no cover
    """Whether a node of what a walk found fits, by upper bounds."""
    ends, tails, items, tokens, crossings = num_ends, num_ends, num_crossings, num_ends, num_crossings
    for link in range(num_links):
        node = scratch.links[link, 0]
        ends += tree.nodes[node, NUM_ENDS]
        tails += tree.nodes[node, NUM_TAILS]
        crossings += tree.nodes[node, NUM_CROSSINGS]
        for at in range(tree.nodes[node, END_AT], tree.nodes[node, END_AT] + tree.nodes[node, NUM_ENDS]):
            tokens += tree.ends[at, NUM_TOKENS]
        for at in range(tree.nodes[node, CROSSING_AT], tree.nodes[node, CROSSING_AT] + tree.nodes[node, NUM_CROSSINGS]):
            items += tree.crossings[at, NUM_ITEMS]
    counts, needs = tree.counts, tree.needs
    needs[NODES], needs[ENDS] = counts[NODES] + 1, counts[ENDS] + min(ends, scratch.fill.size - 1)
    needs[TAILS], needs[CROSSINGS] = counts[TAILS] + tails, counts[CROSSINGS] + min(crossings, scratch.tally.size)
    needs[ITEMS], needs[TOKENS] = counts[ITEMS] + items, counts[TOKENS] + tokens
    needs[BYTES], needs[ROWS] = counts[BYTES] + num_bytes, counts[ROWS] + tokens // LARGE + 1
    return (
        needs[NODES] < tree.nodes.shape[0]
        and needs[ENDS] < tree.ends.shape[0]
        and needs[TAILS] < tree.tails.shape[0]
        and needs[CROSSINGS] < tree.crossings.shape[0]
        and needs[ITEMS] < tree.items.shape[0]
        and needs[TOKENS] < tree.tokens.size
        and needs[BYTES] < tree.data.size
        and needs[ROWS] < tree.rows.shape[0]
    )


@compiled(inner=True)
def collect(tree, scratch, num_ends, num_crossings, num_bytes, num_links, lexer):  # type: ignore[no-untyped-def] # pragma: no cover
    """A node of what a walk found and of the shared nodes in `scratch.links`; NO_TREE for want of room."""
    if not _has_room(tree, scratch, num_ends, num_crossings, num_bytes, num_links):
        return NO_TREE
    counts, ends, groups = tree.counts, scratch.ends, scratch.groups
    node = counts[NODES]
    counts[NODES] += 1
    first, first_tail, first_crossing = counts[ENDS], counts[TAILS], counts[CROSSINGS]
    hint = -1
    for index in range(num_ends):
        win, last = lexer.states[ends[index, 1], WIN], ends[index, 2]
        if lexer.states[ends[index, 1], KEEP] > 0:  # inside look-ahead: Python is asked
            tail = counts[TAILS]
            counts[TAILS] += 1
            tree.tails[tail, TAIL_WIN], tree.tails[tail, TAIL_LAST], tree.tails[tail, TAIL_TOKEN] = (
                win,
                -1,
                ends[index, 0],
            )
            groups[index] = -1
        elif last >= 0 and _needs_way_back(ends[index, 1], last, lexer):
            tail = counts[TAILS]
            counts[TAILS] += 1
            tree.tails[tail, TAIL_WIN], tree.tails[tail, TAIL_LAST] = win, last
            tree.tails[tail, TAIL_TOKEN], tree.tails[tail, TAIL_BYTE_AT] = ends[index, 0], counts[BYTES]
            tree.tails[tail, TAIL_NUM_BYTES] = ends[index, 4]
            for at in range(ends[index, 4]):
                tree.data[counts[BYTES] + at] = scratch.data[ends[index, 3] + at]
            counts[BYTES] += ends[index, 4]
            groups[index] = -1
        else:
            hint = _end_of(tree, first, win, hint)
            tree.ends[hint, NUM_TOKENS] += 1
            groups[index] = hint
    for terminal in range(scratch.tally.size):
        scratch.tally[terminal] = 0
    for link in range(num_links):
        other = scratch.links[link, 0]
        for at in range(tree.nodes[other, END_AT], tree.nodes[other, END_AT] + tree.nodes[other, NUM_ENDS]):
            end = _end_of(tree, first, tree.ends[at, END_WIN], -1)
            tree.ends[end, NUM_TOKENS] += tree.ends[at, NUM_TOKENS]
        for at in range(tree.nodes[other, TAIL_AT], tree.nodes[other, TAIL_AT] + tree.nodes[other, NUM_TAILS]):
            for column in range(5):
                tree.tails[counts[TAILS], column] = tree.tails[at, column]
            counts[TAILS] += 1
        for at in range(
            tree.nodes[other, CROSSING_AT], tree.nodes[other, CROSSING_AT] + tree.nodes[other, NUM_CROSSINGS]
        ):
            scratch.tally[tree.crossings[at, TERMINAL]] += tree.crossings[at, NUM_ITEMS]
    for end in range(first, counts[ENDS]):
        scratch.fill[end - first] = 0
        if tree.ends[end, NUM_TOKENS] > LARGE:
            tree.ends[end, ROW] = counts[ROWS]
            for word in range(tree.rows.shape[1]):
                tree.rows[counts[ROWS], word] = 0
            counts[ROWS] += 1
        else:
            tree.ends[end, TOKEN_AT] = counts[TOKENS]
            counts[TOKENS] += tree.ends[end, NUM_TOKENS]
    for index in range(num_ends):
        if groups[index] >= 0:
            _put(tree, scratch, groups[index], first, ends[index, 0])
    for link in range(num_links):
        other = scratch.links[link, 0]
        for at in range(tree.nodes[other, END_AT], tree.nodes[other, END_AT] + tree.nodes[other, NUM_ENDS]):
            end = _end_of(tree, first, tree.ends[at, END_WIN], -1)
            if tree.ends[at, ROW] >= 0:
                for word in range(tree.rows.shape[1]):
                    tree.rows[tree.ends[end, ROW], word] |= tree.rows[tree.ends[at, ROW], word]
            else:
                for token_at in range(tree.ends[at, TOKEN_AT], tree.ends[at, TOKEN_AT] + tree.ends[at, NUM_TOKENS]):
                    _put(tree, scratch, end, first, tree.tokens[token_at])
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
    for link in range(num_links):
        other = scratch.links[link, 0]
        for crossing in range(
            tree.nodes[other, CROSSING_AT], tree.nodes[other, CROSSING_AT] + tree.nodes[other, NUM_CROSSINGS]
        ):
            terminal, item_at = tree.crossings[crossing, TERMINAL], tree.crossings[crossing, ITEM_AT]
            for at in range(item_at, item_at + tree.crossings[crossing, NUM_ITEMS]):
                for column in range(4):
                    tree.items[scratch.cursor[terminal], column] = tree.items[at, column]
                scratch.cursor[terminal] += 1
    tree.nodes[node, END_AT], tree.nodes[node, NUM_ENDS] = first, counts[ENDS] - first
    tree.nodes[node, TAIL_AT], tree.nodes[node, NUM_TAILS] = first_tail, counts[TAILS] - first_tail
    tree.nodes[node, CROSSING_AT], tree.nodes[node, NUM_CROSSINGS] = first_crossing, counts[CROSSINGS] - first_crossing
    return node


@compiled(inner=True)
def grow(tree, items, num_items, data, state, last, last_at, is_fed, lexer, trie, scratch, side):  # type: ignore[no-untyped-def] # pragma: no cover
    """A node of what the tokens below `items` do from a lexer state; NO_SCRATCH or NO_TREE for want of room."""
    num_ends, num_crossings, num_bytes, num_links = walk(
        items, num_items, data, state, last, last_at, is_fed, lexer, trie, scratch, True
    )
    if num_ends < 0:
        return NO_SCRATCH
    counts = tree.counts
    for link in range(num_links):
        record, reached = scratch.links[link, 0], scratch.links[link, 1]
        key = np.int64(record) * 0x1000000 + reached + 1
        size = tree.share_keys.size
        place = (key % 1000003 * 7919 + (key >> 20)) % size
        while tree.share_keys[place] != 0 and tree.share_keys[place] != key:
            place = (place + 1) % size
        if tree.share_keys[place] == 0:
            if 2 * counts[SHARES] >= size:
                tree.needs[SHARES] = 2 * size
                return NO_TREE
            side.items[0, BEGIN], side.items[0, STOP] = record + 1, trie[record] >> 40
            side.items[0, BYTE_AT], side.items[0, NUM_BYTES] = 0, 0
            found = walk(side.items, 1, data, reached, -1, 0, True, lexer, trie, side, False)
            if found[0] < 0:
                return NO_SCRATCH
            node = collect(tree, side, found[0], found[1], found[2], 0, lexer)
            if node < 0:
                return node
            tree.share_keys[place], tree.share_nodes[place] = key, node
            counts[SHARES] += 1
        scratch.links[link, 0] = tree.share_nodes[place]
    return collect(tree, scratch, num_ends, num_crossings, num_bytes, num_links, lexer)


@compiled()
def grow_root(tree, items, data, state, last, last_at, lexer, trie, scratch, side):  # type: ignore[no-untyped-def] # pragma: no cover
    """`grow` for the places that Python asks about: the bytes of the items were read already."""
    return grow(tree, items, items.shape[0], data, state, last, last_at, True, lexer, trie, scratch, side)
