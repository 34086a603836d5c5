"""Tokens of constant texts: each text is encoded once per tokenizer, whichever program, run or graph has it.

The tokens of a text are determined by the tokenizer, the text, whether it starts its sequence, and whether it may have special tokens.
The least recently used texts are forgotten. Used on the engine thread only.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Protocol

MAX_CHARS = 4_000_000
"""Characters of all remembered texts; with their tokens about 20 MB."""


class Encoder(Protocol):
    """A tokenizer."""

    def encode(self, text: str, *, is_start: bool, allow_special: bool = False) -> list[int]: ...


class ConstantTexts:
    """The tokens of constant texts.

    Attributes:
        num_encoded, num_found: number of texts that were encoded, and that were found instead.
    """

    def __init__(self, tokenizer: Encoder, max_chars: int = MAX_CHARS) -> None:
        self.num_encoded = self.num_found = 0
        self._tokenizer, self._max_chars = tokenizer, max_chars
        self._tokens: OrderedDict[tuple[str, bool, bool], tuple[int, ...]] = OrderedDict()
        self._num_chars = 0

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
        if len(text) <= self._max_chars:
            self._tokens[key] = tokens
            self._num_chars += len(text)
        while self._num_chars > self._max_chars:
            (dropped, *_), _ = self._tokens.popitem(last=False)
            self._num_chars -= len(dropped)
        return tokens
