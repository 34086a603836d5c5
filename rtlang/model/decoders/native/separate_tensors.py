"""Tensors of a checkpoint that hold several matrices, as separate ones."""

from __future__ import annotations

from torch import Tensor

from rtlang.model.layers.weight_source import WeightSource
from rtlang.model.loading.layer_table import AttentionConfig, FeedForwardConfig
from rtlang.model.loading.model_config import ModelConfig
from rtlang_kernels.contract.low_bit import LowBitWeight, WeightSlice


class SeparateTensors:
    """A source of weights in which q, k and v, and gate and up, are tensors of their own, though the checkpoint joins their rows.

    Args:
        source: has `qkv_proj` and `gate_up_proj` in the layers of which the table says so.
        config: the model.
    """

    def __init__(self, source: WeightSource, config: ModelConfig) -> None:
        assert config.native is not None
        self._source = source
        q_size, kv_size = config.num_q_heads * config.head_dim, config.num_kv_heads * config.head_dim
        self._places: dict[str, tuple[str, int, int]] = {}  # the joined tensor, the first row, all its rows
        for index, layer in enumerate(config.native.layers):
            prefix, inner = f"model.layers.{index}.", layer.feed_forward.intermediate_size
            if isinstance(layer.attention, AttentionConfig) and layer.attention.is_joined:
                parts = {"q_proj": q_size, "k_proj": kv_size, "v_proj": kv_size}
                self._join(f"{prefix}self_attn.", "qkv_proj", parts)
            if isinstance(layer.feed_forward, FeedForwardConfig) and layer.feed_forward.is_joined:
                self._join(f"{prefix}mlp.", "gate_up_proj", {"gate_proj": inner, "up_proj": inner})

    def _join(self, prefix: str, joined: str, parts: dict[str, int]) -> None:
        start, num_rows = 0, sum(parts.values())
        for name, size in parts.items():
            self._places[f"{prefix}{name}"] = f"{prefix}{joined}", start, num_rows
            start += size

    def has(self, name: str) -> bool:
        """See `WeightSource`."""
        stem, _, kind = name.rpartition(".")
        place = self._places.get(stem)
        return self._source.has(name if place is None else f"{place[0]}.{kind}")

    def tensor(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """See `WeightSource`; a view into the joined tensor."""
        stem, _, kind = name.rpartition(".")
        if stem not in self._places:
            return self._source.tensor(name, shape)
        joined, start, num_rows = self._places[stem]
        return self._source.tensor(f"{joined}.{kind}", (num_rows, *shape[1:])).narrow(0, start, shape[0])

    def low_bit(self, name: str, shape: tuple[int, ...]) -> LowBitWeight | None:
        """See `WeightSource`."""
        stem, _, kind = name.rpartition(".")
        if stem not in self._places:
            return self._source.low_bit(name, shape)
        joined, start, num_rows = self._places[stem]
        found = self._source.low_bit(f"{joined}.{kind}", (num_rows, *shape[1:]))
        return None if found is None else WeightSlice(found, (start, start + shape[0]), (0, found.shape[1]))
