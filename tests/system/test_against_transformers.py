"""The engine's tokens are those of `transformers` generating one sequence at a time, whatever the batch, the cache and the pool do."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import AbortedError
from rtlang.contract.params import SamplingParams
from rtlang.engine.requests.request import Request
from rtlang.model.host_runner import HostRunner
from rtlang_kernels.contract.sampler_settings import checked_settings
from rtlang_kernels.reference import sampling
from tests.support.engine.engine_driver import EngineDriver
from tests.support.models.tiny_models import make_checkpoint

CASES = [
    ("llama", "native"),
    ("mistral", "native"),
    ("qwen2", "native"),
    ("qwen3", "native"),
    ("llama", "transformers"),
    ("gemma2", "transformers"),
    ("gemma3", "transformers"),
]


class Naive:
    """Whole-prompt forward passes of the stock model, one token at a time, no cache."""

    def __init__(self, path: Path) -> None:
        import transformers

        self.model = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
        self.model.eval()

    @torch.inference_mode()
    def logits(self, tokens: Sequence[int]) -> torch.Tensor:
        return self.model(input_ids=torch.tensor([list(tokens)]), use_cache=False).logits[0, -1:].float()

    def generate(self, prompt: Sequence[int], params: SamplingParams, seed: int, eos: frozenset[int]) -> list[int]:
        tokens = list(prompt)
        for step in range(params.max_tokens):
            token = draw(self.logits(tokens), params, seed, step)
            if token in eos:
                break
            tokens.append(token)
        return tokens[len(prompt) :]


def draw(logits: torch.Tensor, params: SamplingParams, seed: int, step: int) -> int:
    """One token by the reference sampler, which knows one row and nothing else."""
    settings = checked_settings(
        1,
        logits.shape[1],
        np.array([params.temperature], np.float32),
        np.array([params.top_k], np.int64),
        np.array([params.top_p], np.float32),
        np.array([params.min_p], np.float32),
        np.array([seed], np.uint64),
        np.zeros(1, np.int32),
        np.array([step], np.int64),
        None,
        None,
    )
    return int(sampling.sample(logits, settings)[0][0])


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("models")
    return {family: make_checkpoint(root / family, family) for family in {family for family, _ in CASES}}


@pytest.mark.parametrize(("family", "decoder"), CASES)
def test_random_batches_give_the_tokens_of_transformers(
    family: str, decoder: str, checkpoints: dict[str, Path]
) -> None:
    rng = random.Random(f"{family}{decoder}")
    naive = Naive(checkpoints[family])
    for num_pages, max_step_tokens in ((14, 24), (200, 40)):
        config = RuntimeConfig(
            model=str(checkpoints[family]),
            dtype="float32",
            decoder=decoder,
            page_size=4,
            num_pages=num_pages,
            max_step_tokens=max_step_tokens,
            max_rows=6,
            num_threads=1,
        )
        runner = HostRunner(config)
        runner.load()
        driver = EngineDriver(runner, config)
        expected: dict[Request, list[int]] = {}
        aborted: set[Request] = set()
        made: list[list[int]] = [[256]]
        for _ in range(14):
            base = rng.choice(made)
            tokens = base[: rng.randint(1, len(base))] + [rng.randrange(256) for _ in range(rng.randint(1, 12))]
            tokens = tokens[:36]
            made.append(tokens)
            options: dict[str, Any] = {}
            if rng.random() < 0.5:
                options = {"temperature": 0.8, "top_k": rng.choice([0, 20]), "top_p": rng.choice([1.0, 0.9])}
            max_tokens, seed = rng.randint(1, 12), rng.randrange(1 << 40)
            request = driver.add(tokens, max_tokens, seed=seed, params=options)
            expected[request] = naive.generate(tokens, request.spec.params, seed, runner.tokenizer.eos_token_ids)
            for _ in range(rng.randint(0, 3)):
                driver.step()
            if rng.random() < 0.2 and request not in driver.last:
                driver.engine.abort(request)
                aborted.add(request)
        driver.run()
        for request, tokens in expected.items():
            if request in aborted:
                assert isinstance(driver.last[request].error, AbortedError)
            else:
                assert request.output_token_ids == tokens
        driver.assert_idle()
        if num_pages == 14:
            assert driver.engine.scheduler.num_preemptions + driver.engine.cache.stats.num_evicted_pages > 0


def test_scores_are_the_log_probabilities_of_transformers(checkpoints: dict[str, Path]) -> None:
    naive = Naive(checkpoints["llama"])
    config = RuntimeConfig(
        model=str(checkpoints["llama"]), dtype="float32", page_size=4, num_pages=40, max_step_tokens=10, num_threads=1
    )
    runner = HostRunner(config)
    runner.load()
    driver = EngineDriver(runner, config)
    rng = random.Random(0)
    prefix = [256, *(rng.randrange(256) for _ in range(17))]
    requests = [
        driver.add(prefix + [rng.randrange(256) for _ in range(n)], score_from=18, score_only=True) for n in (1, 4, 9)
    ]
    driver.run()
    for request in requests:
        tokens = request.token_ids
        expected = [
            float(torch.log_softmax(naive.logits(tokens[:i]).double(), -1)[0, tokens[i]])
            for i in range(18, len(tokens))
        ]
        assert [score.logprob for score in request.results.scores] == pytest.approx(expected, abs=2e-5)
    driver.assert_idle()
