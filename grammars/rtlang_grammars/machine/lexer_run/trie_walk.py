"""Lexes all tokens at once: a compiled walk of the token trie through the lexer, up to the end of a lexeme.

The walk writes to its scratch (`lexer_layout.WalkScratch`): an end for each token or range of tokens that ends inside a lexeme, and a
crossing for each subtree of the trie in which the lexeme ends before the tokens do. Large subtrees are left out as *parts*: what they do
depends on the state before them alone, or on that and a match just before their byte, so one walk of each serves all contexts of the
grammar.
"""

from __future__ import annotations

import numpy as np

from rtlang_grammars.machine.lexer_run.lexeme_rules import read_symbol
from rtlang_grammars.machine.lexer_run.lexer_layout import (
    ANYWHERE,
    BEGIN,
    BYTE_AT,
    CROSSED,
    CROSSED_BEGIN,
    CROSSED_BYTE_AT,
    CROSSED_FIRST,
    CROSSED_NUM_BYTES,
    CROSSED_STOP,
    FIRST_BYTE,
    FIRST_RANK,
    HOME,
    IS_SURE,
    KEEP,
    LEX_MATCH,
    LEX_MATCH_AT,
    LEX_STATE,
    NUM_BYTES,
    PART_MATCH,
    PART_RECORD,
    PART_STATE,
    SEEN_BYTE_AT,
    SEEN_MATCH,
    SEEN_NUM_BYTES,
    SEEN_STATE,
    STOP,
    STOP_RANK,
)
from rtlang_grammars.machine.native.native_code import compiled
from rtlang_grammars.machine.token_index.byte_kinds import (
    BELOW,
    COUNT_SHIFT,
    DEPTH_SHIFT,
    RANK_SHIFT,
    RECORD,
    SKIP_SHIFT,
    TOKEN_SHIFT,
)

AHEAD = 6
"""Items whose records are fetched before they are walked."""

LEAST_PART = 256
"""Tokens of a part. With them all 40 first states of PostgreSQL's grammar are made from 104 thousand records instead of 411 thousand."""

_EVERY_KIND = (1 << COUNT_SHIFT) - 1
_RANK_MASK = (1 << (SKIP_SHIFT - RANK_SHIFT)) - 1
_DEPTH_MASK = (1 << (TOKEN_SHIFT - DEPTH_SHIFT)) - 1
_TERMINAL_BITS, _RECORD_BITS = 17, 24
"""Bits of a terminal's number and of a record's in the keys of `WalkScratch.seen`."""
_MAX_BYTES = 1100
"""Bytes that an end or a crossing may have at most."""


@compiled(inner=True, inline=True)
def _set_place(path, depth, state, match, match_at):  # type: ignore[no-untyped-def] # pragma: no cover
    """Note where the lexer is after `depth` bytes."""
    path[depth, LEX_STATE], path[depth, LEX_MATCH], path[depth, LEX_MATCH_AT] = state, match, match_at


@compiled(inner=True, inline=True)
def _stays_home(lexer, state, match, record, kinds):  # type: ignore[no-untyped-def] # pragma: no cover
    """Whether every token of a subtree ends in the home of a state, as far as matches go."""
    exits = lexer.exits[state]
    if exits == _EVERY_KIND or kinds & exits:
        return False
    home = lexer.states[state, HOME]
    return (match < 0 or lexer.states[home, IS_SURE] > 0) and (home == state or record & 0xC0 == 0x80)


@compiled(inner=True, inline=True)
def _add_range(ends, num_ends, home, first_rank, stop_rank):  # type: ignore[no-untyped-def] # pragma: no cover
    """Add an end for a range of tokens without a match, or extend the last one; returns the number of ends."""
    last = num_ends - 1
    if (
        num_ends > 0
        and ends[last, STOP_RANK] == first_rank
        and ends[last, SEEN_STATE] == home
        and ends[last, SEEN_MATCH] < 0
    ):
        ends[last, STOP_RANK] = stop_rank
        return num_ends
    ends[num_ends, SEEN_STATE], ends[num_ends, SEEN_MATCH] = home, -1
    ends[num_ends, FIRST_RANK], ends[num_ends, STOP_RANK] = first_rank, stop_rank
    return num_ends + 1


@compiled(inner=True, inline=True)
def _keep_bytes(text, first, stop, out, num_bytes):  # type: ignore[no-untyped-def] # pragma: no cover
    """Copy text[first:stop] to out[num_bytes:]; returns the number of bytes there."""
    for index in range(first, stop):
        out[num_bytes] = text[index]
        num_bytes += 1
    return num_bytes


@compiled(inner=True, inline=True)
def _add_token(scratch, num_ends, num_bytes, state, match, match_at, num_read, rank):  # type: ignore[no-untyped-def] # pragma: no cover
    """Add the end of one token, with the bytes after its match; returns the number of bytes kept, -1 for want of room."""
    ends = scratch.ends
    ends[num_ends, SEEN_STATE], ends[num_ends, SEEN_MATCH] = state, match
    ends[num_ends, FIRST_RANK], ends[num_ends, STOP_RANK] = rank, rank + 1
    if match >= 0:
        if num_bytes + _MAX_BYTES >= scratch.data.size:
            return -1
        ends[num_ends, SEEN_BYTE_AT], ends[num_ends, SEEN_NUM_BYTES] = num_bytes, num_read - match_at
        num_bytes = _keep_bytes(scratch.text, match_at, num_read, scratch.data, num_bytes)
    return num_bytes


@compiled(inner=True, inline=True)
def _add_crossing(scratch, number, num_bytes, match, match_at, num_read, begin, stop):  # type: ignore[no-untyped-def] # pragma: no cover
    """Add a crossing: `match` ended, and records [begin, stop) go on after the bytes since; returns as `_add_token`."""
    crossings = scratch.crossings
    if number >= crossings.shape[0] or num_bytes + _MAX_BYTES >= scratch.data.size:
        return -1
    crossings[number, CROSSED] = match
    crossings[number, CROSSED_BEGIN], crossings[number, CROSSED_STOP] = begin, stop
    crossings[number, CROSSED_BYTE_AT], crossings[number, CROSSED_NUM_BYTES] = num_bytes, num_read - match_at
    crossings[number, CROSSED_FIRST] = scratch.text[match_at]
    return _keep_bytes(scratch.text, match_at, num_read, scratch.data, num_bytes)


@compiled(inner=True, inline=True)
def _is_new(seen, terminal, begin):  # type: ignore[no-untyped-def] # pragma: no cover
    """Note that a terminal ends before a record; False if that is known in this walk: items may overlap."""
    size = seen.size - 1
    walk_number = seen[size]
    key = ((walk_number << _TERMINAL_BITS) + terminal) * (1 << _RECORD_BITS) + begin
    place = ((begin * 40503) ^ (terminal * 2654435)) & (size - 1)
    while (seen[place] >> (_TERMINAL_BITS + _RECORD_BITS)) == walk_number and seen[place] != key:
        place = (place + 1) & (size - 1)
    if seen[place] == key:
        return False
    seen[place] = key
    return True


@compiled(inner=True, inline=True)
def _is_dead(items, item, state, lexer):  # type: ignore[no-untyped-def] # pragma: no cover
    """Whether an item that is read from a state on ends at once, without a match."""
    first = items[item, FIRST_BYTE]
    return first >= 0 and lexer.steps[state, lexer.classes[first]] == 0


@compiled(inner=True, inline=True)
def _is_part(lexer, state, num_since, num_records, kinds):  # type: ignore[no-untyped-def] # pragma: no cover
    """Whether a subtree is left out: it is large, the state does not read all of it in a loop, and the bytes before it do not matter.

    num_since: bytes of the present lexeme that follow its last match, the subtree's own byte among them; 0 without a match.
    """
    return (
        (kinds >> COUNT_SHIFT) & _RANK_MASK >= LEAST_PART
        and num_records > 0
        and num_since <= 1
        and kinds & lexer.exits[state] != 0
        and lexer.states[state, KEEP] == 0
    )


@compiled(inner=True)
def walk(items, num_items, data, state, match, match_at, is_fed, shares, lexer, tokens, scratch):  # type: ignore[no-untyped-def] # pragma: no cover
    """Lex the records of `items` from a lexer state; returns the numbers of ends, crossings, bytes and parts, or -1 for want of room.

    is_fed: the bytes before each item were read already to reach `state`; the last match was after `match_at` of them.
    shares: leave out parts.
    """
    path, text, records, parts = scratch.path, scratch.text, tokens.records, scratch.parts
    num_ends = num_crossings = num_bytes = num_parts = 0
    soon = np.int64(0)
    is_new = True
    scratch.seen[scratch.seen.size - 1] += 1
    is_anywhere = lexer.order[0] == ANYWHERE
    for item in range(num_items):
        ahead = min(item + AHEAD, num_items - 1)
        if not _is_dead(items, ahead, state, lexer):
            soon ^= records[items[ahead, BEGIN], RECORD]  # the items lie apart in memory
        if not is_fed and _is_dead(items, item, state, lexer):
            continue
        at, stop = items[item, BEGIN], items[item, STOP]
        num_before, byte_at = items[item, NUM_BYTES], items[item, BYTE_AT]
        _keep_bytes(data, byte_at, byte_at + num_before, text, 0)
        base = num_before - ((records[at, RECORD] >> DEPTH_SHIFT) & _DEPTH_MASK) if at < stop else 0
        num_fed = num_before if is_fed else 0
        _set_place(path, num_fed, state, match, match_at)
        while at < stop:
            is_pending = num_fed < num_before  # the bytes before the item come first
            record, kinds = records[at, RECORD], records[at, BELOW]
            below, rank = record >> SKIP_SHIFT, (record >> RANK_SHIFT) & _RANK_MASK
            depth = num_fed if is_pending else base + ((record >> DEPTH_SHIFT) & _DEPTH_MASK)
            now, last, last_at = path[depth, LEX_STATE], path[depth, LEX_MATCH], path[depth, LEX_MATCH_AT]
            if num_ends >= scratch.ends.shape[0]:  # items may overlap where terminals end wherever they match
                return -1, 0, 0, 0
            if not is_pending:
                if _stays_home(lexer, now, last, record, kinds):
                    num_below = (kinds >> COUNT_SHIFT) & _RANK_MASK
                    num_ends = _add_range(scratch.ends, num_ends, lexer.states[now, HOME], rank, rank + num_below)
                    at = below
                    continue
                text[depth] = record & 0xFF
            reached, last, last_at = read_symbol(lexer, now, text[depth], depth, last, last_at)
            if is_anywhere and last >= 0:  # the lexeme ends here, and may go on as well
                is_new = num_items == 1 or _is_new(scratch.seen, last, at)
                if is_new and 2 * num_crossings + 2 >= scratch.seen.size:
                    return -1, 0, 0, 0
            if is_anywhere and last >= 0 and is_new:
                num_bytes = _add_crossing(scratch, num_crossings, num_bytes, last, depth, depth, at, below)
                if num_bytes < 0:
                    return -1, 0, 0, 0
                num_crossings += 1
            if is_anywhere:
                last = -1
            if reached >= 0:
                _set_place(path, depth + 1, reached, last, last_at)
                if is_pending:
                    num_fed += 1
                    continue
                if record & (1 << TOKEN_SHIFT) and last < 0 and lexer.states[reached, KEEP] == 0:
                    num_ends = _add_range(scratch.ends, num_ends, reached, rank, rank + 1)
                elif record & (1 << TOKEN_SHIFT):
                    num_bytes = _add_token(scratch, num_ends, num_bytes, reached, last, last_at, depth + 1, rank)
                    if num_bytes < 0:
                        return -1, 0, 0, 0
                    num_ends += 1
                at += 1
                num_since = depth + 1 - last_at if last >= 0 else 0
                if shares and not is_anywhere and _is_part(lexer, reached, num_since, below - at, kinds):
                    if num_parts >= parts.shape[0]:
                        return -1, 0, 0, 0
                    parts[num_parts, PART_RECORD], parts[num_parts, PART_STATE] = at - 1, reached
                    parts[num_parts, PART_MATCH] = last
                    num_parts += 1
                    at = below
                continue
            if last >= 0:
                after, num_read = (stop, num_before) if is_pending else (below, depth)
                num_bytes = _add_crossing(scratch, num_crossings, num_bytes, last, last_at, num_read, at, after)
                if num_bytes < 0:
                    return -1, 0, 0, 0
                num_crossings += 1
            if is_pending:
                break
            at = below
    path[0, LEX_STATE] = soon & 1  # so that what was read ahead is used
    return num_ends, num_crossings, num_bytes, num_parts
