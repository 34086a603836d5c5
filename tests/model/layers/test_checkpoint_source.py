"""Weights of a checkpoint for the native decoder: as codes where a layer computes with them, each counted once."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from rtlang.contract.errors import ModelLoadError
from rtlang.model.layers.checkpoint_source import CheckpointSource, held_bytes
from rtlang.model.loading.model_config import ModelConfig
from rtlang_kernels.contract.low_bit import LowBitWeight, ScaleType, WeightFormat
from rtlang_kernels.reference.low_bit import exact_weight
from tests.support.models.low_bit_weights import random_weight
from tests.support.models.tiny_models import make_checkpoint

GROUPS, ROWS = WeightFormat(4, zero=8), WeightFormat(8, scales=ScaleType.NONE, zero=128)


class Weights:
    """A checkpoint in memory."""

    def __init__(self) -> None:
        self.coded: dict[str, LowBitWeight] = {"a": random_weight(GROUPS, 6, 64), "b": random_weight(ROWS, 6, 64)}
        self.floats = {"c": torch.rand(5)}

    def names(self) -> list[str]:
        return [*self.coded, *self.floats]

    def shape(self, name: str) -> tuple[int, ...]:
        return self.coded[name].shape if name in self.coded else tuple(self.floats[name].shape)

    def num_bytes(self, name: str) -> int:
        return {"a": 216, "b": 408, "c": 20}.get(name, 1)

    def low_bit(self, name: str) -> LowBitWeight | None:
        return self.coded.get(name)

    def tensor(self, name: str, dtype: torch.dtype) -> Tensor:
        return (exact_weight(self.coded[name]) if name in self.coded else self.floats[name]).to(dtype)


class Counter:
    """Counts bytes."""

    def __init__(self) -> None:
        self.num_bytes = 0

    def add(self, num_bytes: int) -> None:
        self.num_bytes += num_bytes


def test_a_weight_comes_in_the_form_that_a_layer_computes_with() -> None:
    weights, counter = Weights(), Counter()
    source = CheckpointSource(weights, Path("x"), torch.float32, counter)
    assert source.low_bit("a", (6, 64)) is weights.coded["a"]
    assert source.low_bit("b", (6, 64)) is weights.coded["b"]
    assert torch.equal(source.tensor("b", (6, 64)), exact_weight(weights.coded["b"]).float())
    assert source.low_bit("c", (5,)) is None
    assert source.tensor("c", (5,)).dtype is torch.float32
    assert counter.num_bytes == 216 + 408 + 20
    assert source.has("c")
    assert not source.has("d")


def test_missing_weights_and_other_shapes_are_refused_by_name() -> None:
    source = CheckpointSource(Weights(), Path("x"), torch.float32)
    for read in (source.tensor, source.low_bit):
        with pytest.raises(ModelLoadError, match="the weights do not contain tensor d"):
            read("d", (6, 64))
        with pytest.raises(ModelLoadError, match=r"tensor a has shape \[6, 64\], but config.json implies \[64, 6\]"):
            read("a", (64, 6))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.weight_scale", "a.weight_scale is unexpected: config.json does not describe"),
        ("a.qzeros", "a.qzeros is unexpected: config.json does not describe"),
        ("model.layers.1.extra.weight", "decoder='transformers' may support it"),
        ("model.layers.7.extra.weight", None),
        ("model.layers.1.rotary_emb.inv_freq", None),
    ],
)
def test_unused_weights_of_layers_are_refused(name: str, message: str | None, tmp_path: Path) -> None:
    config = ModelConfig.from_pretrained(make_checkpoint(tmp_path))
    weights = Weights()
    weights.floats[name] = torch.ones(1)
    source = CheckpointSource(weights, Path("x"), torch.float32)
    if message is None:
        source.check_unused(config)
        return
    with pytest.raises(ModelLoadError, match=message):
        source.check_unused(config)


def test_codes_are_held_as_they_are_stored() -> None:
    assert held_bytes(Weights(), torch.float32) == 216 + 408 + 20
    assert held_bytes(Weights(), torch.bfloat16) == 216 + 408 + 10
