"""Matrices out of joined tensors: floats, codes and biases."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from rtlang.model.decoders.native.separate_tensors import SeparateTensors
from rtlang.model.loading.model_config import ModelConfig
from rtlang_kernels.contract.low_bit import LowBitWeight
from rtlang_kernels.reference.low_bit import exact_weight
from tests.support.models.low_bit_weights import FORMATS, random_weight
from tests.support.models.tiny_models import make_checkpoint


class Joined:
    """A source with joined tensors only; the rows of `low_bit` ones are codes."""

    def __init__(self, config: ModelConfig) -> None:
        native = config.native
        assert native is not None
        rows = (config.num_q_heads + 2 * config.num_kv_heads) * config.head_dim
        self.qkv = torch.arange(rows * config.hidden_size, dtype=torch.float32).view(rows, -1)
        self.bias = torch.arange(rows, dtype=torch.float32)
        self.gate_up = random_weight(FORMATS["q8_0"], 2 * native.intermediate_size, config.hidden_size)

    def has(self, name: str) -> bool:
        return name.startswith("model.layers.0.self_attn.qkv_proj.")

    def tensor(self, name: str, shape: tuple[int, ...]) -> Tensor:
        found = {
            "model.layers.0.self_attn.qkv_proj.weight": self.qkv,
            "model.layers.0.self_attn.qkv_proj.bias": self.bias,
            "model.norm.weight": self.bias[:2],
        }[name]
        assert found.shape == shape
        return found

    def low_bit(self, name: str, shape: tuple[int, ...]) -> LowBitWeight | None:
        if not name.endswith("gate_up_proj.weight"):
            return None
        assert self.gate_up.shape == shape
        return self.gate_up


def test_each_matrix_has_its_rows_of_the_joined_tensor(tmp_path: Path) -> None:
    config = ModelConfig.from_pretrained(make_checkpoint(tmp_path, "llama"))
    native = config.native
    assert native is not None
    layer = native.layers[0]
    joined = replace(
        layer,
        attention=replace(layer.attention, is_joined=True),
        feed_forward=replace(layer.feed_forward, is_joined=True),
    )
    config = replace(config, native=replace(native, layers=(joined, *native.layers[1:])))
    source = Joined(config)
    separate = SeparateTensors(source, config)
    q_size, kv_size, start = config.num_q_heads * config.head_dim, config.num_kv_heads * config.head_dim, 0
    for name, size in (("q_proj", q_size), ("k_proj", kv_size), ("v_proj", kv_size)):
        stem = f"model.layers.0.self_attn.{name}"
        assert separate.has(f"{stem}.bias")
        assert separate.low_bit(f"{stem}.weight", (size, config.hidden_size)) is None
        found = separate.tensor(f"{stem}.weight", (size, config.hidden_size))
        assert torch.equal(found, source.qkv[start : start + size])
        assert torch.equal(separate.tensor(f"{stem}.bias", (size,)), source.bias[start : start + size])
        start += size
    assert start == len(source.qkv)
    inner = layer.feed_forward.intermediate_size
    whole = exact_weight(source.gate_up)
    for index, name in enumerate(("gate_proj", "up_proj")):
        part = separate.low_bit(f"model.layers.0.mlp.{name}.weight", (inner, config.hidden_size))
        assert part is not None
        assert torch.equal(exact_weight(part), whole[index * inner : (index + 1) * inner])
    assert not separate.has("model.layers.1.self_attn.q_proj.weight")
    assert torch.equal(separate.tensor("model.norm.weight", (2,)), source.bias[:2])
