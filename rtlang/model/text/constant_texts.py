"""Tokens of constant texts: each text is encoded once per tokenizer, whichever program, run or graph has it.

The tokens of a text are determined by the tokenizer, the text, whether it starts its sequence, and whether it may have special tokens.
The least recently used texts are forgotten. Used on the engine thread only.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Protocol

MAX_BYTES = 32 << 20
"""Memory of all remembered texts and their tokens, about."""
ENTRY_BYTES = 300
"""Of a text in the table, besides its characters and its tokens: of 200,000 short texts, 230 to 300 bytes were measured."""
TOKEN_BYTES = 36
"""Of one token: an integer and a place in a tuple."""


class Encoder(Protocol):
    """A tokenizer."""

    def encode(self, text: str, *, is_start: bool, allow_special: bool = False) -> list[int]: ...


class ConstantTexts:
    """The tokens of constant texts.

    Attributes:
        num_encoded, num_found: number of texts that were encoded, and that were found instead.
    """

    def __init__(self, tokenizer: Encoder, max_bytes: int = MAX_BYTES) -> None:
        self.num_encoded = self.num_found = 0
        self._tokenizer, self._max_bytes = tokenizer, max_bytes
        self._tokens: OrderedDict[tuple[str, bool, bool], tuple[int, ...]] = OrderedDict()
        self._num_bytes = 0

    def encode(self, text: str, *, is_start: bool, allow_special: bool = False) -> tuple[int, ...]:
        """The tokens of `text`; see `Tokenizer.encode`."""
        key = (text, is_start, allow_special)
        found = self._tokens.get(key)
        if found is not None:
            self.num_found += 1
            self._tokens.move_to_end(key)
            return found
        self.num_encoded += 1
        tokens = tuple(self._tokenizer.encode(text, is_start=is_start, allow_special=allow_special))
        size = _size(text, tokens)
        if size <= self._max_bytes:
            self._tokens[key] = tokens
            self._num_bytes += size
        while self._num_bytes > self._max_bytes:
            (dropped, *_), its_tokens = self._tokens.popitem(last=False)
            self._num_bytes -= _size(dropped, its_tokens)
        return tokens


def _size(text: str, tokens: tuple[int, ...]) -> int:
    """Bytes of an entry, about."""
    return ENTRY_BYTES + len(text) + TOKEN_BYTES * len(tokens)
