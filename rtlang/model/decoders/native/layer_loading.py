"""Reads the weights of layers by their names in the checkpoint, as the layer table describes them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rtlang.model.decoders.native.delta_part import DeltaPart
from rtlang.model.decoders.native.expert_matrices import ExpertMatrices
from rtlang.model.decoders.native.experts_part import ExpertsPart, SeparateExperts, SharedExpert
from rtlang.model.decoders.native.layers import AttentionPart, FeedForwardPart, Layer
from rtlang.model.layers.linear import Linear, own_memory
from rtlang.model.layers.weight_source import WeightSource, matrix
from rtlang.model.loading.layer_table import (
    Activation,
    AttentionConfig,
    DeltaConfig,
    ExpertsConfig,
    FeedForwardConfig,
    QkNorm,
)
from rtlang.model.loading.model_config import ModelConfig
from rtlang.model.parallel.group import RankGroup
from rtlang.model.parallel.summed_linear import SummedLinear
from rtlang_kernels import ops
from rtlang_kernels.contract.delta_layer import DeltaWeights
from rtlang_kernels.contract.experts import Experts
from rtlang_kernels.contract.low_bit import LowBitWeight, WeightSlice

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LayerLoader:
    """Loads layers one at a time and packs their linear layers, in few bits where the checkpoint has them.

    Attributes:
        config: sizes of the model, or of the part of it that this rank has.
        make: `Linear.of_parts`, with what all layers share.
        group: the ranks that add up their results.
        stack: `Backend.stacked_experts` with its dtype, or None if experts are packed one at a time.
    """

    config: ModelConfig
    source: WeightSource
    make: Callable[..., Linear]
    group: RankGroup | None = None
    stack: Callable[..., Experts] | None = None

    def layer(self, index: int, *, num_inputs: int | None = None) -> Layer:
        """Read layer `index`.

        Args:
            num_inputs: inputs of its attention; default: the hidden size.
        Raises:
            ModelLoadError: a tensor is missing or has another shape.
        """
        native, prefix = self.config.native, f"model.layers.{index}."
        assert native is not None
        own = native.layers[index]

        def norm(name: str | None) -> Tensor | None:
            return None if name is None else self.norm(f"{prefix}{name}", self.config.hidden_size)

        is_same = [isinstance(layer.attention, type(own.attention)) for layer in native.layers[:index]]
        return Layer(
            own,
            sum(is_same),
            self.delta(f"{prefix}linear_attn.", own.attention)
            if isinstance(own.attention, DeltaConfig)
            else self.attention(f"{prefix}self_attn.", own.attention, num_inputs or self.config.hidden_size),
            self.experts(f"{prefix}{own.feed_forward.path}.", own.feed_forward)
            if isinstance(own.feed_forward, ExpertsConfig)
            else self.feed_forward(f"{prefix}mlp.", own.feed_forward),
            before_attention=norm(own.norms.before_attention),
            after_attention=norm(own.norms.after_attention),
            before_feed_forward=norm(own.norms.before_feed_forward),
            after_feed_forward=norm(own.norms.after_feed_forward),
        )

    def attention(self, prefix: str, own: AttentionConfig, num_inputs: int) -> AttentionPart:
        """Read an attention part with so many inputs whose names begin with `prefix`."""
        config = self.config
        q_size, kv_size = config.num_q_heads * config.head_dim, config.num_kv_heads * config.head_dim
        keys = {f"{prefix}k_proj": kv_size, f"{prefix}v_proj": kv_size}
        sizes = (q_size, kv_size) if own.qk_norm is QkNorm.ALL_HEADS else (config.head_dim, config.head_dim)
        has_norms = own.qk_norm is not QkNorm.NONE
        return AttentionPart(
            own,
            qkv=self.gated_qkv(f"{prefix}q_proj", keys, own.has_qkv_bias)
            if own.is_gated
            else self.linear({f"{prefix}q_proj": q_size, **keys}, num_inputs, own.has_qkv_bias),
            q_norm=self.norm(f"{prefix}q_norm", sizes[0]) if has_norms else None,
            k_norm=self.norm(f"{prefix}k_norm", sizes[1]) if has_norms else None,
            output=self.linear({f"{prefix}o_proj": config.hidden_size}, q_size, own.has_output_bias, is_summed=True),
            sinks=own_memory(self.source.tensor(f"{prefix}sinks", (config.num_q_heads,))) if own.has_sinks else None,
        )

    def gated_qkv(self, name: str, keys: Mapping[str, int], has_bias: bool) -> Linear:
        """Read q, k, v and gates as one linear layer, in this order; the tensor `name` has the query and the gate of each head."""
        config, size = self.config, 2 * self.config.num_q_heads * self.config.head_dim
        places = [range(start, size, 2 * config.head_dim) for start in (0, config.head_dim)]
        both = matrix(self.source, f"{name}.weight", (size, config.hidden_size))
        queries, gates = (_rows(both, [(start, start + config.head_dim) for start in each]) for each in places)
        bias = None
        if has_bias:
            first = self.source.tensor(f"{name}.bias", (size,)).view(config.num_q_heads, 2, config.head_dim)
            others = [self.source.tensor(f"{key}.bias", (count,)) for key, count in keys.items()]
            bias = torch.cat([first[:, 0].flatten(), *others, first[:, 1].flatten()])
        rest = [matrix(self.source, f"{key}.weight", (count, config.hidden_size)) for key, count in keys.items()]
        return self.make([*queries, *rest, *gates], bias)

    def delta(self, prefix: str, own: DeltaConfig) -> DeltaPart:
        """Read a gated delta layer whose names begin with `prefix`."""
        native, hidden = self.config.native, self.config.hidden_size
        assert native is not None
        heads, source = own.num_v_heads, self.source
        weights = DeltaWeights(
            own_memory(source.tensor(f"{prefix}conv1d.weight", (own.num_channels, 1, own.width))[:, 0]).contiguous(),
            -source.tensor(f"{prefix}A_log", (heads,)).float().exp(),
            source.tensor(f"{prefix}dt_bias", (heads,)).float(),
            source.tensor(f"{prefix}norm.weight", (own.v_dim,)).float(),
            own.num_k_heads,
            own.k_dim,
            native.rms_norm_eps,
        )
        backend = ops.backend_for(weights.conv.device, weights.conv.dtype)
        return DeltaPart(
            own,
            self.make(self.delta_inputs(prefix, own), None),
            backend.delta_layer(weights),
            self.linear({f"{prefix}out_proj": hidden}, own.v_size, False),
        )

    def delta_inputs(self, prefix: str, own: DeltaConfig) -> list[Tensor | LowBitWeight]:
        """Read the weights of q, k, v, z, b and a, in this order."""
        hidden, heads, group = self.config.hidden_size, own.num_v_heads, own.num_v_heads // own.num_k_heads
        if not own.has_pairs:
            parts = {"qkv": own.num_channels, "z": own.v_size, "b": heads, "a": heads}
            names = {f"{prefix}in_proj_{part}.weight": size for part, size in parts.items()}
            return [matrix(self.source, name, (size, hidden)) for name, size in names.items()]
        found: list[Tensor | LowBitWeight] = []
        wide, narrow = (own.k_dim, own.k_dim, group * own.v_dim, group * own.v_dim), (group, group)
        for name, sizes in (("in_proj_qkvz", wide), ("in_proj_ba", narrow)):
            step = sum(sizes)
            both = matrix(self.source, f"{prefix}{name}.weight", (own.num_k_heads * step, hidden))
            for part, size in enumerate(sizes):
                starts = range(sum(sizes[:part]), own.num_k_heads * step, step)
                found += _rows(both, [(start, start + size) for start in starts])
        return found

    def feed_forward(self, prefix: str, own: FeedForwardConfig) -> FeedForwardPart:
        """Read a dense feed-forward part whose names begin with `prefix`."""
        hidden, inner = self.config.hidden_size, own.intermediate_size
        gate_up = {f"{prefix}gate_proj": inner, f"{prefix}up_proj": inner}
        return FeedForwardPart(
            own,
            gate_up=self.linear(gate_up, hidden, own.has_bias, is_gated=own.activation is Activation.SILU),
            down=self.linear({f"{prefix}down_proj": hidden}, inner, own.has_bias, is_summed=True),
        )

    def experts(self, prefix: str, own: ExpertsConfig) -> ExpertsPart:
        """Read a feed-forward part of experts whose names begin with `prefix`.

        Experts are stacked where the backend and the formats allow it. Otherwise each one is packed before the next one is read.
        """
        hidden = self.config.hidden_size
        matrices = ExpertMatrices(self.source, f"{prefix}experts.", own, hidden)
        layers = None if self.stack is None else matrices.stacked()
        packed: Experts | SeparateExperts
        if self.stack is not None and layers is not None:
            packed = self.stack(*layers, own.num_experts, matrices.gate)
        else:
            if self.stack is not None:
                logger.warning("%sexperts have weights of several formats: they are computed one at a time", prefix)
            packed = SeparateExperts(*matrices.packed(self.make), matrices.gate)
        shared = None
        if own.shared_size is not None:
            shared = SharedExpert(
                self.feed_forward(f"{prefix}shared_expert.", FeedForwardConfig(own.shared_size)),
                self.linear({f"{prefix}shared_expert_gate": 1}, hidden, False),
            )
        router = self.linear({f"{prefix}{own.router}": own.num_experts}, hidden, own.has_bias)
        return ExpertsPart(own, router, packed, shared)

    def linear(
        self,
        parts: Mapping[str, int],
        num_inputs: int,
        has_bias: bool,
        *,
        is_gated: bool = False,
        is_summed: bool = False,
    ) -> Linear:
        """Read one linear layer.

        Args:
            parts: names without ".weight" and their numbers of outputs, which follow one another.
            is_gated: see `Linear.of_parts`.
            is_summed: the results of all ranks are added up.
        """
        biases = [self.source.tensor(f"{name}.bias", (size,)) for name, size in parts.items() if has_bias]
        bias = torch.cat(biases) if biases else None
        weights = [matrix(self.source, f"{name}.weight", (size, num_inputs)) for name, size in parts.items()]
        linear = self.make(weights, bias, is_gated=is_gated)
        return SummedLinear.of(linear, self.group) if is_summed and self.group is not None else linear

    def norm(self, name: str, size: int) -> Tensor:
        """Read the weight [size] of the norm `name`."""
        return norm_weight(self.config, self.source, name, size)


def norm_weight(config: ModelConfig, source: WeightSource, name: str, size: int) -> Tensor:
    """The factors [size] of the norm `name`; float32 where one is added to the weight, which another dtype would round."""
    assert config.native is not None
    weight = source.tensor(f"{name}.weight", (size,))
    return weight.float() + 1.0 if config.native.norms_add_one else own_memory(weight)


def _rows(weight: Tensor | LowBitWeight, ranges: Sequence[tuple[int, int]]) -> list[Tensor | LowBitWeight]:
    """Some ranges of the rows of a matrix, one after the other."""
    if isinstance(weight, Tensor):
        return [torch.cat([weight[start:stop] for start, stop in ranges])]
    return [WeightSlice(weight, each, (0, weight.shape[1])) for each in ranges]
