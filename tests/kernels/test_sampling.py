"""Sampling: backends agree bit for bit, samples follow the softmax, masks hold, invalid rows affect no others."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from rtlang_kernels import ops
from rtlang_kernels.cpu import sampling as cpu_sampling
from rtlang_kernels.reference import noise
from tests.support.kernels.attention_cases import use_backend
from tests.support.long_tests import crossed, is_long, sized

BACKENDS = sorted(ops.BACKENDS)


def options(num_rows: int, **given: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "temperature": 1.0,
        "top_k": 0,
        "top_p": 1.0,
        "min_p": 0.0,
        "seeds": 0,
        "choices": 0,
        "steps": 0,
    }
    filled = {key: np.broadcast_to(np.asarray(given.get(key, value)), num_rows) for key, value in base.items()}
    return filled | {key: value for key, value in given.items() if key not in base}


def sample_rows(name: str, logits: Tensor, **given: Any) -> tuple[Tensor, Tensor]:
    with use_backend(name):
        return ops.sample(logits, **options(len(logits), **given))


def packed(allowed: NDArray[np.bool_]) -> NDArray[np.int32]:
    padded = np.zeros((len(allowed), -(-allowed.shape[1] // 32) * 32), np.bool_)
    padded[:, : allowed.shape[1]] = allowed
    return np.packbits(padded, axis=1, bitorder="little").view("<i4").astype(np.int32)


def test_philox_gives_the_published_words() -> None:
    # known answer of the Random123 distribution for philox4x32-10 with all inputs zero
    assert noise.philox(0, 0, 1).tolist() == [[0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]]


def test_noise_is_gumbel_to_float32_accuracy() -> None:
    words = np.random.default_rng(0).integers(0, 1 << 32, 100_000, dtype=np.uint32)
    uniform = np.minimum((words | 1) / 2.0**32, 1 - 2.0**-24)
    inner = -np.log1p(-uniform)
    got = noise.gumbel(words)
    assert np.abs(got + np.log(inner))[uniform < 0.999].max() < 2e-5
    assert noise.gumbel(np.array([0, 0xFFFFFFFF], np.uint32)) == pytest.approx([22.1807, -2.8115], abs=1e-3)
    assert [float(cpu_sampling.gumbel(int(word))) for word in words[:2000]] == got[:2000].tolist()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_backends_sample_the_same_tokens(dtype: torch.dtype) -> None:
    rng, generator = np.random.default_rng(0), torch.Generator().manual_seed(0)
    for vocab_size in (3, 31, 32, 33, 64, 100, 1000, 4099) if is_long() else (3, 32, 33, 1000):
        for spread in (0.0, 0.1, 3.0, 20.0):
            logits = (torch.randn(6, vocab_size, generator=generator) * spread).to(dtype)
            logits[0] = logits[0].round()  # ties
            logits[1, ::3] = float("-inf")
            masks = packed(rng.random((3, vocab_size)) < np.array([[0.5], [0.02], [0.0]]))
            given = {
                "temperature": rng.choice([0.0, 0.3, 1.0, 2.0], 6),
                "top_k": rng.choice([0, 0, 1, 3, 50], 6),
                "top_p": rng.choice([1.0, 1.0, 0.5, 0.9, 0.999], 6),
                "min_p": rng.choice([0.0, 0.0, 0.05], 6),
                "seeds": rng.integers(0, 1 << 63, 6, dtype=np.uint64),
                "choices": rng.integers(0, 4, 6),
                "steps": rng.integers(0, 1 << 40, 6),
                "bitmask": masks,
                "mask_rows": rng.integers(-1, 3, 6),
            }
            tokens, sound = sample_rows("cpu", logits, **given)
            want, want_sound = sample_rows("reference", logits, **given)
            assert torch.equal(tokens, want)
            assert torch.equal(sound, want_sound)


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("is_masked", [False, True], ids=["free", "masked"])
def test_sampled_tokens_follow_the_softmax(name: str, is_masked: bool) -> None:
    num_draws, vocab_size = sized(4000, usual=1500), 9
    logits = torch.randn(vocab_size, generator=torch.Generator().manual_seed(1)) * 1.5
    allowed = np.ones((1, vocab_size), np.bool_)
    if is_masked:
        allowed[0, [0, 4]] = False
    probabilities = torch.softmax(
        torch.where(torch.from_numpy(allowed[0]), logits / 0.8, -math.inf).double(), dim=0
    ).numpy()
    tokens, _ = sample_rows(
        name,
        logits.expand(num_draws, vocab_size),
        temperature=0.8,
        seeds=11,
        steps=np.arange(num_draws),
        bitmask=packed(allowed),
        mask_rows=np.zeros(num_draws, np.int32),
    )
    counts = np.bincount(tokens.numpy(), minlength=vocab_size)
    assert counts[~allowed[0]].sum() == 0
    expected = probabilities[allowed[0]] * num_draws
    chi_square = float(((counts[allowed[0]] - expected) ** 2 / expected).sum())
    assert chi_square < 26.1  # 0.1 % point at 8 degrees of freedom


def test_seeds_and_choices_give_independent_samples() -> None:
    logits = torch.zeros(2000, 4)
    by_seed = sample_rows("cpu", logits, seeds=np.arange(2000))[0].numpy()
    by_choice = sample_rows("cpu", logits, choices=np.arange(2000))[0].numpy()
    for tokens in (by_seed, by_choice, by_seed * 4 + by_choice):
        counts = np.bincount(tokens)
        expected = 2000 / len(counts)
        assert float(((counts - expected) ** 2 / expected).sum()) < 37.7  # 0.1 % point at 15 degrees of freedom


@pytest.mark.parametrize("name", BACKENDS)
def test_masks_are_never_violated(name: str) -> None:
    rng = np.random.default_rng(2)
    logits = torch.randn(40, 333, generator=torch.Generator().manual_seed(2)) * 5
    allowed = rng.random((40, 333)) < 0.05
    allowed[:, 7] = True
    for filters in ({}, {"top_k": 5}, {"top_p": 0.5}, {"temperature": 0.0}):
        tokens, sound = sample_rows(name, logits, bitmask=packed(allowed), mask_rows=np.arange(40), **filters)
        assert sound.all()
        assert allowed[np.arange(40), tokens.numpy()].all()


@pytest.mark.parametrize(("name", "temperature", "top_k"), crossed(BACKENDS, [0.0, 1.0], [0, 3]))
def test_invalid_rows_are_reported_and_do_not_affect_others(name: str, temperature: float, top_k: int) -> None:
    logits = torch.randn(6, 70, generator=torch.Generator().manual_seed(3))
    clean, _ = sample_rows(name, logits, temperature=temperature, top_k=top_k, seeds=np.arange(6))
    bad = logits.clone()
    bad[1, 69] = float("nan")
    bad[2] = float("-inf")
    bad[3, 5] = float("inf")
    masks = packed(np.stack((np.ones(70, np.bool_), np.zeros(70, np.bool_))))
    tokens, sound = sample_rows(
        name,
        bad,
        temperature=temperature,
        top_k=top_k,
        seeds=np.arange(6),
        bitmask=masks,
        mask_rows=[0, 0, -1, 0, 1, -1],
    )
    assert sound.tolist() == [True, False, False, False, False, True]
    assert tokens[[0, 5]].tolist() == clean[[0, 5]].tolist()
    assert tokens[1:5].tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("name", BACKENDS)
def test_filters_apply_in_order(name: str) -> None:
    logits = torch.log(torch.tensor([[0.4, 0.3, 0.2, 0.07, 0.03]])).expand(600, 5)

    def reached(**given: Any) -> set[int]:
        return set(sample_rows(name, logits, steps=np.arange(600), **given)[0].tolist())

    assert reached() == {0, 1, 2, 3, 4}
    assert reached(top_k=2) == {0, 1}
    assert reached(top_p=0.65) == {0, 1}
    assert reached(top_k=2, top_p=0.55) == {0}  # 0.4 of the renormalised 0.7 is over 0.55; 0.4 of all would not be
    assert reached(min_p=0.45) == {0, 1, 2}
    assert reached(temperature=0.0) == {0}


@pytest.mark.parametrize("name", BACKENDS)
def test_a_row_does_not_depend_on_its_neighbours(name: str) -> None:
    logits = torch.randn(8, 500, generator=torch.Generator().manual_seed(4))
    seeds = np.arange(8)
    together = sample_rows(name, logits, seeds=seeds)[0]
    order = np.array([5, 2, 7, 0, 1, 3, 6, 4])
    assert torch.equal(sample_rows(name, logits[order], seeds=seeds[order])[0], together[order])
    assert [sample_rows(name, logits[i : i + 1], seeds=seeds[i])[0].item() for i in range(8)] == together.tolist()


@pytest.mark.parametrize("name", BACKENDS)
def test_logprobs_are_the_log_softmax(name: str) -> None:
    logits = torch.randn(4, 50, generator=torch.Generator().manual_seed(5))
    logits[0, 7] = logits[0, 30] = 9.0
    token_ids = torch.tensor([3, 0, 49, 20])
    with use_backend(name):
        chosen, top_ids, top_values = ops.logprobs(logits, token_ids, 3)
    want = torch.log_softmax(logits.double(), dim=-1)
    torch.testing.assert_close(chosen.double(), want[torch.arange(4), token_ids], atol=1e-5, rtol=0)
    torch.testing.assert_close(top_values.double(), want.gather(1, top_ids), atol=1e-5, rtol=0)
    assert top_ids[0, :2].tolist() == [7, 30]
    assert torch.equal(top_ids[:, 0], logits.argmax(-1))


@pytest.mark.parametrize("num_top", [0, 1, 5, 300, 1000])
def test_the_likeliest_tokens_are_those_of_a_stable_sort(num_top: int) -> None:
    logits = torch.randn(4, 1000, generator=torch.Generator().manual_seed(6)).round(decimals=1)  # many are equal
    logits[1, ::3] = -math.inf
    logits[2] = 0.0
    token_ids = torch.tensor([3, 0, 999, 20])
    found = ops.logprobs(logits.bfloat16(), token_ids, num_top)
    values = torch.log_softmax(logits.bfloat16().float(), dim=-1)
    order = np.argsort(-values.numpy(), axis=1, kind="stable")[:, :num_top]
    assert torch.equal(found[0], values[torch.arange(4), token_ids])
    assert found[1].tolist() == order.tolist()
    assert found[2].tolist() == np.take_along_axis(values.numpy(), order, 1).tolist()


def test_token_masks_and_penalties() -> None:
    logits = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    ops.apply_token_mask(logits, packed(np.array([[True, False, True]])), [-1, 0])
    assert logits.tolist() == [[1.0, 2.0, 3.0], [4.0, -math.inf, 6.0]]
    row = torch.tensor([2.0, -2.0, 1.0, 1.0])
    ops.apply_penalties(
        row,
        prompt_token_ids=[0],
        output_token_ids=[1, 1, 2],
        repetition_penalty=2.0,
        presence_penalty=0.5,
        frequency_penalty=0.25,
    )
    assert row.tolist() == [1.0, -4.0 - 0.5 - 0.5, 0.5 - 0.5 - 0.25, 1.0]


def test_wrong_settings_are_named() -> None:
    with pytest.raises(ValueError, match="temperature"):
        ops.sample(torch.zeros(2, 4), **(options(2) | {"temperature": [1.0]}))
    with pytest.raises(ValueError, match="bitmask"):
        sample_rows("cpu", torch.zeros(2, 40), bitmask=np.zeros((1, 1), np.int32), mask_rows=[0, 0])
    with pytest.raises(ValueError, match="mask_rows"):
        sample_rows("cpu", torch.zeros(2, 4), bitmask=np.zeros((1, 1), np.int32), mask_rows=[0, 1])
