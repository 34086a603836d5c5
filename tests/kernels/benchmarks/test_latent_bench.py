"""The benchmark of latent attention checks both ways against each other before it times them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from rtlang_kernels import ops
from rtlang_kernels_bench import __main__, latent_bench
from rtlang_kernels_bench.attention_bench import Case


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"NUM_HEADS": 2, "NOPE": 8, "ROPE": 4, "VALUE": 8, "RANK": 16, "LINE": 20, "KEY": 12, "_MAX_LAYERS": 2}
    for name, value in sizes.items():
        monkeypatch.setattr(latent_bench, name, value)
    monkeypatch.setattr(latent_bench, "CASES", (Case(1, 1, 40), Case(3, 1, 100, 64), Case(1, 20, 48)))


def test_every_case_is_checked_and_described(small: None) -> None:
    lines = list(latent_bench.latent_lines(60, is_quick=False))
    shape = "latent 2x20/16"
    assert [line["label"] for line in lines] == [
        f"{shape} decode 1 x 40",
        f"{shape} decode 3 x 100, 64 shared",
        f"{shape} prefill 48",
    ]
    for line in lines:
        assert line["error"] < 2e-2
        assert "multiplied out" in __main__.described(line)


def test_a_wrong_result_is_not_timed(small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    attend = ops.paged_attention

    def wrong(q: Tensor, k_pool: Tensor, *args: Any, **options: Any) -> Tensor:
        return attend(q, torch.zeros_like(k_pool) if k_pool.shape[1] == 1 else k_pool, *args, **options)

    monkeypatch.setattr(ops, "paged_attention", wrong)
    with pytest.raises(ArithmeticError, match="decode 1 x 40"):
        next(latent_bench.latent_lines(60, is_quick=True))
