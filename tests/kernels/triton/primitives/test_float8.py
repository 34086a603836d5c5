"""KV in float8: rounded like torch, read exactly."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import triton.language as tl

from rtlang_kernels import ops
from rtlang_kernels.triton.primitives.float8 import read_float8
from rtlang_kernels.triton.primitives.jit import jit
from tests.support.kernels.attention_cases import Tree, exact, make_step, relative_error, use_backend
from tests.support.kernels.gpu import DEVICE, TOLERANCE, on_device, planned

FLOAT8 = torch.float8_e4m3fn


@jit
def read_codes(codes: tl.tensor, out: tl.tensor, IS_NATIVE: tl.constexpr) -> None:
    index = tl.arange(0, 256)
    tl.store(out + index, read_float8(tl.load(codes + index), IS_NATIVE))


@pytest.mark.parametrize("is_native", [False, True])
def test_every_code_is_read_like_torch(is_native: bool) -> None:
    codes = torch.arange(256, dtype=torch.uint8, device=DEVICE)
    out = torch.empty(256, dtype=torch.float16, device=DEVICE)
    read_codes[(1,)](codes, out, IS_NATIVE=is_native)
    found, want = out.cpu(), codes.cpu().view(FLOAT8).half()
    is_number = ~want.isnan()
    assert int(is_number.sum()) == 254
    assert torch.equal(found[is_number].view(torch.int16), want[is_number].view(torch.int16))
    if DEVICE.type == "cuda" or not is_native:  # the interpreter has no NaN in float8
        assert bool(found[~is_number].isnan().all())


def rounded(x: torch.Tensor) -> torch.Tensor:
    """x rounded by torch, saturated at the limit."""
    return x.float().clamp(-448, 448).to(FLOAT8)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_values_are_rounded_like_torch(dtype: torch.dtype) -> None:
    every = torch.arange(256, dtype=torch.uint8).view(FLOAT8).float()
    every = every[every.isfinite()]
    middles = (every[:-1] + every[1:]) / 2  # ties, with both signs
    random = torch.randn(1500, generator=torch.Generator().manual_seed(0)) * torch.logspace(-4, 3, 1500)
    x = torch.cat([every, middles, random, torch.tensor([1e4, -1e5, 0.0, -0.0])])
    x = x[: len(x) // 16 * 16].to(dtype).view(-1, 2, 8)
    pools = torch.zeros(2, len(x) + 3, 2, 8, dtype=FLOAT8, device=DEVICE)
    slots = torch.randperm(len(x), generator=torch.Generator().manual_seed(1)) + 3
    with use_backend("triton"):
        ops.write_kv(x.to(DEVICE), -x.to(DEVICE), pools[0], pools[1], slots.to(DEVICE))
    assert torch.equal(pools[0].cpu()[slots].view(torch.uint8), rounded(x).view(torch.uint8))
    assert torch.equal(pools[1].cpu()[slots].view(torch.uint8), rounded(-x).view(torch.uint8))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_attention_reads_written_keys_and_values(dtype: torch.dtype) -> None:
    tree = Tree([70, 70, 50], [1, 4, 1], [0, 48, 48], 16)
    step = make_step(tree, num_kv_heads=2, group=2, head_dim=24, dtype=dtype)
    there = on_device(step)
    pools = [rounded(pool).to(DEVICE) for pool in (step.k_pool, step.v_pool)]
    with use_backend("triton"):
        out = ops.paged_attention(there.q, *pools, planned(there), scale=0.3)
    held = make_step(tree, num_kv_heads=2, group=2, head_dim=24, dtype=dtype)
    for pool, codes in zip((held.k_pool, held.v_pool), pools, strict=True):
        pool.copy_(codes.cpu().to(dtype))
    want, _ = exact(held, scale=0.3)
    assert relative_error(out.cpu(), want) < TOLERANCE[dtype]


def test_rotated_keys_are_written() -> None:
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(3, heads, 16, generator=generator) for heads in (4, 2, 2))
    angles = torch.outer(torch.arange(9), torch.logspace(0, -2, 8))
    positions, slots = torch.tensor([0, 5, 8]), torch.tensor([4, 1, 2])
    plain = [torch.zeros(6, 2, 16) for _ in range(2)]
    small = [torch.zeros(6, 2, 16, dtype=FLOAT8, device=DEVICE) for _ in range(2)]
    with use_backend("triton"):
        moved = [x.clone().to(DEVICE) for x in (q, k, v, angles.cos(), angles.sin(), positions)]
        ops.rope_append(*moved, *small, slots.to(DEVICE))
    with use_backend("reference"):
        ops.rope_append(q, k, v, angles.cos(), angles.sin(), positions, *plain, slots)
    assert torch.equal(small[1].cpu().view(torch.uint8), rounded(plain[1]).view(torch.uint8))
    difference = (small[0].cpu().float() - plain[0]).abs()
    assert bool((difference <= plain[0].abs() / 16 + 2**-10).all())


def test_float8_pages_are_copied_unchanged() -> None:
    codes = np.random.default_rng(0).integers(0, 256, (64, 2, 4)).astype(np.uint8)
    pool = torch.from_numpy(codes.copy()).view(FLOAT8).to(DEVICE)
    with use_backend("triton"):
        ops.copy_pages([pool], [0, 2], [3, 1], 16)
    want = codes.copy()
    want[48:], want[16:32] = codes[:16], codes[32:48]
    assert np.array_equal(pool.cpu().view(torch.uint8).numpy(), want)


def test_the_cpu_backend_rejects_float8() -> None:
    step = make_step(Tree([4], [1], [0], 16), num_kv_heads=1, group=1, head_dim=16)
    with use_backend("cpu"), pytest.raises(ValueError, match="or both float8_e4m3fn on a GPU"):
        ops.paged_attention(step.q, rounded(step.k_pool), rounded(step.v_pool), step.plan("cpu"), scale=1.0)
