"""Compiled making of a mask: a visit of the tree of terminal sequences with the stacks of a text.

A frame of the visit is a node of the tree and a set of stacks. The stacks of a frame are written after those of the frames below it and are
dropped with it; nothing is interned.
"""

from __future__ import annotations

import numpy as np

from rtlang_grammars.machine.lexer_run.lexer_layout import (
    ASK_FIRST,
    ASK_SIZE,
    ASK_TAIL,
    CROSSING_AT,
    END_AT,
    END_WIN,
    FRAME_FIRST,
    FRAME_NODE,
    FRAME_SIZE,
    FREE_LINK,
    FREE_MEMBER,
    FREE_NODE,
    LEX_MATCH,
    LEX_MATCH_AT,
    LEX_STATE,
    MAYBE,
    MEMBERS,
    NEED_JOIN,
    NEED_SCRATCH,
    NEED_STACKS,
    NEED_TREE,
    NO_TREE,
    NODE_STATE,
    NUM_CROSSINGS,
    NUM_ENDS,
    NUM_TAILS,
    OK,
    STACK_LINKS,
    STACK_NODES,
    TAIL_AT,
    TAIL_TOKEN,
    TAIL_WIN,
    TERMINAL,
    TOO_MANY,
    Begin,
    GraphStack,
    LexerArrays,
    ParserArrays,
    TokenArrays,
    Tree,
    VisitScratch,
    WalkScratch,
)
from rtlang_grammars.machine.lexer_run.parser_feed import feed, feed_any
from rtlang_grammars.machine.lexer_run.sequence_tree import add_tokens, grow, kid_of
from rtlang_grammars.machine.lexer_run.viability import can_win, forget_verdicts, known_win
from rtlang_grammars.machine.native.array_types import INT, UINT32
from rtlang_grammars.machine.native.native_code import LEXER, compiled

MAX_FRAMES = 1 << 18
"""Frames of a visit, each of which takes a microsecond or less where there are many."""


@compiled(inner=True, inline=True)
def _context(parser, stack, first, size, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """The context of a set of stacks; -1 and two contexts in `out` where they were never joined."""
    context = parser.contexts[stack.nodes[stack.members[first], NODE_STATE]]
    for index in range(1, size):
        other = parser.contexts[stack.nodes[stack.members[first + index], NODE_STATE]]
        if other != context:
            joined = parser.joins[context, other]
            if joined < 0:
                out[0], out[1] = context, other
                return -1
            context = joined
    return context


@compiled(inner=True, inline=True)
def _push_frame(frames, num_frames, tree_node, first, size, node, member, link):  # type: ignore[no-untyped-def] # pragma: no cover
    """Add a frame; returns their number."""
    frames[num_frames, FRAME_NODE], frames[num_frames, FRAME_FIRST], frames[num_frames, FRAME_SIZE] = (
        tree_node,
        first,
        size,
    )
    frames[num_frames, FREE_NODE], frames[num_frames, FREE_MEMBER], frames[num_frames, FREE_LINK] = node, member, link
    return num_frames + 1


@compiled(
    Tree,
    INT,
    Begin,
    ParserArrays,
    LexerArrays,
    GraphStack,
    INT,
    INT,
    TokenArrays,
    WalkScratch,
    VisitScratch,
    UINT32,
    group=LEXER,
    nogil=True,
)
def visit_tree(tree, root, begin, parser, lexer, stack, first, size, tokens, scratch, visit, mask):  # type: ignore[no-untyped-def] # pragma: no cover
    """Write the tokens that may follow from a root node for a set of stacks, except those that are to be asked about.

    root: a node, or -1: the node is made for all tokens, after the lexer's state, its last match and where that ended in `begin.data`.
    visit.out: for OK, the number of asks; for NEED_JOIN, two contexts; at 2 always the root, -1 where there was no room for it.
    """
    out = visit.out
    out[2] = root
    if root < 0:
        place = begin.place
        root = grow(
            tree, begin.items, 1, begin.data, place[LEX_STATE], place[LEX_MATCH], place[LEX_MATCH_AT], True,
            lexer, tokens, scratch,
        )  # fmt: skip
        if root < 0:
            return NEED_TREE if root == NO_TREE else NEED_SCRATCH
        out[2] = root
    frames, taken, asks = visit.frames, visit.taken, visit.asks
    num_symbols = parser.actions.shape[1]
    forget_verdicts(visit)
    node, member, link = stack.counts[STACK_NODES], stack.counts[MEMBERS], stack.counts[STACK_LINKS]
    num_frames, num_asks, stamp = _push_frame(frames, 0, root, first, size, node, member, link), 0, 0
    while num_frames:
        num_frames -= 1
        stamp += 1
        if stamp > MAX_FRAMES:
            return TOO_MANY
        at, first, size = (
            frames[num_frames, FRAME_NODE],
            frames[num_frames, FRAME_FIRST],
            frames[num_frames, FRAME_SIZE],
        )
        if num_asks == 0:  # what later frames made is no longer needed
            node, member, link = (
                frames[num_frames, FREE_NODE],
                frames[num_frames, FREE_MEMBER],
                frames[num_frames, FREE_LINK],
            )
        for crossing in range(tree.nodes[at, CROSSING_AT], tree.nodes[at, CROSSING_AT] + tree.nodes[at, NUM_CROSSINGS]):
            terminal = tree.crossings[crossing, TERMINAL]
            to, num_stacks = first, size
            if terminal >= num_symbols:
                num_stacks, to, node, link = feed_any(
                    parser, stack, first, size, lexer.lists, terminal - num_symbols, member, node, link
                )
                if num_stacks < 0:
                    return NEED_STACKS
                if num_stacks == 0:
                    continue
                member = to + num_stacks + 1
            elif not parser.is_ignored[terminal]:
                num_stacks, to, node, link = feed(parser, stack, first, size, terminal, member, node, link)
                if num_stacks < 0:
                    return NEED_STACKS
                taken[terminal] = 2 * stamp + (num_stacks > 0)
                if num_stacks == 0:
                    continue
                member = to + num_stacks + 1
            context = _context(parser, stack, to, num_stacks, out)
            if context < 0:
                return NEED_JOIN
            kid = kid_of(tree, crossing, parser.starts[context], lexer, tokens, scratch)
            if kid < 0:
                return NEED_TREE if kid == NO_TREE else NEED_SCRATCH
            if num_frames >= frames.shape[0]:
                return NEED_SCRATCH
            num_frames = _push_frame(frames, num_frames, kid, to, num_stacks, node, member, link)
        for end in range(tree.nodes[at, END_AT], tree.nodes[at, END_AT] + tree.nodes[at, NUM_ENDS]):
            win = tree.ends[end, END_WIN]
            is_won = known_win(lexer, win, visit, stamp)
            if is_won < 0:
                is_won = can_win(parser, lexer, stack, first, size, win, visit, stamp, member, node, link)
            if is_won < 0:
                return NEED_STACKS
            if is_won == MAYBE:
                if num_asks >= asks.shape[0]:
                    return NEED_SCRATCH
                asks[num_asks, ASK_TAIL], asks[num_asks, ASK_FIRST], asks[num_asks, ASK_SIZE] = -1 - end, first, size
                num_asks += 1
            elif is_won:
                add_tokens(mask, tree, end, tokens.order)
        for tail in range(tree.nodes[at, TAIL_AT], tree.nodes[at, TAIL_AT] + tree.nodes[at, NUM_TAILS]):
            win = tree.tails[tail, TAIL_WIN]
            is_won = can_win(parser, lexer, stack, first, size, win, visit, stamp, member, node, link)
            if is_won < 0:
                return NEED_STACKS
            if num_asks >= asks.shape[0]:
                return NEED_SCRATCH
            if is_won == 1:
                token = tree.tails[tail, TAIL_TOKEN]
                mask[token >> 5] |= np.uint32(1) << np.uint32(token & 31)
            else:
                asks[num_asks, ASK_TAIL], asks[num_asks, ASK_FIRST], asks[num_asks, ASK_SIZE] = tail, first, size
                num_asks += 1
    out[0] = num_asks
    return OK
