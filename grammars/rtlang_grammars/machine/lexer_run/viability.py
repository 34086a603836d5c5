"""Compiled test whether what the lexer has begun can still become a terminal that the parser takes.

A lexer state has a *win*: pairs of a terminal that may still match, and the symbols before which it ends there. A pair is viable if the
parser takes its terminal, after real reductions, and it ends freely (`context_free.lexer_build.free_sequences`). Where the latter is not
proven, it may be viable if something that may follow begins with one of these symbols; `ways_on` answers then.
"""

from __future__ import annotations

from rtlang_grammars.machine.lexer_run.lexer_layout import (
    IS_FREE,
    MAYBE,
    MEMBERS,
    NEED_STACKS,
    NEWLINE,
    NO_NEWLINE,
    NODE_STATE,
    NUM_PAIRS,
    OK,
    PAIR_AT,
    PAIR_ENDERS,
    PAIR_TERMINAL,
    STACK_LINKS,
    STACK_NODES,
    GraphStack,
    LexerArrays,
    ParserArrays,
    VisitScratch,
)
from rtlang_grammars.machine.lexer_run.parser_feed import feed, feed_newline
from rtlang_grammars.machine.native.array_types import INT
from rtlang_grammars.machine.native.native_code import LEXER, compiled

_END = 256
"""The symbol after the last byte of the text."""


@compiled(inner=True)
def _can_begin(lexer, terminal, enders):  # type: ignore[no-untyped-def] # pragma: no cover
    """Whether a terminal can begin with a symbol of a set."""
    symbol, size = 0, lexer.enders.shape[1]
    while symbol < size and not (lexer.enders[enders, symbol] and lexer.firsts[terminal, symbol]):
        symbol += 1
    return symbol < size


@compiled(inner=True)
def _can_follow(parser, lexer, stack, first, size, enders, member, node, link):  # type: ignore[no-untyped-def] # pragma: no cover
    """Whether after a terminal that ends before some symbols, something begins with one of these: 1, 0, -1 for want of room."""
    newline = parser.columns[NEWLINE]
    for terminal in range(parser.is_ignored.size - 1):
        if parser.is_ignored[terminal] and _can_begin(lexer, terminal, enders):
            return 1
    if lexer.enders[enders, lexer.classes[_END]]:
        found, _, _, _ = feed(parser, stack, first, size, parser.actions.shape[1] - 1, member, node, link)
        if found:
            return 1 if found > 0 else -1
    for index in range(size):
        state = stack.nodes[stack.members[first + index], NODE_STATE]
        for at in range(parser.row_at[state], parser.row_at[state + 1]):
            terminal = parser.row_terminals[at]
            if terminal != newline and _can_begin(lexer, terminal, enders):
                found, _, _, _ = feed(parser, stack, first, size, terminal, member, node, link)
                if found:
                    return 1 if found > 0 else -1
    if newline >= 0 and _can_begin(lexer, newline, enders):
        found, _, _, _, _ = feed_newline(parser, stack, first, size, lexer.column_sets[0], 0, member, node, link)
        return found if found <= 0 else 1
    return 0


@compiled(inner=True)
def _newline_can_win(parser, lexer, stack, first, size, pair, member, node, link):  # type: ignore[no-untyped-def] # pragma: no cover
    """`_pair_can_win` for the newline at the columns of a set."""
    column_set = lexer.column_sets[lexer.pairs[pair, PAIR_TERMINAL] - parser.actions.shape[1]]
    from_column = 0
    while from_column < column_set.size:
        found, at, next_node, next_link, from_column = feed_newline(
            parser, stack, first, size, column_set, from_column, member, node, link
        )
        if found > 0 and lexer.pairs[pair, IS_FREE] == 0:
            found = _can_follow(
                parser, lexer, stack, at, found, lexer.pairs[pair, PAIR_ENDERS], at + found + 1, next_node, next_link
            )
        if found:
            return found
        from_column += 1
    return 0


@compiled(inner=True)
def _pair_can_win(parser, lexer, stack, first, size, pair, taken, stamp, member, node, link):  # type: ignore[no-untyped-def] # pragma: no cover
    """Whether the parser takes the terminal of a pair, and something can follow: 1, 0, -1 for want of room."""
    terminal, enders = lexer.pairs[pair, PAIR_TERMINAL], lexer.pairs[pair, PAIR_ENDERS]
    is_free = lexer.pairs[pair, IS_FREE] > 0
    if terminal >= parser.actions.shape[1]:
        found = _newline_can_win(parser, lexer, stack, first, size, pair, member, node, link)
        return 1 if found > 0 else found
    if taken[terminal] == 2 * stamp:
        return 0
    if is_free and taken[terminal] == 2 * stamp + 1:
        return 1
    at, found = first, size
    if not parser.is_ignored[terminal]:
        found, at, node, link = feed(parser, stack, first, size, terminal, member, node, link)
        if found >= 0:
            taken[terminal] = 2 * stamp + (found > 0)
        member = at + found + 1
    if found > 0 and not is_free:
        found = _can_follow(parser, lexer, stack, at, found, enders, member, node, link)
    return 1 if found > 0 else found


@compiled(inner=True)
def can_win(parser, lexer, stack, first, size, win, visit, stamp, member, node, link):  # type: ignore[no-untyped-def] # pragma: no cover
    """Whether a terminal that can still win is taken by the parser, and something can follow: 1, 0, MAYBE, -1 for want of room.

    visit.verdicts, .taken: what is known about each pair and about each terminal, 2 * stamp + 1 (yes) or 2 * stamp (no); older stamps are
    unknown.
    """
    verdicts, answer = visit.verdicts, 0
    doubt = MAYBE if parser.columns[NEWLINE] < 0 else 1  # `ways_on` knows no columns
    for index in range(lexer.wins[win, PAIR_AT], lexer.wins[win, PAIR_AT] + lexer.wins[win, NUM_PAIRS]):
        pair = lexer.win_pairs[index]
        if verdicts[pair] < 2 * stamp:
            found = _pair_can_win(parser, lexer, stack, first, size, pair, visit.taken, stamp, member, node, link)
            if found < 0:
                return -1
            verdicts[pair] = 2 * stamp + found
        if verdicts[pair] == 2 * stamp + 1:
            if lexer.pairs[pair, IS_FREE] > 0 or doubt == 1:
                return 1
            answer = doubt
    return answer


@compiled(inner=True, inline=True)
def known_win(lexer, win, visit, stamp):  # type: ignore[no-untyped-def] # pragma: no cover
    """`can_win` as far as it is known: 1, 0, MAYBE, -1 where it is not."""
    found, is_enough = 0, lexer.newline[0] != NO_NEWLINE
    for index in range(lexer.wins[win, PAIR_AT], lexer.wins[win, PAIR_AT] + lexer.wins[win, NUM_PAIRS]):
        pair = lexer.win_pairs[index]
        verdict, terminal = visit.verdicts[pair], lexer.pairs[pair, PAIR_TERMINAL]
        is_free = lexer.pairs[pair, IS_FREE] > 0
        if verdict < 2 * stamp and is_free and terminal < visit.taken.size:
            verdict = visit.taken[terminal]
        if verdict == 2 * stamp + 1 and (is_free or is_enough):
            found = 1
            break
        if verdict < 2 * stamp:
            found = -1
        elif verdict > 2 * stamp and found == 0:
            found = MAYBE
    return found


@compiled(inner=True, inline=True)
def forget_verdicts(visit):  # type: ignore[no-untyped-def] # pragma: no cover
    """Make all pairs and terminals unknown."""
    for pair in range(visit.verdicts.size):
        visit.verdicts[pair] = -1
    for terminal in range(visit.taken.size):
        visit.taken[terminal] = -1


@compiled(ParserArrays, LexerArrays, GraphStack, INT, INT, INT, VisitScratch, group=LEXER)
def is_viable(parser, lexer, stack, first, size, win, visit):  # type: ignore[no-untyped-def] # pragma: no cover
    """`can_win` for Python; visit.out[0]: the answer."""
    forget_verdicts(visit)
    counts, out = stack.counts, visit.out
    out[0] = can_win(
        parser, lexer, stack, first, size, win, visit, 1, counts[MEMBERS], counts[STACK_NODES], counts[STACK_LINKS]
    )
    return OK if out[0] >= 0 else NEED_STACKS
