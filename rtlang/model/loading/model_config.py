"""Reads a checkpoint's config.json without `transformers`.

`ModelConfig` holds the parameters common to all causal models. `NativeConfig` holds the additional ones of the native decoder and exists
only if that decoder computes the model exactly; otherwise `native_obstacle` gives the reason. Missing entries take the default of the
family's published code.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rtlang.contract.errors import ModelLoadError
from rtlang.model.loading.gguf.model_files import gguf_config, is_gguf
from rtlang.model.loading.layer_table import (
    AttentionConfig,
    ExpertsConfig,
    FeedForwardConfig,
    LayerConfig,
    NativeConfig,
    QkNorm,
    RopeConfig,
)
from rtlang.model.loading.model_names import directory_obstacle
from rtlang.model.loading.native_families import FAMILIES, Family, native_config, obstacle_to
from rtlang.model.loading.published import MEDIA_CONFIGS, refuse_published, text_entries


@dataclass(frozen=True, slots=True)
class _Family:
    """Defaults of a family's published code. `has_qkv_bias` None: determined by "attention_bias", which then also applies to o."""

    architecture: str
    has_qkv_bias: bool | None = None
    has_qk_norm: bool = False
    num_kv_heads: int | None = None  # default if the entry is missing; None: equal to the query heads
    head_dim: int | None = None  # default if the entry is missing; None: hidden_size // num_q_heads
    rope_theta: float = 10000.0  # default if the entry is missing, as the following ones
    rms_norm_eps: float = 1e-6
    experts: ExpertsConfig | None = None  # with the defaults of sizes


_NATIVE_FAMILIES = {
    "llama": _Family("LlamaForCausalLM"),
    "mistral": _Family("MistralForCausalLM", has_qkv_bias=False, num_kv_heads=8),
    "qwen2": _Family("Qwen2ForCausalLM", has_qkv_bias=True, num_kv_heads=32),
    "qwen3": _Family("Qwen3ForCausalLM", has_qk_norm=True, num_kv_heads=32, head_dim=128),
    "mixtral": _Family(
        "MixtralForCausalLM",
        has_qkv_bias=False,
        num_kv_heads=8,
        rope_theta=1e6,
        rms_norm_eps=1e-5,
        experts=ExpertsConfig(
            8, 2, 14336, path="block_sparse_moe", names=("w1", "w3", "w2"), size_entry="intermediate_size"
        ),
    ),
    "qwen2_moe": _Family(
        "Qwen2MoeForCausalLM",
        has_qkv_bias=True,
        num_kv_heads=16,
        experts=ExpertsConfig(60, 4, 1408, is_normalized=False, shared_size=5632),
    ),
    "qwen3_moe": _Family(
        "Qwen3MoeForCausalLM",
        has_qk_norm=True,
        num_kv_heads=4,
        experts=ExpertsConfig(128, 8, 768, is_normalized=False),
    ),
}
# Text halves whose layers are those of a native family. Their rotary embedding has three positions per token, equal for text.
_NATIVE_TEXTS = {"qwen2_vl_text": "qwen2", "qwen2_5_vl_text": "qwen2", "qwen3_vl_text": "qwen3"}
# Multimodal models that give the embeddings of text tokens to their text half as they are, and its states to the output layer.
_NATIVE_WHOLES = frozenset(
    (
        *("idefics3", "internvl", "llava", "llava_next", "llava_onevision", "mistral3", "qwen2_5_vl", "qwen2_vl"),
        *("qwen3_vl", "smolvlm", "voxtral", "gemma3"),
        *("qwen3_5", "qwen3_5_moe"),
    )
)
_DEFAULT_MAX_POSITION_EMBEDDINGS = 2048
_MAX_NUMBER = 1 << 40  # upper bound for any entry; memory needs are checked later
_MAX_REAL = 1e30
MODELOPT_CONFIG = "hf_quant_config.json"  # describes quantization where config.json does not
_MAX_LAYERS = 4096  # the largest models published have a few hundred


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Parameters of a causal model.

    Attributes:
        architecture, model_type: as named in config.json.
        vocab_size: width of the logits.
        max_position_embeddings: maximum sequence length of the checkpoint in tokens.
        eos_token_ids: end tokens, from generation_config.json or else from config.json.
        native: set if the native decoder supports the model exactly; otherwise `native_obstacle` gives the reason.
        is_multimodal: whether it takes more than text; everything else here is about its text half.
        quantization: the quantization_config of the checkpoint, supported or not; None for floats.
    """

    architecture: str
    model_type: str
    vocab_size: int
    hidden_size: int
    num_layers: int
    num_q_heads: int
    num_kv_heads: int
    head_dim: int
    max_position_embeddings: int
    tie_word_embeddings: bool
    bos_token_id: int | None
    eos_token_ids: frozenset[int]
    native: NativeConfig | None
    native_obstacle: str | None
    is_multimodal: bool = False
    quantization: object = field(default=None, hash=False)

    @classmethod
    def from_pretrained(cls, path: str | Path) -> ModelConfig:
        """Read config.json, and generation_config.json if it exists, of a model directory, or the metadata of a GGUF file.

        Raises:
            ModelLoadError: the directory or config.json does not exist, an entry is missing or invalid, or the model does not generate
                text; names the entry or the class.
        """
        source = Path(path)
        if is_gguf(source):
            return cls.from_entries(gguf_config(source), source)
        raw = _read_json(source, "config.json", required=True)
        if raw.get("quantization_config") is None and (found := _read_json(source, MODELOPT_CONFIG, required=False)):
            raw = {**raw, "quantization_config": {"quant_method": "modelopt", **found}}
        return cls.from_entries(raw, source, _read_json(source, "generation_config.json", required=False))

    @classmethod
    def from_entries(
        cls, entries: dict[str, Any], source: Path, generation: dict[str, Any] | None = None
    ) -> ModelConfig:
        """The parameters that the content of config.json, and that of generation_config.json, describe.

        Args:
            source: the model directory or GGUF file that they are from.
        Raises:
            ModelLoadError: see `from_pretrained`.
        """
        refuse_published(source, entries)
        reader = _Reader(source, entries, generation or {})
        try:
            return reader.model_config()
        except (ValueError, TypeError, OverflowError) as error:  # an entry of an unexpected type
            raise reader.fail(f"an entry has an unexpected type: {error}") from error


class _Reader:
    """Parses one config.json. Used within `from_entries` only."""

    def __init__(self, source: Path, raw: dict[str, Any], generation: dict[str, Any]) -> None:
        self.path, self.part = str(source), "metadata" if is_gguf(source) else "config.json"
        self.raw, self.generation = raw, generation
        given = raw.get("text_config")
        self.given: dict[str, Any] = {**raw, **given} if isinstance(given, dict) else raw
        is_plain = raw.get("model_type") in _NATIVE_FAMILIES or not isinstance(raw.get("model_type"), str)
        self.text = raw if is_plain else text_entries(source)

    def fail(self, reason: str) -> ModelLoadError:
        return ModelLoadError(self.path, f"{self.part}: {reason}")

    def number(self, *names: str, default: int | None = None) -> int:
        """The first existing entry of `names`, which are the names different families use for one parameter."""
        for name in names:
            value = self.text.get(name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise self.fail(f"{name} = {value!r}: expected a positive integer")
            if value > _MAX_NUMBER:
                raise self.fail(f"{name} exceeds {_MAX_NUMBER}")
            return value
        if default is None:
            raise self.fail(f"{' or '.join(names)} is missing")
        return default

    def real(self, name: str, value: object, default: float | None = None, *, may_be_zero: bool = False) -> float:
        """A finite number above 0 (or at least 0); the default replaces null."""
        if value is None and default is not None:
            return default
        if (
            isinstance(value, bool)
            or not isinstance(value, (int, float))
            or not 0 <= value <= _MAX_REAL
            or (value == 0 and not may_be_zero)
        ):
            raise self.fail(f"{name} = {value!r}: expected a number {'>=' if may_be_zero else '>'} 0")
        return float(value)

    def token_ids(self, name: str) -> frozenset[int]:
        for source in (self.generation, self.given, self.text):
            value = source.get(name)
            if isinstance(value, int) and not isinstance(value, bool):
                return frozenset((value,))
            if isinstance(value, list) and value:
                if not all(isinstance(item, int) for item in value):
                    raise self.fail(f"{name} = {value!r}: expected a list of integers")
                return frozenset(value)
        return frozenset()

    def model_config(self) -> ModelConfig:
        model_type = self.raw.get("model_type")
        if not isinstance(model_type, str):
            raise self.fail("model_type is missing")
        architectures = self.raw.get("architectures")
        architecture = str(architectures[0]) if isinstance(architectures, list) and architectures else model_type
        hidden_size = self.number("hidden_size", "n_embd", "d_model")
        num_q_heads = self.number("num_attention_heads", "n_head", "num_heads", "n_heads", default=1)
        native_type = self.native_type(model_type)
        family = _NATIVE_FAMILIES.get(native_type, _Family(architecture))
        default_kv_heads = family.num_kv_heads or num_q_heads
        if "num_key_value_heads" in self.text:  # and is null
            default_kv_heads = num_q_heads
        default_head_dim = family.head_dim or max(1, hidden_size // num_q_heads)
        num_layers = self.number("num_hidden_layers", "n_layer", "num_layers", "n_layers")
        if num_layers > _MAX_LAYERS:
            raise self.fail(f"{num_layers} layers exceed the maximum of {_MAX_LAYERS}")
        head_dim = self.number("head_dim", default=default_head_dim)
        bos_token_ids = self.token_ids("bos_token_id")
        obstacle = self.native_obstacle(model_type, architecture, head_dim, num_layers)
        return ModelConfig(
            architecture=architecture,
            model_type=model_type,
            vocab_size=self.number("vocab_size"),
            hidden_size=hidden_size,
            num_layers=num_layers,
            num_q_heads=num_q_heads,
            num_kv_heads=self.number("num_key_value_heads", default=default_kv_heads),
            head_dim=head_dim,
            max_position_embeddings=self.number(
                "max_position_embeddings", "n_positions", "max_seq_len", default=_DEFAULT_MAX_POSITION_EMBEDDINGS
            ),
            tie_word_embeddings=bool(self.text.get("tie_word_embeddings", False)),
            bos_token_id=min(bos_token_ids) if bos_token_ids else None,
            eos_token_ids=self.token_ids("eos_token_id"),
            native=None if obstacle else self.native_config(native_type, num_layers, head_dim),
            native_obstacle=obstacle,
            is_multimodal=any(name in self.raw for name in MEDIA_CONFIGS),
            quantization=self.quantization(),
        )

    def native_type(self, model_type: str) -> str:
        """The type of the family whose layers compute the text, or else the model type itself."""
        text_type = str(self.text.get("model_type"))
        if model_type in _NATIVE_WHOLES or not isinstance(self.raw.get("text_config"), dict):
            return _NATIVE_TEXTS.get(text_type, text_type)
        return model_type

    def quantization(self) -> object:
        """The quantization_config of the whole model or of its text half."""
        found = self.raw.get("quantization_config")
        return self.given.get("quantization_config") if found is None else found

    def native_obstacle(self, model_type: str, architecture: str, head_dim: int, num_layers: int) -> str | None:
        """Why the native decoder cannot compute this model exactly, or None."""
        native_type = self.native_type(model_type)
        family = _NATIVE_FAMILIES.get(native_type) or FAMILIES.get(native_type)
        if family is None:
            return f"model_type {model_type!r} has no layer table ({', '.join((*_NATIVE_FAMILIES, *FAMILIES))} have)"
        if model_type not in _NATIVE_WHOLES and architecture not in (family.architecture, model_type):
            return f"architecture {architecture!r} is not {family.architecture}"
        if isinstance(family, Family):
            return obstacle_to(family, self, head_dim, num_layers)
        if self.text.get("hidden_act", "silu") not in ("silu", "swish"):
            return f"hidden_act {self.text['hidden_act']!r} is not silu"
        if head_dim % 2:
            return f"head_dim {head_dim} is odd"
        rope = self.rope_entries()
        if rope.get("partial_rotary_factor", self.text.get("partial_rotary_factor", 1.0)) not in (1.0, None):
            return "partial rotary embeddings are not supported"
        if any(isinstance(entry, dict) for entry in rope.values()):
            return "rotary embeddings that differ by layer type are not supported"
        kind = _rope_kind(rope)
        if kind not in ("default", "linear", "llama3"):
            return f"rope type {kind!r} is not default, linear or llama3"
        layer_types = self.text.get("layer_types") or []
        if set(layer_types) - {"full_attention", "sliding_attention"} or (layer_types and native_type == "mistral"):
            return f"layer types {sorted(set(layer_types))} are not supported"
        if family.experts is not None and self.text.get("use_sliding_window"):
            return "sliding windows of a model with experts are not supported"
        if family.experts is not None and self.text.get("qkv_bias") is False:
            return "qkv_bias False is not supported"
        return None

    def rope_entries(self) -> dict[str, Any]:
        """The rotary embedding entries of config.json; the older name takes precedence, as in transformers."""
        for name in ("rope_scaling", "rope_parameters"):
            if isinstance(self.text.get(name), dict) and self.text[name]:
                return dict(self.text[name])
        return {}

    def original_length(self, rope: dict[str, Any]) -> int:
        """The original context length of a llama3 rope; an entry outside the rope entries takes precedence."""
        if self.text.get("original_max_position_embeddings") is not None:
            return self.number("original_max_position_embeddings")
        return int(rope.get("original_max_position_embeddings") or self.number("max_position_embeddings"))

    def native_config(self, model_type: str, num_layers: int, head_dim: int) -> NativeConfig:
        """The table of layers."""
        if model_type in FAMILIES:
            return native_config(FAMILIES[model_type], self, head_dim, num_layers)
        attention_bias = bool(self.text.get("attention_bias", False))
        family = _NATIVE_FAMILIES[model_type]
        attention = AttentionConfig(
            rope=self.rope(family),
            scale=head_dim**-0.5,
            has_qkv_bias=attention_bias if family.has_qkv_bias is None else family.has_qkv_bias,
            has_output_bias=attention_bias and family.has_qkv_bias is None,
            qk_norm=QkNorm.HEADS if family.has_qk_norm else QkNorm.NONE,
        )
        has_mlp_bias = bool(self.text.get("mlp_bias", False)) and model_type == "llama"
        dense = FeedForwardConfig(self.number("intermediate_size"), has_mlp_bias)
        experts = None if family.experts is None else self.experts(family.experts)
        eps = self.text.get("rms_norm_eps", family.rms_norm_eps)
        return NativeConfig(
            rms_norm_eps=self.real("rms_norm_eps", eps, may_be_zero=True),
            layers=tuple(
                LayerConfig(
                    replace(attention, sliding_window=window),
                    dense if experts is None or self.is_dense(layer, experts) else experts,
                )
                for layer, window in enumerate(self.sliding_windows(model_type, num_layers))
            ),
        )

    def experts(self, usual: ExpertsConfig) -> ExpertsConfig:
        """The experts of a layer; `usual` has the defaults of the family."""
        found = replace(
            usual,
            num_experts=self.number("num_local_experts", "num_experts", default=usual.num_experts),
            num_slots=self.number("num_experts_per_tok", default=usual.num_slots),
        )
        if found.num_slots > found.num_experts:
            raise self.fail(f"num_experts_per_tok = {found.num_slots}: expected 1 to {found.num_experts}, the experts")
        found = replace(found, intermediate_size=self.number(usual.size_entry, default=usual.intermediate_size))
        if usual.gate.limit is not None:  # GPT-OSS
            alpha, limit = (
                self.real(name, self.text.get(name), default)
                for name, default in (("swiglu_alpha", usual.gate.alpha), ("swiglu_limit", usual.gate.limit))
            )
            return replace(found, gate=usual.gate._replace(alpha=alpha, limit=limit))
        if usual.path != "mlp":  # Mixtral
            return found
        shared = usual.shared_size
        return replace(
            found,
            is_normalized=bool(self.text.get("norm_topk_prob", usual.is_normalized)),
            shared_size=None if shared is None else self.number("shared_expert_intermediate_size", default=shared),
        )

    def is_dense(self, layer: int, experts: ExpertsConfig) -> bool:
        """Whether a layer of a model with experts has none."""
        if experts.path != "mlp":
            return False
        step, dense = self.number("decoder_sparse_step", default=1), self.text.get("mlp_only_layers") or ()
        return layer in dense or (layer + 1) % step != 0

    def rope(self, family: _Family) -> RopeConfig:
        """The rotary embedding of all layers."""
        rope = self.rope_entries()
        kind, theta = _rope_kind(rope), rope.get("rope_theta")
        missing = [name for name in _ROPE_NEEDS[kind] if not isinstance(rope.get(name), (int, float))]
        if missing:
            raise self.fail(f"rope type {kind} requires {', '.join(missing)}")
        return RopeConfig(
            theta=self.real("rope_theta", self.text.get("rope_theta") if theta is None else theta, family.rope_theta),
            kind=kind,
            factor=self.real("factor", rope.get("factor"), 1.0),
            low_freq_factor=self.real("low_freq_factor", rope.get("low_freq_factor"), 1.0),
            high_freq_factor=self.real("high_freq_factor", rope.get("high_freq_factor"), 4.0),
            original_max_position_embeddings=self.original_length(rope) if kind == "llama3" else 8192,
        )

    def sliding_windows(self, model_type: str, num_layers: int) -> tuple[int | None, ...]:
        if model_type in ("mistral", "mixtral"):
            window = self.text.get("sliding_window", 4096 if model_type == "mistral" else None)
            return (None if window is None else self.number("sliding_window", default=4096),) * num_layers
        if model_type not in ("qwen2", "qwen3") or not self.text.get("use_sliding_window", False):
            return (None,) * num_layers
        if "sliding_window" in self.text and self.text["sliding_window"] is None:
            return (None,) * num_layers
        window = self.number("sliding_window", default=4096)
        first = self.text.get("max_window_layers", 28)
        layer_types = self.text.get("layer_types") or [
            "sliding_attention" if layer >= first else "full_attention" for layer in range(num_layers)
        ]
        if len(layer_types) != num_layers:
            raise self.fail(f"layer_types has {len(layer_types)} entries for {num_layers} layers")
        return tuple(window if kind == "sliding_attention" else None for kind in layer_types)


_ROPE_NEEDS: dict[str, tuple[str, ...]] = {
    "default": (),
    "linear": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor"),
}


def _rope_kind(rope: dict[str, Any]) -> str:
    return str(rope.get("rope_type") or rope.get("type") or "default")


def _read_json(directory: Path, name: str, *, required: bool) -> dict[str, Any]:
    path = directory / name
    try:
        if not directory.is_dir():
            raise ModelLoadError(str(directory), "no such directory")
        if not path.is_file():
            if required:
                raise ModelLoadError(str(directory), directory_obstacle(directory))
            return {}
        value = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError) as error:
        raise ModelLoadError(str(directory), f"{name} cannot be read: {error}") from None
    if not isinstance(value, dict):
        raise ModelLoadError(str(directory), f"{name} must contain a JSON object")
    return value
