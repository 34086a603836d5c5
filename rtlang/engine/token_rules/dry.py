"""DRY: lowers the logits of tokens that would continue a repetition, the more the longer it is already.

A repetition is the longest end of the history that occurs earlier in it, too; the token that followed there would continue it. It does not
reach across a sequence breaker. A penalty grows with the power of the length, up to the largest float32.

Source: p-e-w 2024 (text-generation-webui, pull request 5677), with the breakers of llama.cpp: a breaker is found in the tokens that contain
it, and in a token that ends with its beginning, if the tokens of the rest follow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rtlang.contract.params import SamplingParams

MAX_TAIL_TOKENS = 20
"""Tokens of the rest of a breaker that are compared."""
_FILTERED_LENGTH = (
    64  # repetitions longer than this are counted in linear time: there may be very many in a repetitive text
)
_LARGEST = float(np.finfo(np.float32).max)
_LOG_LARGEST = math.log(_LARGEST)


class SequenceBreakers:
    """The places at which repetitions end. A token is looked at when it first occurs, since a vocabulary has many that never do.

    Args:
        texts: none is empty.
        token_bytes: the bytes of a token.
        encode: the tokens of a text that continues another one.
    """

    def __init__(
        self, texts: Iterable[str], token_bytes: Callable[[int], bytes], encode: Callable[[str], Sequence[int]]
    ) -> None:
        self._texts = [(text, text.encode()) for text in dict.fromkeys(texts)]
        self._token_bytes, self._encode = token_bytes, encode
        self._rests: dict[int, tuple[tuple[int, ...], ...]] = {}

    def rests(self, token_id: int) -> tuple[tuple[int, ...], ...]:
        """The token sequences that complete a breaker after this token; an empty one if it contains a breaker."""
        found = self._rests.get(token_id)
        if found is None:
            found = self._rests[token_id] = self._find(self._token_bytes(token_id))
        return found

    def _find(self, token: bytes) -> tuple[tuple[int, ...], ...]:
        found: dict[tuple[int, ...], None] = {}
        for text, spelled in self._texts:
            if spelled in token:
                found[()] = None
                continue
            for num_chars in range(1, len(text)):
                if token.endswith(text[:num_chars].encode()):
                    found[tuple(self._encode(text[num_chars:]))[:MAX_TAIL_TOKENS]] = None
        return tuple(found)

    def num_after_last(self, history: Sequence[int], most: int) -> int:
        """Number of tokens after the last breaker in the history; `most` if there are as many."""
        for back in range(min(most + MAX_TAIL_TOKENS, len(history))):
            longest = -1
            for rest in self.rests(history[-1 - back]):
                num_rest = len(rest)
                if longest < num_rest <= back and tuple(history[len(history) - back :][:num_rest]) == rest:
                    longest = num_rest
            if longest >= 0:
                return min(most, back - longest)
        return min(most, len(history))


class Dry:
    """The rule of the options `dry_...`; see `rtlang.contract.step.TokenRule`."""

    def __init__(self, params: SamplingParams, prompt_token_ids: Sequence[int], breakers: SequenceBreakers) -> None:
        self._multiplier, self._base = params.dry_multiplier, params.dry_base
        self._shortest, self._range = params.dry_allowed_length, params.dry_range
        self._prompt, self._breakers = np.asarray(prompt_token_ids, dtype=np.int64), breakers
        self._highest: int | None = None  # the exponent of the largest penalty
        if self._base > 1.000001:
            self._highest = int(_LOG_LARGEST / math.log(self._base))

    def biases(self, output_token_ids: Sequence[int]) -> Mapping[int, float]:
        """See `TokenRule`."""
        history = np.concatenate((self._prompt, np.asarray(output_token_ids, dtype=np.int64)))
        history = history[-self._range :] if self._range else history
        if len(history) <= self._shortest:
            return {}
        # a longer repetition has the same penalty
        most = len(history) if self._highest is None else min(len(history), self._shortest + self._highest)
        most = self._breakers.num_after_last(history[-most - MAX_TAIL_TOKENS :].tolist(), most)
        return {
            token_id: -min(_LARGEST, self._multiplier * self._base ** (length - self._shortest))
            for token_id, length in longest_repetitions(history, self._shortest, most).items()
            if () not in self._breakers.rests(token_id)
        }


def longest_repetitions(history: NDArray[np.int64], shortest: int, most: int) -> dict[int, int]:
    """For each token that would continue a repetition of at least `shortest` tokens: the length of the longest one, at most `most`.

    Args:
        history: int64 [num_tokens]
        shortest: at least 1.
    """
    found: dict[int, int] = {}
    ends = np.arange(1, len(history))  # where the token follows that would continue the repetition
    for length in range(1, most + 1):
        if length > _FILTERED_LENGTH:
            return found | _in_linear_time(history, shortest, most)
        ends = ends[ends >= length]
        ends = ends[history[ends - length] == history[-length]]
        if not len(ends):
            break
        if length >= shortest:
            found |= dict.fromkeys(np.unique(history[ends]).tolist(), length)
    return found


def _in_linear_time(history: NDArray[np.int64], shortest: int, most: int) -> dict[int, int]:
    """As `longest_repetitions`, by the Z-algorithm: slower for few repetitions, and no slower for many."""
    backwards = history[::-1].tolist()
    num_tokens = len(backwards)
    lengths = [0] * num_tokens  # of the common beginning of backwards[k:] and backwards
    start = stop = 0  # the common beginning that reaches farthest
    found: dict[int, int] = {}
    for k in range(1, num_tokens):
        length = min(lengths[k - start], stop - k) if k < stop else 0
        while k + length < num_tokens and backwards[length] == backwards[k + length]:
            length += 1
        lengths[k] = length
        if k + length > stop:
            start, stop = k, k + length
        length = min(length, most)
        token_id = backwards[k - 1]
        if length >= shortest and length > found.get(token_id, 0):
            found[token_id] = length
    return found
