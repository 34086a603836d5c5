"""The fused layer operations and the KV writes: every backend against float64."""

from __future__ import annotations

import pytest
import torch

from rtlang_kernels import ops
from tests.support.kernels.attention_cases import int8_pool, lines_of, relative_error, use_backend
from tests.support.long_tests import crossed

BACKENDS = sorted(ops.BACKENDS)
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 4e-3}
DTYPES = [torch.float32, torch.bfloat16]


def normal(*shape: int, dtype: torch.dtype, seed: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


@pytest.mark.parametrize(
    ("name", "dtype", "is_normed", "sizes"),
    crossed(BACKENDS, DTYPES, [False, True], [(64, 32), (80, 40), (16, 4)]),
    ids=str,
)
def test_rope_append(name: str, dtype: torch.dtype, is_normed: bool, sizes: tuple[int, int]) -> None:
    """`sizes`: those of a head, and half of those that are turned."""
    head_dim, half = sizes
    num_tokens, num_q_heads, num_kv_heads, eps = 5, 4, 2, 1e-6
    fused = normal(num_tokens, 8, head_dim, dtype=dtype, seed=0)
    original = fused.double()
    angles = torch.rand(50, half, generator=torch.Generator().manual_seed(1)) * 6
    cos, sin = angles.cos(), angles.sin()
    positions, slots = torch.tensor([3, 0, 49, 7, 8]), torch.tensor([9, 2, 0, 11, 5])
    pools = torch.full((2, 12, num_kv_heads, head_dim), float("nan"), dtype=dtype)
    weights = normal(2, head_dim, dtype=dtype, seed=2) if is_normed else None
    with use_backend(name):
        ops.rope_append(
            fused[:, :4],
            fused[:, 4:6],
            fused[:, 6:],
            cos,
            sin,
            positions,
            pools[0],
            pools[1],
            slots,
            q_norm=None if weights is None else weights[0],
            k_norm=None if weights is None else weights[1],
            eps=eps,
        )

    def wanted(x: torch.Tensor, weight: torch.Tensor | None) -> torch.Tensor:
        if weight is not None:
            x = x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps) * weight.double()
        turned = x.clone()
        for token, position in enumerate(positions.tolist()):
            c, s = cos[position].double(), sin[position].double()
            turned[token, :, :half] = x[token, :, :half] * c - x[token, :, half : 2 * half] * s
            turned[token, :, half : 2 * half] = x[token, :, half : 2 * half] * c + x[token, :, :half] * s
        return turned

    assert num_q_heads + 2 * num_kv_heads == fused.shape[1]
    q_weight, k_weight = (None, None) if weights is None else (weights[0], weights[1])
    assert relative_error(fused[:, :4], wanted(original[:, :4], q_weight)) < TOLERANCE[dtype]
    assert relative_error(pools[0, slots], wanted(original[:, 4:6], k_weight)) < TOLERANCE[dtype]
    assert torch.equal(pools[1, slots].double(), original[:, 6:])
    untouched = torch.tensor([slot for slot in range(12) if slot not in slots])
    assert torch.isnan(pools[:, untouched]).all()


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("head_dim", "is_normed"), [(64, False), (80, True)])
def test_rope_append_quantizes_what_another_pool_would_hold(
    name: str, dtype: torch.dtype, head_dim: int, is_normed: bool
) -> None:
    angles = torch.rand(50, head_dim // 2, generator=torch.Generator().manual_seed(1)) * 6
    positions, slots = torch.tensor([3, 0, 49, 7, 8]), torch.tensor([9, 2, 0, 11, 5])
    weights = normal(2, head_dim, dtype=dtype, seed=2).unbind() if is_normed else (None, None)
    results = []
    for is_int8 in (False, True):
        fused = normal(5, 8, head_dim, dtype=dtype, seed=0)
        fused[1, 5, 3] = fused[2, 7, 0] = float("nan")
        plain = torch.zeros((2, 12, 2, head_dim), dtype=dtype)
        pools = [int8_pool(12, 2, head_dim) for _ in range(2)] if is_int8 else list(plain.unbind())
        with use_backend(name):
            q, k, v = fused[:, :4], fused[:, 4:6], fused[:, 6:]
            ops.rope_append(
                q, k, v, angles.cos(), angles.sin(), positions, *pools, slots, q_norm=weights[0], k_norm=weights[1]
            )
            if not is_int8:
                written, pools = pools, [int8_pool(12, 2, head_dim) for _ in range(2)]
                ops.write_kv(written[0][slots], written[1][slots], *pools, slots)
        results.append((fused[:, :4], *map(lines_of, pools)))
    assert all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(*results, strict=True))


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("is_int8", [False, True])
def test_a_token_with_a_negative_slot_is_rotated_and_not_written(name: str, dtype: torch.dtype, is_int8: bool) -> None:
    angles = torch.rand(50, 32, generator=torch.Generator().manual_seed(1)) * 6
    positions, slots = torch.tensor([3, 0, 49, 7, 8]), torch.tensor([9, 2, 0, 11, 5])
    kept = torch.tensor([True, False, True, True, False])
    results = []
    for is_skipped in (False, True):
        fused = normal(5, 8, 64, dtype=dtype, seed=0)
        own = slots.where(kept, torch.tensor([-1, -1, -1, -1, -12])) if is_skipped else slots
        rotated, plain = (
            [int8_pool(12, 2, 64) if is_int8 else normal(12, 2, 64, dtype=dtype, seed=3 + i) for i in range(2)]
            for _ in range(2)
        )
        before = [lines_of(pool).clone() for pool in (*rotated, *plain)]
        with use_backend(name):
            ops.write_kv(fused[:, 4:6], fused[:, 6:], *plain, own)
            ops.rope_append(
                fused[:, :4], fused[:, 4:6], fused[:, 6:], angles.cos(), angles.sin(), positions, *rotated, own
            )
        after = [lines_of(pool) for pool in (*rotated, *plain)]
        changed = [(a != b).flatten(1).any(1).nonzero().flatten().tolist() for a, b in zip(before, after, strict=True)]
        assert changed == [sorted(slots[kept if is_skipped else kept | True].tolist())] * 4
        results.append((fused[:, :4], *(pool[slots[kept]] for pool in after)))
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


@pytest.mark.parametrize(("name", "dtype", "size"), crossed(BACKENDS, DTYPES, [128, 72]), ids=str)
def test_add_rms_norm(name: str, dtype: torch.dtype, size: int) -> None:
    x, residual = normal(3, size, dtype=dtype, seed=0), normal(3, size, dtype=dtype, seed=1)
    weight = normal(size, dtype=dtype, seed=2)
    total = (x.float() + residual.float()).to(dtype)
    with use_backend(name):
        out = ops.add_rms_norm(x, residual, weight, 1e-5)
        alone = ops.add_rms_norm(x, None, weight, 1e-5)
    assert torch.equal(residual, total)
    for got, source in ((out, total.double()), (alone, x.double())):
        want = source / torch.sqrt((source * source).mean(-1, keepdim=True) + 1e-5) * weight.double()
        assert got.dtype == dtype
        assert relative_error(got, want) < TOLERANCE[dtype]


@pytest.mark.parametrize(("name", "dtype", "size"), crossed(BACKENDS, DTYPES, [128, 72]), ids=str)
def test_the_weight_of_a_norm_may_be_float32(name: str, dtype: torch.dtype, size: int) -> None:
    x = normal(3, size, dtype=dtype, seed=0)
    weight = 1.0 + normal(size, dtype=torch.float32, seed=2) * 1e-4  # rounds to ones in bfloat16
    with use_backend(name):
        out = ops.add_rms_norm(x.float().to(dtype), None, weight, 1e-5)
    total = x.double()
    want = total / torch.sqrt((total * total).mean(-1, keepdim=True) + 1e-5) * weight.double()
    assert out.dtype == dtype
    if dtype is torch.bfloat16:
        assert torch.equal(out, want.to(dtype)) or (out != want.to(dtype)).float().mean() < 0.02  # ties of roundings
    else:
        assert relative_error(out, want) < TOLERANCE[dtype]


@pytest.mark.parametrize(("name", "dtype", "factor"), crossed(BACKENDS, DTYPES, [1.0, 0.22]), ids=str)
def test_scaled_add(name: str, dtype: torch.dtype, factor: float) -> None:
    x, residual = normal(3, 72, dtype=dtype, seed=0), normal(3, 72, dtype=dtype, seed=1)
    want = (residual.float() + (x.float() * factor).to(dtype).float()).to(dtype)
    with use_backend(name):
        ops.scaled_add(x, residual, factor)
    torch.testing.assert_close(
        residual, want, rtol=1e-6 if dtype is torch.float32 else 0, atol=1e-6 if dtype is torch.float32 else 0
    )


@pytest.mark.parametrize(("name", "dtype", "size"), crossed(BACKENDS, DTYPES, [128, 20]), ids=str)
def test_gelu_and_mul(name: str, dtype: torch.dtype, size: int) -> None:
    gate_up = normal(3, 2 * size, dtype=dtype, seed=0) * 2
    gate_up[0, 0], gate_up[0, 1] = -200.0, 200.0
    with use_backend(name):
        out = ops.gelu_and_mul(gate_up)
    gate, up = gate_up.double().chunk(2, dim=-1)
    want = torch.nn.functional.gelu(gate, approximate="tanh") * up
    assert out.isfinite().all()
    assert relative_error(out, want) < TOLERANCE[dtype]


@pytest.mark.parametrize(("name", "dtype", "size"), crossed(BACKENDS, DTYPES, [128, 20]), ids=str)
def test_silu_and_mul(name: str, dtype: torch.dtype, size: int) -> None:
    gate_up = normal(3, 2 * size, dtype=dtype, seed=0) * 8
    gate_up[0, 0], gate_up[0, 1] = -200.0, 200.0
    with use_backend(name):
        out = ops.silu_and_mul(gate_up)
    gate, up = gate_up.double().chunk(2, dim=-1)
    assert relative_error(out, gate / (1 + torch.exp(-gate)) * up) < TOLERANCE[dtype]


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_write_kv_and_copy_pages(name: str, dtype: torch.dtype) -> None:
    pools = normal(2, 16, 2, 8, dtype=dtype, seed=0)
    before = pools.clone()
    k, v = normal(3, 2, 8, dtype=dtype, seed=1), normal(3, 2, 8, dtype=dtype, seed=2)
    slots = torch.tensor([4, 15, 0])
    with use_backend(name):
        ops.write_kv(k, v, pools[0], pools[1], slots)
        assert torch.equal(pools[0, slots], k)
        assert torch.equal(pools[1, slots], v)
        rest = torch.tensor([slot for slot in range(16) if slot not in slots])
        assert torch.equal(pools[:, rest], before[:, rest])
        before = pools.clone()
        ops.copy_pages([pools[0], pools[1]], [0, 1], [1, 3], 4)  # page 1 is read before it is written
    assert torch.equal(pools[:, 4:8], before[:, 0:4])
    assert torch.equal(pools[:, 12:16], before[:, 4:8])
    assert torch.equal(pools[:, 8:12], before[:, 8:12])
