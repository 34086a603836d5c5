"""Arguments of experts that do not fit are refused by name."""

from __future__ import annotations

import pytest
import torch

from rtlang_kernels.contract.experts import check_experts

IDS = torch.zeros(3, 2, dtype=torch.int64)


def test_arguments_that_fit_are_accepted() -> None:
    check_experts(torch.ones(3, 8), IDS, torch.ones(3, 2).bfloat16(), 8, torch.float32)


@pytest.mark.parametrize(
    ("x", "ids", "weights", "names"),
    [
        (torch.ones(3, 9), IDS, torch.ones(3, 2), "x = torch.float32 .3, 9.: expected torch.float32 .any, 8."),
        (torch.ones(3, 8).half(), IDS, torch.ones(3, 2), "x = torch.float16"),
        (torch.ones(4, 8), IDS, torch.ones(3, 2), "expert_ids = torch.int64 .3, 2.: expected torch.int64 .4, any."),
        (torch.ones(3, 8), IDS.int(), torch.ones(3, 2), "expert_ids = torch.int32"),
        (torch.ones(3, 8), IDS, torch.ones(3, 1), "weights = .3, 1.: expected .3, 2., as of expert_ids"),
    ],
    ids=["inputs", "dtype", "tokens", "ids", "weights"],
)
def test_an_argument_that_does_not_fit_is_named(
    x: torch.Tensor, ids: torch.Tensor, weights: torch.Tensor, names: str
) -> None:
    with pytest.raises(ValueError, match=names):
        check_experts(x, ids, weights, 8, torch.float32)
