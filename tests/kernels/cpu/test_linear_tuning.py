"""What is measured of linear layers: which layers, which candidates, what is set."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from rtlang_kernels.cpu import linear_tuning
from rtlang_kernels.cpu.linear import PackedLinear, Prefetch, code_for
from rtlang_kernels.cpu.linear_tuning import described
from rtlang_kernels.host import tuning as tuning_module
from rtlang_kernels.host.processor import Processor
from rtlang_kernels.host.tuning import Tuning


def layers(count: int) -> list[PackedLinear]:
    return [PackedLinear.pack(torch.randn(64, 32).bfloat16()) for _ in range(count)]


def test_what_is_measured_is_set_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_tuning, "_SAMPLE_BYTES", 3 * 64 * 32 * 2)
    monkeypatch.setattr(tuning_module, "BUDGET_S", 60.0)
    made, machine = layers(4), Processor("one", "x", 2)
    x = torch.randn(5, 32).bfloat16()
    before = made[0](x)
    choices = Tuning(tmp_path, machine)
    linear_tuning.tune(made, choices)
    assert len({layer.prefetch for layer in made}) == 1
    prefetch = made[0].prefetch
    assert torch.equal(made[0](x), before)
    kind, *measured = choices.choices()
    assert kind.shape == "bfloat16 weights, bfloat16 rows"
    assert kind.chosen == described(made[0].code)[1]
    assert [len(choice.seconds) for choice in measured] == [5, 5, 2]
    assert [choice.shape.split(", ")[2] for choice in measured] == ["1 to 2 rows", "3 to 8 rows", "more rows"]
    monkeypatch.setattr(PackedLinear, "multiply", None)  # nothing is measured again
    other = layers(4)
    linear_tuning.tune(other, Tuning(tmp_path, machine))
    assert other[0].prefetch == prefetch


def test_a_model_that_fits_the_caches_keeps_the_defaults(tmp_path: Path) -> None:
    made, choices = layers(2), Tuning(tmp_path, Processor("one", "x", 2))
    linear_tuning.tune(made, choices)
    assert [choice.seconds for choice in choices.choices()] == [{}]
    assert made[0].prefetch == Prefetch()
    linear_tuning.tune([], choices)


def test_kernels_are_named_by_their_instructions() -> None:
    new, old = Processor("", "", 1, has_avx512=True, has_bf16_dot=True), Processor("", "", 1, has_avx2=True)
    assert described(code_for(torch.bfloat16, torch.bfloat16, new))[1] == "vdpbf16ps, tiles of 8 rows"
    assert (
        described(code_for(torch.bfloat16, torch.bfloat16, old))[1]
        == "multiply-add of widened weights, tiles of 4 rows"
    )
    assert described(code_for(torch.float32, torch.float32, new)) == (
        "float32 weights, float32 rows",
        "multiply-add, tiles of 8 rows",
    )
