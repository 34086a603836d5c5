"""A linear layer in parts: the sum over all ranks is the result of the whole layer."""

from __future__ import annotations

import torch

from rtlang.model.layers.linear import Linear
from rtlang.model.parallel.group import RankGroup
from rtlang.model.parallel.summed_linear import SummedLinear
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
