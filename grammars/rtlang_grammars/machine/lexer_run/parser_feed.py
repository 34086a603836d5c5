"""Compiled feeding of terminals to the parser: a shift, and where indentation has a meaning the indents and dedents after a newline.

The newline terminal at column c has the number newline + c, at any deeper column newline + COLUMN_COUNT. A set of stacks carries the
indentation of its line, one more node: its column, the enclosing line, and the depth of brackets, in which newlines mean nothing.
"""

from __future__ import annotations

from rtlang_grammars.machine.lexer_run.graph_stack import gss_shift, set_node
from rtlang_grammars.machine.lexer_run.lexer_layout import (
    BRACKETS,
    COLUMN_COUNT,
    DEDENT,
    INDENT,
    LINE_COLUMN,
    LINE_DEPTH,
    MEMBERS,
    NEED_STACKS,
    NEWLINE,
    OK,
    OUTER_LINE,
    STACK_LINKS,
    STACK_NODES,
    GraphStack,
    ParserArrays,
)
from rtlang_grammars.machine.native.array_types import INT, INT64
from rtlang_grammars.machine.native.native_code import LEXER, compiled


@compiled(inner=True)
def _shift(parser, stack, first, size, terminal, member, node, link):  # type: ignore[no-untyped-def] # pragma: no cover
    """`gss_shift`; returns how many nodes are on top, where they are in `members`, and the next free member, node and link."""
    count, node, link = gss_shift(parser, stack, first, size, terminal, member, node, link)
    return count, member, member + max(count, 0), node, link


@compiled(inner=True)
def _dedent(parser, stack, first, count, line, to_column, member, node, link):  # type: ignore[no-untyped-def] # pragma: no cover
    """Shift a dedent for each enclosing line that a column leaves; returns as `_shift`, with the line that is left."""
    while count > 0 and line and stack.nodes[line, LINE_COLUMN] > to_column:
        count, first, member, node, link = _shift(
            parser, stack, first, count, parser.columns[DEDENT], member, node, link
        )
        line = stack.nodes[line, OUTER_LINE]
    return count, first, line, member, node, link


@compiled(inner=True)
def _feed_newline_at(parser, stack, first, size, to_column, member, node, link):  # type: ignore[no-untyped-def] # pragma: no cover
    """`feed` for a newline, with the column of the line that it begins."""
    nodes, members, columns = stack.nodes, stack.members, parser.columns
    line, column, outer = members[first + size], 0, 0
    if line:
        column, outer = nodes[line, LINE_COLUMN], nodes[line, OUTER_LINE]
        if nodes[line, LINE_DEPTH]:  # inside brackets
            if member + size >= members.size:
                return -1, member, node, link
            for at in range(size + 1):
                members[member + at] = members[first + at]
            return size, member, node, link
    while outer and nodes[outer, LINE_COLUMN] > to_column:
        outer = nodes[outer, OUTER_LINE]
    is_known = to_column >= column or to_column == (nodes[outer, LINE_COLUMN] if outer else 0)
    if to_column == columns[COLUMN_COUNT] or not is_known:
        return 0, member, node, link
    count, first, member, node, link = _shift(parser, stack, first, size, columns[NEWLINE], member, node, link)
    if count > 0 and to_column > column:
        count, first, member, node, link = _shift(parser, stack, first, count, columns[INDENT], member, node, link)
        if count > 0:
            set_node(nodes, node, to_column, line, 0)
            line, node = node, node + 1
    else:
        count, first, line, member, node, link = _dedent(
            parser, stack, first, count, line, to_column, member, node, link
        )
    if count > 0:
        members[first + count] = line
    return count, first, node, link


@compiled(inner=True)
def _feed_end(parser, stack, first, size, member, node, link):  # type: ignore[no-untyped-def] # pragma: no cover
    """`feed` for the end of the text: all lines are left."""
    count, first, _, member, node, link = _dedent(
        parser, stack, first, size, stack.members[first + size], 0, member, node, link
    )
    if count > 0:
        count, first, member, node, link = _shift(
            parser, stack, first, count, parser.actions.shape[1] - 1, member, node, link
        )
    if count > 0:
        stack.members[first + count] = 0
    return count, first, node, link


@compiled(inner=True)
def feed(parser, stack, first, size, terminal, member, node, link):  # type: ignore[no-untyped-def] # pragma: no cover
    """Stacks after a terminal of the lexer, written as by `gss_shift`, and their indentation.

    Returns how many nodes are on top, -1 for want of room, where they are in `members`, and the next free node and link.
    """
    nodes, members, columns = stack.nodes, stack.members, parser.columns
    if columns[NEWLINE] >= 0:
        if terminal == parser.actions.shape[1] - 1:
            return _feed_end(parser, stack, first, size, member, node, link)
        to_column = terminal - columns[NEWLINE]
        if 0 <= to_column <= columns[COLUMN_COUNT]:
            return _feed_newline_at(parser, stack, first, size, to_column, member, node, link)
    line = members[first + size]
    count, node, link = gss_shift(parser, stack, first, size, terminal, member, node, link)
    if count <= 0:
        return count, member, node, link
    if columns[NEWLINE] < 0:
        line = 0
    elif columns[BRACKETS + terminal]:
        column = outer = depth = 0
        if line:
            column, outer, depth = nodes[line, LINE_COLUMN], nodes[line, OUTER_LINE], nodes[line, LINE_DEPTH]
        depth += columns[BRACKETS + terminal]
        if depth < 0:
            return 0, member, node, link
        line = 0
        if depth or column:
            set_node(nodes, node, column, outer, depth)
            line, node = node, node + 1
    members[member + count] = line
    return count, member, node, link


@compiled(inner=True)
def feed_any(parser, stack, first, size, lists, at, member, node, link):  # type: ignore[no-untyped-def] # pragma: no cover
    """`feed` for each of several terminals: lists[at] is how many, and they follow; the stacks after any of them."""
    begin = member
    for index in range(at + 1, at + 1 + lists[at]):
        if parser.is_ignored[lists[index]]:
            count = size
            if member + size >= stack.members.size:
                return -1, begin, node, link
            for offset in range(size):
                stack.members[member + offset] = stack.members[first + offset]
        else:
            count, _, node, link = feed(parser, stack, first, size, lists[index], member, node, link)
        if count < 0:
            return count, begin, node, link
        member += count
    if member > begin:
        stack.members[member] = 0  # such grammars have no indentation
    return member - begin, begin, node, link


@compiled(inner=True)
def _next_column(nodes, line, column):  # type: ignore[no-untyped-def] # pragma: no cover
    """The first column from one on at which an enclosing line or the present one begins; the column itself beyond all of them."""
    found = column
    while line and nodes[line, LINE_COLUMN] >= column:
        found = nodes[line, LINE_COLUMN]
        line = nodes[line, OUTER_LINE]
    return column if column == 0 else found


@compiled(inner=True)
def feed_newline(parser, stack, first, size, column_set, from_column, member, node, link):  # type: ignore[no-untyped-def] # pragma: no cover
    """`feed` for a newline at the first column of a set, from one on, at which the parser takes it; returns that column, too."""
    nodes = stack.nodes
    line = stack.members[first + size]
    column = nodes[line, LINE_COLUMN] if line else 0
    is_inside = line and nodes[line, LINE_DEPTH]  # inside brackets, where every column will do
    to_column = from_column
    while to_column < column_set.size:
        if to_column <= column and not is_inside:  # elsewhere no line begins
            to_column = _next_column(nodes, line, to_column)
        if column_set[to_column]:
            found, at, next_node, next_link = feed(
                parser, stack, first, size, parser.columns[NEWLINE] + to_column, member, node, link
            )
            if found:
                return found, at, next_node, next_link, to_column
            if to_column > column:  # all deeper columns are alike
                break
        to_column += 1
    return 0, member, node, link, column_set.size


@compiled(ParserArrays, GraphStack, INT, INT, INT, INT64, group=LEXER)
def feed_once(parser, stack, first, size, terminal, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """`feed` for Python: writes after what is kept; out[0]: how many nodes, out[1]: where they are in `members`."""
    counts = stack.counts
    out[0], out[1], _, _ = feed(
        parser, stack, first, size, terminal, counts[MEMBERS], counts[STACK_NODES], counts[STACK_LINKS]
    )
    return OK if out[0] >= 0 else NEED_STACKS
