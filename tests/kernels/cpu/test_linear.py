"""Linear layers for a few rows against float64."""

from __future__ import annotations

import pytest
import torch

from rtlang_kernels.contract.fused_step import BLOCK
from rtlang_kernels.cpu.linear import SkinnyLinear, pack_blocks, padded

TOLERANCE = {torch.float32: 1e-6, torch.bfloat16: 4e-3}


@pytest.mark.parametrize("dtype", list(TOLERANCE), ids=str)
@pytest.mark.parametrize(("num_outputs", "num_inputs"), [(32, 2), (96, 64), (131, 40), (1, 172), (256, 1152)], ids=str)
def test_every_number_of_rows_agrees_with_float64(num_outputs: int, num_inputs: int, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(num_outputs)
    weight = torch.randn(num_outputs, num_inputs, generator=generator).to(dtype)
    linear = SkinnyLinear(weight, max_rows=8)
    for num_rows in range(1, 9):
        x = torch.randn(num_rows, num_inputs, generator=generator).to(dtype)
        y = linear(x)
        assert y.shape == (num_rows, num_outputs)
        assert y.dtype == dtype
        assert y.is_contiguous()
        exact = x.double() @ weight.double().T
        assert float((y.double() - exact).norm()) < TOLERANCE[dtype] * float(exact.norm())


def test_a_row_does_not_depend_on_other_rows_of_its_tile() -> None:
    weight = torch.randn(64, 64, generator=torch.Generator().manual_seed(0))
    linear = SkinnyLinear(weight, max_rows=8)
    x = torch.randn(8, 64, generator=torch.Generator().manual_seed(1))
    together = linear(x)
    x[1:] = float("nan")
    assert torch.equal(linear(x)[0], together[0])
    assert torch.equal(linear(x[:2])[0], together[0])


def test_nan_is_preserved() -> None:
    weight = torch.ones(32, 2)
    weight[3, 1] = float("nan")
    assert SkinnyLinear(weight, max_rows=1)(torch.ones(1, 2)).isnan().nonzero().tolist() == [[0, 3]]


def test_blocks_hold_each_weight_once_in_the_order_of_use() -> None:
    weight = torch.arange(2 * BLOCK * 4, dtype=torch.float32).view(2 * BLOCK, 4)
    blocks = pack_blocks(weight).view(2, 2, 2, BLOCK)  # block, pair of inputs, input of the pair, output
    assert torch.equal(blocks[1, 0, 1], weight[BLOCK:, 1])
    assert torch.equal(blocks[0, 1, 0], weight[:BLOCK, 2])
    pairs = pack_blocks(weight.bfloat16()).view(2, 2, BLOCK, 2)
    assert torch.equal(pairs[1, 0, :, 1], weight[BLOCK:, 1].bfloat16())


@pytest.mark.parametrize(
    "x",
    [torch.ones(3, 4), torch.ones(0, 4), torch.ones(1, 5), torch.ones(1, 4).bfloat16(), torch.ones(4, 2).T[:2]],
    ids=str,
)
def test_unsupported_rows_are_rejected(x: torch.Tensor) -> None:
    with pytest.raises(ValueError, match=r"expected contiguous torch.float32 \[1 to 2, 4\]"):
        SkinnyLinear(torch.ones(32, 4), max_rows=2)(x)


def test_buffers_are_padded_to_whole_tiles() -> None:
    assert [padded(rows) for rows in (1, 2, 4, 5, 8)] == [1, 4, 4, 8, 8]
