"""Forced text as tokens: spelled as the model's tokenizer would, without the tokens at the end that later text could still change."""

from __future__ import annotations

from typing import Any

import tokenizers

from rtlang_grammars.machine.trie import TokenTrie
from rtlang_grammars.spelling import UNREACHABLE, ClosingPath, TokenTable
from rtlang_grammars.vocabulary import Vocabulary

_MAX_HELD_TOKENS = 8


class ForcedText:
    """Spells forced text. Immutable; safe to use from several threads."""

    def __init__(self, vocabulary: Vocabulary, trie: TokenTrie, table: TokenTable) -> None:
        self._vocabulary, self._table = vocabulary, table
        self._encoder: Any = None
        if vocabulary.tokenizer_json is not None:
            self._encoder = tokenizers.Tokenizer.from_str(vocabulary.tokenizer_json)
            self._encoder.encode_special_tokens = True
        self._sorted = [vocabulary.token_bytes[i] for i in trie.order]

    def tokens(self, text: bytes) -> list[int]:
        """Tokens that begin any text that begins with `text`; empty where even the first could be another one."""
        if not text:
            return []
        ids = self._encode(text)
        held = min(len(ids), _MAX_HELD_TOKENS)
        # The last tokens may merge with what follows: they go while some token reaches from their beginning beyond the text.
        keep = len(ids)
        tail = b""
        for back in range(1, held + 1):
            tail = self._vocabulary.token_bytes[ids[-back]] + tail
            if self._is_extended(tail):
                keep = len(ids) - back
        return ids[:keep]

    def _is_extended(self, text: bytes) -> bool:
        """Whether a token is longer than `text` and begins with it."""
        low, high = 0, len(self._sorted)
        while low < high:
            middle = (low + high) // 2
            if self._sorted[middle] <= text:
                low = middle + 1
            else:
                high = middle
        return low < len(self._sorted) and self._sorted[low].startswith(text)

    def _encode(self, text: bytes) -> list[int]:
        """The tokenizer's spelling of the whole characters, or the fewest tokens where that does not give these bytes; [] without any."""
        if self._encoder is not None:
            try:
                decoded = text.decode()
            except UnicodeDecodeError as error:
                decoded = text[: error.start].decode()
            ids: list[int] = self._encoder.encode(decoded, add_special_tokens=False).ids
            if self._vocabulary.text_of(ids) == decoded.encode():
                return ids
        path = ClosingPath(text, self._table)
        return path.token_ids() if path.cost() < UNREACHABLE else []
