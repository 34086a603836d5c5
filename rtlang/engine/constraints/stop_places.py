"""Where stops may end a constrained text: at the places at which it is complete.

A stop that begins inside an unfinished value is a part of the value, as a comma in a JSON string is. So the session of a constraint notes
the places at which its text is complete, within tokens as well as between them, and the search for stops asks for them. A stop token ends
the text at such a place as the model's end tokens do; elsewhere it is text, if the constraint allows it.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from rtlang.contract.params import SamplingParams
from rtlang_grammars import GrammarMatcher


class StopPlaces:
    """The places at which one constrained text is complete. Owned by its session.

    Args:
        params: with stops, of which there is at least one.
        names: special tokens, which no stop divides.
        num_skipped: characters with which the session's text begins and which are not part of the output text.
    Attributes:
        token_ids: the tokens that end the text where it is complete.
    """

    __slots__ = (
        "_first_bytes",
        "_min_tokens",
        "_names",
        "_num_chars",
        "_num_skipped",
        "_num_tokens",
        "_places",
        "token_ids",
    )

    def __init__(self, params: SamplingParams, names: Collection[int] = (), num_skipped: int = 0) -> None:
        self.token_ids = frozenset(params.stop_token_ids)
        self._min_tokens, self._names, self._num_skipped = params.min_tokens, names, num_skipped
        # Patterns may begin with any byte, or match none.
        self._first_bytes = None if params.stop_regex else frozenset(stop.encode()[0] for stop in params.stop)
        self._places: set[int] = set()
        self._num_chars = self._num_tokens = 0

    @property
    def allows_tokens(self) -> bool:
        """Whether the text is long enough for a stop token, if it is complete."""
        return bool(self.token_ids) and self._num_tokens >= self._min_tokens

    def may_begin(self, offset: int) -> bool:
        """Whether a stop may begin at this character of the output text."""
        return offset + self._num_skipped in self._places

    def begin(self, matcher: GrammarMatcher) -> None:
        """Note whether the empty text is complete. Call once, before the first token."""
        if matcher.is_accepting:
            self._places.add(0)

    def note(self, matcher: GrammarMatcher, token_id: int, text: bytes) -> None:
        """Take in a token that the matcher has accepted, and its text."""
        self._num_tokens += 1
        num_before, first_bytes = self._num_chars, self._first_bytes
        divides: list[tuple[int, int]] = []  # characters and bytes of the token's text before each place within it
        for index, byte in enumerate(text):
            if byte & 0xC0 == 0x80:
                continue
            if index and token_id not in self._names and (first_bytes is None or byte in first_bytes):
                divides.append((self._num_chars - num_before, index))
            self._num_chars += 1
        if divides:
            before = matcher.fork()
            before.rollback(1)
            for num_chars, num_bytes in divides:
                if before.completes_bytes(text[:num_bytes]):
                    self._places.add(num_before + num_chars)
        if matcher.is_accepting:
            self._places.add(self._num_chars)

    def may_end(self, matcher: GrammarMatcher, token_id: int) -> bool:
        """Whether a token would end the text as a stop. `matcher` is in the state before it."""
        return token_id in self.token_ids and self.allows_tokens and matcher.is_accepting

    def allow_tokens(self, row: NDArray[np.int32]) -> None:
        """Allow the stop tokens in a row of the bitmask, [ceil(vocab_size / 32)] int32."""
        words = row.view(np.uint32)
        for token_id in self.token_ids:
            words[token_id >> 5] |= np.uint32(1 << (token_id & 31))
