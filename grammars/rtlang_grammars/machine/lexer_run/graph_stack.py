"""Compiled shift of a terminal onto a graph-structured stack (GSS): the parser follows every action of its LALR tables at once.

Stacks with equal states on top share a node, so their number does not grow with the ambiguity of the text (Tomita 1986). `gss_shift` keeps
*tops*: a parser state on a node. It reduces tops until no new one appears, then makes a node of each state that shifts, and above these one
node for each state shifted to. New nodes are written where its caller says; a caller that wants them kept interns them afterwards.
"""

from __future__ import annotations

from rtlang_grammars.machine.lexer_run.lexer_layout import (
    LINK_AT,
    MANY,
    NODE_STATE,
    NUM_LINKS,
    PATH_LEFT,
    PATH_NODE,
    RULE_HEAD,
    RULE_LENGTH,
    TOP_BELOW,
    TOP_NODE,
    TOP_STATE,
    TOP_TARGET,
)
from rtlang_grammars.machine.native.native_code import compiled

_FEW = 16
_NUM_BUCKETS = 512
"""At most the least capacity of `GraphStack.tops`."""


@compiled(inner=True, inline=True)
def set_node(nodes, node, first, second, third):  # type: ignore[no-untyped-def] # pragma: no cover
    """Write the three columns of a node."""
    nodes[node, 0], nodes[node, 1], nodes[node, 2] = first, second, third


@compiled(inner=True, inline=True)
def _bucket(state, below):  # type: ignore[no-untyped-def] # pragma: no cover
    return (state * 61 + below) & (_NUM_BUCKETS - 1)


@compiled(inner=True)
def _add_top(tops, num_tops, state, below):  # type: ignore[no-untyped-def] # pragma: no cover
    """Add a state on a node if it is new; returns the number of tops, -1 for want of room.

    Up to _FEW tops are compared one by one. Beyond, the columns that the shift uses later are a hash table: TOP_TARGET of row b is the last
    top in bucket b, and TOP_NODE of a top the one before it in its bucket, -1 for none.
    """
    if num_tops < _FEW:
        for index in range(num_tops):
            if tops[index, TOP_STATE] == state and tops[index, TOP_BELOW] == below:
                return num_tops
    else:
        index = tops[_bucket(state, below), TOP_TARGET]
        while index >= 0:
            if tops[index, TOP_STATE] == state and tops[index, TOP_BELOW] == below:
                return num_tops
            index = tops[index, TOP_NODE]
    if num_tops >= tops.shape[0]:
        return -1
    tops[num_tops, TOP_STATE], tops[num_tops, TOP_BELOW] = state, below
    first = num_tops
    if num_tops + 1 == _FEW:
        first = 0
        for bucket in range(_NUM_BUCKETS):
            tops[bucket, TOP_TARGET] = -1
    if num_tops + 1 >= _FEW:
        for index in range(first, num_tops + 1):
            bucket = _bucket(tops[index, TOP_STATE], tops[index, TOP_BELOW])
            tops[index, TOP_NODE] = tops[bucket, TOP_TARGET]
            tops[bucket, TOP_TARGET] = index
    return num_tops + 1


@compiled(inner=True, inline=True)
def _reduced(parser, stack, state, below, terminal):  # type: ignore[no-untyped-def] # pragma: no cover
    """A state on a node after all reductions that are the only action and have one way down, and its action then."""
    nodes, links = stack.nodes, stack.links
    action = parser.actions[state, terminal]
    while action < 0 and below >= 0:
        left, node = parser.rules[-1 - action, RULE_LENGTH], below
        while left > 1 and nodes[node, NUM_LINKS] == 1:
            node = links[nodes[node, LINK_AT]]
            left -= 1
        if left != 1:
            break
        goto = parser.gotos[nodes[node, NODE_STATE], parser.rules[-1 - action, RULE_HEAD]]
        if goto < 0:
            action = 0
            break
        state, below = goto, node
        action = parser.actions[state, terminal]
    return state, below, action


@compiled(inner=True)
def _first_tops(parser, stack, first, size, terminal):  # type: ignore[no-untyped-def] # pragma: no cover
    """The tops of a set of stacks that have an action, after plain reductions; returns their number, -1 for want of room."""
    nodes, tops, num_tops = stack.nodes, stack.tops, 0
    for index in range(first, first + size):
        node = stack.members[index]
        at, stop = nodes[node, LINK_AT], nodes[node, LINK_AT] + nodes[node, NUM_LINKS]
        if at == stop:
            num_tops = _add_top(tops, num_tops, nodes[node, NODE_STATE], -1)
        while at < stop and num_tops >= 0:
            state, below, action = _reduced(parser, stack, nodes[node, NODE_STATE], stack.links[at], terminal)
            if action != 0:
                num_tops = _add_top(tops, num_tops, state, below)
            at += 1
        if num_tops < 0:
            break
    return num_tops


@compiled(inner=True)
def _add_reduced(parser, stack, num_tops, node, rule, terminal):  # type: ignore[no-untyped-def] # pragma: no cover
    """Add the tops that a reduction leads to on every way down; returns as `_add_top`.

    node: the node below the last symbol of the rule; for an empty rule the node of the state itself.
    """
    nodes, paths = stack.nodes, stack.paths
    head = parser.rules[rule, RULE_HEAD]
    num_paths = 1
    paths[0, PATH_NODE], paths[0, PATH_LEFT] = node, parser.rules[rule, RULE_LENGTH]
    while num_paths:
        num_paths -= 1
        node, left = paths[num_paths, PATH_NODE], paths[num_paths, PATH_LEFT]
        if left > 1:
            if num_paths + nodes[node, NUM_LINKS] >= paths.shape[0]:
                return -1
            for at in range(nodes[node, LINK_AT], nodes[node, LINK_AT] + nodes[node, NUM_LINKS]):
                paths[num_paths, PATH_NODE], paths[num_paths, PATH_LEFT] = stack.links[at], left - 1
                num_paths += 1
            continue
        goto = parser.gotos[nodes[node, NODE_STATE], head]
        if goto >= 0:
            state, below, action = _reduced(parser, stack, goto, node, terminal)
            if action != 0:
                num_tops = _add_top(stack.tops, num_tops, state, below)
                if num_tops < 0:
                    return -1
    return num_tops


@compiled(inner=True)
def _reduce_all(parser, stack, num_tops, terminal, node, link):  # type: ignore[no-untyped-def] # pragma: no cover
    """Follow every reduction of every top, new ones included; returns their number, -1 for want of room, and what is free next."""
    tops, done = stack.tops, 0
    while done < num_tops:
        state, below = tops[done, TOP_STATE], tops[done, TOP_BELOW]
        if node + 2 >= stack.nodes.shape[0] or link + 2 >= stack.links.size:
            return -1, node, link
        action = parser.actions[state, terminal]
        is_many = action >= MANY
        own = -1  # the node of the top itself, for empty rules
        for index in range(parser.lists[action - MANY] if is_many else 1):
            each = parser.lists[action - MANY + 1 + index] if is_many else action
            if each >= 0:  # a shift
                continue
            rule, on = -1 - each, below
            if parser.rules[rule, RULE_LENGTH] == 0:
                if own < 0 and below < 0:
                    own = 0  # the empty stack is node 0
                elif own < 0:
                    set_node(stack.nodes, node, state, link, 1)
                    stack.links[link] = below
                    own, node, link = node, node + 1, link + 1
                on = own
            num_tops = _add_reduced(parser, stack, num_tops, on, rule, terminal)
            if num_tops < 0:
                return -1, node, link
        done += 1
    return num_tops, node, link


@compiled(inner=True, inline=True)
def _join_tops(stack, num_tops, index, needed, key, below, node, link):  # type: ignore[no-untyped-def] # pragma: no cover
    """Make a node of the tops that agree with top `index` in column `key`, on the nodes in column `below`.

    Tops count where column `needed` is not negative. Returns the next free link, `link` itself where an earlier top made the node.
    """
    tops, nodes = stack.tops, stack.nodes
    value = tops[index, key]
    if tops[index, needed] < 0:
        return link
    for earlier in range(index):
        if tops[earlier, needed] >= 0 and tops[earlier, key] == value:
            return link
    set_node(nodes, node, value, link, 0)
    for other in range(index, num_tops):
        if tops[other, needed] >= 0 and tops[other, key] == value:
            stack.links[link] = tops[other, below]
            nodes[node, NUM_LINKS] += 1
            link += 1
    return link


@compiled(inner=True)
def _shift_tops(parser, stack, num_tops, terminal, member, node, link):  # type: ignore[no-untyped-def] # pragma: no cover
    """Shift all tops that can; returns as `gss_shift`."""
    tops, num_out = stack.tops, 0
    if (
        node + 2 * num_tops >= stack.nodes.shape[0]
        or link + 2 * num_tops >= stack.links.size
        or member + num_tops >= stack.members.size
    ):
        return -1, node, link
    for index in range(num_tops):
        action = parser.actions[tops[index, TOP_STATE], terminal]
        if action >= MANY:
            action = max(parser.lists[action - MANY + 1], 0)  # a shift comes first
        tops[index, TOP_TARGET], tops[index, TOP_NODE] = max(action, 0) - 1, -1
    for index in range(num_tops):  # one node for each state that shifts
        if tops[index, TOP_BELOW] < 0:
            if tops[index, TOP_TARGET] >= 0:
                tops[index, TOP_NODE] = 0  # the empty stack is node 0
            continue
        after = _join_tops(stack, num_tops, index, TOP_TARGET, TOP_STATE, TOP_BELOW, node, link)
        if after > link:
            tops[index, TOP_NODE] = node
            node, link = node + 1, after
    for index in range(num_tops):  # one node for each state shifted to
        after = _join_tops(stack, num_tops, index, TOP_NODE, TOP_TARGET, TOP_NODE, node, link)
        if after > link:
            stack.members[member + num_out] = node
            num_out, node, link = num_out + 1, node + 1, after
    return num_out, node, link


@compiled(inner=True)
def gss_shift(parser, stack, first, size, terminal, member, node, link):  # type: ignore[no-untyped-def] # pragma: no cover
    """Stacks after a terminal, written to members[member:] with new nodes from `node` and links from `link` on.

    first, size: the set of stacks in `members`. The end of the text leads to the first state.
    Returns how many nodes are on top, 0 where the parser takes no such terminal, -1 for want of room, and the next free node and link.
    """
    nodes, links, members = stack.nodes, stack.links, stack.members
    if node + 2 >= nodes.shape[0] or link + 2 >= links.size or member + 2 >= members.size:
        return -1, node, link
    only = members[first]
    if size == 1 and nodes[only, NUM_LINKS] == 1:  # by far the most are one stack
        state, below, action = _reduced(parser, stack, nodes[only, NODE_STATE], links[nodes[only, LINK_AT]], terminal)
        if action == 0:
            return 0, node, link
        if 0 < action < MANY:
            set_node(nodes, node, state, link, 1)
            set_node(nodes, node + 1, action - 1, link + 1, 1)
            links[link], links[link + 1] = below, node
            members[member] = node + 1
            return 1, node + 2, link + 2
    num_tops = _first_tops(parser, stack, first, size, terminal)
    if num_tops < 0:
        return -1, node, link
    num_tops, node, link = _reduce_all(parser, stack, num_tops, terminal, node, link)
    if num_tops < 0:
        return -1, node, link
    return _shift_tops(parser, stack, num_tops, terminal, member, node, link)
