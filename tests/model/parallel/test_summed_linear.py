"""A linear layer in parts: the sum over all ranks is the result of the whole layer, with int8 inputs to the last bit of an integer."""

from __future__ import annotations

import pytest
import torch

from rtlang.model.layers.linear import Linear
from rtlang.model.loading.quantized.int8_rows import quantized
from rtlang.model.parallel.group import RankGroup
from rtlang.model.parallel.summed_linear import SummedLinear, with_shared_scale
from rtlang_kernels import ops
from tests.support.models.rank_threads import rank_threads

SIZE, WIDTH, NUM_OUTPUTS = 2, 24, 10


def tensors() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    x = torch.randn((6, WIDTH), generator=generator)
    x[:, : WIDTH // 2] *= 20.0  # so that the parts alone have other scales than the whole
    return x, torch.randn((NUM_OUTPUTS, WIDTH), generator=generator)


def part(tensor: torch.Tensor, group: RankGroup) -> torch.Tensor:
    return tensor.chunk(SIZE, 1)[group.rank].contiguous()


def test_the_results_of_all_ranks_are_added_up() -> None:
    x, weight = tensors()
    expected = x.double() @ weight.double().T
    with rank_threads(SIZE) as ranks:
        for found in ranks.run(lambda group: SummedLinear.of(Linear(part(weight, group)), group)(part(x, group))):
            torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-4)


@pytest.mark.skipif(
    ops.backend_for(torch.device("cpu"), torch.float32).packed_int8_linear is None, reason="needs int8 kernels"
)
def test_all_ranks_quantize_the_inputs_of_a_token_with_one_scale() -> None:
    x, weight = tensors()
    values, scale = quantized(weight)
    whole = Linear.int8(values, scale[:, 0], None, dtype=torch.float32)(x)

    def act(group: RankGroup) -> torch.Tensor:
        linear = Linear.int8(with_shared_scale(part(values, group)), scale[:, 0], None, dtype=torch.float32)
        return SummedLinear.of(linear, group)(part(x, group))

    with rank_threads(SIZE) as ranks:
        for found in ranks.run(act):
            torch.testing.assert_close(found, whole, rtol=1e-6, atol=1e-5)
    errors = (whole - x @ weight.T).abs().max()
    assert errors > 1e-2, "quantization is far coarser than the tolerance"
