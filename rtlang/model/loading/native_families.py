"""The layer tables of families beyond Llama, Mistral and Qwen.

A family is an entry of FAMILIES: where its norms are, which entries of config.json hold its factors, how the checkpoint joins tensors. The
entries are read as the configuration class of transformers completes them, so every default is the published one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from rtlang.contract.errors import ModelLoadError
from rtlang.model.loading.layer_table import (
    Activation,
    AttentionConfig,
    DeltaConfig,
    ExpertsConfig,
    FeedForwardConfig,
    LayerConfig,
    LayerNorms,
    NativeConfig,
    QkNorm,
    RopeConfig,
)
from rtlang_kernels.contract.experts import ExpertGate

_BEFORE = LayerNorms()


@dataclass(frozen=True, slots=True)
class Family:
    """What the layers of a family are, apart from sizes.

    Attributes:
        architecture: class of the model of text alone.
        norms, norms_add_one, qk_norm: see `layer_table`.
        activation: name of the entry for it.
        scales_embedding: whether embeddings are multiplied by the square root of their size.
        caps_scores: whether the entry attn_logit_softcapping is used.
        has_windows: whether layers of type sliding_attention, or all where there are no types, have a window.
        joins: whether q, k, v and gate, up are one tensor each.
        has_factors: whether it has the multipliers of Granite.
        has_biases: whether attention_bias and mlp_bias are used.
        has_deltas: whether layers of type linear_attention are gated delta layers, and attention is gated.
        joins_deltas: see `DeltaConfig.has_pairs`.
        experts: of the layers that have any, with the defaults of sizes; None for none.
        fixes_experts: whether all layers have experts whose weights are normalized, whatever the entries say.
        has_sinks: see `AttentionConfig`.
    """

    architecture: str
    norms: LayerNorms = _BEFORE
    norms_add_one: bool = False
    qk_norm: QkNorm = QkNorm.NONE
    activation: str = "hidden_act"
    scales_embedding: bool = False
    caps_scores: bool = False
    has_windows: bool = False
    joins: bool = False
    has_factors: bool = False
    has_biases: bool = True
    has_deltas: bool = False
    joins_deltas: bool = False
    experts: ExpertsConfig | None = None
    fixes_experts: bool = False
    has_sinks: bool = False


_SANDWICH = LayerNorms(
    "input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"
)
_AFTER_ONLY = LayerNorms(None, "post_attention_layernorm", None, "post_feedforward_layernorm")
_GEMMA = Family("GemmaForCausalLM", norms_add_one=True, scales_embedding=True)
_GEMMA_2 = replace(
    _GEMMA,
    architecture="Gemma2ForCausalLM",
    norms=_SANDWICH,
    activation="hidden_activation",
    caps_scores=True,
    has_windows=True,
)
_QWEN = Family("Qwen3_5ForCausalLM", norms_add_one=True, qk_norm=QkNorm.HEADS, has_deltas=True)
FAMILIES: dict[str, Family] = {
    "gemma": _GEMMA,
    "gemma2": _GEMMA_2,
    "gemma3_text": replace(_GEMMA_2, architecture="Gemma3ForCausalLM", caps_scores=False, qk_norm=QkNorm.HEADS),
    "phi3": Family("Phi3ForCausalLM", joins=True, has_windows=True, has_biases=False),
    "granite": Family("GraniteForCausalLM", has_factors=True),
    "olmo2": Family("Olmo2ForCausalLM", norms=_AFTER_ONLY, qk_norm=QkNorm.ALL_HEADS),
    "olmo3": Family("Olmo3ForCausalLM", norms=_AFTER_ONLY, qk_norm=QkNorm.ALL_HEADS, has_windows=True),
    "smollm3": Family("SmolLM3ForCausalLM", has_windows=True),
    "qwen3_5_text": _QWEN,
    "qwen3_5_moe_text": replace(
        _QWEN,
        architecture="Qwen3_5MoeForCausalLM",
        experts=ExpertsConfig(256, 8, 512, shared_size=512),
        fixes_experts=True,
    ),
    "qwen3_next": replace(
        _QWEN,
        architecture="Qwen3NextForCausalLM",
        joins_deltas=True,
        experts=ExpertsConfig(512, 10, 512, shared_size=512),
    ),
    "gpt_oss": Family(
        "GptOssForCausalLM",
        has_windows=True,
        experts=ExpertsConfig(
            128,
            4,
            2880,
            router="router",
            size_entry="intermediate_size",
            gate=ExpertGate(is_alternating=True, alpha=1.702, offset=1.0, limit=7.0),
            has_bias=True,
            is_transposed=True,
        ),
        fixes_experts=True,
        has_sinks=True,
    ),
}
"""By the model type of the half that writes text."""
_ACTIVATIONS = {
    "silu": Activation.SILU,
    "swish": Activation.SILU,
    "gelu_pytorch_tanh": Activation.GELU,
}
_ROPE_KINDS = ("default", "linear", "llama3", "yarn", "longrope")
_DELTA = "linear_attention"
_LAYER_TYPES = ("full_attention", "sliding_attention")


class EntryReader(Protocol):
    """Reads entries of config.json, whose values it checks."""

    @property
    def text(self) -> Mapping[str, Any]:
        """The entries of the half that writes text."""

    def number(self, *names: str, default: int | None = None) -> int:
        """A positive integer."""

    def real(self, name: str, value: object, default: float | None = None, *, may_be_zero: bool = False) -> float:
        """A finite number above 0, or at least 0."""

    def experts(self, usual: ExpertsConfig) -> ExpertsConfig:
        """The experts of a layer; `usual` has the defaults."""

    def is_dense(self, layer: int, experts: ExpertsConfig) -> bool:
        """Whether a layer of a model with experts has none."""

    def fail(self, reason: str) -> ModelLoadError:
        """The error for an entry."""


def obstacle_to(family: Family, reader: EntryReader, head_dim: int, num_layers: int) -> str | None:
    """Why the native decoder cannot compute a model of the family exactly, or None."""
    text = reader.text
    activation = text.get(family.activation)
    if activation not in _ACTIVATIONS:
        return f"{family.activation} {activation!r} is not {', '.join(_ACTIVATIONS)}"
    if text.get("use_bidirectional_attention"):
        return "attention to later tokens is not supported"
    types = _layer_types(reader, num_layers)
    kinds = set(types) - ({_DELTA} if family.has_deltas else set())
    if kinds - set(_LAYER_TYPES):
        return f"layer types {sorted(set(types))} are not supported"
    if family.has_deltas and (activation == "gelu_pytorch_tanh" or kinds != {"full_attention"}):
        return f"{family.activation} {activation!r} in layers of types {sorted(set(types))} is not supported"
    for kind in kinds:
        entries = _rope_entries(reader, kind)
        if entries is None:
            return f"rotary embeddings of {kind} layers are missing"
        rope_kind = entries.get("rope_type") or "default"
        if rope_kind not in _ROPE_KINDS:
            return f"rope type {rope_kind!r} is not {', '.join(_ROPE_KINDS)}"
        if _rotary_dim(entries, text, head_dim) % 2:
            return "an odd number of elements of a head is rotated"
    return None


def native_config(family: Family, reader: EntryReader, head_dim: int, num_layers: int) -> NativeConfig:
    """The table of layers of a model of the family, for which there is no obstacle.

    Raises:
        ModelLoadError: an entry is missing or has a wrong value.
    """
    text = reader.text

    def factor(name: str) -> float:
        return reader.real(name, text.get(name), 1.0) if family.has_factors else 1.0

    def cap(name: str) -> float | None:
        return None if text.get(name) is None else reader.real(name, text[name])

    scale = head_dim**-0.5
    if family.has_factors:
        scale = factor("attention_multiplier")
    elif text.get("query_pre_attn_scalar") is not None:
        scale = reader.real("query_pre_attn_scalar", text["query_pre_attn_scalar"]) ** -0.5
    has_bias = family.has_biases and bool(text.get("attention_bias", False))
    attention = AttentionConfig(
        rope=None,
        scale=scale,
        soft_cap=cap("attn_logit_softcapping") if family.caps_scores else None,
        has_qkv_bias=has_bias,
        has_output_bias=has_bias,
        qk_norm=family.qk_norm,
        is_joined=family.joins,
        is_gated=family.has_deltas,
        has_sinks=family.has_sinks,
    )
    types = _layer_types(reader, num_layers)
    delta = _delta(family, reader) if _DELTA in types else None
    ropes = {kind: _rope(reader, kind, head_dim) for kind in dict.fromkeys(types) if kind != _DELTA}
    feed_forwards = _feed_forwards(family, reader, num_layers)
    has_rope = text.get("no_rope_layers") or [1] * num_layers
    if len(has_rope) != num_layers:
        raise reader.fail(f"no_rope_layers has {len(has_rope)} entries for {num_layers} layers")
    window = _window(family, reader)
    has_types = bool(text.get("layer_types"))
    layers = []
    for kind, is_rotated, feed_forward in zip(types, has_rope, feed_forwards, strict=True):
        part: AttentionConfig | DeltaConfig
        if kind == _DELTA:
            assert delta is not None
            part = delta
        else:
            own = window if kind == "sliding_attention" or not has_types else None
            part = replace(attention, rope=ropes[kind] if is_rotated else None, sliding_window=own)
        layers.append(LayerConfig(part, feed_forward, family.norms, factor("residual_multiplier")))
    hidden_size = reader.number("hidden_size")
    return NativeConfig(
        rms_norm_eps=reader.real("rms_norm_eps", text.get("rms_norm_eps", 1e-6), may_be_zero=True),
        layers=tuple(layers),
        norms_add_one=family.norms_add_one,
        embedding_multiplier=hidden_size**0.5 if family.scales_embedding else factor("embedding_multiplier"),
        logits_divisor=factor("logits_scaling"),
        logits_soft_cap=cap("final_logit_softcapping"),
    )


def _feed_forwards(family: Family, reader: EntryReader, num_layers: int) -> list[FeedForwardConfig | ExpertsConfig]:
    """The feed-forward part of each layer."""
    experts = None if family.experts is None else reader.experts(family.experts)
    if experts is not None and family.fixes_experts:
        return [replace(experts, is_normalized=True)] * num_layers

    def dense() -> FeedForwardConfig:
        return FeedForwardConfig(
            reader.number("intermediate_size"),
            family.has_biases and not family.has_deltas and bool(reader.text.get("mlp_bias", False)),
            _ACTIVATIONS[reader.text[family.activation]],
            family.joins,
        )

    return [dense() if experts is None or reader.is_dense(layer, experts) else experts for layer in range(num_layers)]


def _delta(family: Family, reader: EntryReader) -> DeltaConfig:
    """The gated delta layers."""
    heads, values = reader.number("linear_num_key_heads"), reader.number("linear_num_value_heads")
    if values % heads:
        raise reader.fail(f"linear_num_value_heads = {values}: expected a multiple of {heads}, linear_num_key_heads")
    sizes = reader.number("linear_key_head_dim"), reader.number("linear_value_head_dim")
    return DeltaConfig(heads, values, *sizes, reader.number("linear_conv_kernel_dim"), family.joins_deltas)


def _window(family: Family, reader: EntryReader) -> int | None:
    """The sliding window of the layers that have one."""
    is_used = family.has_windows and reader.text.get("use_sliding_window", True)
    return reader.number("sliding_window") if is_used and reader.text.get("sliding_window") is not None else None


def _layer_types(reader: EntryReader, num_layers: int) -> list[str]:
    types = reader.text.get("layer_types") or ["full_attention"] * num_layers
    if len(types) != num_layers:
        raise reader.fail(f"layer_types has {len(types)} entries for {num_layers} layers")
    return list(types)


def _rope_entries(reader: EntryReader, kind: str) -> Mapping[str, Any] | None:
    """The rotary embedding entries of layers of a type; None if they have none."""
    entries = reader.text.get("rope_parameters") or {}
    if any(name in entries for name in _LAYER_TYPES):
        entries = entries.get(kind)
    return entries if isinstance(entries, dict) else None


def _rotary_dim(entries: Mapping[str, Any], text: Mapping[str, Any], head_dim: int) -> int:
    fraction = entries.get("partial_rotary_factor")
    return int(head_dim * (text.get("partial_rotary_factor") or 1.0 if fraction is None else fraction))


def _rope(reader: EntryReader, kind: str, head_dim: int) -> RopeConfig:
    """The rotary embedding of layers of a type."""
    entries = _rope_entries(reader, kind)
    assert entries is not None
    rope_kind = str(entries.get("rope_type") or "default")
    rotary_dim = _rotary_dim(entries, reader.text, head_dim)
    rope = RopeConfig(
        theta=reader.real("rope_theta", entries.get("rope_theta"), 10000.0),
        kind=rope_kind,
        rotary_dim=None if rotary_dim == head_dim else rotary_dim,
    )
    if rope_kind == "default":
        return rope
    if rope_kind == "linear":
        return replace(rope, factor=reader.real("factor", entries.get("factor")))
    original = entries.get("original_max_position_embeddings") or reader.text.get("original_max_position_embeddings")
    length = int(reader.real("original_max_position_embeddings", original))
    longest = reader.number("max_position_embeddings")
    factor = reader.real("factor", entries.get("factor"), longest / length)
    rope = replace(rope, factor=factor, original_max_position_embeddings=length)
    if rope_kind == "llama3":
        names = "low_freq_factor", "high_freq_factor"
        low, high = (reader.real(name, entries.get(name)) for name in names)
        return replace(rope, low_freq_factor=low, high_freq_factor=high)
    given = entries.get("attention_factor")
    if rope_kind == "yarn":
        return replace(
            rope,
            attention_factor=_yarn_attention(reader, entries, factor) if given is None else float(given),
            beta_fast=reader.real("beta_fast", entries.get("beta_fast") or 32.0),
            beta_slow=reader.real("beta_slow", entries.get("beta_slow") or 1.0),
            truncates=bool((reader.text.get("rope_parameters") or {}).get("truncate", True)),
        )
    factors = entries.get("short_factor")
    if not isinstance(factors, list) or len(factors) != rotary_dim // 2:
        raise reader.fail(f"short_factor: expected a list of {rotary_dim // 2} numbers")
    growth = 1.0 if factor <= 1.0 else math.sqrt(1 + math.log(factor) / math.log(length))
    return replace(
        rope,
        attention_factor=growth if given is None else float(given),
        short_factors=tuple(reader.real("short_factor", each) for each in factors),
    )


def _yarn_attention(reader: EntryReader, entries: Mapping[str, Any], factor: float) -> float:
    """The factor of cosines and sines that YaRN derives from how far it stretches."""

    def growth(weight: float) -> float:
        return 1.0 if factor <= 1.0 else 0.1 * weight * math.log(factor) + 1.0

    names = "mscale", "mscale_all_dim"
    if all(entries.get(name) for name in names):
        over, under = (growth(reader.real(name, entries[name])) for name in names)
        return over / under
    return growth(1.0)
