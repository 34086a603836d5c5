"""Runtimes whose KV cache is int8: one text in every company, from every tier, and near the text's probabilities in bfloat16."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import rtlang as rt
from rtlang.contract.params import SamplingParams
from rtlang.runtime.runtime import Runtime
from tests.support.models.tiny_models import make_checkpoint
from tests.system.test_one_text import Answer, Asked, answers, requests, runtime
from tests.system.test_tensor_parallel import ONE, STORY, TWO, graph, ranked_runtime, run

INT8: dict[str, Any] = {"kv_dtype": "int8"}


@pytest.fixture(scope="module")
def asked() -> list[Asked]:
    return requests(10, 5)


@pytest.fixture(scope="module")
def alone(asked: list[Asked]) -> list[Answer]:
    with runtime(prefix_sharing=False, **INT8) as opened:
        return [answer for each in asked for answer in answers(opened, [each], 1)]


@pytest.mark.parametrize(
    ("settings", "at_once"),
    [
        pytest.param({"num_threads": 2}, 10, id="together-two-threads"),
        pytest.param({"max_step_tokens": 13, "max_shared_step_tokens": 13, "speculation": "on"}, 5, id="in-chunks"),
        pytest.param({"num_pages": 30, "max_running": 10}, 10, id="preempted"),
    ],
)
def test_a_request_has_one_text(
    asked: list[Asked], alone: list[Answer], settings: dict[str, Any], at_once: int
) -> None:
    with runtime(**INT8, **settings) as opened:
        assert answers(opened, asked, at_once) == alone
        assert answers(opened, asked[::-1], at_once)[::-1] == alone


def test_forks_of_a_program_have_the_texts_of_prompts_alone() -> None:
    """Choices share the last page of their prompt, and copy it when they go on."""
    params = SamplingParams(max_tokens=20, temperature=1.0, n=4, logprobs=0)
    found = []
    for is_shared in (True, False):
        with runtime(prefix_sharing=is_shared, **INT8) as opened:
            result = opened.generate("Anna, 34, lives in Oslo and works as", params=params, seed=3).result()
            found.append(
                [(each.token_ids, [item.logprob for item in each.logprobs or ()]) for each in result.completions]
            )
    assert found[0] == found[1]
    assert len({each[0] for each in found[0]}) == 4


def test_probabilities_are_near_those_of_bfloat16(asked: list[Asked], alone: list[Answer]) -> None:
    with runtime(prefix_sharing=False) as opened:
        plain = [answer for each in asked for answer in answers(opened, [each], 1)]
    firsts = [(a[1][0], b[1][0]) for a, b in zip(alone, plain, strict=True) if a[0][0] == b[0][0]]
    differences = [abs(a - b) for a, b in firsts if math.isfinite(a)]
    assert len(differences) > len(asked) / 2
    assert 0 < max(differences) < 0.25


def documents(**settings: Any) -> tuple[list[tuple[int, ...]], int]:
    """The outputs of prompts over documents in a random order, and the number of tokens that came from below the pool."""
    generator = random.Random(0)
    params = SamplingParams(max_tokens=3, ignore_eos=True)
    with Runtime(num_threads=1, **settings) as opened:
        texts = [[generator.randrange(3, 250) for _ in range(100)] for _ in range(4)]
        ends = [
            opened.generate(token_ids=[*generator.choice(texts), 5 + number], params=params).result()
            for number in range(10)
        ]
    outputs = [end.completions[0].token_ids for end in ends]
    return outputs, sum(end.usage.host_tokens + end.usage.disk_tokens for end in ends)


def test_pages_come_back_from_tiers_with_their_scales(tmp_path: Path) -> None:
    """Also in a later process; a cache of another type does not take them."""
    expected, num_fetched = documents(**INT8)
    assert num_fetched == 0
    small = {"num_pages": 9}
    for tier in ({"cache_host_bytes": 1 << 28}, {"cache_dir": str(tmp_path)}):
        found, num_fetched = documents(**INT8, **small, **tier)
        assert found == expected
        assert num_fetched > 0
    # the first prompt of each document now comes from the files of the runtime before
    again, num_again = documents(**INT8, **small, cache_dir=str(tmp_path))
    assert again == expected
    assert num_again > num_fetched
    plain, num_plain = documents(**small, cache_dir=str(tmp_path))
    assert num_plain <= num_fetched
    assert plain == documents()[0]


def test_two_ranks_give_the_text_of_one_process() -> None:
    graphs = [graph(f"{STORY} {index}", max_tokens=24, ignore_eos=True) for index in range(2)]
    with Runtime(config=replace(ONE, **INT8)) as opened:
        expected = [ear.text for ear in run(opened, *graphs)]
    with ranked_runtime(replace(TWO, **INT8)) as opened:
        assert [ear.text for ear in run(opened, *graphs)] == expected


@pytest.mark.parametrize("decoder", ["native", "transformers"])
def test_decoders_and_drafts_use_such_pages(decoder: str, tmp_path: Path) -> None:
    path = make_checkpoint(tmp_path / "model")
    settings: dict[str, Any] = {"model": str(path), "decoder": decoder, "num_threads": 1, "num_pages": 64} | INT8
    params = SamplingParams(max_tokens=24, ignore_eos=True)
    found = []
    for others in ({}, {"draft_model": str(path)}):
        if others and decoder == "transformers":
            continue
        with rt.Runtime(**settings, **others) as opened:
            found.append(opened.generate(token_ids=list(range(5, 45)), params=params).result().completions[0].token_ids)
    assert len(found[0]) == 24
    assert found == found[:1] * len(found)
