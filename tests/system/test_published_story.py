"""The published greedy text of published weights comes out to the letter, alone and between many other requests.

This anchor is neither ours nor that of `transformers`: the author of the weights printed the text.
"""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from rtlang.contract.config import RuntimeConfig
from rtlang.model.host_runner import HostRunner
from tests.support.engine.engine_driver import EngineDriver
from tests.support.models.model_steps import STORIES

pytestmark = pytest.mark.skipif(not STORIES.is_dir(), reason="needs the published stories260k weights")


def make_driver(decoder: str, **settings: Any) -> EngineDriver:
    defaults = {"model": str(STORIES), "dtype": "float32", "decoder": decoder, "page_size": 8, "num_threads": 1}
    config = RuntimeConfig(**{**defaults, **settings})
    runner = HostRunner(config)
    runner.load()
    return EngineDriver(runner, config)


def published() -> tuple[list[int], str]:
    content = json.loads((STORIES / "greedy_reference.json").read_text(encoding="utf-8"))
    assert len(content["greedy_ids"]) == 257
    return content["greedy_ids"], content["published_greedy_text"]


@pytest.mark.parametrize("decoder", ["native", "transformers"])
def test_alone(decoder: str) -> None:
    token_ids, text = published()
    driver = make_driver(decoder, num_pages=40)
    request = driver.add(token_ids[:1], 256)
    driver.run()
    assert request.output_token_ids == token_ids[1:]
    assert driver.text[request].strip() == text.strip()


@pytest.mark.parametrize("decoder", ["native", "transformers"])
def test_between_other_requests_preempted_in_chunks_and_over_shared_pages(decoder: str) -> None:
    token_ids, text = published()
    driver = make_driver(decoder, num_pages=36, max_step_tokens=32, max_rows=8)
    rng = random.Random(5)
    story = driver.add(token_ids[:1], 256)
    later = []  # each begins with a part of the story and must go on with the rest of it
    for index in range(12):
        start = rng.randrange(20, 240)
        later.append((start, driver.add(token_ids[:start], 257 - start)))
        noise = [1, *(rng.randrange(3, 512) for _ in range(rng.randrange(5, 60)))]
        driver.add(noise, rng.randrange(5, 40), seed=index, params={"temperature": 1.0, "ignore_eos": True})
        for _ in range(10):
            driver.step()
    driver.run()
    assert driver.engine.scheduler.num_preemptions > 0
    assert driver.engine.cache.stats.num_hit_tokens > 0
    assert story.output_token_ids == token_ids[1:]
    assert driver.text[story].strip() == text.strip()
    for start, request in later:
        assert request.output_token_ids == token_ids[start:]
    driver.assert_idle()
