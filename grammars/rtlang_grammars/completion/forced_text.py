"""Forced text as tokens: spelled as the model's tokenizer would, up to the last token that later text cannot change.

A special token ends the text before it, which later text cannot change then.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.completion.completion_path import UNREACHABLE, CompletionPath, TokenTable
from rtlang_grammars.spec.tokens import SPELLING_BYTES, TOKEN_LEAD, segments_of
from rtlang_grammars.spec.vocabulary import Vocabulary

_MAX_HELD_TOKENS = 8


class ForcedText:
    """Spells forced text as tokens. Safe to use from several threads; the tokenizer (about 50 MB) is loaded on first use."""

    def __init__(self, vocabulary: Vocabulary, order: NDArray[np.int32], table: TokenTable) -> None:
        """`order`: the tokens that are text, sorted by their bytes."""
        self._vocabulary, self._order, self._table = vocabulary, order, table
        self._encoder: Any = None

    def tokens(self, text: bytes) -> list[int]:
        """Tokens with which every continuation of `text` begins; empty if even the first token may change."""
        if TOKEN_LEAD not in text:
            return self._open_tokens(text)
        found: list[int] = []
        last = text.rindex(TOKEN_LEAD)
        for segment in segments_of(text[: last + SPELLING_BYTES]):
            if isinstance(segment, int):
                found.append(segment)
                continue
            ids = self._encode(segment)
            if self._vocabulary.text_of(ids) != segment:  # no tokens spell it
                return found
            found += ids
        return found + self._open_tokens(text[last + SPELLING_BYTES :])

    def _open_tokens(self, text: bytes) -> list[int]:
        """Tokens with which every continuation of a text without special tokens begins."""
        if not text:
            return []
        ids = self._encode(text)
        held = min(len(ids), _MAX_HELD_TOKENS)
        # The last tokens may merge with what follows: drop them while some token extends from their beginning beyond the text.
        keep = len(ids)
        tail = b""
        for back in range(1, held + 1):
            tail = self._vocabulary.token_bytes[ids[-back]] + tail
            if self._is_extended(tail):
                keep = len(ids) - back
        return ids[:keep]

    def _is_extended(self, text: bytes) -> bool:
        """Whether a token is longer than `text` and begins with it."""
        order, token_bytes = self._order, self._vocabulary.token_bytes
        low, high = 0, len(order)
        while low < high:
            middle = (low + high) // 2
            if token_bytes[order[middle]] <= text:
                low = middle + 1
            else:
                high = middle
        return low < len(order) and token_bytes[order[low]].startswith(text)

    def _encode(self, text: bytes) -> list[int]:
        """The tokenizer's spelling of the complete characters, else the fewest tokens; [] if no tokens spell the text."""
        encoder = self._loaded_encoder()
        if encoder is not None:
            try:
                decoded = text.decode()
            except UnicodeDecodeError as error:
                decoded = text[: error.start].decode()
            ids: list[int] = encoder.encode(decoded, add_special_tokens=False).ids
            if self._vocabulary.text_of(ids) == decoded.encode():
                return ids
        path = CompletionPath(text, self._table)
        return path.token_ids() if path.cost() < UNREACHABLE else []

    def _loaded_encoder(self) -> Any:
        """The tokenizer; None if the vocabulary has none. If two threads both load it, that is harmless."""
        if self._encoder is None and self._vocabulary.tokenizer_json is not None:
            import tokenizers

            encoder = tokenizers.Tokenizer.from_str(self._vocabulary.tokenizer_json)
            encoder.encode_special_tokens = True
            self._encoder = encoder
        return self._encoder
