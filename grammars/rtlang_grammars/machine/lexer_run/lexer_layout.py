"""The arrays that compiled code shares: columns, return codes, and the groups in which they are passed."""

from __future__ import annotations

from typing import Annotated, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.machine.native.array_types import (
    INT32,
    INT32_TABLE,
    INT64,
    INT64_TABLE,
    UINT8,
    UINT8_TABLE,
    UINT32_TABLE,
)

Ints: TypeAlias = Annotated[NDArray[np.int32], INT32]
IntTable: TypeAlias = Annotated[NDArray[np.int32], INT32_TABLE]
Longs: TypeAlias = Annotated[NDArray[np.int64], INT64]
LongTable: TypeAlias = Annotated[NDArray[np.int64], INT64_TABLE]
Bytes: TypeAlias = Annotated[NDArray[np.uint8], UINT8]
ByteTable: TypeAlias = Annotated[NDArray[np.uint8], UINT8_TABLE]
WordTable: TypeAlias = Annotated[NDArray[np.uint32], UINT32_TABLE]

OK, NEED_JOIN, NEED_STACKS, NEED_SCRATCH, NEED_TREE, TOO_MANY = range(6)
NO_SCRATCH, NO_TREE = -1, -2

MAX_BACK = 16
"""Bytes for which an earlier match is remembered while a longer one is tried; a text that needs more is refused."""

# Columns of Lexer.states, .wins, .pairs.
WIN, IS_SURE, KEEP, HOME = range(4)
PAIR_AT, NUM_PAIRS, WIN_STATE = range(3)
PAIR_TERMINAL, PAIR_ENDERS, IS_FREE = range(3)

MAYBE = 2
"""An answer besides 0 and 1: the parser takes the terminal, but it is not proven that the text can go on; `ways_on` finds out."""

# Fields of LexerArrays.steps: the next state + 1, the terminal that ends + 1, how many bytes ago.
STEP_BITS, WINNER_BITS = 24, 16

LONGEST, LEFTMOST, ANYWHERE = range(3)
"""Values of `LexerArrays.order`: which match ends a lexeme."""
NO_NEWLINE = 1 << 30
"""The newline terminal of a grammar without indentation."""

MANY = 1 << 24
"""An action of the parser from this number on: several actions, which begin in `ParserArrays.lists` at the difference."""

# Columns of Parser.rules.
RULE_LENGTH, RULE_HEAD = range(2)
# Places in Parser.columns.
NEWLINE, COLUMN_COUNT, INDENT, DEDENT, BRACKETS = range(5)

# Columns of GraphStack.nodes, for a parser state and for the indentation of a line; of .tops and .paths; places in .counts.
NODE_STATE, LINK_AT, NUM_LINKS = range(3)
LINE_COLUMN, OUTER_LINE, LINE_DEPTH = range(3)
TOP_STATE, TOP_BELOW, TOP_TARGET, TOP_NODE = range(4)
PATH_NODE, PATH_LEFT = range(2)
STACK_NODES, MEMBERS, STACK_LINKS = range(3)

# Columns of Tree.nodes, .ends, .tails, .crossings, .items, .kids, .same; places in .counts.
END_AT, NUM_ENDS, TAIL_AT, NUM_TAILS, CROSSING_AT, NUM_CROSSINGS = range(6)
END_WIN, RANGE_AT, NUM_RANGES, NUM_TOKENS, ROW = range(5)
TAIL_WIN, TAIL_LAST, TAIL_TOKEN, TAIL_BYTE_AT, TAIL_NUM_BYTES, TAIL_STATE = range(6)
TERMINAL, ITEM_AT, NUM_ITEMS, FIRST_KID = range(4)
BEGIN, STOP, BYTE_AT, NUM_BYTES, FIRST_BYTE = range(5)
KID_STATE, KID_NODE, NEXT_KID = range(3)
SAME_CROSSING, SAME_STATE, SAME_NODE = range(3)
(NODES, ENDS, TAILS, CROSSINGS, ITEMS, KIDS, RANGES, BYTES, ROWS, SAMES) = range(10)

# Columns of Walk.path (and places in Begin.place), .ends, .crossings, .parts.
LEX_STATE, LEX_MATCH, LEX_MATCH_AT = range(3)
SEEN_STATE, SEEN_MATCH, SEEN_BYTE_AT, SEEN_NUM_BYTES, FIRST_RANK, STOP_RANK = range(6)
CROSSED, CROSSED_BEGIN, CROSSED_STOP, CROSSED_BYTE_AT, CROSSED_NUM_BYTES, CROSSED_FIRST = range(6)
PART_RECORD, PART_STATE, PART_MATCH, PART_NODE = range(4)

# Columns of Visit.frames and .asks.
FRAME_NODE, FRAME_FIRST, FRAME_SIZE, FREE_NODE, FREE_MEMBER, FREE_LINK = range(6)
ASK_TAIL, ASK_FIRST, ASK_SIZE = range(3)


class LexerArrays(NamedTuple):
    """The lexer's automaton.

    Attributes:
        classes: [257].
        steps: int64 [num_states, num_classes], what a state does before a class, see STEP_BITS.
        states: [num_states, 4], what can win, whether a match is sure, how many of the last bytes may be look-ahead after a match, and its
            home: the state itself, or within a character the state after every rest of it, -1.
        exits: int64 [num_states], the kinds of bytes (`byte_kinds`) that may lead away from the home of a state, all without a home.
        wins: [num_wins, 3], where the pairs begin in `win_pairs`, and how many; -1, or the one state with this win, where some pair is not
            free.
        win_pairs: numbers of pairs.
        pairs: [num_pairs, 3], a terminal, the set of classes before which it ends, and whether it ends freely (`free_sequences`): whatever
            the parser takes after it has a text.
        enders: uint8 [num_sets, num_classes].
        firsts: uint8 [num_terminals, num_classes], the classes with which a terminal can begin.
        order: [1], LONGEST, LEFTMOST (the match that is found last counts) or ANYWHERE (all count).
        column_sets: uint8 [num_sets, columns + 1], columns of the newline terminal; a pair with the terminal num_terminals + 1 + i stands
            for the newline at one of the columns of set i.
        newline: [1], the newline terminal, NO_NEWLINE where there is none.
        lists: where several terminals end at one place, they have the number num_terminals + 1 + i; lists[i] is how many, and they follow.
    """

    classes: Ints
    steps: LongTable
    states: IntTable
    exits: Longs
    wins: IntTable
    win_pairs: Ints
    pairs: IntTable
    enders: ByteTable
    firsts: ByteTable
    order: Ints
    column_sets: ByteTable
    newline: Ints
    lists: Ints


class TokenArrays(NamedTuple):
    """The vocabulary.

    Attributes:
        records: see `byte_kinds`.
        order: see `TokenTrie`.
    """

    records: LongTable
    order: Ints


class ParserArrays(NamedTuple):
    """The parser's tables, see `ParserTables`, and its contexts.

    Attributes:
        actions: [num_states, num_terminals + 1], the state shifted to + 1, or -1 - the rule to reduce by, or 0, or several, see MANY; the
            end of the text is shifted to the first state.
        lists: for each place with several actions how many, and these; a shift comes first.
        rules: [num_rules, 2], for each rule its length and the number of its origin.
        gotos: see `ParserTables`.
        row_at: [num_states + 1], where the terminals of a state begin in `row_terminals`.
        row_terminals: terminals.
        is_ignored: uint8 [num_terminals + 1].
        contexts: [num_states], the context of each state.
        joins: [num_contexts, num_contexts], the context of two together, -1 where it is not made.
        starts: [num_contexts], the lexer's state.
        final: [3], the first state, the one after the start rule, and in grammars with conflicts the lexer's state before a lexeme where
            all terminals compete, -1 where there is none.
        columns: [4 + num_terminals + 1], the newline terminal at column 0, the number of columns, the terminals of indents and dedents, and
            for each terminal what it adds to the depth of brackets; [1], -1 where indentation has no meaning.
    """

    actions: IntTable
    lists: Ints
    rules: IntTable
    gotos: IntTable
    row_at: Ints
    row_terminals: Ints
    is_ignored: Bytes
    contexts: Ints
    joins: IntTable
    starts: Ints
    final: Ints
    columns: Ints


class GraphStack(NamedTuple):
    """A graph-structured stack of parser states, and sets of nodes on top of it.

    Attributes:
        nodes: [capacity, 3], state, where the nodes below begin in `links`, and how many; node 0 is the start, with none below. Others hold
            the indentation of the present line: its column, the node of the enclosing line, and the depth of brackets; 0 for neither.
        links: nodes.
        members: nodes of sets, and after each set the node of its indentation.
        paths: [capacity, 2], scratch of a reduction: nodes on the way down, and the symbols still to pass.
        tops: [capacity, 4], scratch of a shift: a state on a node (-1: on nothing), the state shifted to (-1: none), and its node.
        counts: int64, nodes, set members and links in use for good.
    """

    nodes: IntTable
    links: Ints
    members: Ints
    paths: IntTable
    tops: IntTable
    counts: Longs


class Tree(NamedTuple):
    """Trees of terminal sequences: what the tokens do from a lexer state, and then from the state after each terminal that ends.

    Attributes:
        nodes: [capacity, 6], ranges of ends, tails and crossings.
        ends: [capacity, 5], tokens that end inside a lexeme, by what can win there, as ranges; many of them as a row.
        tails: [capacity, 6], tokens that may need an earlier match, the bytes after that match, and the lexer's state after them.
        crossings: [capacity, 4], a terminal that ends inside tokens, the items to go on with, and the first kid.
        items: [capacity, 5], records [BEGIN, STOP) of the token trie, read after some bytes, and the first byte read, -1: several.
        kids: [capacity, 3], the node for a lexer state.
        ranges: [capacity, 2], tokens by their places in the vocabulary's order.
        data: uint8, bytes.
        rows: uint32 [capacity, words].
        same: [capacity, 3], hash table of equal nodes: crossing, state, node + 1.
        counts: int64, what is in use, see NODES.
        needs: int64, what there must be room for, where there is not.
    """

    nodes: IntTable
    ends: IntTable
    tails: IntTable
    crossings: IntTable
    items: IntTable
    kids: IntTable
    ranges: IntTable
    data: Bytes
    rows: WordTable
    same: IntTable
    counts: Longs
    needs: Longs


class WalkScratch(NamedTuple):
    """Scratch of a walk.

    Attributes:
        ends: [num_tokens + 1, 6], state, last match, where the bytes after it begin in `data`, and how many; a range of tokens.
        crossings: [capacity, 6], terminal, BEGIN, STOP, bytes as in `ends`, and the first byte that is read again.
        parts: [capacity, 4], subtrees that were not walked: their record, the state after its byte, the match before its byte, -1, and the
            node that holds what they do.
        groups: [num_tokens + 1], the end in the tree of each end.
        path: [depth, 3], lexer state, last match and where it ended, by number of bytes.
        text: uint8, the bytes on the way.
        data: uint8, bytes of ends and crossings.
        seen: int64 [2 ** n + 1], hash table of the crossings of a walk, and the number of the walk at its end.
        end_of, crossing_of: by win and by terminal, its end and its crossing in the tree if it is one of the node that is being made;
            anything else means that it has none yet, so they are never cleared.
    """

    ends: IntTable
    crossings: IntTable
    parts: IntTable
    groups: Ints
    path: IntTable
    text: Bytes
    data: Bytes
    seen: Longs
    end_of: Ints
    crossing_of: Ints


class Begin(NamedTuple):
    """Where the tokens of a root begin.

    Attributes:
        items: [1, 5], see `Tree`: all records, read after the bytes of `data`.
        data: uint8, the last bytes of the text.
        place: [3], the lexer's state after them, its last match and where that ended in `data`.
    """

    items: IntTable
    data: Bytes
    place: Longs


class VisitScratch(NamedTuple):
    """Scratch of a visit.

    Attributes:
        frames: [capacity, 6], node of the tree, first member and number of members of a set of stacks, and the node, member and link
            that are free after it.
        verdicts, taken: [num_pairs], [num_terminals + 1], 2 * frame + whether the parser takes the pair, the terminal.
        asks: [capacity, 3], a tail or -1 - an end, first member and number of members.
        out: int64, numbers returned.
    """

    frames: IntTable
    verdicts: Ints
    taken: Ints
    asks: IntTable
    out: Longs
