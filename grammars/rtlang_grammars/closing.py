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
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.spec import GrammarError, GrammarMatcher
from rtlang_grammars.vocabulary import Vocabulary

UNREACHABLE = 1 << 30
"""The cost of bytes that no tokens spell."""

DEFAULT_STATES = 1500
"""States that a search off the step may look at; about 0.1 ms each."""

_STEP_STATES = 160  # of a search within a step: at most some 20 ms, and rarely more than one of these in a generation
_MAX_TOKEN_BYTES = 24  # longer tokens are rare and save little; they would make the table of costs slower
_CLOSERS = (b'"', b"}", b"]", b")", b"'", b">", b";", b'"}', b'"]', b"}}", b"\n")
_VALUES = (b"0", b'""', b"[]", b"{}", b"null", b"1", b"true", b'"', b"a", b"x", b"{", b"[", b": ", b'": ', b", ")
_DIGITS = tuple(str(digit).encode() for digit in range(1, 10))
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
        self._probed = list(dict.fromkeys(ids[text] for text in (*_CLOSERS, *_VALUES, *_DIGITS) if text in ids))
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
        left = num_states
        bound = 12
        while left > 0:
            bound = min(bound, limit)
            allowance = left if bound == limit else min(left, 4 * bound + 32)
            path, used, is_exhausted = self._descend(matcher, bound, tail, allowance)
            left -= used
            if path is not None or bound == limit or is_exhausted:
                return path
            bound *= 4
        return None

    def is_hopeless(self, matcher: GrammarMatcher, num_states: int = 200) -> bool:
        """Whether a search through everything that can follow found no complete text: the constraint allows none."""
        _, _, is_exhausted = self._descend(matcher, num_states, None, num_states, width=1 << 20)
        return is_exhausted

    def _descend(
        self,
        matcher: GrammarMatcher,
        limit: int,
        tail: tuple[ClosingPath, int] | None,
        num_states: int,
        width: int = 24,
    ) -> tuple[ClosingPath | None, int, bool]:
        """One bounded search: the way, states used, and whether everything was seen without the limit being in the way."""
        # Search tokens are an upper bound of the cost, which the table makes tight afterwards; so look a little further than asked.
        max_tokens = 2 * limit + 8
        token_bytes = self.vocabulary.token_bytes
        queue: list[_Branch] = [_Branch(0, 0, 0, matcher, b"", 0, None, is_deep=False)]
        num_pushed = used = 0
        is_exhausted = True
        while queue:
            if used >= num_states:
                return None, used, False
            used += 1
            branch = heapq.heappop(queue)
            state, data, num_tokens = branch.state, branch.data, branch.num_tokens
            if not branch.is_deep:
                state = state.fork()
                if branch.token_id is not None:
                    if not state.accept_token(branch.token_id):
                        continue
                    data, num_tokens = data + token_bytes[branch.token_id], num_tokens + 1
                path = self._finish(state, data, limit, tail)
                if path is None:
                    forced = self._forced(state)
                    if forced and all(map(state.accept_token, forced)):
                        data, num_tokens = data + self.vocabulary.text_of(forced), num_tokens + len(forced)
                        path = self._finish(state, data, limit, tail)
                if path is not None:
                    return path, used, False
            if num_tokens >= max_tokens or state.is_accepting:  # an accepting state got here because its way is too long
                is_exhausted = False
            if num_tokens >= max_tokens:
                continue
            is_filling = len(data) >= 3 and data[-1] == data[-2] == data[-3]
            rank = 0
            if branch.is_deep or is_filling:
                candidates, is_whole = self._any_allowed(state, width)
                is_exhausted = is_exhausted and is_whole
            else:
                candidates, is_whole = [i for i in self._probed if state.accepts([i])], False
            for token_id in candidates:
                num_pushed += 1
                heapq.heappush(
                    queue,
                    _Branch(
                        branch.penalty + rank, -num_tokens, num_pushed, state, data, num_tokens, token_id, is_deep=False
                    ),
                )
                rank += 1
            if not branch.is_deep and not is_filling:
                num_pushed += 1
                heapq.heappush(
                    queue,
                    _Branch(
                        branch.penalty + rank, -num_tokens, num_pushed, state, data, num_tokens, None, is_deep=True
                    ),
                )
        return None, used, is_exhausted

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

    def _any_allowed(self, state: GrammarMatcher, width: int) -> tuple[list[int], bool]:
        """Allowed tokens, the longest first, and whether these are all: inside a long obligatory text the longest are the shortest way."""
        row = np.empty(self.vocabulary.num_mask_words, dtype=np.int32)
        state.fill_bitmask(row)
        bits = np.unpackbits(row.view(np.uint8), bitorder="little")[: self._lengths.size]
        allowed = np.flatnonzero(bits)
        lengths = self._lengths[allowed]
        allowed, lengths = allowed[lengths > 0], lengths[lengths > 0]
        if allowed.size <= width:
            return [int(i) for i in allowed[np.argsort(-lengths, kind="stable")]], True
        longest = np.argpartition(lengths, -width)[-width:]
        longest = longest[np.argsort(-lengths[longest], kind="stable")]
        singles = allowed[lengths == 1][:width]
        return [int(i) for i in dict.fromkeys([*longest[: width // 2], *singles, *longest[width // 2 :]])], False


@dataclass(frozen=True, slots=True, order=True)
class _Branch:
    """A state of the search and the token to try from it; with `is_deep` instead: all tokens are to be looked at."""

    penalty: int  # how far down the lists of candidates the way went
    neg_num_tokens: int
    serial: int
    state: GrammarMatcher = field(compare=False)
    data: bytes = field(compare=False)
    num_tokens: int = field(compare=False)
    token_id: int | None = field(compare=False)
    is_deep: bool = field(compare=False)


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

    def advance(self, matcher: GrammarMatcher, token_id: int, remaining: int) -> int:
        """Take one token in, or a better one where it would leave no time to end.

        Args:
            matcher: in the state before the token; advanced by the returned one.
            token_id: an allowed token, not an end token.
            remaining: tokens that may still be generated, this one included; at least 1.
        Returns:
            `token_id`, or the first token of the way that is held.
        Raises:
            GrammarError: `token_id` is not allowed.
        """
        if not matcher.accept_token(token_id):
            raise GrammarError(f"token {token_id} is not allowed by the constraint")
        if self._fits_after(matcher, token_id, remaining - 1):
            return token_id
        path, offset = self._path, self._offset
        if offset == len(path.data):  # complete already, and nothing that follows can be ended in time
            return token_id
        steered = path.token_ids(offset)[0]
        matcher.rollback(1)
        if not matcher.accept_token(steered):
            raise GrammarError("the way to the end was lost")
        self._offset = offset + len(self._search.vocabulary.token_bytes[steered])
        self.num_steered += 1
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
            for at in (offset, offset + common) if common else (offset,):
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
