"""Hybrids in the engine: the tokens are those of `transformers` generating one sequence at a time, however their states are kept.

Requests share prefixes, are computed in chunks, forked, preempted, drafted, parked and aborted over few pages and few states.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import AbortedError
from rtlang.contract.params import SamplingParams
from rtlang.engine.drafts.drafter import Drafter
from rtlang.engine.requests.credit import Credit
from rtlang.engine.requests.request import Request, RequestOutput
from rtlang.model.host_runner import HostRunner
from rtlang.model.layers.states import StateMemory
from tests.support.engine.draft_sources import FreeCost, Oracle
from tests.support.engine.engine_driver import EngineDriver
from tests.support.long_tests import sized
from tests.support.models.families import FAMILIES, make_config
from tests.support.models.tiny_models import random_model, save_checkpoint
from tests.system.test_against_transformers import Naive

FAMILY = {family.model_type: family for family in FAMILIES}
CASES = [
    "qwen3_next",
    *(pytest.param(each, marks=pytest.mark.long) for each in ("falcon_h1", "lfm2", "mamba2", "kimi_linear", "zamba2")),
]
pytestmark = pytest.mark.filterwarnings("ignore:::transformers", "ignore::DeprecationWarning")


class Driver(EngineDriver):
    """An engine whose requests spend the credit that they share."""

    def listen(self, output: RequestOutput) -> None:
        super().listen(output)
        if output.request.spec.credit is not None:
            output.request.spec.credit.num_tokens -= len(output.token_ids)


@pytest.mark.parametrize("model_type", CASES)
def test_random_batches_give_the_tokens_of_transformers(model_type: str, tmp_path: Path) -> None:
    rng = random.Random(0)
    path = save_checkpoint(random_model(make_config(FAMILY[model_type])), tmp_path)
    naive = Naive(path)
    config = RuntimeConfig(
        model=str(path), dtype="float32", page_size=4, num_pages=20, max_step_tokens=20, max_rows=5, num_threads=1
    )
    runner = HostRunner(config)
    runner.load()
    runner.states = StateMemory(runner.decoder.state_shapes, 6)
    expected: dict[Request, list[int]] = {}
    drafter = Drafter([Oracle(lambda request: expected[request], wrong=0.3)], FreeCost(), max_draft_tokens=4)
    driver = Driver(runner, config, drafter=drafter)
    aborted: set[Request] = set()
    credit = Credit(2)
    made: list[list[int]] = [[256]]
    for _ in range(sized(40, usual=10)):
        base = rng.choice(made)
        tokens = base[: rng.randint(1, len(base))] + [rng.randrange(256) for _ in range(rng.randint(1, 12))]
        tokens = tokens[:30]
        generated = naive.generate(tokens, SamplingParams(max_tokens=6), 0, runner.tokenizer.eos_token_ids)
        made += [tokens, [*tokens, *generated[:3]]]
        options: dict[str, Any] = {"credit": credit if rng.random() < 0.25 else None}
        for _ in range(rng.choice([1, 1, 3])):
            request = driver.add(tokens, 6, branch_points=(len(tokens) // 2,), **options)
            expected[request] = generated
        for _ in range(rng.randint(0, 2)):
            driver.step()
        if rng.random() < 0.5 and driver.engine.scheduler.running:
            driver.engine.scheduler._preemption._preempt(rng.choice(driver.engine.scheduler.running))
        if rng.random() < 0.2 and request not in driver.last:
            driver.engine.abort(request)
            aborted.add(request)
    while len(driver.last) < len(expected):
        driver.run()
        driver.engine.grant(credit, 3)
    for request, generated in expected.items():
        if request in aborted:
            assert isinstance(driver.last[request].error, AbortedError)
        else:
            assert request.output_token_ids == generated
    driver.assert_idle()
    assert driver.engine.cache.states is not None
    assert driver.engine.cache.states.stats.num_hits > 5
    assert sum(request.stats.num_replayed_tokens for request in expected) > 0
    assert drafter.num_accepted.total() > 0
    assert driver.engine.scheduler.num_preemptions > 0
