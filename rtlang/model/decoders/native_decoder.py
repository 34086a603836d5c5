"""The native decoder for Llama, Gemma, Phi, Granite, OLMo and other families, with as few operators per layer as possible.

What a layer computes is data: `loading.layer_table`. A layer of a Llama is eight calls on a CPU: norm, one linear for q, k and v, rotation
fused with the KV write, attention, output linear that adds to the residual, norm, one linear for gate and up that ends in their product,
down linear that adds to the residual. On a device the norms add, and the product is a call. The Python cost of each call dominates small
models, so everything that does not change between steps is prepared at load time; on a CPU, all layers of a step of up to a thousand
tokens are one call, unless a layer has experts. After the last layer only the rows that need logits are kept. Does not use `transformers`.

Sources: Touvron et al. 2023 (Llama), Jiang et al. 2023 (Mistral), technical reports of Qwen2, Qwen3, Gemma 2, Gemma 3, Phi-4, Granite 3 and
OLMo 3.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Protocol

import torch
from torch import Tensor

from rtlang.contract.errors import ConfigError
from rtlang.model.decoders.native.delta_part import CONV, MATRIX, state_shapes
from rtlang.model.decoders.native.layer_loading import LayerLoader, norm_weight
from rtlang.model.decoders.native.layers import Layer, LayerStep, normed
from rtlang.model.decoders.native.rotations import Rotations
from rtlang.model.decoders.native.separate_tensors import SeparateTensors
from rtlang.model.layers.attention import HeadGeometry, PagedKV, StepAttention, Window
from rtlang.model.layers.linear import Linear, own_memory, tune_linears
from rtlang.model.layers.states import StateMemory, StateShape
from rtlang.model.layers.weight_source import WeightSource, matrix
from rtlang.model.loading.layer_table import Activation, DeltaConfig
from rtlang.model.loading.model_config import ModelConfig
from rtlang.model.parallel.group import RankGroup
from rtlang.model.parallel.weight_parts import PartSource, part_of
from rtlang_kernels import ops
from rtlang_kernels.contract.fused_step import FusedShape, FusedStates, FusedStep
from rtlang_kernels.contract.low_bit import LinearInputs, LowBitWeight
from rtlang_kernels.dispatch import Backend

logger = logging.getLogger(__name__)


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


class NativeDecoder:
    """A model whose layers `config.native` describes. Construct with `NativeDecoder.load`.

    Attributes:
        is_row_invariant: see `Decoder`. All layers of the CPU are, and those of a GPU in a fixed order.
    """

    is_row_invariant: bool

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
        # as the models of transformers, which round it
        self._embedding_multiplier = float(torch.tensor(config.native.embedding_multiplier).to(dtype))
        self._layers: list[Layer] = []
        self._fused: FusedStep | None = None
        self._pools: tuple[PagedKV, tuple[Tensor, ...], tuple[Tensor, ...]] | None = None
        self._memory: tuple[StateMemory, tuple[Tensor, ...], tuple[Tensor, ...]] | None = None
        ropes = [attention.rope for attention in config.native.attentions]
        self._rotations = Rotations(ropes, config.head_dim, norm.device)
        self._geometry = HeadGeometry(config.num_q_heads, config.num_kv_heads, config.head_dim, config.head_dim)
        self.geometries = (self._geometry,) * len(ropes)
        self.state_shapes = state_shapes(config.native.deltas, dtype)

    @classmethod
    def load(
        cls,
        config: ModelConfig,
        source: WeightSource,
        dtype: torch.dtype,
        group: RankGroup | None = None,
        *,
        inputs: LinearInputs = LinearInputs.INT8,
        has_fixed_order: bool = False,
    ) -> NativeDecoder:
        """Load the weights of `config` from `source` layer by layer, packing each one immediately.

        Args:
            group: the ranks that compute the model together; this one loads its part.
            inputs: see `Linear.of_parts`.
            has_fixed_order: give a token the same bits whatever else a step has, also on a GPU.
        Raises:
            ModelLoadError: a tensor is missing or has the wrong shape.
            ConfigError: the model cannot be divided among the ranks, or has no fixed order on this device.
        """
        assert config.native is not None
        if config.native.has_joined_tensors:
            source = SeparateTensors(source, config)
        if group is not None:
            source, config = PartSource(source, config, group), part_of(config, group.size)
        norm = norm_weight(config, source, "model.norm", config.hidden_size)
        # packed before the next weight is read, when their file's memory goes
        embedding, head_weight = _ends(config, source)
        backend = ops.backend_for(norm.device, dtype)
        if has_fixed_order:
            _check_fixed_order(config, backend)
        make = partial(Linear.of_parts, dtype=dtype, device=norm.device, inputs=inputs, has_fixed_order=has_fixed_order)
        head = make([head_weight]) if group is None or group.is_first else None
        if head is not None and head_weight is embedding:
            embed: Callable[[Tensor], Tensor] = head.rows  # one copy serves both ends
        elif isinstance(embedding, Tensor):
            embed = partial(own_memory(embedding).index_select, 0)
        else:
            embed = make([embedding]).rows
        decoder = cls(config, dtype, embed, norm, head)
        del embedding, head_weight
        decoder.is_row_invariant = backend.packed_linear is not None or has_fixed_order
        stacked = backend.stacked_experts
        stack = None if stacked is None else lambda up, down, count, gate: stacked(up, down, count, gate, dtype)
        loader = LayerLoader(config, source, make, group, stack)
        decoder._layers = [loader.layer(layer) for layer in range(config.num_layers)]
        heads = () if head is None else (head,)
        tune_linears((*(linear for layer in decoder._layers for linear in layer.linears), *heads))
        make_fused, shape = None if group is not None else backend.fused_step, _shape(config, dtype)
        if make_fused is not None and shape is not None and shape.is_supported and decoder._layers:
            decoder._fused = make_fused(shape, [layer.fused() for layer in decoder._layers], norm)
        return decoder

    def forward(self, attention: StepAttention) -> Tensor:
        """See `Decoder`. Returns normalized hidden states [N, hidden_size]."""
        batch, kv = attention.batch, attention.kv
        num_tokens = batch.num_tokens
        # All rows need one sample, in order:
        is_plain = not batch.scoring_rows and len(batch.logit_indices) == num_tokens
        rotations = self._rotations.up_to(int(batch.seq_lens.max()))
        plan = attention.plan(self._geometry)
        residual = self.embed(attention.input_ids)  # [T, hidden_size]
        tap = attention.tap
        tapped = () if tap is None else tap.layers
        if self._fused is not None and plan.backend == "cpu" and not tapped and self._fused.is_worthwhile(num_tokens):
            places = batch.positions, batch.slot_mapping, rotations, *self._pools_of(kv)
            scale = self.native.attentions[0].scale
            memory = self._states_of(attention)
            states = self._fused.forward(residual, *places, plan, scale, self.native.sliding_windows, memory)
            if tap is not None:
                tap.found.append(states)
            return states if is_plain else states.index_select(0, batch.logit_indices)
        step = LayerStep(attention, plan, rotations, residual, self.native.rms_norm_eps)
        x: Tensor | None = None  # not yet added to the residual
        for index, layer in enumerate(self._layers):
            if tap is not None and index in tapped:
                tap.found.append(residual.clone() if x is None else residual + x)
            x = layer.forward(residual, x, step)
        if tap is not None and not tapped:
            states = normed(residual, x, self._norm, step)
            tap.found.append(states)
            return states if is_plain else states.index_select(0, batch.logit_indices)
        if not is_plain:
            residual = residual.index_select(0, batch.logit_indices)
            x = x.index_select(0, batch.logit_indices) if x is not None else None
        return normed(residual, x, self._norm, step)

    def embed(self, token_ids: Tensor) -> Tensor:
        """Embeddings [num_tokens, hidden_size] of int64 `token_ids`, as the first layer takes them."""
        found = self._embed(token_ids)
        return found if self._embedding_multiplier == 1.0 else found.mul_(self._embedding_multiplier)

    def _pools_of(self, kv: PagedKV) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """K and V of the model's layers, without those of a draft head; the same tuples while the pages are the same."""
        if len(kv.k) == len(self.geometries):
            return kv.k, kv.v
        if self._pools is None or self._pools[0] is not kv:
            self._pools = kv, kv.k[: len(self.geometries)], kv.v[: len(self.geometries)]
        return self._pools[1:]

    def _states_of(self, attention: StepAttention) -> FusedStates | None:
        """The states of a step, as a fused step takes them; the same tuples while the memory is the same."""
        if not self.state_shapes:
            return None
        states = attention.states
        assert states is not None, "rows of a model with recurrent layers have states"
        if self._memory is None or self._memory[0] is not states.memory:
            tensors = (
                tuple(states.memory.of(layer, name) for layer in range(len(self.native.deltas)))
                for name in (CONV, MATRIX)
            )
            self._memory = states.memory, *tensors  # type: ignore[assignment]
            assert self._memory is not None
        return FusedStates(*self._memory[1:], states.plan)

    def project(self, states: Tensor) -> Tensor:
        """See `Decoder`; logits of no tokens on ranks other than the first, which sample nothing."""
        if self._head is None:
            return states[:, :0]
        logits, native = self._head(states), self.native
        if native.logits_divisor != 1.0:
            logits.div_(native.logits_divisor)
        if native.logits_soft_cap is not None:
            # one at a time on a CPU: there the last bits of torch's tanh depend on the place in a tensor
            for row in logits if logits.device.type == "cpu" else (logits,):
                row.div_(native.logits_soft_cap).tanh_().mul_(native.logits_soft_cap)
        return logits

    def reserve(self, longest: int) -> None:
        """See `Decoder`: the rotation tables."""
        self._rotations.reserve(longest)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self._norm.device

    @property
    def backend(self) -> Backend:
        """The kernels."""
        return ops.backend_for(self.device, self.dtype)

    @property
    def windows(self) -> tuple[Window, ...]:
        """See `Decoder`."""
        return tuple((window, None) for window in self.native.sliding_windows)


def _check_fixed_order(config: ModelConfig, backend: Backend) -> None:
    """Raise ConfigError if layers of this model have no fixed order on a backend."""
    assert config.native is not None
    if backend.packed_linear is not None:
        return
    obstacle = "experts" if config.native.has_experts else "recurrent layers" if config.native.deltas else None
    if backend.fixed_linear is None or obstacle is not None:
        what = f"{obstacle} on a GPU" if obstacle else f"the kernels {backend.name!r}"
        raise ConfigError("deterministic", True, f"expected False: the bits of {what} depend on the step")


def native_bytes(config: ModelConfig, dtype: torch.dtype) -> int:
    """Bytes of a native decoder's weights; a tied embedding is one copy with the head."""
    assert config.native is not None
    num_ends, hidden, shape = 1 if config.tie_word_embeddings else 2, config.hidden_size, _sizes(config, dtype)
    count = num_ends * config.vocab_size * hidden
    for layer in config.native.layers:
        if isinstance(layer.attention, DeltaConfig):
            count += hidden * (layer.attention.num_inputs + layer.attention.v_size)
        else:
            count += hidden * (shape.qkv_size + (2 if layer.attention.is_gated else 1) * shape.q_size)
        count += layer.feed_forward.num_weights(hidden)
    return count * dtype.itemsize


def _ends(config: ModelConfig, source: WeightSource) -> tuple[Tensor | LowBitWeight, Tensor | LowBitWeight]:
    """The embedding and the head's weight, [vocab_size, hidden_size] each; the same object if they are tied. Tied weights are one tensor
    under either name; two different tensors are not tied, regardless of config.json, as in transformers."""
    names, shape = ("model.embed_tokens.weight", "lm_head.weight"), (config.vocab_size, config.hidden_size)
    present = [name for name in names if not config.tie_word_embeddings or source.has(name)]
    tensors = [matrix(source, name, shape) for name in present or names[:1]]
    if len(tensors) == 2 and config.tie_word_embeddings:
        first, second = tensors
        if isinstance(first, Tensor) and isinstance(second, Tensor) and torch.equal(first, second):
            tensors.pop()
        else:
            logger.warning(
                "config.json ties %s to %s, but their weights differ: both are used as they are", *reversed(names)
            )
    return tensors[0], tensors[-1]


def _sizes(config: ModelConfig, dtype: torch.dtype) -> FusedShape:
    native = config.native
    assert native is not None
    heads = config.num_q_heads, config.num_kv_heads, config.head_dim
    return FusedShape(dtype, config.hidden_size, native.intermediate_size, *heads, native.rms_norm_eps)


def _shape(config: ModelConfig, dtype: torch.dtype) -> FusedShape | None:
    """What all layers have in common, for a fused step; None if they differ in more than it can compute."""
    assert config.native is not None
    layers, attentions = config.native.layers, config.native.attentions
    if config.native.has_experts or any(attention.has_sinks for attention in attentions):
        return None
    rotated = {attention.rope.rotary_dim for attention in attentions if attention.rope is not None}
    caps = {(attention.scale, attention.soft_cap, attention.is_gated) for attention in attentions}
    kinds = {
        (
            layer.residual_multiplier,
            getattr(layer.feed_forward, "activation", None),
            layer.feed_forward.intermediate_size,
        )
        for layer in layers
    }
    if len(kinds) > 1 or len(rotated) > 1 or len(caps) != 1:
        return None
    ((_, soft_cap, _),) = caps
    multiplier, activation, _ = kinds.pop()
    return replace(
        _sizes(config, dtype),
        rotary_dim=rotated.pop() if rotated else None,
        is_gelu=activation is Activation.GELU,
        residual_factor=multiplier,
        soft_cap=soft_cap,
    )
