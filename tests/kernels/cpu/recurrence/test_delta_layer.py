"""What is special about the compiled delta layer: threads, and what it leaves to the reference. Results: reference/test_delta_layer.py."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from rtlang_kernels.contract.delta_layer import DeltaWeights
from rtlang_kernels.contract.state_plan import NO_SLOT
from rtlang_kernels.cpu.recurrence import delta_layer
from rtlang_kernels.cpu.recurrence.delta_layer import CpuDeltaLayer
from rtlang_kernels.reference.delta_layer import ReferenceDeltaLayer
from tests.support.kernels.fused_steps import torch_threads
from tests.support.kernels.recurrence_cases import Rows


def random_weights(generator: torch.Generator) -> DeltaWeights:
    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator)

    return DeltaWeights(draw(2 * 32 + 64, 4).bfloat16(), -draw(4).exp(), draw(4), draw(16), 2, 16, 1e-6)


def test_threads_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta_layer, "SPLIT_NS", 0)
    generator = torch.Generator().manual_seed(1)
    weights = random_weights(generator)
    layer = CpuDeltaLayer.of(weights)
    assert isinstance(layer, CpuDeltaLayer)
    rows = Rows([1, 12, 5], [0, NO_SLOT, 1], [[(1, 0)], [(4, 2), (12, 3)], []], 5)
    x = torch.randn(18, weights.num_inputs, generator=generator).bfloat16()
    states = torch.randn(5, 128, 3, generator=generator).bfloat16(), torch.randn(5, 4, 16, 16, generator=generator)
    found = []
    for count in (1, 2, 3):
        own = [each.clone() for each in states]
        with torch_threads(count):
            out = layer(x, own[0], own[1], rows.plan())
        assert not torch.equal(own[1], states[1])
        found.append((out, *own))
    assert bool(found[0][0].isfinite().all())
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))


def test_other_types_and_wide_convolutions_are_left_to_the_reference() -> None:
    weights = random_weights(torch.Generator().manual_seed(2))
    for conv in (weights.conv.half(), weights.conv.repeat(1, 3)):
        assert isinstance(CpuDeltaLayer.of(replace(weights, conv=conv)), ReferenceDeltaLayer)
