"""Writing and copying KV with the GPU kernels is exact."""

from __future__ import annotations

import pytest
import torch

from rtlang_kernels import ops
from tests.support.kernels.attention_cases import use_backend
from tests.support.kernels.gpu import DEVICE


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("v_head_dim", [8, 600])
def test_tokens_are_written_to_their_slots(dtype: torch.dtype, v_head_dim: int) -> None:
    generator = torch.Generator().manual_seed(0)
    held = torch.randn(18, 2, 8, generator=generator).to(dtype).to(DEVICE)
    v_held = torch.randn(18, 2, v_head_dim, generator=generator).to(dtype).to(DEVICE)
    k_pool, v_pool = held[2:], v_held[2:]  # a negative slot would be in front of the pool
    before = held.clone(), v_held.clone()
    fused = torch.randn(3, 5, 8, generator=generator).to(dtype).to(DEVICE)
    v = torch.randn(3, 2, v_head_dim, generator=generator).to(dtype).to(DEVICE)
    slots = torch.tensor([4, 15, 0], device=DEVICE)
    with use_backend("triton"):
        ops.write_kv(fused[:, 1:3], v, k_pool, v_pool, slots)
        ops.write_kv(-fused[:, 1:3], -v, k_pool, v_pool, torch.tensor([-1, -2, -1], device=DEVICE))  # replayed tokens
    assert torch.equal(k_pool[slots], fused[:, 1:3])
    assert torch.equal(v_pool[slots], v)
    rest = torch.tensor([slot for slot in range(18) if slot - 2 not in (4, 15, 0)], device=DEVICE)
    assert torch.equal(held[rest], before[0][rest])
    assert torch.equal(v_held[rest], before[1][rest])


@pytest.mark.parametrize(
    "copies", [[(0, 1), (1, 3)], [(0, 1), (1, 0)], [(2, 1), (2, 0)], []], ids=["chain", "exchange", "fan", "none"]
)
def test_copied_pages_hold_the_original_contents_of_their_source(copies: list[tuple[int, int]]) -> None:
    pools = torch.randn(2, 16, 2, 8, generator=torch.Generator().manual_seed(0)).to(DEVICE)
    before = pools.clone().view(2, 4, 4, 2, 8)
    with use_backend("triton"):
        ops.copy_pages([pools[0], pools[1]], [source for source, _ in copies], [target for _, target in copies], 4)
    want = before.clone()
    for source, target in copies:
        want[:, target] = before[:, source]
    assert torch.equal(pools.view(2, 4, 4, 2, 8), want)
