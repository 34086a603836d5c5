"""The native decoder for Llama, Mistral, Qwen2 and Qwen3, with as few operators per layer as possible.

A layer is eight calls on a CPU: norm, one linear for q, k and v, rotation fused with the KV write, attention, output linear that adds to
the residual, norm, one linear for gate and up that ends in their product, down linear that adds to the residual. On a device the norms
add, and the product is a call. The Python cost of each call dominates small models, so everything that does not change between steps is
prepared at load time; on a CPU, all layers of a step of up to a thousand tokens are one call. After the last layer only the rows that need
logits are kept. Does not use `transformers`.

Sources: Touvron et al. 2023 (Llama), Jiang et al. 2023 (Mistral), Qwen2 and Qwen3 technical reports, Su et al. 2021 (rotary
embedding).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import torch
from torch import Tensor

from rtlang.model.layers.attention import HeadGeometry, StepAttention, Window
from rtlang.model.layers.linear import Linear, own_memory, tune_linears
from rtlang.model.layers.states import StateShape
from rtlang.model.layers.weight_source import WeightSource
from rtlang.model.loading.model_config import ModelConfig, RopeConfig
from rtlang.model.parallel.group import RankGroup
from rtlang.model.parallel.summed_linear import SummedLinear
from rtlang.model.parallel.weight_parts import PartSource, part_of
from rtlang_kernels import ops
from rtlang_kernels.contract.fused_step import FusedLayer, FusedShape, FusedStep
from rtlang_kernels.contract.low_bit import LowBitWeight

logger = logging.getLogger(__name__)

_FIRST_ROPE_LEN = 4096  # initial length of the rotation tables; doubled for longer sequences


class Decoder(Protocol):
    """A model, as used by the runners. Computes one forward pass at a time."""

    @property
    def dtype(self) -> torch.dtype:
        """Dtype of weights, activations and KV."""

    @property
    def geometries(self) -> tuple[HeadGeometry, ...]:
        """Head geometry of each attention layer."""

    @property
    def windows(self) -> tuple[Window, ...]:
        """Sliding window and chunk size of each attention layer."""

    @property
    def state_shapes(self) -> tuple[StateShape, ...]:
        """The tensors of a state, in a fixed order; empty for a model without recurrent layers."""

    @property
    def is_row_invariant(self) -> bool:
        """Whether the bits of a token's logits do not depend on the other rows and tokens of its step."""

    def reserve(self, longest: int) -> None:
        """Allocate everything that depends on sequence length for up to `longest` tokens, since captured graphs keep the addresses."""

    def forward(self, attention: StepAttention) -> Tensor:
        """Compute a step and write its K and V; returns states [N, width] for `project`, one row per `batch.logit_indices`."""

    def project(self, states: Tensor) -> Tensor:
        """Logits [M, vocab_size] of any M rows returned by `forward`."""


@dataclass(frozen=True, slots=True)
class _Layer:
    input_norm: Tensor
    qkv: Linear
    q_norm: Tensor | None
    k_norm: Tensor | None
    output: Linear
    post_norm: Tensor
    gate_up: Linear
    down: Linear
    sliding_window: int | None

    @property
    def linears(self) -> tuple[Linear, ...]:
        """The linear layers in the order of their use."""
        return self.qkv, self.output, self.gate_up, self.down


class NativeDecoder:
    """A Llama-family model. Construct with `NativeDecoder.load`."""

    def __init__(
        self,
        config: ModelConfig,
        dtype: torch.dtype,
        embed: Callable[[Tensor], Tensor],
        norm: Tensor,
        head: Linear | None,
    ) -> None:
        assert config.native is not None
        self.config, self.native, self.dtype = config, config.native, dtype
        self._embed, self._norm, self._head = embed, norm, head
        self._layers: list[_Layer] = []
        self._fused: FusedStep | None = None
        self._cos, self._sin = self._rotations(_FIRST_ROPE_LEN)
        self._geometry = HeadGeometry(config.num_q_heads, config.num_kv_heads, config.head_dim, config.head_dim)
        self.geometries = (self._geometry,) * config.num_layers
        self.state_shapes: tuple[StateShape, ...] = ()

    @classmethod
    def load(
        cls,
        config: ModelConfig,
        source: WeightSource,
        dtype: torch.dtype,
        group: RankGroup | None = None,
        *,
        has_float_inputs: bool = False,
    ) -> NativeDecoder:
        """Load the weights of `config` from `source` layer by layer, packing each one immediately.

        Args:
            group: the ranks that compute the model together; this one loads its part.
            has_float_inputs: see `Linear.of_parts`.
        Raises:
            ModelLoadError: a tensor is missing or has the wrong shape.
            ConfigError: the model cannot be divided among the ranks.
        """
        if group is not None:
            source, config = PartSource(source, config, group), part_of(config, group.size)
        assert config.native is not None
        norm = own_memory(source.tensor("model.norm.weight", (config.hidden_size,)))
        # packed before the next weight is read, when their file's memory goes
        embedding, head_weight = _ends(config, source)
        make = partial(Linear.of_parts, dtype=dtype, device=norm.device, has_float_inputs=has_float_inputs)
        head = make([head_weight]) if group is None or group.is_first else None
        if head is not None and head_weight is embedding:
            embed: Callable[[Tensor], Tensor] = head.rows  # one copy serves both ends
        elif isinstance(embedding, Tensor):
            embed = partial(own_memory(embedding).index_select, 0)
        else:
            embed = make([embedding]).rows
        decoder = cls(config, dtype, embed, norm, head)
        del embedding, head_weight
        backend = ops.backend_for(norm.device, dtype)
        decoder._layers = [_load_layer(config, source, layer, make, group) for layer in range(config.num_layers)]
        heads = () if head is None else (head,)
        tune_linears((*(linear for layer in decoder._layers for linear in layer.linears), *heads))
        make_fused, shape = None if group is not None else backend.fused_step, _shape(config, dtype)
        if make_fused is not None and shape.is_supported and decoder._layers:
            decoder._fused = make_fused(shape, [_packed(layer) for layer in decoder._layers], norm)
        return decoder

    def forward(self, attention: StepAttention) -> Tensor:
        """See `Decoder`. Returns normalized hidden states [N, hidden_size]."""
        batch, kv = attention.batch, attention.kv
        config, eps = self.config, self.native.rms_norm_eps
        head_dim, num_q, num_kv = config.head_dim, config.num_q_heads, config.num_kv_heads
        split, scale = [num_q, num_kv, num_kv], head_dim**-0.5
        num_tokens, positions, slots = batch.num_tokens, batch.positions, batch.slot_mapping
        # All rows need one sample, in order:
        is_plain = not batch.scoring_rows and len(batch.logit_indices) == num_tokens
        cos, sin = self._rotation(int(batch.seq_lens.max()))
        plan = attention.plan(self._geometry)
        residual = self._embed(attention.input_ids)  # [T, hidden_size]
        if self._fused is not None and plan.backend == "cpu" and self._fused.is_worthwhile(num_tokens):
            places = positions, slots, cos, sin, kv.k, kv.v
            states = self._fused.forward(residual, *places, plan, scale, self.native.sliding_windows)
            return states if is_plain else states.index_select(0, batch.logit_indices)
        # The functions of the backend, called directly: looking the backend up and checking shapes in each of 7 calls per layer costs
        # as much as one of them.
        backend = ops.backend_named(plan.backend)
        norm, rotate, attend, gate = (
            backend.add_rms_norm,
            backend.rope_append,
            backend.paged_attention,
            backend.silu_and_mul,
        )
        x: Tensor | None = None  # not yet added to the residual
        # Padding rows of a captured batch are never written; zeros keep their values finite.
        make_out = residual.new_zeros if plan.backend == "triton" else residual.new_empty
        out = make_out((num_tokens, num_q, head_dim))
        lse = torch.empty((num_tokens, num_q), dtype=torch.float32, device=out.device)
        flat_out = out.view(num_tokens, -1)
        for layer, k_pool, v_pool in zip(self._layers, kv.k, kv.v, strict=True):
            h = norm(residual, None, layer.input_norm, eps) if x is None else norm(x, residual, layer.input_norm, eps)
            q, k, v = layer.qkv(h).view(num_tokens, -1, head_dim).split_with_sizes(split, 1)
            rotate(q, k, v, cos, sin, positions, k_pool, v_pool, slots, layer.q_norm, layer.k_norm, eps)
            attend(q, k_pool, v_pool, plan, scale, layer.sliding_window, None, None, None, out, lse)
            x = layer.output.add_to(residual, flat_out)
            h = norm(residual, None, layer.post_norm, eps) if x is None else norm(x, residual, layer.post_norm, eps)
            h = layer.gate_up(h)
            x = layer.down.add_to(residual, h if layer.gate_up.is_gated else gate(h))
        if not is_plain:
            residual = residual.index_select(0, batch.logit_indices)
            x = x.index_select(0, batch.logit_indices) if x is not None else None
        return norm(residual, None, self._norm, eps) if x is None else norm(x, residual, self._norm, eps)

    def project(self, states: Tensor) -> Tensor:
        """See `Decoder`; logits of no tokens on ranks other than the first, which sample nothing."""
        return states[:, :0] if self._head is None else self._head(states)

    def _rotation(self, longest: int) -> tuple[Tensor, Tensor]:
        """Rotation tables for sequences of up to `longest` tokens."""
        if longest > len(self._cos):
            self._cos, self._sin = self._rotations(2 * longest)
        return self._cos, self._sin

    def _rotations(self, length: int) -> tuple[Tensor, Tensor]:
        cos, sin = rope_tables(self.native.rope, self.config.head_dim, length)
        return cos.to(self._norm.device), sin.to(self._norm.device)

    def reserve(self, longest: int) -> None:
        """See `Decoder`: the rotation tables."""
        if longest > len(self._cos):
            self._cos, self._sin = self._rotations(longest)

    @property
    def is_row_invariant(self) -> bool:
        """See `Decoder`; so are the packed linear layers and the other kernels of the CPU."""
        return ops.backend_for(self._norm.device, self.dtype).packed_linear is not None

    @property
    def windows(self) -> tuple[Window, ...]:
        """See `Decoder`."""
        return tuple((layer.sliding_window, None) for layer in self._layers)


def native_bytes(config: ModelConfig, dtype: torch.dtype) -> int:
    """Bytes of a native decoder's weights; a tied embedding is one copy with the head."""
    num_ends = 1 if config.tie_word_embeddings else 2
    return _shape(config, dtype).num_bytes(config.num_layers, num_ends * config.vocab_size)


def rope_tables(rope: RopeConfig, head_dim: int, max_len: int) -> tuple[Tensor, Tensor]:
    """Cosine and sine of every angle: float32 [max_len, head_dim // 2] each; element i rotates lanes i and i + head_dim // 2."""
    # Computed in float32, like the published checkpoints: the rounding of frequencies times long positions is part of the model.
    frequencies = 1.0 / rope.theta ** (torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim)
    if rope.kind == "linear":
        frequencies = frequencies / rope.factor
    elif rope.kind == "llama3":
        frequencies = _llama3_frequencies(rope, frequencies)
    angles = torch.arange(max_len, dtype=torch.float32)[:, None] * frequencies
    return angles.cos(), angles.sin()


def _llama3_frequencies(rope: RopeConfig, frequencies: Tensor) -> Tensor:
    """Stretch long wavelengths by `factor`, keep short ones, and interpolate in between."""
    turns = rope.original_max_position_embeddings * frequencies / (2 * math.pi)  # full turns within the original length
    blend = ((turns - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor)).clamp(0.0, 1.0)
    return blend * frequencies + (1.0 - blend) * frequencies / rope.factor


def _ends(config: ModelConfig, source: WeightSource) -> tuple[Tensor | LowBitWeight, Tensor | LowBitWeight]:
    """The embedding and the head's weight, [vocab_size, hidden_size] each; the same object if they are tied. Tied weights are one tensor
    under either name; two different tensors are not tied, regardless of config.json, as in transformers."""
    names, shape = ("model.embed_tokens.weight", "lm_head.weight"), (config.vocab_size, config.hidden_size)
    present = [name for name in names if not config.tie_word_embeddings or source.has(name)]
    tensors = [_weight(source, name, shape) for name in present or names[:1]]
    if len(tensors) == 2 and config.tie_word_embeddings:
        first, second = tensors
        if isinstance(first, Tensor) and isinstance(second, Tensor) and torch.equal(first, second):
            tensors.pop()
        else:
            logger.warning(
                "config.json ties %s to %s, but their weights differ: both are used as they are", *reversed(names)
            )
    return tensors[0], tensors[-1]


def _load_layer(
    config: ModelConfig,
    source: WeightSource,
    layer: int,
    make: Callable[..., Linear],
    group: RankGroup | None = None,
) -> _Layer:
    """Read one layer and pack its linear layers, in few bits where the checkpoint has them.

    Args:
        make: `Linear.of_parts`, with what all layers share.
    """
    native = config.native
    assert native is not None
    prefix = f"model.layers.{layer}."
    hidden, inner = config.hidden_size, native.intermediate_size
    q_size, kv_size = config.num_q_heads * config.head_dim, config.num_kv_heads * config.head_dim

    def joined(
        names: dict[str, int], width: int, has_bias: bool, *, is_gated: bool = False, is_summed: bool = False
    ) -> Linear:
        biases = [source.tensor(f"{prefix}{name}.bias", (size,)) for name, size in names.items() if has_bias]
        bias = torch.cat(biases) if biases else None
        summing = group if is_summed else None
        weights = [_weight(source, f"{prefix}{name}.weight", (size, width)) for name, size in names.items()]
        linear = make(weights, bias, is_gated=is_gated)
        return linear if summing is None else SummedLinear.of(linear, summing)

    def norm(name: str, size: int) -> Tensor:
        return own_memory(source.tensor(f"{prefix}{name}.weight", (size,)))

    attention: Callable[[str], str] = "self_attn.{}_proj".format
    mlp: Callable[[str], str] = "mlp.{}_proj".format
    qkv = {attention("q"): q_size, attention("k"): kv_size, attention("v"): kv_size}
    return _Layer(
        input_norm=norm("input_layernorm", hidden),
        qkv=joined(qkv, hidden, native.has_qkv_bias),
        q_norm=norm("self_attn.q_norm", config.head_dim) if native.has_qk_norm else None,
        k_norm=norm("self_attn.k_norm", config.head_dim) if native.has_qk_norm else None,
        output=joined({attention("o"): hidden}, q_size, native.has_output_bias, is_summed=True),
        post_norm=norm("post_attention_layernorm", hidden),
        gate_up=joined({mlp("gate"): inner, mlp("up"): inner}, hidden, native.has_mlp_bias, is_gated=True),
        down=joined({mlp("down"): hidden}, inner, native.has_mlp_bias, is_summed=True),
        sliding_window=native.sliding_windows[layer],
    )


def _weight(source: WeightSource, name: str, shape: tuple[int, int]) -> Tensor | LowBitWeight:
    """A matrix in few bits if it is stored so, else as floats."""
    found = source.low_bit(name, shape)
    return source.tensor(name, shape) if found is None else found


def _packed(layer: _Layer) -> FusedLayer:
    """The weights of a layer whose linear layers are packed."""
    qkv, output, gate_up, down = (each.packed for each in layer.linears)
    assert qkv is not None
    assert output is not None
    assert gate_up is not None
    assert down is not None
    return FusedLayer(layer.input_norm, qkv, layer.q_norm, layer.k_norm, output, layer.post_norm, gate_up, down)


def _shape(config: ModelConfig, dtype: torch.dtype) -> FusedShape:
    native = config.native
    assert native is not None
    heads = config.num_q_heads, config.num_kv_heads, config.head_dim
    return FusedShape(dtype, config.hidden_size, native.intermediate_size, *heads, native.rms_norm_eps)
