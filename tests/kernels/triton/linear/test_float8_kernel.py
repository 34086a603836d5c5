"""Rows are rounded to float8 as torch rounds them."""

from __future__ import annotations

import pytest
import torch

from rtlang_kernels.triton.linear.float8_kernel import round_rows
from tests.support.kernels.gpu import DEVICE


def rounded(x: torch.Tensor, block: int = 64) -> tuple[torch.Tensor, torch.Tensor]:
    codes = torch.empty(x.shape, dtype=torch.uint8, device=DEVICE)
    scales = torch.empty(len(x), device=DEVICE)
    round_rows[(len(x),)](x, codes, scales, x.shape[1], x.stride(0), BLOCK=block, num_warps=8)
    return codes.view(torch.float8_e4m3fn).cpu(), scales.cpu()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_rows_are_rounded_as_torch_rounds_them(dtype: torch.dtype) -> None:
    """Rows of a longer tensor, in several blocks the last of which is not full; zeros, and numbers near both ends."""
    wide = torch.randn(6, 200, generator=torch.Generator().manual_seed(0)) * torch.tensor(
        [[1], [1e4], [1e-4], [0], [1e-38], [1e30]]
    )
    x = wide.to(dtype).to(DEVICE)[:, :176]
    codes, scales = rounded(x)
    values = x.cpu().float()
    wanted = values.abs().amax(1).clamp(min=2.0**-100) / 448
    assert torch.equal(scales, wanted)
    assert torch.equal(
        codes.view(torch.uint8), (values * (1 / wanted)[:, None]).to(torch.float8_e4m3fn).view(torch.uint8)
    )


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # of numpy, in the interpreter
@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf], ids=str)
def test_a_row_that_is_not_finite_becomes_nan_alone(bad: float) -> None:
    x = torch.ones(3, 80)
    x[1, 70] = bad
    codes, scales = rounded(x.to(DEVICE))
    values = codes.double() * scales.double()[:, None]
    assert bool(values[1].isnan().any())
    assert bool((codes[[0, 2]].float() == 448).all())
    assert torch.equal(scales[[0, 2]], torch.ones(2) / 448)
