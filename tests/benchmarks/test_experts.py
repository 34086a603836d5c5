"""The bench of experts: every case with tiny layers, and what its figures say."""

from __future__ import annotations

import pytest
import torch

from rtlang_bench import experts
from rtlang_bench.experts import CASES, SHAPE, LayerTimes, figures, measure_layers, measure_steps, routed

TINY = {
    **SHAPE,
    "vocab_size": 300,
    "hidden_size": 64,
    "moe_intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 32,
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_layers_and_steps_of_both_decoders_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experts, "_REPEATS", 1)
    told: list[str] = []
    times = measure_layers(TINY, torch.float32, told.append, tuple(CASES)[:3])
    assert [each.num_read for each in times[:2]] == [4, 4]
    assert times[2].num_read == len(routed("8 rows", TINY, torch.float32)[1].unique()) > 4
    assert all(0 < each.packed < 1e3 and each.library > 0 and each.dense > 0 for each in times)
    steps = measure_steps(TINY, torch.float32, told.append)
    assert [each.case for each in steps] == ["decode 1 row", "decode 8 rows", "prefill 512"]
    assert all(each.native > 0 and each.transformers > 0 for each in steps)


def test_rows_of_the_same_experts_choose_those_of_the_first() -> None:
    _, same, _ = routed("8 rows, same experts", SHAPE, torch.float32)
    _, others, _ = routed("8 rows", SHAPE, torch.float32)
    assert len(same) == len(others) == 8
    assert torch.equal(same, others[:1].expand(8, -1))
    assert all(len(row.unique()) == SHAPE["num_experts_per_tok"] for row in others)


@pytest.mark.parametrize(("packed", "met"), [((1.0, 1.5), [True, True]), ((1.6, 4.0), [False, False])])
def test_figures_compare_with_the_dense_layer_and_with_one_row(packed: tuple[float, float], met: list[bool]) -> None:
    names = ("1 row", "8 rows, same experts")
    found = figures([LayerTimes(name, 4, 1.0, 5.0, ms) for name, ms in zip(names, packed, strict=True)])
    assert [each.is_met for each in found] == met
    assert found[1].value == packed[1] / packed[0]
