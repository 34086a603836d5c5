"""Which tokens the filters leave, against transformers and against their definitions in plain float64."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    MinPLogitsWarper,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
    TypicalLogitsWarper,
)

from rtlang.contract.params import SamplingParams
from rtlang.contract.step import LogitFilters, Row
from rtlang.model.filters.truncation import surprise, truncate
from rtlang.model.sampler import sample_tokens
from tests.support.long_tests import sized

VOCAB = 70
TRUNCATING = LogitFilters(truncates=True)


def row(max_surprise: float = 0.0, **options: Any) -> Row:
    params = SamplingParams(**{"temperature": 1.0, **options})
    return Row(0, (1,), 0, (0,), 0, True, params, seed=5, filters=TRUNCATING, max_surprise=max_surprise)


def random_logits(seed: int, spread: float = 2.5) -> torch.Tensor:
    return spread * torch.randn(VOCAB, generator=torch.Generator().manual_seed(seed))


def kept(logits: torch.Tensor, made: Row, mask: torch.Tensor | None = None) -> set[int]:
    return set(torch.nonzero(truncate(logits, made, mask) > -torch.inf)[:, 0].tolist())


def probabilities(logits: dict[int, float]) -> dict[int, float]:
    highest = max(logits.values())
    weights = {token_id: math.exp(value - highest) for token_id, value in logits.items()}
    total = math.fsum(weights.values())
    return {token_id: weight / total for token_id, weight in weights.items()}


@pytest.mark.parametrize("mass", [0.05, 0.3, 0.7, 0.95, 0.999])
def test_typical_p_is_that_of_transformers(mass: float) -> None:
    for seed in range(sized(400, usual=40)):
        logits = random_logits(seed, spread=0.5 + seed % 5)
        warped = TypicalLogitsWarper(mass=mass)(None, logits[None].double())[0]
        assert kept(logits, row(typical_p=mass)) == set(torch.nonzero(warped > -torch.inf)[:, 0].tolist())


def test_the_filters_follow_each_other_as_those_of_transformers_do() -> None:
    rng = random.Random(3)
    for seed in range(sized(1000, usual=100)):
        logits = random_logits(seed)
        temperature, top_k = rng.choice([0.4, 1.0, 1.7]), rng.choice([3, 20, 60])
        typical_p, top_p, min_p = rng.choice([0.2, 0.8, 0.95]), rng.choice([0.5, 0.9]), rng.choice([0.02, 0.2])
        options = {"typical_p": typical_p, "top_k": top_k, "top_p": top_p, "min_p": min_p, "temperature": temperature}
        warped = logits[None].double()
        for warper in (
            TemperatureLogitsWarper(temperature),
            TopKLogitsWarper(top_k),
            TypicalLogitsWarper(typical_p),
            TopPLogitsWarper(top_p),
            MinPLogitsWarper(min_p),
        ):
            warped = warper(None, warped)
        left = truncate(logits, row(**options), None)
        torch.testing.assert_close(left.double(), warped[0], atol=1e-5, rtol=1e-6)


@pytest.mark.parametrize("num_sigmas", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_top_n_sigma_leaves_logits_within_so_many_deviations_of_the_highest(
    num_sigmas: float, temperature: float
) -> None:
    """Whatever the temperature is."""
    for seed in range(40):
        logits = random_logits(seed)
        values = logits.tolist()
        mean = math.fsum(values) / VOCAB
        deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / VOCAB)
        wanted = {i for i, value in enumerate(values) if value >= max(values) - num_sigmas * deviation}
        assert kept(logits, row(top_n_sigma=num_sigmas, temperature=temperature)) == wanted


@pytest.mark.parametrize("threshold", [0.01, 0.05, 0.1, 0.3])
def test_xtc_excludes_all_likely_tokens_but_the_least_likely_of_them(threshold: float) -> None:
    num_excluding = 0
    for seed in range(60):
        logits = random_logits(seed)
        of = probabilities(dict(enumerate(logits.double().tolist())))
        top = sorted((token_id for token_id in of if of[token_id] >= threshold), key=of.__getitem__)
        num_excluding += len(top) > 1
        assert kept(logits, row(xtc_probability=1.0, xtc_threshold=threshold)) == set(of) - set(top[1:])
    assert num_excluding > 1


def test_xtc_works_so_often_and_by_the_noise_key_alone() -> None:
    logits = random_logits(1)
    made = row(xtc_probability=0.3, xtc_threshold=0.02)
    everything = set(range(VOCAB))
    keys = [
        {"seed": seed, "choice": choice, "num_output_tokens": n}
        for seed in range(20)
        for choice in (0, 3)
        for n in range(50)
    ]
    works = [kept(logits, made._replace(**key)) != everything for key in keys]
    assert abs(np.mean(works) - 0.3) < 4 * math.sqrt(0.3 * 0.7 / len(keys))
    assert works == [kept(logits, made._replace(**key)) != everything for key in keys]


@pytest.mark.parametrize("limit", [-1.0, 0.5, 2.0, 4.5, 20.0])
def test_mirostat_excludes_tokens_more_surprising_than_its_limit(limit: float) -> None:
    for seed in range(40):
        logits = random_logits(seed)
        of = probabilities(dict(enumerate(logits.double().tolist())))
        wanted = {token_id for token_id in of if -math.log2(of[token_id]) <= limit} or {int(logits.argmax())}
        left = truncate(logits, row(limit, mirostat=2), None)
        assert set(torch.nonzero(left > -torch.inf)[:, 0].tolist()) == wanted
        among = probabilities({token_id: float(logits[token_id]) for token_id in wanted})
        for token_id in wanted:
            assert float(surprise(left, token_id)) == pytest.approx(-math.log2(among[token_id]), abs=1e-5)


@pytest.mark.parametrize(("spread", "exponent"), [(0.5, 1.0), (0.8, 0.5), (2.0, 3.0)])
def test_the_temperature_follows_the_entropy(spread: float, exponent: float) -> None:
    for seed in range(40):
        logits = random_logits(seed, spread=0.2 + seed % 6)
        of = probabilities(dict(enumerate(logits.double().tolist())))
        entropy = -math.fsum(p * math.log(p) for p in of.values())
        low, high = max(0.0, 1.0 - spread), 1.0 + spread
        temperature = low + (high - low) * (entropy / math.log(VOCAB)) ** exponent
        left = truncate(logits, row(dynatemp_range=spread, dynatemp_exponent=exponent), None)
        torch.testing.assert_close(left.double(), logits.double() / temperature, atol=1e-4, rtol=1e-5)


OPTIONS: list[dict[str, Any]] = [
    {"typical_p": 0.4},
    {"top_n_sigma": 0.7},
    {"xtc_probability": 1.0, "xtc_threshold": 0.05},
    {"mirostat": 2},
    {"dynatemp_range": 0.9, "top_p": 0.6},
    {"typical_p": 0.9, "top_k": 9, "min_p": 0.05, "xtc_probability": 0.5, "top_n_sigma": 1.5},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_only_allowed_tokens_count(options: dict[str, Any]) -> None:
    """A mask leaves what is left of a smaller vocabulary."""
    rng = random.Random(str(options))
    for seed in range(40):
        logits = random_logits(seed)
        allowed = sorted(rng.sample(range(VOCAB), rng.choice([1, 2, 9, 40])))
        words = np.zeros(-(-VOCAB // 32), dtype=np.uint32)
        for token_id in allowed:
            words[token_id // 32] |= np.uint32(1) << np.uint32(token_id % 32)
        made = row(3.0, **options)
        left = truncate(logits, made, torch.from_numpy(words.view(np.int32)))
        torch.testing.assert_close(left[allowed], truncate(logits[allowed], made, None))
        assert set(torch.nonzero(left > -torch.inf)[:, 0].tolist()) <= set(allowed)
        assert torch.isfinite(left).any()


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_logits_that_are_not_finite_stay_so(options: dict[str, Any], value: float) -> None:
    logits = random_logits(3)
    logits[int(logits.argmin())] = value
    assert sample_tokens(logits[None], [row(3.0, **options)], None) == [None]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_row_is_sampled_from_the_distribution_that_is_left(options: dict[str, Any]) -> None:
    logits = random_logits(8, spread=1.5)
    rows = [row(3.5, **options)._replace(seed=seed) for seed in range(sized(20_000, usual=1000))]
    sampled = sample_tokens(logits.repeat(len(rows), 1), rows, None)
    found = np.zeros(VOCAB)
    expected = np.zeros(VOCAB)
    for made, each in zip(rows, sampled, strict=True):
        assert each is not None
        found[each.token_id] += 1
        left = truncate(logits, made, None)
        expected += torch.softmax(left.double(), 0).numpy()
        if made.params.mirostat:
            assert each.surprise == pytest.approx(float(surprise(left, each.token_id)))
        else:
            assert each.surprise is None
    assert set(np.flatnonzero(found)) <= set(np.flatnonzero(expected))
    assert np.all(np.abs(found - expected) <= 5 * np.sqrt(expected) + 3)
