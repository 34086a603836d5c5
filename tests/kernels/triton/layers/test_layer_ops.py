"""GPU layer operations and KV writes against float64, in the interpreter, or natively with RTLANG_TEST_DEVICE=cuda."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from rtlang_kernels import ops
from tests.support.kernels.attention_cases import relative_error, use_backend
from tests.support.kernels.gpu import DEVICE, TOLERANCE

DTYPES = [torch.float32, torch.float16, torch.bfloat16]


def normal(*shape: int, dtype: torch.dtype, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype).to(DEVICE)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("norms", ["none", "both", "keys"])
@pytest.mark.parametrize(("head_dim", "half"), [(64, 32), (80, 40), (16, 4)])
def test_rope_append(dtype: torch.dtype, norms: str, head_dim: int, half: int) -> None:
    num_q_heads, num_kv_heads, eps = 4, 2, 1e-6
    fused = normal(5, num_q_heads + 2 * num_kv_heads, head_dim, dtype=dtype, seed=0)
    original = fused.double()
    angles = torch.rand(50, half, generator=torch.Generator().manual_seed(1)).to(DEVICE) * 6
    positions = torch.tensor([3, 0, 49, 7, 8], device=DEVICE)
    slots = torch.tensor([9, -1, 0, 11, 5], device=DEVICE)
    written = torch.tensor([0, 2, 3, 4], device=DEVICE)  # the other token is replayed
    held = torch.full((2, 13, num_kv_heads, head_dim), float("nan"), dtype=dtype, device=DEVICE)
    pools = held[:, 1:]  # a negative slot would be in front of the pool
    weights = normal(2, head_dim, dtype=dtype, seed=2)
    q_norm, k_norm = weights[0] if norms == "both" else None, weights[1] if norms != "none" else None
    with use_backend("triton"):
        ops.rope_append(
            fused[:, :4],
            fused[:, 4:6],
            fused[:, 6:],
            angles.cos(),
            angles.sin(),
            positions,
            pools[0],
            pools[1],
            slots,
            q_norm=q_norm,
            k_norm=k_norm,
            eps=eps,
        )

    def wanted(x: Tensor, weight: Tensor | None) -> Tensor:
        if weight is not None:
            x = x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps) * weight.double()
        turned = x.clone()
        c, s = angles.cos()[positions][:, None].double(), angles.sin()[positions][:, None].double()
        turned[..., :half] = x[..., :half] * c - x[..., half : 2 * half] * s
        turned[..., half : 2 * half] = x[..., half : 2 * half] * c + x[..., :half] * s
        return turned

    assert relative_error(fused[:, :4], wanted(original[:, :4], q_norm)) < TOLERANCE[dtype]
    keys = wanted(original[:, 4:6], k_norm)[written]
    assert relative_error(pools[0, slots[written]], keys) < TOLERANCE[dtype]
    assert torch.equal(pools[1, slots[written]].double(), original[written, 6:])
    untouched = torch.tensor([slot for slot in range(12) if slot not in slots.tolist()], device=DEVICE)
    assert torch.isnan(pools[:, untouched]).all()
    assert torch.isnan(held[:, 0]).all()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("size", [128, 72])
def test_add_rms_norm(dtype: torch.dtype, size: int) -> None:
    x, residual = normal(3, size, dtype=dtype, seed=0), normal(3, size, dtype=dtype, seed=1)
    weight = normal(size, dtype=dtype, seed=2)
    total = x.double() + residual.double()
    with use_backend("triton"):
        alone = ops.add_rms_norm(x, None, weight, 1e-5)
        out = ops.add_rms_norm(x, residual, weight, 1e-5)
    assert relative_error(residual, total) < TOLERANCE[dtype]
    for got, source in ((out, residual.double()), (alone, x.double())):  # the residual as it was rounded
        want = source / torch.sqrt((source * source).mean(-1, keepdim=True) + 1e-5) * weight.double()
        assert got.dtype == dtype
        assert relative_error(got, want) < TOLERANCE[dtype]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("size", [1200, 20])
def test_silu_and_mul(dtype: torch.dtype, size: int) -> None:
    gate_up = normal(3, 2 * size, dtype=dtype, seed=0) * 8
    gate_up[0, 0], gate_up[0, 1] = -60.0, 60.0
    with use_backend("triton"):
        out = ops.silu_and_mul(gate_up)
    gate, up = gate_up.double().chunk(2, dim=-1)
    assert relative_error(out, gate / (1 + torch.exp(-gate)) * up) < TOLERANCE[dtype]


def test_wrong_layouts_are_named() -> None:
    with use_backend("triton"):
        with pytest.raises(ValueError, match="contiguous"):
            ops.add_rms_norm(torch.zeros(4, 8, device=DEVICE).T, None, torch.ones(4, device=DEVICE), 1e-5)
        pool = torch.zeros(4, 8, 2, device=DEVICE).transpose(1, 2)
        k = torch.zeros(1, 2, 8, device=DEVICE)
        with pytest.raises(ValueError, match="k_pool"):
            ops.write_kv(k, k, pool, pool, torch.tensor([0], device=DEVICE))
