"""The benchmark of CPU attention checks every case against the flash kernel before it is timed."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from rtlang_kernels import ops
from rtlang_kernels_bench import __main__, attention_bench
from rtlang_kernels_bench.attention_bench import Case


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [Case(1, 1, 40), Case(3, 1, 100, 64), Case(1, 48, 48)]
    monkeypatch.setattr(attention_bench, "HEADS", ((4, 2, 16),))
    monkeypatch.setattr(attention_bench, "_MAX_LAYERS", 2)
    monkeypatch.setattr(attention_bench, "cases", lambda is_quick: iter(cases))


def test_every_case_is_checked_and_described(small: None) -> None:
    lines = list(attention_bench.attention_lines(60, is_quick=True))
    labels = ["4/2x16 decode 1 x 40", "4/2x16 decode 3 x 100, 64 shared", "4/2x16 prefill 48"]
    assert [line["label"] for line in lines] == labels
    for line in lines:
        assert line["error"] < 1e-2
        assert line["ns_score"] > 0
        assert "ns a score" in __main__.described(line)


def test_a_wrong_result_is_not_timed(small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(q: Tensor, *args: Any, **options: Any) -> Tensor:
        return torch.zeros_like(q)

    monkeypatch.setattr(ops, "paged_attention", wrong)
    with pytest.raises(ArithmeticError, match="decode 1 x 40"):
        next(attention_bench.attention_lines(60, is_quick=True))


@pytest.mark.parametrize(
    ("case", "scores", "keys"),
    [(Case(8, 1, 512), 8 * 512, 8 * 512), (Case(1, 4, 4), 10, 4), (Case(3, 1, 10, 4), 30, 22)],
)
def test_scores_and_keys_are_counted(case: Case, scores: int, keys: int) -> None:
    assert (case.scores, case.keys) == (scores, keys)
