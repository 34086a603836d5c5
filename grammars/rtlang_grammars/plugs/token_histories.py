"""Masks for a batch whose rows are known by their tokens alone.

Libraries that generate call a logits processor with the tokens of every row. Beam search exchanges and copies rows between steps, and
speculative decoding takes tokens back, so a row is found by its history and not by its place: each call looks up the state after all
tokens but the last and advances it by the last one. Rows with the same history share a state. A call whose rows continue no known history
begins a new generation, and its tokens are the prompt.

With a token budget, a row's mask has only tokens after which a completion within the remaining tokens is known (`TokenBudget`). They are
tried in the order of their scores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.completion.search import CompletionSearch
from rtlang_grammars.completion.token_budget import TokenBudget
from rtlang_grammars.machine.batch import fill_batch
from rtlang_grammars.schema.reading.report import Report
from rtlang_grammars.spec.errors import EmptyMaskError, GrammarError
from rtlang_grammars.spec.protocols import CompiledGrammar, GrammarMatcher
from rtlang_grammars.spec.vocabulary import Vocabulary

_MAX_REWIND = 64
"""Lengths whose states are kept: drafts may be taken back this far."""
_MAX_TAIL = 80
_MAX_CANDIDATES = 64
_LEFT_OVER = 1e-3
"""Tokens are tried against the budget until the untried ones hold less than this probability, or so many were tried."""

Scores: TypeAlias = Callable[[int], NDArray[np.float32]]
"""The scores of a row, [vocab_size or wider] float32, asked for only where a budget needs them."""


@dataclass(slots=True)
class _State:
    """A row after its history. `matcher` is None once the row has ended, or holds a token that its mask excluded."""

    matcher: GrammarMatcher | None
    num_generated: int
    tail: bytes = b""  # the last bytes of the text, for errors
    budget: TokenBudget | None = None
    budgets_after: dict[int, TokenBudget] = field(default_factory=dict)  # of the tokens in the last mask


class TokenHistories:
    """Masks for the rows of a batch. Owned by one generation at a time; not thread-safe."""

    def __init__(
        self, grammars: Sequence[CompiledGrammar], vocabulary: Vocabulary, max_new_tokens: int | None = None
    ) -> None:
        """Constrain rows to grammars.

        Args:
            grammars: one for all rows, or one for each prompt; then the rows of a prompt stand together, equally many for each.
            max_new_tokens: tokens that each row may generate, an end token included; every row is complete by then. None: no budget.
        Raises:
            GrammarError: no completion of at most `max_new_tokens` tokens was found.
            ValueError: there is no grammar, or `max_new_tokens` is not positive.
        """
        if not grammars:
            raise ValueError("grammars = []: expected at least one")
        if max_new_tokens is not None and max_new_tokens < 1:
            raise ValueError(f"max_new_tokens = {max_new_tokens}: expected a positive integer or None")
        self._grammars, self._vocabulary, self._max_new_tokens = list(grammars), vocabulary, max_new_tokens
        self._budgets = [_first_budget(grammar, vocabulary, max_new_tokens) for grammar in grammars]
        self._states: dict[int, dict[tuple[int, bytes], _State]] = {}  # by length, then by group and history
        ends = np.zeros(vocabulary.num_mask_words * 32, dtype=np.bool_)
        ends[list(vocabulary.eos_token_ids)] = True
        self._only_ends = np.packbits(ends, bitorder="little").view(np.int32)

    @property
    def reports(self) -> list[Report | None]:
        """The report of each grammar: the status of every keyword of a schema; None for grammars without schemas."""
        return [getattr(grammar, "report", None) for grammar in self._grammars]

    def reset(self) -> None:
        """Forget all histories: the next call begins a generation, even if its prompt continues a known text."""
        self._states.clear()

    def allowed(self, token_ids: NDArray[np.int64], scores: Scores) -> NDArray[np.bool_]:
        """The tokens that each row may take next.

        Args:
            token_ids: [num_rows, length], prompt and generated tokens of every row, padded on the left.
        Returns:
            [num_rows, vocab_size]. A row that has ended may only take end tokens.
        Raises:
            ValueError: the rows cannot be divided among the grammars.
            EmptyMaskError: no token may follow in a row, and its text is not complete.
        """
        num_rows, length = token_ids.shape
        if num_rows % len(self._grammars):
            raise ValueError(
                f"{num_rows} rows: expected a multiple of {len(self._grammars)}, one group for each grammar"
            )
        keys = [self._key(row, num_rows, token_ids[row]) for row in range(num_rows)]
        states = self._following(token_ids, length, keys)
        masks = self._masks(list(states.values()))
        first_rows = {key: row for row, key in reversed([*enumerate(keys)])}
        for mask, (key, state) in zip(masks, states.items(), strict=True):
            if state.budget is not None:
                self._keep_fitting(state, mask, scores(first_rows[key]))
        places = {key: place for place, key in enumerate(states)}
        bits = np.unpackbits(masks.view(np.uint8), axis=1, bitorder="little")
        return bits[[places[key] for key in keys], : self._vocabulary.vocab_size].view(np.bool_)

    def _masks(self, states: list[_State]) -> NDArray[np.int32]:
        """What the grammars allow after each state, [num_states, num_mask_words]; end tokens where nothing else follows."""
        masks = np.empty((len(states), self._vocabulary.num_mask_words), dtype=np.int32)
        matchers = [state.matcher for state in states if state.matcher is not None]
        texts = [state.tail for state in states if state.matcher is not None]
        going = np.array([state.matcher is not None for state in states], dtype=np.bool_)
        some = masks[: len(matchers)]
        try:
            fill_batch(matchers, some)
        except EmptyMaskError:
            for matcher, text in zip(matchers, texts, strict=True):
                _check_way_on(matcher, text, some[0])
            raise
        some[~some.any(axis=1)] = self._only_ends  # after an end token
        masks[going] = some.copy()
        masks[~going] = self._only_ends
        return masks

    def _key(self, row: int, num_rows: int, history: NDArray[np.int64]) -> tuple[int, bytes]:
        return row * len(self._grammars) // num_rows, blake2b(history.tobytes(), digest_size=16).digest()

    def _following(
        self, token_ids: NDArray[np.int64], length: int, keys: list[tuple[int, bytes]]
    ) -> dict[tuple[int, bytes], _State]:
        """The states of the rows, from those one token earlier; or from the start, if these are not known."""
        num_rows = len(keys)
        earlier = self._states.get(length - 1, {})
        parents = [earlier.get(self._key(row, num_rows, token_ids[row, :-1])) for row in range(num_rows)]
        states: dict[tuple[int, bytes], _State] = {}
        for row, (key, parent) in enumerate(zip(keys, parents, strict=True)):
            if key not in states:
                token_id = int(token_ids[row, -1])
                states[key] = (
                    self._start(key[0]) if None in parents else _after(parent, token_id, self._bytes(token_id))
                )
        if None in parents:
            self._states = {}
        self._states[length] = states
        for known in [known for known in self._states if abs(known - length) > _MAX_REWIND]:
            del self._states[known]
        return states

    def _bytes(self, token_id: int) -> bytes:
        known = self._vocabulary.token_bytes
        return known[token_id] if 0 <= token_id < len(known) else b""

    def _start(self, group: int) -> _State:
        return _State(self._grammars[group].matcher(), 0, budget=self._budgets[group])

    def _keep_fitting(self, state: _State, mask: NDArray[np.int32], scores: NDArray[np.float32]) -> None:
        """Take away tokens after which the text could not be completed in time, and those that were not tried."""
        assert state.matcher is not None
        assert state.budget is not None
        assert self._max_new_tokens is not None
        remaining = self._max_new_tokens - state.num_generated
        allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
        mask &= self._only_ends if state.matcher.is_accepting else 0
        is_end = np.isin(allowed, list(self._vocabulary.eos_token_ids)) & state.matcher.is_accepting
        allowed = allowed[~is_end & (allowed < len(scores))]
        for token_id in _by_score(allowed, scores[allowed]) if remaining > 0 else ():
            budget = state.budget.after(state.matcher, token_id, remaining)
            if budget is not None:
                state.budgets_after[token_id] = budget
        path_token = state.budget.next_token()
        if not state.budgets_after and not state.matcher.is_accepting and path_token is not None:
            budget = state.budget.after(state.matcher, path_token, remaining)  # fits, as it did for the token before
            if budget is not None:
                state.budgets_after[path_token] = budget
        for token_id in state.budgets_after:
            mask.view(np.uint32)[token_id >> 5] |= np.uint32(1 << (token_id & 31))


def _first_budget(grammar: CompiledGrammar, vocabulary: Vocabulary, max_new_tokens: int | None) -> TokenBudget | None:
    if max_new_tokens is None:
        return None
    search = CompletionSearch(vocabulary)
    path = search.find(grammar.matcher(), max_new_tokens)
    if path is None:
        raise GrammarError(f"max_new_tokens = {max_new_tokens}: no completion of at most as many tokens was found")
    return TokenBudget(search, path)


def _after(state: _State | None, token_id: int, data: bytes) -> _State:
    """The state after one more token; without a matcher after an end token, and after a token that the mask excluded.

    Beam search goes on with excluded tokens where fewer are allowed than it has beams.
    """
    assert state is not None
    matcher = state.matcher
    if matcher is not None:
        matcher = matcher.fork()
        matcher = matcher if matcher.accept_token(token_id) else None
    budget = None if matcher is None else state.budgets_after.get(token_id)
    has_left = matcher is None or (state.budget is not None and budget is None)
    return _State(None if has_left else matcher, state.num_generated + 1, (state.tail + data)[-_MAX_TAIL:], budget)


def _by_score(token_ids: NDArray[np.int64], scores: NDArray[np.float32]) -> list[int]:
    """The tokens by falling score, at most _MAX_CANDIDATES, without those that hold the last _LEFT_OVER of the probability."""
    if len(token_ids) == 0:
        return []
    weights = np.exp(scores - scores.max(), dtype=np.float64)
    order = np.argsort(-weights, kind="stable")[:_MAX_CANDIDATES]
    before = np.cumsum(weights[order]) - weights[order]
    return [int(i) for i in token_ids[order[before < (1 - _LEFT_OVER) * weights.sum()]]]


def _check_way_on(matcher: GrammarMatcher, text: bytes, row: NDArray[np.int32]) -> None:
    """Fill a row.

    Raises:
        EmptyMaskError: no token may follow; it has the text.
    """
    try:
        matcher.fill_bitmask(row)
    except EmptyMaskError as error:
        raise error.after(text) from None
