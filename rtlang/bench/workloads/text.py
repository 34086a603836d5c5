"""Random text with an exact number of tokens.

Lengths are counted with the model's own tokenizer: random words are appended until a text has the required number of tokens.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol


class Encoder(Protocol):
    """The part of a tokenizer that the workloads need."""

    def encode(self, text: str, *, is_start: bool) -> list[int]:
        """Token ids of `text`, which starts a sequence or continues one."""

    def start_ids(self) -> list[int]:
        """Token ids that every sequence begins with."""


class Codec(Encoder, Protocol):
    """The part of a tokenizer that running a workload needs."""

    def decode(self, token_ids: Sequence[int]) -> str:
        """The text of tokens; those without text decode to nothing."""


class TextMaker:
    """Generates random text with an exact number of tokens, from a seed. Strings from one maker differ from the first word on."""

    def __init__(self, encoder: Encoder, seed: int) -> None:
        self._encoder = encoder
        self._random = random.Random(seed)

    def text(self, num_tokens: int, *, is_start: bool = False) -> str:
        """Random text of `num_tokens` tokens; with `is_start`, the tokens that start every sequence are included in the count.

        Raises:
            ValueError: no text with this number of tokens was found.
        """
        for _ in range(20):
            text = ""
            while (missing := num_tokens - self._count(text, is_start)) > 24:
                text += "".join(self._word() for _ in range(max(1, missing // 12)))
            if missing >= 0 and (exact := self._fill(text, num_tokens, is_start)) is not None:
                return exact
        raise ValueError(f"no text of exactly {num_tokens} tokens was found in 20 attempts")

    def _fill(self, text: str, num_tokens: int, is_start: bool) -> str | None:
        """Append small pieces to `text` until it has `num_tokens` tokens; None if that fails."""
        missing = num_tokens - self._count(text, is_start)
        while missing > 0:
            pieces = [str(self._random.randrange(10)), self._word(), "a", " ", ".", "\n", " b"]
            for piece in pieces:
                rest = num_tokens - self._count(text + piece, is_start)
                if 0 <= rest < missing:
                    text, missing = text + piece, rest
                    break
            else:
                return None
        return text

    def _count(self, text: str, is_start: bool) -> int:
        start = len(self._encoder.start_ids()) if is_start else 0
        return start + len(self._encoder.encode(text, is_start=is_start))

    def _word(self) -> str:
        syllables = (self._random.choice("bdfgklmnprst") + self._random.choice("aeiou") for _ in range(2))
        return "".join(syllables) + " "
