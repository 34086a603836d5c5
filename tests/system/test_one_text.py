"""One text: the same request gives the same tokens and bit-equal log-probabilities, whatever runs beside it and however it is computed.

The reference is the request alone, with nothing cached, in whole prompts, without drafts, on one thread.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

import rtlang as rt
from rtlang.contract.params import SamplingParams
from tests.support.long_tests import sized

NUM_REQUESTS = sized(1000, usual=30)
BASE = {"model": "rtlang:tiny", "dtype": "bfloat16", "num_threads": 1, "num_pages": 2048, "speculation": "off"}
WORDS = (
    "the",
    "a",
    "red",
    "green",
    "dog",
    "cat",
    "runs",
    "jumps",
    "over",
    "under",
    "river",
    "house",
    "name",
    "value",
    "list",
    "of",
    "and",
    "then",
    "it",
    "was",
    "very",
    "old",
)
PROMPTS = (
    "Name three colours.",
    "Anna, 34, lives in Oslo and works as a nurse.",
    "The ship left the harbour at dawn, and ",
    "Order 4417: two chairs, one table, deliver on 3 May.",
)


@dataclass(frozen=True)
class Asked:
    """A request."""

    prompt: str
    params: SamplingParams
    seed: int


FILTERS: list[dict[str, Any]] = [
    {"bad_words": WORDS[:6], "no_repeat_ngram_size": 3},
    {"dry_multiplier": 0.9, "dry_allowed_length": 1},
    {"typical_p": 0.7, "top_n_sigma": 2.0},
    {"xtc_probability": 0.6, "xtc_threshold": 0.05, "dynatemp_range": 0.5},
    {"mirostat": 2, "mirostat_tau": 2.5},
]
Answer = tuple[tuple[int, ...], tuple[float, ...]]
"""Token ids, and their log-probabilities."""


def requests(number: int, seed: int) -> list[Asked]:
    """Random requests; a third continue one of a few long texts, so that they share prefixes of many lengths."""
    rng = random.Random(seed)
    shared = [" ".join(rng.choice(WORDS) for _ in range(length)) for length in (40, 90, 200)]
    made = []
    for index in range(number):
        text = rng.choice(PROMPTS) + " " + " ".join(rng.choice(WORDS) for _ in range(rng.randrange(60)))
        if rng.random() < 0.35:
            before = rng.choice(shared)
            text = before[: rng.randrange(20, len(before))] + " " + text
        params: dict[str, Any] = {"max_tokens": rng.randrange(8, 40), "logprobs": 0}
        params["temperature"] = rng.choice((0.0, 0.0, 0.8, 1.0))
        if rng.random() < 0.3:
            params["top_p"] = 0.9
        if rng.random() < 0.2:
            params["repetition_penalty"] = 1.2
        if rng.random() < 0.5:
            params |= rng.choice(FILTERS if params["temperature"] else FILTERS[:2])
        made.append(Asked(text, SamplingParams(**params), index))
    return made


@contextmanager
def runtime(**settings: Any) -> Iterator[rt.Runtime]:
    with rt.Runtime(config=rt.RuntimeConfig(**(BASE | settings))) as opened:
        yield opened


def answers(opened: rt.Runtime, asked: list[Asked], at_once: int) -> list[Answer]:
    found: list[Answer] = []
    for start in range(0, len(asked), at_once):
        group = [
            opened.generate(each.prompt, params=each.params, seed=each.seed) for each in asked[start : start + at_once]
        ]
        for piece in group:
            (result,) = piece.result().completions
            found.append((tuple(result.token_ids), tuple(item.logprob for item in result.logprobs or ())))
    return found


@pytest.fixture(scope="module")
def asked() -> list[Asked]:
    return requests(NUM_REQUESTS, 11)


@pytest.fixture(scope="module")
def alone(asked: list[Asked]) -> list[Answer]:
    found = []
    with runtime(prefix_sharing=False) as opened:
        for each in asked:
            found += answers(opened, [each], 1)
    return found


@pytest.mark.parametrize(
    ("settings", "at_once"),
    [
        pytest.param({}, 32, id="among-31"),
        pytest.param({"num_threads": 2}, 7, id="two-threads"),
        pytest.param({"max_step_tokens": 13, "max_shared_step_tokens": 13}, 5, id="in-chunks"),
        pytest.param({"num_pages": 40, "max_running": 16}, 16, id="preempted"),
        pytest.param({"speculation": "on"}, 4, id="drafted"),
        pytest.param({"prefix_sharing": False}, 24, id="not-shared"),
    ],
)
def test_a_request_has_one_text(
    asked: list[Asked], alone: list[Answer], settings: dict[str, Any], at_once: int
) -> None:
    with runtime(**settings) as opened:
        assert answers(opened, asked, at_once) == alone
        assert (
            answers(opened, asked[::-1], at_once)[::-1] == alone
        )  # with other neighbours, and with what is cached now
