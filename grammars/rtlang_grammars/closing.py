"""Ending a constrained text in time.

A generation that must end within a number of tokens is safe as long as some way to a complete text is known that fits in what is left.
`CompletionSearch` finds such ways over any matcher: a depth-first descent that prefers closing quotes and brackets and short values,
with limited backtracking, stopping as soon as the rest of an earlier way fits again. `BudgetKeeper` holds one way per generation. It is
kept as bytes, since grammars work on bytes: however the model spells the text, the rest of the way stays known, with its exact cost from a
table of the fewest tokens for every suffix. So most tokens cost one comparison or one check; only a token that opens something new needs a
search, and a token that would leave no way to end in time is replaced by the next token of the way.
"""

from __future__ import annotations

import heapq
import re
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.spec import GrammarError, GrammarMatcher
from rtlang_grammars.vocabulary import Vocabulary

UNREACHABLE = 1 << 30
"""The cost of bytes that no tokens spell."""

DEFAULT_STATES = 6000
"""States that a search off the step may look at; about 20 us each with a vocabulary of 152,000 tokens."""

_STEP_STATES = 300  # of a search within a step
_FIRST_BOUND = 64  # ways of so few tokens are looked for first
_MAX_TOKEN_BYTES = 24  # longer tokens are rare and save little; they would make the table of costs slower
_CLOSERS = (b'"', b"}", b"]", b")", b"'", b">", b";", b'"}', b'"]', b"}}", b"]}", b"\n")
_LIKELY = (
    b", ",
    b",",
    b": ",
    b":",
    b"=",
    b"0",
    b'""',
    b"[]",
    b"{}",
    b"null",
    b"1",
    b"9",
    b"true",
    b"a",
    b"x",
    b"A",
    b"{",
    b"[",
    b" ",
)
_PUNCTUATION = tuple(bytes([byte]) for byte in range(0x21, 0x7F) if not chr(byte).isalnum())
_PLAIN = re.compile(rb"[ -\[\]-~]+")
_NUM_LONGEST = 4
_LAST_STAGE = 2
_MAX_LOOP_PENALTY = 6  # steps without visible progress that count against a way; a long obligatory text takes many
_TAIL_OFFSETS = (0, 1, 2, 4, 5)
"""How much of the earlier way may have been replaced by what the model wrote: `0`, `""`, `null`, `false` and the like."""


class ClosingPath:
    """Bytes that complete a text, and for every suffix the fewest tokens that spell it. Immutable.

    Attributes:
        data: the bytes.
    """

    __slots__ = ("_costs", "_lengths", "_spelled", "_table", "data")

    def __init__(self, data: bytes, table: _TokenTable, tail: tuple[ClosingPath, int] | None = None) -> None:
        """`tail`: `data` ends with this path from this offset on, whose costs are taken over."""
        self.data, self._table = data, table
        self._costs, self._lengths = table.costs(data, tail)
        self._spelled: dict[int, list[int]] = {}

    def cost(self, offset: int = 0) -> int:
        """The fewest tokens for data[offset:]; UNREACHABLE where no tokens spell it."""
        return self._costs[offset]

    def token_ids(self, offset: int = 0) -> list[int]:
        """Tokens that spell data[offset:], as few as possible. Not to be changed."""
        found = self._spelled.get(offset)
        if found is None:
            found = []
            at = offset
            while at < len(self.data):
                found.append(self._table.ids[self.data[at : at + self._lengths[at]]])
                at += self._lengths[at]
            self._spelled[offset] = found
        return found


class _TokenTable:
    """Tokens by bytes, for spelling."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.ids = {text: i for text, i in vocabulary.ids_by_bytes().items() if len(text) <= _MAX_TOKEN_BYTES}
        self._max_length = max(map(len, self.ids), default=1)

    def costs(self, data: bytes, tail: tuple[ClosingPath, int] | None) -> tuple[list[int], list[int]]:
        """For each offset the fewest tokens to the end and the length of the first of them. [len(data) + 1] both."""
        costs, lengths = ([0], [0]) if tail is None else (tail[0]._costs[tail[1] :], tail[0]._lengths[tail[1] :])
        num_new = len(data) + 1 - len(costs)
        costs, lengths = [UNREACHABLE] * num_new + costs, [0] * num_new + lengths
        ids = self.ids
        for at in range(num_new - 1, -1, -1):
            best = UNREACHABLE
            for end in range(at + 1, min(at + self._max_length, len(data)) + 1):
                if costs[end] < best and data[at:end] in ids:
                    best, lengths[at] = costs[end], end - at
            costs[at] = min(best + 1, UNREACHABLE)
        return costs, lengths


class CompletionSearch:
    """Finds ways to a complete text. Immutable; safe to use from several threads.

    Works with any `GrammarMatcher`. One that offers `completes(token_ids)` (accepts them and is complete then) is asked that, others are
    forked; one that offers `forced_bytes()` is asked for the bytes that must come next.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.table = _TokenTable(vocabulary)
        ids = self.table.ids
        singles = [ids[bytes([byte])] for byte in range(256) if bytes([byte]) in ids]
        self._stages = (
            [ids[text] for text in _CLOSERS if text in ids],
            [ids[text] for text in (*_LIKELY, *_PUNCTUATION) if text in ids],
            singles,
        )
        self._single_words = np.array([i >> 5 for i in singles], dtype=np.int64)
        self._single_bits = np.array([1 << (i & 31) for i in singles], dtype=np.uint32).view(np.int32)
        lengths = np.zeros(vocabulary.vocab_size, dtype=np.int32)
        for text, token_id in ids.items():
            lengths[token_id] = len(text)
        self._lengths: NDArray[np.int32] = lengths

    def completes(self, matcher: GrammarMatcher, token_ids: list[int]) -> bool:
        """Whether the text is complete after `token_ids`. Does not change the matcher."""
        check: Any = getattr(matcher, "completes", None)
        if check is not None:
            return bool(check(token_ids))
        copy = matcher.fork()
        return all(map(copy.accept_token, token_ids)) and copy.is_accepting

    def find(
        self,
        matcher: GrammarMatcher,
        limit: int,
        tail: tuple[ClosingPath, int] | None = None,
        num_states: int = DEFAULT_STATES,
    ) -> ClosingPath | None:
        """A way to a complete text of at most `limit` tokens, not necessarily the shortest. Does not change the matcher.

        Args:
            tail: an earlier way and the offset up to which it was followed; the search ends where it, or a suffix of it, fits again.
            num_states: how many states of the matcher may be looked at.
        Returns:
            None where no such way was found.
        """
        for bound, share in ((_FIRST_BOUND, num_states // 3), (limit, num_states)):
            if bound > limit or (bound == limit and share < num_states):
                continue
            path, used, is_exhausted = self._descend(matcher, bound, tail, min(share, num_states))
            if path is not None or is_exhausted:
                return path
            num_states -= used
        return None

    def is_hopeless(self, matcher: GrammarMatcher) -> bool:
        """Whether everything that can follow was seen (little can, then) and nothing of it is complete: the constraint allows no text."""
        _, _, is_exhausted = self._descend(matcher, 64, None, 300)
        return is_exhausted

    def _descend(
        self, matcher: GrammarMatcher, limit: int, tail: tuple[ClosingPath, int] | None, num_states: int
    ) -> tuple[ClosingPath | None, int, bool]:
        """One bounded search: the way, states looked at, and whether everything was seen without a bound being in the way."""
        # Tokens of the search are an upper bound of the cost, which the table makes tight afterwards; so look a little further than asked.
        max_tokens = 2 * limit + 8
        try:
            start = self._reach(matcher.fork(), b"", 0, limit, tail)
        except GrammarError:
            return None, 1, False
        if start is None or start.path is not None:
            return (None, 1, True) if start is None else (start.path, 1, False)
        queue = [_Branch(0, 0, 0, start, 0, frozenset((start.signature,)), 0)]
        num_pushed, used, is_exhausted = 0, 1, True
        while queue:
            branch = heapq.heappop(queue)
            place = branch.place
            if place.num_tokens >= max_tokens:
                is_exhausted = False
                continue
            candidates = self._candidates(place, branch.stage)
            found: dict[bytes, tuple[int, _Place]] = {}
            for token_id in candidates:
                if used >= num_states:
                    return None, used, False
                used += 1
                state, text = place.state.fork(), self.vocabulary.token_bytes[token_id]
                try:
                    reached = (
                        self._reach(state, place.data + text, place.num_tokens + 1, limit, tail)
                        if state.accept_token(token_id)
                        else None
                    )
                except GrammarError:  # this way is too much for the matcher
                    is_exhausted = False
                    continue
                if reached is None:
                    continue
                if reached.path is not None:
                    return reached.path, used, False
                score = _score(text) + 2 * (reached.signature in branch.seen)
                known = found.get(reached.signature)
                if known is None or (known[0], -len(known[1].data)) > (score, -len(reached.data)):
                    found[reached.signature] = (score, reached)
                elif len(reached.data) > len(known[1].data):  # the same kind of place, but further on
                    found[reached.signature + b"+"] = (score, reached)
            ranked = sorted(found.values(), key=lambda entry: entry[0])
            for rank, (_, reached) in enumerate(ranked):
                num_pushed += 1
                is_loop = reached.signature in branch.seen
                penalty = branch.penalty + rank + (is_loop and branch.num_loops < _MAX_LOOP_PENALTY)
                heapq.heappush(
                    queue,
                    _Branch(
                        penalty,
                        -reached.num_tokens,
                        num_pushed,
                        reached,
                        0,
                        branch.seen | {reached.signature},
                        branch.num_loops + is_loop,
                    ),
                )
            if branch.stage < _LAST_STAGE:
                num_pushed += 1
                later = replace(branch, penalty=branch.penalty + len(ranked), serial=num_pushed, stage=branch.stage + 1)
                heapq.heappush(queue, later)
        return None, used, is_exhausted

    def _reach(
        self, state: GrammarMatcher, data: bytes, num_tokens: int, limit: int, tail: tuple[ClosingPath, int] | None
    ) -> _Place | None:
        """Follow what is forced and look around; None where nothing can follow. `state` is given away."""
        path = self._finish(state, data, limit, tail)
        forced = [] if path is not None else self._forced(state)
        text = b""
        if forced:
            if not all(map(state.accept_token, forced)):
                return None
            text = self.vocabulary.text_of(forced)
            data, num_tokens = data + text, num_tokens + len(forced)
            path = self._finish(state, data, limit, tail)
        if path is not None:
            return _Place(state, data, num_tokens, np.empty(0, dtype=np.int32), b"", path)
        row = np.empty(self.vocabulary.num_mask_words, dtype=np.int32)
        state.fill_bitmask(row)
        allowed = (row[self._single_words] & self._single_bits) != 0
        if not allowed.any() and not row.any():
            return None
        return _Place(state, data, num_tokens, row, allowed.tobytes() + text, None)

    def _candidates(self, place: _Place, stage: int) -> list[int]:
        """Allowed tokens worth trying: first what closes; then what goes on; then all that is left in single bytes."""
        row = place.row
        if stage == 1:
            probed = self._stages[1] + self._longest(row)
        else:
            probed = self._stages[stage]
        return [i for i in dict.fromkeys(probed) if int(row[i >> 5]) >> (i & 31) & 1]

    def _longest(self, row: NDArray[np.int32]) -> list[int]:
        """The longest allowed tokens: inside a long obligatory text they are the shortest way."""
        allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")[: self._lengths.size])
        lengths = self._lengths[allowed]
        if allowed.size > _NUM_LONGEST:
            top = np.argpartition(lengths, -_NUM_LONGEST)[-_NUM_LONGEST:]
            allowed, lengths = allowed[top], lengths[top]
        return [int(i) for i in allowed[np.argsort(-lengths, kind="stable")]]

    def _finish(
        self, state: GrammarMatcher, data: bytes, limit: int, tail: tuple[ClosingPath, int] | None
    ) -> ClosingPath | None:
        if state.is_accepting:
            path = ClosingPath(data, self.table)
            return path if path.cost() <= limit else None
        if tail is not None:
            earlier, start = tail
            for skip in _TAIL_OFFSETS:
                offset = start + skip
                if offset >= len(earlier.data) or earlier.cost(offset) > limit:
                    continue
                if self.completes(state, earlier.token_ids(offset)):
                    path = ClosingPath(data + earlier.data[offset:], self.table, (earlier, offset))
                    return path if path.cost() <= limit else None
        return None

    def _forced(self, state: GrammarMatcher) -> list[int]:
        """What must come next. `forced_tokens` holds back what the model might spell otherwise, which does not matter here."""
        forced_bytes: Any = getattr(state, "forced_bytes", None)
        if forced_bytes is None:
            return state.forced_tokens()
        path = ClosingPath(forced_bytes(), self.table)
        return path.token_ids() if 0 < path.cost() < UNREACHABLE else []


@dataclass(frozen=True, slots=True)
class _Place:
    """A state that the search has reached, with its mask. Places of one signature look alike: the same single bytes may follow."""

    state: GrammarMatcher
    data: bytes
    num_tokens: int
    row: NDArray[np.int32]
    signature: bytes
    path: ClosingPath | None


@dataclass(frozen=True, slots=True, order=True)
class _Branch:
    """A place whose candidates of one stage are to be tried; `seen` holds the signatures on the way to it."""

    penalty: int  # how far down the lists of candidates the way went
    neg_num_tokens: int
    serial: int
    place: _Place = field(compare=False)
    stage: int = field(compare=False)
    seen: frozenset[bytes] = field(compare=False)
    num_loops: int = field(compare=False)


def _score(text: bytes) -> int:
    """How little a token promises to end things: 0 closes, 1 is plain, 4 begins an escape or part of a character."""
    if text in _CLOSERS:
        return 0
    return 1 if _PLAIN.fullmatch(text) else 4


class BudgetKeeper:
    """Holds a way to the end of one generation that fits in its remaining tokens. Owned by one generation.

    Promise: if a way within the first budget was known at the start, then after every `advance` there is a way within what remains, so a
    text that uses up its budget is complete.
    """

    __slots__ = ("_offset", "_path", "_search", "num_searches", "num_steered")

    def __init__(self, search: CompletionSearch, path: ClosingPath) -> None:
        self._search, self._path, self._offset = search, path, 0
        self.num_searches = self.num_steered = 0

    @property
    def num_tokens_needed(self) -> int:
        """Tokens of the way that is held."""
        return self._path.cost(self._offset)

    def fork(self) -> BudgetKeeper:
        """A keeper for a fork of the matcher."""
        copy = BudgetKeeper(self._search, self._path)
        copy._offset = self._offset
        return copy

    def advance(self, matcher: GrammarMatcher, token_id: int, remaining: int) -> int | None:
        """Take one token in, or a better one where it would leave no time to end.

        Args:
            matcher: in the state before the token; advanced by the returned one.
            token_id: an allowed token, not an end token.
            remaining: tokens that may still be generated, this one included; at least 1.
        Returns:
            `token_id`, or the first token of the way that is held. None where the text was complete and the token would have begun
            something that cannot be ended in time: the text ends here, and the matcher stays as it was.
        Raises:
            GrammarError: `token_id` is not allowed.
        """
        if not matcher.accept_token(token_id):
            raise GrammarError(f"token {token_id} is not allowed by the constraint")
        if self._fits_after(matcher, token_id, remaining - 1):
            return token_id
        path, offset = self._path, self._offset
        matcher.rollback(1)
        self.num_steered += 1
        if offset == len(path.data):
            return None
        steered = path.token_ids(offset)[0]
        if not matcher.accept_token(steered):
            raise GrammarError("the way to the end was lost")
        self._offset = offset + len(self._search.vocabulary.token_bytes[steered])
        return steered

    def _fits_after(self, matcher: GrammarMatcher, token_id: int, left: int) -> bool:
        """After `token_id`, hold a way of at most `left` tokens; False, and unchanged, where none is found."""
        path, offset = self._path, self._offset
        text = self._search.vocabulary.token_bytes[token_id]
        if path.data.startswith(text, offset):
            if path.cost(offset + len(text)) <= left:
                self._offset = offset + len(text)
                return True
            return matcher.is_accepting and self._hold_nothing()
        if offset < len(path.data):
            common = _common_length(path.data, offset, text)
            # The token came before what is held, or took the place of its beginning: in part, or byte for byte as in a fixed form.
            for at in dict.fromkeys((offset, offset + common, min(offset + len(text), len(path.data)))):
                if self._search.completes(matcher, path.token_ids(at)):
                    if path.cost(at) > left:
                        # The token only made the text longer, as inside a string: what is held is still how it ends.
                        return matcher.is_accepting and self._hold_nothing()
                    self._offset = at
                    return True
        if matcher.is_accepting:
            return self._hold_nothing()
        self.num_searches += 1
        found = self._search.find(matcher, left, (path, offset), min(_STEP_STATES, 16 + 8 * left)) if left else None
        if found is None:
            return False
        self._path, self._offset = found, 0
        return True

    def _hold_nothing(self) -> bool:
        """The text is complete as it is."""
        self._path, self._offset = ClosingPath(b"", self._search.table), 0
        return True


def _common_length(data: bytes, offset: int, text: bytes) -> int:
    length = 0
    while length < len(text) and offset + length < len(data) and data[offset + length] == text[length]:
        length += 1
    return length
