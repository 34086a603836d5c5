"""Lines of int8 against numpy, number by number, on every backend."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from rtlang_kernels import ops
from rtlang_kernels.reference.kv_cache import quantized, scales_of
from tests.support.kernels.attention_cases import int8_pool, lines_of, numbers_of, use_backend


def line_of(head: NDArray[np.float32]) -> tuple[NDArray[np.int8], float]:
    """Values and scale of one head, by the definition."""
    largest = np.float32(0)
    for element in head:
        if not np.isfinite(element):
            return np.zeros(len(head), np.int8), float("nan")
        largest = max(largest, np.abs(element))
    exact = largest / np.float32(127)
    bits = int(exact.view(np.uint32))
    scale = np.uint32((bits >> 16) + (bits % 65536 > 0) << 16).view(np.float32)
    if scale == 0:
        return np.zeros(len(head), np.int8), 0.0
    return np.array([np.rint(element / scale) for element in head], np.float32).astype(np.int8), float(scale)


def heads_of(size: int, dtype: torch.dtype) -> torch.Tensor:
    """Heads [tokens, 2, size]: random ones of all magnitudes, and every kind of special one."""
    generator = torch.Generator().manual_seed(size)
    heads = torch.randn(24, 2, size, generator=generator)
    heads *= 10.0 ** torch.linspace(-30, 30, 24)[:, None, None]
    heads[0], heads[1, 0], heads[1, 1] = 0.0, 1e-45, 127 * 2.0**-133
    heads[2, 0, -1], heads[2, 1, 0], heads[3, 0, size // 2] = float("nan"), float("inf"), -float("inf")
    heads[3, 1], heads[4, 0] = 3.38e38, torch.arange(size) % 2 - 0.5  # the largest number, and ties
    heads[4, 1] = torch.arange(size).float().clamp(max=127) - 63.5
    return heads.to(dtype)


@pytest.mark.parametrize("size", [64, 80, 11])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", ["reference", "cpu"])
def test_lines_follow_their_definition(name: str, dtype: torch.dtype, size: int) -> None:
    heads = heads_of(size, dtype)
    slots = torch.randperm(30, generator=torch.Generator().manual_seed(0))[: len(heads)]
    pools = [int8_pool(30, 2, size) for _ in range(2)]
    before = lines_of(pools[0]).clone()
    with use_backend(name):
        ops.write_kv(heads, heads.flip(0), *pools, slots)
    for pool, given in zip(pools, (heads, heads.flip(0)), strict=True):
        found, scales = pool[slots], scales_of(pool)[slots].float()
        for token, head in np.ndindex(len(given), 2):
            values, scale = line_of(given[token, head].float().numpy())
            assert np.array_equal(found[token, head].numpy(), values)
            assert np.array_equal(scales[token, head].numpy(), np.float32(scale), equal_nan=True)
    others = torch.ones(30, dtype=torch.bool)
    others[slots] = False
    assert torch.equal(lines_of(pools[0])[others], before[others])


def test_an_element_is_within_half_a_step() -> None:
    heads = torch.randn(200, 3, 64, generator=torch.Generator().manual_seed(1))
    pool = int8_pool(200, 3, 64)
    ops.write_kv(heads, heads, pool, int8_pool(200, 3, 64), torch.arange(200))
    steps = scales_of(pool).double()[..., None]
    largest = heads.abs().amax(-1, keepdim=True).double()
    assert bool(((numbers_of(pool) - heads.double()).abs() <= steps / 2 * (1 + 1e-6)).all())
    assert bool((steps <= largest / 127 * (1 + 2.0**-7)).all())
    assert int(quantized(heads)[0].abs().max()) == 127
