"""Shared behaviour of the adapters' matchers: end tokens, special tokens, and queries that do not change the matcher."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.completion.search import CompletionSearch
from rtlang_grammars.spec.vocabulary import Vocabulary


class PeerState(Protocol):
    """The state of another library's matcher. It knows no end tokens."""

    @property
    def is_complete(self) -> bool:
        """The text so far is complete."""

    def step(self, token_id: int) -> bool:
        """Advance by a token of text. Returns False, and changes nothing, where it is not allowed."""

    def back(self, num_tokens: int) -> None:
        """Undo the last `num_tokens` tokens; at least that many must have been accepted."""

    def fill(self, row: NDArray[np.int32]) -> None:
        """Write the allowed tokens of text; bits of other ids are arbitrary."""

    def copy(self) -> PeerState:
        """An independent state equal to this one."""


class Binding:
    """Data shared by all matchers of a backend.

    Attributes:
        text_mask: the tokens that are text, uint32 [num_mask_words].
    """

    def __init__(self, vocabulary: Vocabulary, search: CompletionSearch | None = None) -> None:
        self.vocabulary, self.search = vocabulary, search or CompletionSearch(vocabulary)
        bits = np.zeros(32 * vocabulary.num_mask_words, dtype=np.uint8)
        silent = vocabulary.silent_ids
        bits[[i for i, text in enumerate(vocabulary.token_bytes) if text and i not in silent]] = 1
        self.text_mask: NDArray[np.uint32] = np.packbits(bits, bitorder="little").view(np.uint32)


class PeerMatcher:
    """See `GrammarMatcher`."""

    def __init__(self, state: PeerState, binding: Binding, *, num_steps: int = 0, has_ended: bool = False) -> None:
        self._state, self._binding, self._vocabulary = state, binding, binding.vocabulary
        self._num_steps, self._has_ended = num_steps, has_ended

    @property
    def is_accepting(self) -> bool:
        """The text so far is complete."""
        return not self._has_ended and self._state.is_complete

    @property
    def is_terminated(self) -> bool:
        """Complete, and nothing but an end token can follow."""
        if self._has_ended or not self._state.is_complete:
            return self._has_ended
        return not self._allowed_ids(with_ends=False)

    def accept_token(self, token_id: int) -> bool:
        """Advance by one token. Returns False, and changes nothing, where the token is not allowed."""
        if self._has_ended:
            return False
        if token_id in self._vocabulary.eos_token_ids:
            self._has_ended = self.is_accepting
            return self._has_ended
        if not self._is_text(token_id) or not self._state.step(token_id):
            return False
        self._num_steps += 1
        return True

    def rollback(self, num_tokens: int) -> None:
        """Take back the last `num_tokens` accepted tokens (an end token counts as one).

        Raises:
            ValueError: fewer were accepted.
        """
        if not 0 <= num_tokens <= self._num_steps + self._has_ended:
            raise ValueError(
                f"num_tokens = {num_tokens}: only {self._num_steps + self._has_ended} tokens were accepted"
            )
        if num_tokens and self._has_ended:
            self._has_ended = False
            num_tokens -= 1
        if num_tokens:
            self._state.back(num_tokens)
            self._num_steps -= num_tokens

    def fill_bitmask(self, row: NDArray[np.int32]) -> None:
        """Write the allowed tokens into `row`, [ceil(vocab_size / 32)] int32, contiguous.

        Raises:
            ValueError: `row` has another shape, type or layout.
        """
        num_words = self._vocabulary.num_mask_words
        if row.shape != (num_words,) or row.dtype != np.int32 or not row.flags.c_contiguous:
            raise ValueError(f"row must be contiguous int32 of shape ({num_words},)")
        row.fill(0)
        if self._has_ended:
            return
        self._state.fill(row)
        words = row.view(np.uint32)
        words &= self._binding.text_mask
        if self._state.is_complete:
            for token_id in self._vocabulary.eos_token_ids:
                words[token_id >> 5] |= np.uint32(1 << (token_id & 31))

    def forced_tokens(self) -> list[int]:
        """The forced token, if there is one; empty where there is a choice."""
        ids = self._allowed_ids(with_ends=True)
        return ids if len(ids) == 1 and ids[0] not in self._vocabulary.eos_token_ids else []

    def fork(self) -> PeerMatcher:
        """An independent matcher in the same state."""
        return PeerMatcher(self._state.copy(), self._binding, num_steps=self._num_steps, has_ended=self._has_ended)

    def shortest_completion(self, limit: int) -> list[int] | None:
        """See `GrammarMatcher.shortest_completion`."""
        if self._has_ended:
            return []
        path = self._binding.search.find(self, limit)
        return None if path is None else path.token_ids()

    def accepts(self, token_ids: list[int]) -> bool:
        """Whether `token_ids` may follow in this order; an end token only as the last, where the text is complete."""
        if token_ids and token_ids[-1] in self._vocabulary.eos_token_ids:
            return self.completes(token_ids[:-1])
        return not token_ids or (not self._has_ended and self._ask(token_ids)[0])

    def completes(self, token_ids: Sequence[int]) -> bool:
        """Whether the text is complete after `token_ids`. Does not change the matcher."""
        return not self._has_ended and self._ask(token_ids)[1]

    def _ask(self, token_ids: Sequence[int]) -> tuple[bool, bool]:
        """Whether tokens may follow, and whether the text is complete then."""
        count = 0
        for token_id in token_ids:
            if not self._is_text(token_id) or not self._state.step(token_id):
                break
            count += 1
        fits = count == len(token_ids)
        is_complete = fits and self._state.is_complete
        if count:
            self._state.back(count)
        return fits, is_complete

    def _is_text(self, token_id: int) -> bool:
        if not 0 <= token_id < self._vocabulary.vocab_size:
            return False
        return bool(self._binding.text_mask[token_id >> 5] >> (token_id & 31) & 1)

    def _allowed_ids(self, *, with_ends: bool) -> list[int]:
        row = np.zeros(self._vocabulary.num_mask_words, dtype=np.int32)
        self.fill_bitmask(row)
        ids: list[int] = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()
        ends = self._vocabulary.eos_token_ids
        return ids if with_ends else [token_id for token_id in ids if token_id not in ends]
