"""Linear layers of heads against float64; a token has the same bits in any batch and on any number of threads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from rtlang_kernels.cpu.attention import head_linear
from rtlang_kernels.cpu.attention.head_linear import HeadLinears

TOLERANCE = {torch.float32: 1e-6, torch.bfloat16: 4e-3}


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("dtype", list(TOLERANCE), ids=str)
@pytest.mark.parametrize(("num_heads", "num_outputs", "num_inputs"), [(16, 512, 128), (3, 40, 7), (1, 5, 33)], ids=str)
def test_heads_of_strided_tokens_agree_with_float64(
    num_heads: int, num_outputs: int, num_inputs: int, dtype: torch.dtype
) -> None:
    """Inputs and results are parts of longer heads; nothing else is written."""
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(num_heads, num_outputs, num_inputs, generator=generator).to(dtype)
    multiply = HeadLinears(weight)
    for num_tokens in (0, 1, 5, 33):
        x = torch.full((num_tokens, num_heads, num_inputs + 6), torch.nan, dtype=dtype)[..., :num_inputs]
        x.copy_(torch.randn(x.shape, generator=generator))
        out = torch.full((num_tokens, num_heads, num_outputs + 9), 7.0, dtype=dtype)
        multiply(x, out[..., :num_outputs])
        assert bool((out[..., num_outputs:] == 7.0).all())
        want = torch.einsum("thi,hoi->tho", x.double(), weight.double())
        assert float((out[..., :num_outputs].double() - want).norm()) <= TOLERANCE[dtype] * float(want.norm())


@pytest.mark.parametrize("dtype", list(TOLERANCE), ids=str)
def test_bits_of_a_token_depend_on_no_other(dtype: torch.dtype, threads: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head_linear, "WORTH_THREADS", 0)
    generator = torch.Generator().manual_seed(1)
    multiply = HeadLinears(torch.randn(5, 48, 32, generator=generator).to(dtype))
    x = torch.randn(70, 5, 32, generator=generator).to(dtype)
    torch.set_num_threads(1)
    whole = torch.zeros(70, 5, 48, dtype=dtype)
    multiply(x, whole)
    for num_threads in (1, 2, 8):
        torch.set_num_threads(num_threads)
        for start, stop in ((0, 1), (1, 3), (3, 19), (19, 70)):
            out = torch.zeros(stop - start, 5, 48, dtype=dtype)
            multiply(x[start:stop], out)
            assert torch.equal(out, whole[start:stop])


def test_wrong_tensors_are_named() -> None:
    multiply = HeadLinears(torch.randn(2, 8, 4))
    x, out = torch.randn(3, 2, 4), torch.zeros(3, 2, 8)
    for name, given in (
        ("x", (torch.randn(3, 2, 5), out)),
        ("x", (x.double(), out)),
        ("x", (torch.randn(3, 4, 2).mT, out)),
        ("out", (x, torch.zeros(2, 2, 8))),
        ("out", (x, out.bfloat16())),
    ):
        with pytest.raises(ValueError, match=f"^{name} = "):
            multiply(*given)
