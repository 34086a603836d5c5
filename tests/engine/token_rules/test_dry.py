"""DRY, against its definition: every earlier place is compared token by token with the end of the text."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from rtlang.contract.params import SamplingParams
from rtlang.engine.token_rules.dry import Dry, SequenceBreakers, _in_linear_time, longest_repetitions
from tests.support.long_tests import sized

TOKENS = [b"a", b"b", b"c", b"\n", b"ab", b"xx\ny", b"<", b"x<|", b"|>", b"<|", b">"]


def encode(text: str) -> list[int]:
    """Greedily, longest tokens first."""
    found, rest = [], text.encode()
    while rest:
        token = max((each for each in TOKENS if rest.startswith(each)), key=len)
        found.append(TOKENS.index(token))
        rest = rest[len(token) :]
    return found


def breakers(*texts: str) -> SequenceBreakers:
    return SequenceBreakers(texts, lambda token_id: TOKENS[token_id], encode)


def num_after(history: Sequence[int], texts: Sequence[str]) -> int:
    """Tokens after the breaker that begins last, the longest of those that begin there."""
    for begin in reversed(range(len(history))):
        ends = []
        for end in range(begin + 1, len(history) + 1):
            head, rest = TOKENS[history[begin]], list(history[begin + 1 : end])
            for text in texts:
                if not rest and text.encode() in head:
                    ends.append(end)
                for size in range(1, len(text)):
                    is_beginning = head.endswith(text[:size].encode()) and text.encode() not in head
                    if is_beginning and rest == encode(text[size:]):
                        ends.append(end)
        if ends:
            return len(history) - max(ends)
    return len(history)


def naive(
    history: Sequence[int], params: SamplingParams, texts: Sequence[str], vocab_size: int = len(TOKENS)
) -> dict[int, float]:
    if params.dry_range:
        history = history[-params.dry_range :]
    most = num_after(history, texts)
    found: dict[int, float] = {}
    for token_id in range(vocab_size):
        if any(text.encode() in TOKENS[token_id] for text in texts):
            continue
        longest = 0
        for place in range(1, len(history)):
            if history[place] != token_id:
                continue
            length = 0
            while length < place and length < most and history[place - 1 - length] == history[-1 - length]:
                length += 1
            longest = max(longest, length)
        if longest >= params.dry_allowed_length:
            found[token_id] = -params.dry_multiplier * params.dry_base ** (longest - params.dry_allowed_length)
    return found


@pytest.mark.parametrize("texts", [(), ("\n",), ("\n", "b"), ("<|>",), ("x<|a", "\n")], ids=repr)
def test_a_token_is_lowered_by_the_longest_repetition_that_it_would_continue(texts: tuple[str, ...]) -> None:
    rng = random.Random(repr(texts))
    num_lowered = num_broken = 0
    for _ in range(sized(5000, usual=500)):
        history = rng.choices(range(len(TOKENS)), [6, 6, 6, 1, 1, 0.3, 0.5, 1, 1, 0.5, 1], k=rng.randint(1, 30))
        if rng.random() < 0.3:
            period = [*history[:3], *encode(rng.choice(["<|>", "x<|a", "\n", "ab"]))]
            history = (period * 5)[: rng.randint(6, 30)]
        options: dict[str, Any] = {
            "dry_multiplier": rng.choice([0.8, 2.0]),
            "dry_base": rng.choice([1.0, 1.5, 1.75]),
            "dry_allowed_length": rng.choice([1, 2, 4]),
            "dry_range": rng.choice([0, 0, 5, 12]),
            "dry_sequence_breakers": texts,
        }
        params, cut = SamplingParams(**options), rng.randint(0, len(history))
        wanted = naive(history, params, texts)
        found = Dry(params, history[:cut], breakers(*texts)).biases(history[cut:])
        assert found == pytest.approx(wanted)
        num_lowered += bool(found)
        num_broken += wanted != naive(history, params, ())
    assert num_lowered > 50
    assert (num_broken > 5) == bool(texts)


def test_a_penalty_is_not_larger_than_a_float_can_be() -> None:
    for multiplier, wanted in ((1.0, -(10.0**38)), (9.0, -float(np.finfo(np.float32).max))):
        params = SamplingParams(dry_multiplier=multiplier, dry_base=10.0, dry_allowed_length=2)
        (penalty,) = Dry(params, [1] * 200, breakers()).biases([]).values()
        assert penalty == wanted


def test_long_repetitions_are_counted_alike_in_both_ways() -> None:
    rng = random.Random(4)
    for _ in range(sized(400, usual=60)):
        period = [rng.randrange(3) for _ in range(rng.randint(1, 5))]
        history = (period * 200)[: rng.randint(100, 300)]
        if rng.random() < 0.5:
            history[rng.randrange(len(history))] = 3
        most, shortest = rng.choice([70, 100, 1000]), rng.randint(1, 90)
        array = np.array(history, dtype=np.int64)
        wanted: dict[int, int] = {}
        for place in range(1, len(history)):
            length = 0
            while length < min(place, most) and history[place - 1 - length] == history[-1 - length]:
                length += 1
            if length >= shortest:
                wanted[history[place]] = max(length, wanted.get(history[place], 0))
        assert longest_repetitions(array, shortest, most) == wanted == _in_linear_time(array, shortest, most)
