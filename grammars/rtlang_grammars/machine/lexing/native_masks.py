"""Compiled parsing and masks: shifting terminals onto sets of stacks, and visits of the tree."""

from __future__ import annotations

import numpy as np

from rtlang_grammars.machine.lexing.layout import (
    CROSSING_AT,
    END_AT,
    END_WIN,
    FIRST_KID,
    ITEM_AT,
    KID_NODE,
    KID_STATE,
    KIDS,
    MANY,
    MEMBERS,
    NEED_JOIN,
    NEED_SCRATCH,
    NEED_STACKS,
    NEED_TREE,
    NEXT_KID,
    NO_TREE,
    NUM_CROSSINGS,
    NUM_ENDS,
    NUM_ITEMS,
    NUM_RANGES,
    NUM_TAILS,
    OK,
    RANGE_AT,
    ROW,
    SAMES,
    STACK_LINKS,
    STACK_NODES,
    TAIL_AT,
    TAIL_TOKEN,
    TAIL_WIN,
    TERMINAL,
)
from rtlang_grammars.machine.lexing.native_walk import grow, set_range
from rtlang_grammars.machine.native.native_code import compiled


@compiled(inner=True, inline="always")
def _add_pair(pairs, num_pairs, state, below):  # type: ignore[no-untyped-def] # pragma: no cover
    """Add a state on a node to those of this place if it is new; returns their number, -1 for want of room."""
    for index in range(num_pairs):
        if pairs[index, 0] == state and pairs[index, 1] == below:
            return num_pairs
    if num_pairs >= pairs.shape[0]:
        return -1
    pairs[num_pairs, 0], pairs[num_pairs, 1] = state, below
    return num_pairs + 1


@compiled(inner=True, inline="always")
def _reduced(parser, stacks, state, below, terminal):  # type: ignore[no-untyped-def] # pragma: no cover
    """A state on a node after all reductions that are the only action and have one way down, and what it does then."""
    nodes, links = stacks.nodes, stacks.links
    action = parser.actions[state, terminal]
    while action < 0 and below >= 0:
        left, node = parser.rules[-1 - action, 0], below
        while left > 1 and nodes[node, 2] == 1:
            node = links[nodes[node, 1]]
            left -= 1
        if left != 1:
            break
        goto = parser.gotos[nodes[node, 0], parser.rules[-1 - action, 1]]
        if goto < 0:
            action = 0
            break
        state, below = goto, node
        action = parser.actions[state, terminal]
    return state, below, action


@compiled(inner=True)
def shift(parser, stacks, first, size, terminal, into, free, link):  # type: ignore[no-untyped-def] # pragma: no cover
    """Stacks after a terminal, written to members[into:] with nodes from `free` on and links from `link` on.

    Stacks with equal states on top share a node: a graph-structured stack, so their number does not grow with the ambiguity of the text.
    Returns how many nodes are on top, -1 for want of room, and the next free node and link. The end of the text leads to the first state.
    """
    pairs, todo, nodes, links, members = stacks.pairs, stacks.todo, stacks.nodes, stacks.links, stacks.members
    if free + 2 >= nodes.shape[0] or link + 2 >= links.size or into + 2 >= members.size:
        return -1, free, link
    num_pairs = 0
    for index in range(size):
        node = members[first + index]
        at, stop = nodes[node, 1], nodes[node, 1] + nodes[node, 2]
        if at == stop:
            num_pairs = _add_pair(pairs, num_pairs, nodes[node, 0], -1)
        while at < stop:
            state, below, action = _reduced(parser, stacks, nodes[node, 0], links[at], terminal)
            if size == 1 and nodes[node, 2] == 1 and 0 < action < MANY:  # by far the most
                nodes[free, 0], nodes[free, 1], nodes[free, 2] = state, link, 1
                nodes[free + 1, 0], nodes[free + 1, 1], nodes[free + 1, 2] = action - 1, link + 1, 1
                links[link], links[link + 1] = below, free
                members[into] = free + 1
                return 1, free + 2, link + 2
            if action != 0:
                num_pairs = _add_pair(pairs, num_pairs, state, below)
                if num_pairs < 0:
                    return -1, free, link
            at += 1
    done, num_out = 0, 0
    while done < num_pairs:
        state, below = pairs[done, 0], pairs[done, 1]
        if free + 2 >= nodes.shape[0] or link + 2 >= links.size:
            return -1, free, link
        count, action_at = 1, 0
        if parser.actions[state, terminal] >= MANY:
            action_at = parser.actions[state, terminal] - MANY
            count = parser.lists[action_at]
        under = -1  # the node of the pair itself, for rules that are empty
        for index in range(count):
            action = parser.actions[state, terminal]
            if action >= MANY:
                action = parser.lists[action_at + 1 + index]
            if action >= 0:
                continue
            length, head = parser.rules[-1 - action, 0], parser.rules[-1 - action, 1]
            top = below
            if length == 0:
                if under < 0 and below < 0:
                    under = 0  # the empty stack is node 0
                elif under < 0:
                    nodes[free, 0], nodes[free, 1], nodes[free, 2] = state, link, 1
                    links[link] = below
                    under = free
                    free += 1
                    link += 1
                top = under
            num_todo = 1
            todo[0, 0], todo[0, 1] = top, length
            while num_todo:
                num_todo -= 1
                node, left = todo[num_todo, 0], todo[num_todo, 1]
                if left > 1:
                    if num_todo + nodes[node, 2] >= todo.shape[0]:
                        return -1, free, link
                    for at in range(nodes[node, 1], nodes[node, 1] + nodes[node, 2]):
                        todo[num_todo, 0], todo[num_todo, 1] = links[at], left - 1
                        num_todo += 1
                    continue
                goto = parser.gotos[nodes[node, 0], head]
                if goto >= 0:
                    goto, node, reached = _reduced(parser, stacks, goto, node, terminal)
                    if reached != 0:
                        num_pairs = _add_pair(pairs, num_pairs, goto, node)
                        if num_pairs < 0:
                            return -1, free, link
        done += 1
    if free + 2 * num_pairs >= nodes.shape[0] or link + 2 * num_pairs >= links.size or into + num_pairs >= members.size:
        return -1, free, link
    for index in range(num_pairs):  # the state that each pair shifts to, -1
        action = parser.actions[pairs[index, 0], terminal]
        if action >= MANY:
            action = max(parser.lists[action - MANY + 1], 0)  # a shift comes first
        pairs[index, 2], pairs[index, 3] = max(action, 0) - 1, -1
    for index in range(num_pairs):  # one node for each state that shifts
        state = pairs[index, 0]
        if pairs[index, 2] < 0:
            continue
        is_first = True
        for other in range(index):
            if pairs[other, 0] == state:
                is_first = False
                break
        if not is_first:
            continue
        if pairs[index, 1] < 0:
            pairs[index, 3] = 0
            continue
        nodes[free, 0], nodes[free, 1], nodes[free, 2] = state, link, 0
        for other in range(index, num_pairs):
            if pairs[other, 0] == state:
                links[link] = pairs[other, 1]
                nodes[free, 2] += 1
                link += 1
        pairs[index, 3] = free
        free += 1
    for index in range(num_pairs):  # one node for each state shifted to
        if pairs[index, 3] < 0:
            continue
        to = pairs[index, 2]
        is_first = True
        for other in range(index):
            if pairs[other, 3] >= 0 and pairs[other, 2] == to:
                is_first = False
                break
        if not is_first:
            continue
        nodes[free, 0], nodes[free, 1], nodes[free, 2] = to, link, 0
        for other in range(index, num_pairs):
            if pairs[other, 3] >= 0 and pairs[other, 2] == to:
                links[link] = pairs[other, 3]
                nodes[free, 2] += 1
                link += 1
        members[into + num_out] = free
        free += 1
        num_out += 1
    return num_out, free, link


@compiled(inner=True)
def feed(parser, stacks, first, size, terminal, into, free, link):  # type: ignore[no-untyped-def] # pragma: no cover
    """Stacks after a terminal of the lexer, with the indents and dedents behind a newline, written as by `shift`, and their indentation.

    Returns how many nodes are on top, -1 for want of room, where they are in `members`, and the next free node and link.
    """
    nodes, members, columns = stacks.nodes, stacks.members, parser.columns
    if columns[0] < 0:
        count, free, link = shift(parser, stacks, first, size, terminal, into, free, link)
        if count >= 0:
            members[into + count] = 0
        return count, into, free, link
    end, line, count = parser.actions.shape[1] - 1, members[first + size], size
    column = outer = depth = to_column = 0
    if line:
        column, outer, depth = nodes[line, 0], nodes[line, 1], nodes[line, 2]
    is_newline = columns[0] <= terminal <= columns[0] + columns[1]
    if is_newline:
        if depth:
            if into + size >= members.size:
                return -1, into, free, link
            for at in range(size + 1):
                members[into + at] = members[first + at]
            return size, into, free, link
        to_column = terminal - columns[0]
        while outer and nodes[outer, 0] > to_column:
            outer = nodes[outer, 1]
        if to_column == columns[1] or (to_column < column and to_column != (nodes[outer, 0] if outer else 0)):
            return 0, into, free, link
    if terminal != end:
        symbol = columns[0] if is_newline else terminal
        count, free, link = shift(parser, stacks, first, count, symbol, into, free, link)
        if count <= 0:
            return count, into, free, link
        first, into = into, into + count
    if is_newline and to_column > column:
        count, free, link = shift(parser, stacks, first, count, columns[2], into, free, link)
        if count <= 0:
            return count, into, free, link
        first, into = into, into + count
        nodes[free, 0], nodes[free, 1], nodes[free, 2] = to_column, line, 0
        line, free = free, free + 1
    elif is_newline or terminal == end:
        while column > to_column:
            count, free, link = shift(parser, stacks, first, count, columns[3], into, free, link)
            if count <= 0:
                return count, into, free, link
            first, into = into, into + count
            line = nodes[line, 1]
            column = nodes[line, 0] if line else 0
    elif columns[4 + terminal]:
        depth += columns[4 + terminal]
        if depth < 0:
            return 0, into, free, link
        line = 0
        if depth or column:
            nodes[free, 0], nodes[free, 1], nodes[free, 2] = column, outer, depth
            line, free = free, free + 1
    if terminal == end:
        count, free, link = shift(parser, stacks, first, count, end, into, free, link)
        if count <= 0:
            return count, into, free, link
        first, into, line = into, into + count, 0
    members[first + count] = line
    return count, first, free, link


@compiled(inner=True)
def feed_newline(parser, stacks, first, size, column_set, from_column, into, free, link):  # type: ignore[no-untyped-def] # pragma: no cover
    """`feed` for a newline at the first column of a set, from one on, at which the parser takes it; returns that column, too."""
    line = stacks.members[first + size]
    column = stacks.nodes[line, 0] if line else 0
    is_deeper = False  # all deeper columns are alike
    for to_column in range(from_column, column_set.size):
        if column_set[to_column] == 0 or is_deeper:
            continue
        found, at, next_free, next_link = feed(
            parser, stacks, first, size, parser.columns[0] + to_column, into, free, link
        )
        if found:
            return found, at, next_free, next_link, to_column
        is_deeper = to_column > column
    return 0, into, free, link, column_set.size


@compiled(is_fixed=True)
def shift_once(parser, stacks, first, size, terminal, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """`feed` for Python: writes behind what is kept; out[0]: how many nodes, out[1]: where they are in `members`."""
    counts = stacks.counts
    out[0], out[1], _, _ = feed(
        parser, stacks, first, size, terminal, counts[MEMBERS], counts[STACK_NODES], counts[STACK_LINKS]
    )
    return OK if out[0] >= 0 else NEED_STACKS


@compiled(inner=True, inline="always")
def _context(parser, stacks, first, size, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """The context of a set of stacks; -1 and two contexts in `out` where they were never joined."""
    context = parser.contexts[stacks.nodes[stacks.members[first], 0]]
    for index in range(1, size):
        other = parser.contexts[stacks.nodes[stacks.members[first + index], 0]]
        if other != context:
            joined = parser.joins[context, other]
            if joined < 0:
                out[0], out[1] = context, other
                return -1
            context = joined
    return context


@compiled(inner=True)
def _can_follow(parser, lexer, stacks, first, size, enders, into, free, link):  # type: ignore[no-untyped-def] # pragma: no cover
    """Whether behind a terminal that ends before some classes, something begins with one of these: 1, 0, -1 for want of room."""
    num_classes, end = lexer.enders.shape[1], parser.actions.shape[1] - 1
    if lexer.enders[enders, lexer.classes[256]]:
        found, _, _, _ = feed(parser, stacks, first, size, end, into, free, link)
        if found:
            return 1 if found > 0 else -1
    for index in range(size):
        state = stacks.nodes[stacks.members[first + index], 0]
        for at in range(parser.row_at[state], parser.row_at[state + 1]):
            terminal = parser.row_terminals[at]
            if terminal == parser.columns[0]:
                continue
            for symbol in range(num_classes):
                if lexer.enders[enders, symbol] and lexer.firsts[terminal, symbol]:
                    found, _, _, _ = feed(parser, stacks, first, size, terminal, into, free, link)
                    if found:
                        return 1 if found > 0 else -1
                    break
    if parser.columns[0] >= 0:
        for symbol in range(num_classes):
            if lexer.enders[enders, symbol] and lexer.firsts[parser.columns[0], symbol]:
                found, _, _, _, _ = feed_newline(parser, stacks, first, size, lexer.column_sets[0], 0, into, free, link)
                return found if found <= 0 else 1
    return 0


@compiled(inner=True)
def _newline_can_win(parser, lexer, stacks, first, size, terminal, enders, is_easy, into, free, link):  # type: ignore[no-untyped-def] # pragma: no cover
    """`can_win` for the newline at the columns of a set."""
    column_set = lexer.column_sets[terminal - parser.actions.shape[1]]
    from_column = 0
    while from_column < column_set.size:
        found, at, next_free, next_link, from_column = feed_newline(
            parser, stacks, first, size, column_set, from_column, into, free, link
        )
        if found > 0 and not is_easy:
            found = _can_follow(parser, lexer, stacks, at, found, enders, at + found + 1, next_free, next_link)
        if found:
            return found
        from_column += 1
    return 0


@compiled(inner=True, inline="always")
def _known(lexer, win, verdicts, taken, stamp):  # type: ignore[no-untyped-def] # pragma: no cover
    """`can_win` as far as it is known: 1, 0, -1 where it is not."""
    found = 0
    for index in range(lexer.wins[win, 0], lexer.wins[win, 0] + lexer.wins[win, 1]):
        pair = lexer.win_pairs[index]
        verdict = verdicts[pair]
        if verdict < 2 * stamp and lexer.pairs[pair, 2] > 0 and lexer.pairs[pair, 0] < taken.size:
            verdict = taken[lexer.pairs[pair, 0]]
        if verdict == 2 * stamp + 1:
            found = 1
            break
        if verdict < 2 * stamp:
            found = -1
    return found


@compiled(inner=True)
def can_win(parser, lexer, stacks, first, size, win, verdicts, taken, stamp, into, free, link):  # type: ignore[no-untyped-def] # pragma: no cover
    """Whether a terminal that can still win is taken by the parser, and something can follow: 1, 0, -1 for want of room.

    verdicts, taken: what is known about each pair and about each terminal, 2 * stamp + 1 (yes) or 2 * stamp (no); older stamps are unknown.
    """
    for index in range(lexer.wins[win, 0], lexer.wins[win, 0] + lexer.wins[win, 1]):
        pair = lexer.win_pairs[index]
        terminal, enders, is_easy = lexer.pairs[pair, 0], lexer.pairs[pair, 1], lexer.pairs[pair, 2] > 0
        if verdicts[pair] == 2 * stamp:
            continue
        if terminal >= parser.actions.shape[1]:
            found = _newline_can_win(parser, lexer, stacks, first, size, terminal, enders, is_easy, into, free, link)
            if found:
                verdicts[pair] = 2 * stamp + 1
                return 1 if found > 0 else -1
            verdicts[pair] = 2 * stamp
            continue
        if taken[terminal] == 2 * stamp:
            continue
        if is_easy and taken[terminal] == 2 * stamp + 1:
            return 1
        if parser.is_ignored[terminal]:
            found = 1 if is_easy else _can_follow(parser, lexer, stacks, first, size, enders, into, free, link)
        else:
            found, at, next_free, next_link = feed(parser, stacks, first, size, terminal, into, free, link)
            if found >= 0:
                taken[terminal] = 2 * stamp + (found > 0)
            if found > 0 and not is_easy:
                found = _can_follow(parser, lexer, stacks, at, found, enders, at + found + 1, next_free, next_link)
        if found < 0:
            return -1
        if found:
            verdicts[pair] = 2 * stamp + 1
            return 1
        verdicts[pair] = 2 * stamp
    return 0


@compiled(is_fixed=True)
def is_viable(parser, lexer, stacks, first, size, win, verdicts, taken, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """`can_win` for Python, without what is known; out[0]: the answer."""
    for pair in range(verdicts.size):
        verdicts[pair] = -1
    for terminal in range(taken.size):
        taken[terminal] = -1
    counts = stacks.counts
    out[0] = can_win(
        parser,
        lexer,
        stacks,
        first,
        size,
        win,
        verdicts,
        taken,
        1,
        counts[MEMBERS],
        counts[STACK_NODES],
        counts[STACK_LINKS],
    )
    return OK if out[0] >= 0 else NEED_STACKS


@compiled(inner=True)
def _same_key(tree, crossing, state):  # type: ignore[no-untyped-def] # pragma: no cover
    """Hash of the items of a crossing and the state in which they are read."""
    key = np.int64(state)
    item_at = tree.crossings[crossing, ITEM_AT]
    for item in range(item_at, item_at + tree.crossings[crossing, NUM_ITEMS]):
        key = (key * 1000003 + tree.items[item, 0] * 64 + tree.items[item, 3]) & 0xFFFFFFFFFF
    return key


@compiled(inner=True)
def _are_same(tree, one, other):  # type: ignore[no-untyped-def] # pragma: no cover
    """Whether two crossings have the same items."""
    count = tree.crossings[one, NUM_ITEMS]
    if tree.crossings[other, NUM_ITEMS] != count:
        return False
    for index in range(count):
        here, there = tree.crossings[one, ITEM_AT] + index, tree.crossings[other, ITEM_AT] + index
        num_bytes = tree.items[here, 3]
        if (
            tree.items[here, 0] != tree.items[there, 0]
            or tree.items[here, 1] != tree.items[there, 1]
            or tree.items[there, 3] != num_bytes
        ):
            return False
        for at in range(num_bytes):
            if tree.data[tree.items[here, 2] + at] != tree.data[tree.items[there, 2] + at]:
                return False
    return True


@compiled(inner=True)
def _new_kid(tree, crossing, state, lexer, tokens, scratch):  # type: ignore[no-untyped-def] # pragma: no cover
    """The node of a crossing for the lexer's state behind it, made or found among equal ones; NO_SCRATCH or NO_TREE for want of room."""
    counts, size = tree.counts, tree.same_nodes.size
    if counts[KIDS] + 1 >= tree.kids.shape[0]:
        tree.needs[KIDS] = 2 * tree.kids.shape[0]
        return NO_TREE
    if 2 * counts[SAMES] >= size:
        tree.needs[SAMES] = 2 * size
        return NO_TREE
    place = _same_key(tree, crossing, state) % size
    node = -1
    while tree.same_nodes[place] >= 0:
        if tree.same_keys[place, 1] == state and _are_same(tree, crossing, tree.same_keys[place, 0]):
            node = tree.same_nodes[place]
            break
        place = (place + 1) % size
    if node < 0:
        item_at = tree.crossings[crossing, ITEM_AT]
        items = tree.items[item_at : item_at + tree.crossings[crossing, NUM_ITEMS]]
        node = grow(tree, items, items.shape[0], tree.data, state, -1, 0, False, lexer, tokens, scratch)
        if node < 0:
            return node
        tree.same_keys[place, 0], tree.same_keys[place, 1], tree.same_nodes[place] = crossing, state, node
        counts[SAMES] += 1
    kid = counts[KIDS]
    counts[KIDS] += 1
    tree.kids[kid, KID_STATE], tree.kids[kid, KID_NODE] = state, node
    tree.kids[kid, NEXT_KID] = tree.crossings[crossing, FIRST_KID]
    tree.crossings[crossing, FIRST_KID] = kid
    return node


@compiled(is_fixed=True, nogil=True)
def visit(tree, root, begin, parser, lexer, stacks, first, size, tokens, scratch, found, mask):  # type: ignore[no-untyped-def] # pragma: no cover
    """Write the tokens that may follow from a root node for a set of stacks, except those whose way back is to be asked about.

    root: a node, or -1: the node is made for all tokens, after the lexer's state, its last match and where that ended in `begin.data`.
    found.out: for OK, the number of asks and the root; for NEED_JOIN, two contexts.
    """
    if root < 0:
        items, place = begin.items, begin.place
        root = grow(tree, items, 1, begin.data, place[0], place[1], place[2], True, lexer, tokens, scratch)
        if root < 0:
            return NEED_TREE if root == NO_TREE else NEED_SCRATCH
    frames, verdicts, taken, asks, out = found.frames, found.verdicts, found.taken, found.asks, found.out
    frames[0, 0], frames[0, 1], frames[0, 2] = root, first, size
    num_frames, num_asks, stamp = 1, 0, 0
    free, into, link = stacks.counts[STACK_NODES], stacks.counts[MEMBERS], stacks.counts[STACK_LINKS]
    frames[0, 3], frames[0, 4], frames[0, 5] = free, into, link
    for pair in range(verdicts.size):
        verdicts[pair] = -1
    for terminal in range(taken.size):
        taken[terminal] = -1
    while num_frames:
        num_frames -= 1
        stamp += 1
        node, first, size = frames[num_frames, 0], frames[num_frames, 1], frames[num_frames, 2]
        if num_asks == 0:  # what later frames made is no longer needed
            free, into, link = frames[num_frames, 3], frames[num_frames, 4], frames[num_frames, 5]
        for crossing in range(
            tree.nodes[node, CROSSING_AT], tree.nodes[node, CROSSING_AT] + tree.nodes[node, NUM_CROSSINGS]
        ):
            terminal = tree.crossings[crossing, TERMINAL]
            to, num_stacks = first, size
            if not parser.is_ignored[terminal]:
                num_stacks, to, free, link = feed(parser, stacks, first, size, terminal, into, free, link)
                if num_stacks < 0:
                    return NEED_STACKS
                taken[terminal] = 2 * stamp + (num_stacks > 0)
                if num_stacks == 0:
                    continue
                into = to + num_stacks + 1
            context = _context(parser, stacks, to, num_stacks, out)
            if context < 0:
                return NEED_JOIN
            state = parser.starts[context]
            known = tree.crossings[crossing, FIRST_KID]
            while known >= 0 and tree.kids[known, KID_STATE] != state:
                known = tree.kids[known, NEXT_KID]
            if known >= 0:
                kid = tree.kids[known, KID_NODE]
            else:
                kid = _new_kid(tree, crossing, state, lexer, tokens, scratch)
                if kid < 0:
                    return NEED_TREE if kid == NO_TREE else NEED_SCRATCH
            if num_frames >= frames.shape[0]:
                return NEED_SCRATCH
            frames[num_frames, 0], frames[num_frames, 1], frames[num_frames, 2] = kid, to, num_stacks
            frames[num_frames, 3], frames[num_frames, 4], frames[num_frames, 5] = free, into, link
            num_frames += 1
        for end in range(tree.nodes[node, END_AT], tree.nodes[node, END_AT] + tree.nodes[node, NUM_ENDS]):
            win = tree.ends[end, END_WIN]
            is_won = _known(lexer, win, verdicts, taken, stamp)
            if is_won < 0:
                is_won = can_win(parser, lexer, stacks, first, size, win, verdicts, taken, stamp, into, free, link)
                if is_won < 0:
                    return NEED_STACKS
            if not is_won:
                continue
            row = tree.ends[end, ROW]
            if row >= 0:
                for word in range(mask.size):
                    mask[word] |= tree.rows[row, word]
            else:
                for at in range(tree.ends[end, RANGE_AT], tree.ends[end, RANGE_AT] + tree.ends[end, NUM_RANGES]):
                    set_range(mask, tokens.order, tree.ranges[at, 0], tree.ranges[at, 1])
        for tail in range(tree.nodes[node, TAIL_AT], tree.nodes[node, TAIL_AT] + tree.nodes[node, NUM_TAILS]):
            is_won = can_win(
                parser, lexer, stacks, first, size, tree.tails[tail, TAIL_WIN], verdicts, taken, stamp, into, free, link
            )
            if is_won < 0:
                return NEED_STACKS
            if num_asks >= asks.shape[0]:
                return NEED_SCRATCH
            if is_won:
                token = tree.tails[tail, TAIL_TOKEN]
                mask[token >> 5] |= np.uint32(1) << np.uint32(token & 31)
            else:
                asks[num_asks, 0], asks[num_asks, 1], asks[num_asks, 2] = tail, first, size
                num_asks += 1
    out[0], out[1] = num_asks, root
    return OK
