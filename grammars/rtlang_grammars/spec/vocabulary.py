"""A model's vocabulary: the bytes of every token, and the tokens that are not text.

Plain data that needs no tokenizer library: one description serves every backend and every kind of tokenizer (byte-level, SentencePiece
with byte fallback, unigram). Ids from `len(token_bytes)` up to `vocab_size` are padding of the model's output layer and never allowed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from rtlang_grammars.spec.tokenizer_readers import read_tokenizer
from rtlang_grammars.spec.tokens import TOKEN_LEAD, SpecialTokens, segments_of, spelling


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """Tokens by id.

    Attributes:
        token_bytes: the bytes that each token adds to a text; b"" for an id without text. For a special token, its name.
        eos_token_ids: tokens that end a text; allowed exactly when a constraint is complete. May be empty.
        special_token_ids: tokens that are not text (end tokens among them or not); allowed only where a constraint names them.
        vocab_size: width of the model's logits, at least len(token_bytes).
        tokenizer_json: the tokenizer in the format of the `tokenizers` library, configured to continue a text (no dummy prefix); used to
            spell forced text as the model saw it in training. None: forced text is spelled with the fewest tokens.
        silent_ids: end tokens and special tokens.
        tokens: the tokens as constraints name them.
    Raises:
        ValueError: an id lies outside the vocabulary; names the field.
    """

    token_bytes: tuple[bytes, ...]
    eos_token_ids: frozenset[int]
    special_token_ids: frozenset[int]
    vocab_size: int
    tokenizer_json: str | None = None
    silent_ids: frozenset[int] = field(init=False)
    tokens: SpecialTokens = field(init=False)

    def __post_init__(self) -> None:
        if self.vocab_size < max(1, len(self.token_bytes)):
            raise ValueError(f"vocab_size = {self.vocab_size}: expected at least {max(1, len(self.token_bytes))}")
        for name, ids in (("eos_token_ids", self.eos_token_ids), ("special_token_ids", self.special_token_ids)):
            for token_id in ids:
                if not 0 <= token_id < self.vocab_size:
                    raise ValueError(f"{name} = {token_id}: expected ids from 0 to {self.vocab_size - 1}")
        object.__setattr__(self, "silent_ids", self.eos_token_ids | self.special_token_ids)
        object.__setattr__(self, "tokens", SpecialTokens(self.token_bytes, self.silent_ids, self.eos_token_ids))

    @classmethod
    def from_tokenizer(
        cls, tokenizer: Any, *, eos_token_ids: Iterable[int] | None = None, vocab_size: int | None = None
    ) -> Vocabulary:
        """The vocabulary of a tokenizer of `tokenizers`, `transformers`, `tiktoken`, `sentencepiece` or `mistral-common`.

        Args:
            eos_token_ids: tokens that end a text; None: those that the tokenizer names. `tokenizers` names none.
            vocab_size: width of the model's logits; None: the size of the tokenizer.
        Raises:
            UnsupportedTokenizerError: the kind of tokenizer is unknown, or its tokens do not spell texts byte for byte, as with WordPiece.
            ValueError: the tokenizer does not name its end tokens, or an id lies outside the vocabulary.
        """
        content = read_tokenizer(tokenizer)
        ends = content.end_ids if eos_token_ids is None else frozenset(eos_token_ids)
        if ends is None:
            raise ValueError(
                "eos_token_ids = None: the tokenizer does not name its end tokens, so their ids are needed"
            )
        width = max(1, len(content.token_bytes)) if vocab_size is None else vocab_size
        if eos_token_ids is None:  # logits may be narrower than the tokenizer
            ends = frozenset(token_id for token_id in ends if token_id < width)
        special = ends | frozenset(token_id for token_id in content.special_ids if token_id < width)
        return cls(content.token_bytes[:width], ends, special, width, content.json)

    @property
    def num_mask_words(self) -> int:
        """Words of one bitmask row: ceil(vocab_size / 32)."""
        return (self.vocab_size + 31) // 32

    def text_of(self, token_ids: Iterable[int]) -> bytes:
        """The text of a sequence of tokens; end tokens and special tokens add nothing."""
        silent = self.silent_ids
        return b"".join(
            self.token_bytes[token_id]
            for token_id in token_ids
            if token_id not in silent and token_id < len(self.token_bytes)
        )

    def spelled(self, token_id: int) -> bytes:
        """What a token adds to a text of the machine: its bytes, the spelling of a special token, b"" if it is neither."""
        if token_id in self.silent_ids:
            return spelling(token_id)
        return self.token_bytes[token_id] if 0 <= token_id < len(self.token_bytes) else b""

    def shown(self, token_ids: Iterable[int]) -> bytes:
        """The text of a sequence of tokens, with special tokens under their names."""
        return b"".join(self.token_bytes[token_id] for token_id in token_ids if token_id < len(self.token_bytes))

    def readable(self, data: bytes) -> str:
        """A text of the machine for people: tokens under their names."""
        parts = (self.shown([each]) if isinstance(each, int) else each for each in segments_of(data))
        return b"".join(parts).decode("utf-8", "replace")

    def ids_by_bytes(self) -> dict[bytes, int]:
        """The lowest id that spells each byte string. Special and empty tokens are left out, and those with a byte that UTF-8 has not."""
        silent = self.silent_ids
        ids: dict[bytes, int] = {}
        for token_id, text in enumerate(self.token_bytes):
            if text and token_id not in silent and TOKEN_LEAD not in text:
                ids.setdefault(text, token_id)
        return ids
