"""Encoders for the workloads of benchmarks."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tokenizers import Tokenizer as HubTokenizer

from tests.support.models.tiny_models import make_tokenizer_json


class Words:
    """Counts as a vocabulary of words with their leading space would: a text of k words has k tokens, digits one each."""

    def encode(self, text: str, *, is_start: bool) -> list[int]:
        pieces = "".join(f" {c} " if c.isdigit() else c for c in text).split()
        return [hash(piece) % 1000 for piece in pieces]

    def start_ids(self) -> list[int]:
        return []


class Bytes:
    """A real byte-level tokenizer that puts one token before every sequence."""

    def __init__(self) -> None:
        self._tokenizer = HubTokenizer.from_str(json.dumps(make_tokenizer_json()))

    def encode(self, text: str, *, is_start: bool) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def start_ids(self) -> list[int]:
        return [256]

    def decode(self, token_ids: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(token_ids)))


class Letters:
    """One token a letter, and one before every sequence."""

    def encode(self, text: str, *, is_start: bool) -> list[int]:
        return [ord(letter) for letter in text]

    def start_ids(self) -> list[int]:
        return [1]

    def decode(self, token_ids: Sequence[int]) -> str:
        return "".join(map(chr, token_ids))
