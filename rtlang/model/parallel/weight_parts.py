"""The part of a model of the native decoder that one rank holds.

Of q, k, v, gate and up a rank has some outputs: the heads and the inner features that are its own. Of o and down it has the inputs that
come from these; their results are added up over all ranks, and their biases belong to rank 0. If there are more ranks than KV heads,
several ranks hold the same KV head. Everything else is whole on every rank, except for the head, which only rank 0 uses.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from rtlang.contract.errors import ConfigError
from rtlang.model.layers.weight_source import WeightSource
from rtlang.model.loading.model_config import ModelConfig
from rtlang.model.parallel.group import RankGroup
from rtlang_kernels.contract.low_bit import LowBitWeight, WeightSlice


def check_divisible(config: ModelConfig, size: int) -> None:
    """Check that `size` ranks can compute a model of the native decoder together.

    Raises:
        ConfigError: heads or inner features cannot be divided.
    """
    assert config.native is not None
    heads, kv_heads, inner = config.num_q_heads, config.num_kv_heads, config.native.intermediate_size
    if heads % size or inner % size or (kv_heads % size and size % kv_heads):
        raise ConfigError(
            "tensor_parallel",
            size,
            f"expected a divisor of {heads} heads and {inner} inner features, and a divisor or a multiple of {kv_heads} KV heads",
        )


def part_of(config: ModelConfig, size: int) -> ModelConfig:
    """The configuration of the part of each of `size` ranks. Raises ConfigError as `check_divisible`."""
    check_divisible(config, size)
    assert config.native is not None
    layers = []
    for layer in config.native.layers:
        inner = layer.feed_forward.intermediate_size // size
        layers.append(replace(layer, feed_forward=replace(layer.feed_forward, intermediate_size=inner)))
    return replace(
        config,
        num_q_heads=config.num_q_heads // size,
        num_kv_heads=max(1, config.num_kv_heads // size),
        native=replace(config.native, layers=tuple(layers)),
    )


@dataclass(frozen=True, slots=True)
class _Cut:
    """What a rank has of a tensor: `length` entries along `dim`, from `start`, of `whole`."""

    dim: int
    whole: int
    start: int
    length: int


class PartSource:
    """A source of the weights of one rank, cut from those of a whole model.

    Args:
        source: the whole weights.
        config: the whole model.
    """

    def __init__(self, source: WeightSource, config: ModelConfig, group: RankGroup) -> None:
        assert config.native is not None
        self._source, self._rank = source, group.rank
        part = part_of(config, group.size)
        assert part.native is not None
        heads, inner = config.num_q_heads * config.head_dim, config.native.intermediate_size
        own_heads, own_inner = part.num_q_heads * config.head_dim, part.native.intermediate_size
        first_kv_head = group.rank * config.num_kv_heads // group.size
        kv = (
            config.num_kv_heads * config.head_dim,
            first_kv_head * config.head_dim,
            part.num_kv_heads * config.head_dim,
        )
        own = heads, group.rank * own_heads, own_heads
        own_features = inner, group.rank * own_inner, own_inner
        self._cuts = {
            "self_attn.q_proj": _Cut(0, *own),
            "self_attn.k_proj": _Cut(0, *kv),
            "self_attn.v_proj": _Cut(0, *kv),
            "self_attn.o_proj": _Cut(1, *own),
            "mlp.gate_proj": _Cut(0, *own_features),
            "mlp.up_proj": _Cut(0, *own_features),
            "mlp.down_proj": _Cut(1, *own_features),
        }

    def has(self, name: str) -> bool:
        """See `WeightSource`."""
        return self._source.has(name)

    def tensor(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """See `WeightSource`; `shape` is that of the part. The bias of a layer whose results are added up is zero except on rank 0."""
        cut = self._cut(name)
        if cut is None:
            return self._source.tensor(name, shape)
        if cut.dim == 1 and len(shape) == 1:
            bias = self._source.tensor(name, shape)
            return bias if self._rank == 0 else torch.zeros_like(bias)
        whole = self._source.tensor(name, _whole_shape(shape, cut))
        return whole.narrow(cut.dim, cut.start, cut.length).clone(memory_format=torch.contiguous_format)

    def low_bit(self, name: str, shape: tuple[int, ...]) -> LowBitWeight | None:
        """See `WeightSource`; `shape` is that of the part.

        Raises:
            ConfigError: the inputs of ranks do not begin at borders of groups.
        """
        cut = self._cut(name)
        found = self._source.low_bit(name, shape if cut is None else _whole_shape(shape, cut))
        if found is None or cut is None:
            return found
        ranges = [(0, size) for size in found.shape]
        ranges[cut.dim] = cut.start, cut.start + cut.length
        try:
            return WeightSlice(found, *ranges)
        except ValueError as error:
            raise ConfigError(
                "tensor_parallel", cut.whole // cut.length, f"{name} cannot be divided: {error}"
            ) from None

    def _cut(self, name: str) -> _Cut | None:
        """The cut of a tensor named model.layers.N.PART.weight or .bias; None if it is whole."""
        parts = name.split(".")
        return self._cuts.get(".".join(parts[3:5])) if len(parts) == 6 else None


def _whole_shape(shape: tuple[int, ...], cut: _Cut) -> tuple[int, ...]:
    assert shape[cut.dim] == cut.length
    return (*shape[: cut.dim], cut.whole, *shape[cut.dim + 1 :])
