"""GPU sampling gives the tokens of the reference, bit for bit, in the interpreter, or natively with RTLANG_TEST_DEVICE=cuda."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from numpy.typing import NDArray
from torch import Tensor

from rtlang_kernels import ops
from rtlang_kernels.reference import noise
from rtlang_kernels.triton.sampling import noise_kernel, sampler
from tests.support.kernels.attention_cases import use_backend
from tests.support.kernels.gpu import DEVICE


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several chunks for a small vocabulary."""
    monkeypatch.setattr(sampler, "CHUNK", 128)
    monkeypatch.setattr(sampler, "FILTER_CHUNK", 256)
    monkeypatch.setattr(sampler, "CAPACITY", 128)


@triton.jit
def write_rough_noise(words: Any, out: Any, BLOCK: tl.constexpr) -> None:
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    variate = noise_kernel.rough_gumbel(tl.load(words + place).to(tl.uint32, bitcast=True))
    tl.store(out + place, variate)


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


def both(logits: Tensor, **given: Any) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Tokens sampled by the kernels, and by the reference."""
    filled = options(len(logits), **given)
    with use_backend("triton"):
        tokens, sound = ops.sample(logits.to(DEVICE), **filled)
    with use_backend("reference"):
        return (tokens.cpu(), sound.cpu()), ops.sample(logits, **filled)


def check(logits: Tensor, **given: Any) -> Tensor:
    (tokens, sound), (want, want_sound) = both(logits, **given)
    assert torch.equal(sound, want_sound)
    assert torch.equal(tokens, want)
    return tokens


def packed(allowed: NDArray[np.bool_]) -> NDArray[np.int32]:
    padded = np.zeros((len(allowed), -(-allowed.shape[1] // 32) * 32), np.bool_)
    padded[:, : allowed.shape[1]] = allowed
    return np.packbits(padded, axis=1, bitorder="little").view("<i4").astype(np.int32)


def test_batched_noise_keys_equal_single_ones() -> None:
    rng = np.random.default_rng(0)
    seeds = np.append(rng.integers(0, 2**64, 50, dtype=np.uint64), np.uint64(2**64 - 1))
    choices = np.append(rng.integers(0, 2**31, 50), 2**31 - 1).astype(np.int32)
    want = [noise.mix_key(int(seed), int(choice)) for seed, choice in zip(seeds, choices, strict=True)]
    assert noise.mix_keys(seeds, choices).tolist() == want


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("is_filtered", [False, True], ids=["free", "filtered"])
@pytest.mark.parametrize("vocab_size", [3, 100, 333])
def test_tokens_match_the_reference(dtype: torch.dtype, is_filtered: bool, vocab_size: int) -> None:
    rng, generator = np.random.default_rng(vocab_size), torch.Generator().manual_seed(vocab_size)
    for spread in (0.1, 3.0, 20.0) if vocab_size == 100 else (3.0,):
        logits = (torch.randn(6, vocab_size, generator=generator) * spread).to(dtype)
        logits[0] = logits[0].round()  # ties
        logits[1, ::3] = float("-inf")
        given: dict[str, Any] = {
            "temperature": rng.choice([0.0, 0.3, 1.0, 2.0], 6),
            "seeds": rng.integers(0, 1 << 63, 6, dtype=np.uint64),
            "choices": rng.integers(0, 4, 6),
            "steps": rng.integers(0, 1 << 40, 6),
            "bitmask": packed(rng.random((3, vocab_size)) < np.array([[0.5], [0.1], [0.0]])),
            "mask_rows": rng.integers(-1, 3, 6),
        }
        if is_filtered:
            given |= {
                "top_k": rng.choice([0, 1, 3, 50], 6),
                "top_p": rng.choice([1.0, 0.5, 0.9, 0.999], 6),
                "min_p": rng.choice([0.0, 0.0, 0.05], 6),
            }
        check(logits, **given)


def exact_kept(row: NDArray[np.float32], top_k: int, top_p: float, min_p: float) -> NDArray[np.int64]:
    """Tokens that filters retain of a row of scaled logits, in float64 and by sorting: likeliest first, then the lower id."""
    x = row.astype(np.float64)
    order = np.lexsort((np.arange(len(x)), -x))
    order = order[x[order] > -np.inf]
    order = order[:top_k] if top_k else order
    weights = np.exp(x[order] - x[order[0]])
    before = np.cumsum(weights) - weights
    return order[((before < top_p * weights.sum()) | (top_p >= 1)) & (weights >= min_p)]


@pytest.mark.parametrize(
    "filters",
    [
        {"top_k": 1},
        {"top_k": 40},
        {"top_k": 40, "top_p": 0.7},
        {"top_k": 900, "top_p": 0.7},
        {"top_p": 0.3},
        {"top_p": 0.98},
        {"top_p": 0.9999999},
        {"min_p": 0.2},
        {"min_p": 1.0},
        {"top_p": 0.9, "min_p": 0.01},
        {"top_k": 60, "top_p": 0.9, "min_p": 0.05},
    ],
    ids=str,
)
@pytest.mark.parametrize("spread", [0.02, 1.0, 4.0])
def test_candidates_include_all_retained_tokens(
    filters: dict[str, float], spread: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against float64 and a sort: no retained token is missing, every sample is the best of them, few others are included."""
    held: dict[str, Tensor] = {}
    choose = sampler.filter_choose

    class Seen:
        def __getitem__(self, grid: Any) -> Any:
            def launch(*args: Any, **options: Any) -> None:
                names = ("cuts", "starts", "totals", "retained_ks", "num_chunks", "candidates")
                held.update(zip(names, args[-7:-1], strict=True))
                choose[grid](*args, **options)

            return launch

    monkeypatch.setattr(sampler, "filter_choose", Seen())
    count, vocab_size = 3, 700
    logits = torch.randn(count, vocab_size, generator=torch.Generator().manual_seed(1)) * spread
    logits[1] = logits[1].round()
    logits[2, :650] = -torch.inf
    tokens = check(logits, temperature=0.8, seeds=np.arange(count), steps=5, **filters)
    full = {"top_k": 0, "top_p": 1.0, "min_p": 0.0} | filters
    num_chunks = int(held["num_chunks"])
    assert num_chunks == 6
    for row in range(count):
        scaled = logits[row].numpy() * (np.float32(1) / np.float32(0.8))
        kept = exact_kept(
            scaled, int(full["top_k"]), float(np.float32(full["top_p"])), float(np.float32(full["min_p"]))
        )
        words = noise.philox(noise.mix_key(row, 0), 5, vocab_size // 4).reshape(-1)
        scores = scaled[kept] + noise.gumbel(words[kept])
        assert int(tokens[row]) == int(kept[np.lexsort((kept, -scores))[0]])
        if int(held["cuts"][row]) < 0:
            assert len(kept) > 64 or spread < 1 or row == 1, (
                "a row without ties that fits is drawn among its candidates"
            )
            continue
        number = int(held["starts"][count * num_chunks + row])
        found = held["candidates"][row, :number].cpu().numpy()
        assert (np.diff(found) > 0).all()
        assert set(kept.tolist()) <= set(found.tolist())
        distance = scaled.max() - scaled[found]
        assert distance.max() <= scaled.max() - scaled[kept].min() + 1.0 or full["top_k"] or full["top_p"] > 0.999


@pytest.mark.parametrize(
    "filters",
    [{}, {"top_k": 7}, {"top_p": 0.6}, {"min_p": 0.5}, {"top_k": 200, "top_p": 0.6}, {"top_k": 300, "min_p": 0.2}],
    ids=str,
)
def test_equal_logits_are_cut_by_the_lower_id(filters: dict[str, Any]) -> None:
    """All weights equal: the first tokens are retained, and samples among them are uniform."""
    logits = torch.zeros(4, 300)
    logits[2:, 150:] = -1.0
    tokens = check(logits, steps=np.arange(4), **filters)
    assert len(set(tokens.tolist())) > 1
    if filters == {"top_k": 7}:
        assert int(tokens.max()) < 7


def test_filtered_samples_are_retained_tokens() -> None:
    logits = torch.log(torch.tensor([[0.4, 0.3, 0.2, 0.07, 0.03]])).expand(5, 5)
    for filters, want in (
        ({"top_k": 2}, {0, 1}),
        ({"top_p": 0.65}, {0, 1}),
        ({"top_k": 2, "top_p": 0.55}, {0}),  # 0.4 of the renormalised 0.7 is over 0.55
        ({"min_p": 0.45}, {0, 1, 2}),
    ):
        assert set(check(logits, steps=np.arange(5), **filters).tolist()) <= want


@pytest.mark.parametrize("top_k", [0, 3])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_invalid_rows_are_reported_and_do_not_affect_others(temperature: float, top_k: int) -> None:
    bad = torch.randn(6, 300, generator=torch.Generator().manual_seed(3))
    bad[1, 299] = float("nan")
    bad[2] = float("-inf")
    bad[3, 5] = float("inf")
    masks = packed(np.stack((np.ones(300, np.bool_), np.zeros(300, np.bool_))))
    rows = [0, 0, -1, 0, 1, -1]
    (tokens, sound), _ = both(
        bad, temperature=temperature, top_k=top_k, seeds=np.arange(6), bitmask=masks, mask_rows=rows
    )
    assert sound.tolist() == [True, False, False, False, False, True]
    assert tokens[1:5].tolist() == [0, 0, 0, 0]
    check(bad, temperature=temperature, top_k=top_k, seeds=np.arange(6), bitmask=masks, mask_rows=rows)


def test_a_forbidden_infinite_logit_is_ignored() -> None:
    logits = torch.randn(2, 100, generator=torch.Generator().manual_seed(4))
    logits[0, 7] = float("inf")
    allowed = np.ones((1, 100), np.bool_)
    allowed[0, 7] = False
    check(logits, bitmask=packed(allowed), mask_rows=[0, -1], seeds=[1, 2])


def test_rows_may_be_strided() -> None:
    wide = torch.randn(4, 700, generator=torch.Generator().manual_seed(6))
    check(wide[:, :300], seeds=np.arange(4))
    check(wide.T[:300].contiguous().T, seeds=np.arange(4))


def test_the_approximate_noise_is_within_its_margin() -> None:
    """Over the hardest words for a logarithm: the smallest, the largest, around the switch of formulas, and random ones."""
    edges = [np.arange(4096), 0xFFFFFFFF - np.arange(4096), int(0.02 * 2**32) + np.arange(-2048, 2048)]
    edges += [int(0.29289321 * 2**32) + np.arange(-2048, 2048), int((1 - np.exp(-1)) * 2**32) + np.arange(-2048, 2048)]
    random = np.random.default_rng(0).integers(0, 1 << 32, 45_056)
    words = np.concatenate([*edges, random]).astype(np.uint32)
    there = torch.from_numpy(words.view(np.int32)).to(DEVICE)
    rough = torch.empty(len(words), dtype=torch.float32, device=DEVICE)
    write_rough_noise[(len(words) // 8192,)](there, rough, BLOCK=8192)
    rough = rough.cpu().numpy()
    assert np.abs(rough - noise.gumbel(words)).max() < 5e-5


def test_constants_survive_as_float32() -> None:
    assert np.float32(noise_kernel.LN_2.value) == noise.LN_2
    assert np.float32(noise_kernel.E5.value) == noise.EXP2_COEFFICIENTS[5]
