"""The best of several candidates: the one that sampling all of them gives, with fewer tokens."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

import pytest

import rtlang as rt
from rtlang.contract.events import TokenLogprob
from rtlang.runtime.executors.best_of_pruning import BestOfPruning


@pytest.fixture(scope="module")
def runtime() -> Iterator[rt.Runtime]:
    with rt.Runtime() as started:
        yield started


def test_the_winner_has_the_largest_sum_whatever_the_order() -> None:
    choose = random.Random(3)
    for _ in range(200):
        texts = [[TokenLogprob(0, -choose.random()) for _ in range(choose.randint(1, 6))] for _ in range(5)]
        sums = [sum(each.logprob for each in text) for text in texts]
        pruning, shown = BestOfPruning(5), [0] * 5
        running = set(range(5))
        while running:
            candidate = choose.choice(sorted(running))
            shown[candidate] += 1
            has_ended = shown[candidate] == len(texts[candidate])
            if pruning.is_lost(candidate, texts[candidate][: shown[candidate]], has_ended=has_ended) or has_ended:
                running.remove(candidate)
        assert sums[pruning.winner] == max(sums)


@rt.program
def ask(s: Any, seed: int, n: int, best: bool) -> None:
    s += rt.user("Hi")
    with s.assistant():
        gen = rt.gen("word", max_tokens=12, temperature=1.0, logprobs=0, seed=seed, n=None if best else n)
        s += rt.best_of(n, gen) if best else gen
    s += rt.user("Again: ", s["word"] if best else "")
    s += rt.gen("next", max_tokens=3)


def total(meta: Any) -> float:
    return math.fsum(each.logprob for each in meta.logprobs)


def test_it_is_the_best_of_n_texts_and_the_sequence_goes_on_with_it(runtime: rt.Runtime) -> None:
    saved = 0
    for seed in range(8):
        every = ask.run(seed, 6, False, runtime=runtime)
        result = ask.run(seed, 6, True, runtime=runtime)
        texts, metas = every["word"], every.meta("word")
        best = max(range(6), key=lambda index: total(metas[index]))
        assert result["word"] == texts[best]
        assert result.meta("word").token_ids == metas[best].token_ids
        assert result.messages[1]["content"] == texts[best]
        saved += every.usage.completion_tokens - result.usage.completion_tokens
    assert saved > 0


def test_a_candidate_stopped_long_before_the_others_end_is_no_error(runtime: rt.Runtime) -> None:
    @rt.program
    def tips(s: Any, best: bool) -> None:
        gen = rt.gen("tips", max_tokens=200, temperature=0.8, logprobs=0, seed=1, n=None if best else 8)
        s += rt.user("Give me 3 tips for sleeping.")
        s += rt.assistant(rt.best_of(8, gen) if best else gen)

    every, result = tips.run(False, runtime=runtime), tips.run(True, runtime=runtime)
    metas = every.meta("tips")
    assert result["tips"] == every["tips"][max(range(8), key=lambda index: total(metas[index]))]
    assert result.usage.completion_tokens < every.usage.completion_tokens


def test_it_streams_the_winner_once(runtime: rt.Runtime) -> None:
    stream = ask.stream(1, 6, True, runtime=runtime)
    texts = [event.text for event in stream if isinstance(event, rt.TextEvent) and event.name == "word"]
    assert "".join(texts) == ask.run(1, 6, True, runtime=runtime)["word"]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_constrained_candidates_are_valid(runtime: rt.Runtime, temperature: float) -> None:
    @rt.program
    def number(s: Any) -> None:
        s += "Number:"
        s += rt.best_of(5, rt.gen("x", type=int, max_tokens=6, temperature=temperature))

    if temperature == 0:
        with pytest.raises(rt.ParameterError, match="best_of"):
            number.run(runtime=runtime)
    else:
        assert isinstance(number.run(runtime=runtime)["x"], int)


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: rt.best_of(3, rt.gen("x", n=2, temperature=1.0)), "best_of"),
        (lambda: rt.best_of(0, rt.gen("x", temperature=1.0)), "best_of"),
        (lambda: rt.best_of(3, rt.select("x", ["a"])), "expr"),
        (lambda: rt.best_of(3, rt.gen("x", temperature=1.0), by="length"), "by"),  # type: ignore[arg-type]
    ],
)
def test_mistakes_name_the_argument(make: Any, field: str) -> None:
    with pytest.raises(rt.ParameterError) as caught:
        make()
    assert caught.value.field == field
