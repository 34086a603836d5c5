"""Tiny random models of transformers as GGUF files, written as llama.cpp converts published checkpoints.

Names of tensors come from the `gguf` package. What the converter (convert_hf_to_gguf.py) changes in tensors, and its metadata, are written
down here again, from the side of a writer; the library of llama.cpp computes the logits of transformers' own models from these files.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rtlang.model.loading.published import model_class, quiet
from tests.support.models.foreign_models import gguf_pieces
from tests.support.models.gguf_files import StoredTensor, stored, write_gguf

LENGTH = 512
"""Longest text of a model in tokens."""
_SIZES: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": LENGTH,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
    "tie_word_embeddings": False,
}
_MOE = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
_DEEP = {"n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "first_k_dense_replace": 1}
_LATENT = {
    **_DEEP,
    "num_key_value_heads": 4,
    "n_shared_experts": 1,
    "q_lora_rank": 32,
    "kv_lora_rank": 32,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 16,
    "head_dim": 8,
}


@dataclass(frozen=True, slots=True)
class GgufCase:
    """A configuration of transformers and the architecture that it has in a GGUF file.

    Attributes:
        architecture: `general.architecture`.
        model_type: in transformers.
        settings: of the configuration, over `_SIZES`.
        metadata: entries of the architecture that are no sizes, or other sizes.
        splits_latents: whether the keys and values of latent attention are tensors of their own, as in newer files.
    """

    architecture: str
    model_type: str
    settings: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    splits_latents: bool = False


def _rope(kind: str, **entries: Any) -> dict[str, Any]:
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 1e4, **entries}}


_LLAMA3 = _rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=128)
_WINDOWS = {"sliding_window": 8, "num_hidden_layers": 4}
_GATED = {"expert_feed_forward_length": 32, "expert_count": 4, "expert_used_count": 2}
_DEEP_METADATA = {**_GATED, "expert_shared_count": 1, "leading_dense_block_count": 1, "expert_weights_scale": 1.5}

CASES: dict[str, GgufCase] = {
    "llama": GgufCase("llama", "llama"),
    "llama, tied": GgufCase("llama", "llama", {"tie_word_embeddings": True}),
    "llama, biases": GgufCase("llama", "llama", {"attention_bias": True, "mlp_bias": True}),
    "llama 3": GgufCase("llama", "llama", {"head_dim": 32, **_LLAMA3}),
    "llama, linear rope": GgufCase(
        "llama", "llama", _rope("linear", factor=2.0), {"rope.scaling.type": "linear", "rope.scaling.factor": 2.0}
    ),
    "mixtral": GgufCase(
        "llama",
        "mixtral",
        {"num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": None},
        {"expert_count": 4, "expert_used_count": 2},
    ),
    "qwen2": GgufCase("qwen2", "qwen2"),
    "qwen2, yarn": GgufCase(
        "qwen2",
        "qwen2",
        _rope("yarn", factor=4.0, original_max_position_embeddings=64),
        {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 64},
    ),
    "qwen2vl": GgufCase("qwen2vl", "qwen2", {}, {"rope.dimension_sections": [4, 2, 2, 0]}),
    "qwen3": GgufCase("qwen3", "qwen3", {"head_dim": 32}),
    "qwen3vl": GgufCase(
        "qwen3vl", "qwen3", {"head_dim": 32}, {"rope.dimension_sections": [8, 4, 4, 0], "n_deepstack_layers": 0}
    ),
    "qwen2moe": GgufCase(
        "qwen2moe",
        "qwen2_moe",
        {**_MOE, "shared_expert_intermediate_size": 96, "decoder_sparse_step": 1, "norm_topk_prob": False},
        {**_GATED, "expert_shared_feed_forward_length": 96},
    ),
    "qwen3moe": GgufCase(
        "qwen3moe", "qwen3_moe", {**_MOE, "head_dim": 32, "decoder_sparse_step": 1, "norm_topk_prob": True}, _GATED
    ),
    "gemma": GgufCase("gemma", "gemma", {"head_dim": 32, "tie_word_embeddings": True}),
    "gemma2": GgufCase(
        "gemma2",
        "gemma2",
        {**_WINDOWS, "head_dim": 32, "query_pre_attn_scalar": 32, "tie_word_embeddings": True},
        {"attention.sliding_window": 8, "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0},
    ),
    "gemma3": GgufCase(
        "gemma3",
        "gemma3_text",
        {**_WINDOWS, "num_hidden_layers": 7, "head_dim": 32, "query_pre_attn_scalar": 32, "tie_word_embeddings": True},
        {"attention.sliding_window": 8, "rope.freq_base": 1e6},
    ),
    "gemma3, linear rope": GgufCase(
        "gemma3",
        "gemma3_text",
        {
            **_WINDOWS,
            "num_hidden_layers": 7,
            "head_dim": 32,
            "query_pre_attn_scalar": 32,
            "tie_word_embeddings": True,
            "rope_parameters": {
                "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
                "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
            },
        },
        {
            "attention.sliding_window": 8,
            "rope.freq_base": 1e6,
            "rope.scaling.type": "linear",
            "rope.scaling.factor": 8.0,
        },
    ),
    "phi2": GgufCase("phi2", "phi", {"partial_rotary_factor": 0.5}, {"rope.dimension_count": 8}),
    "phi3": GgufCase("phi3", "phi3", {"sliding_window": None, "original_max_position_embeddings": LENGTH}),
    "phi3, longrope": GgufCase(
        "phi3",
        "phi3",
        {
            "sliding_window": None,
            "original_max_position_embeddings": 256,
            **_rope("longrope", long_factor=[1.5] * 8, short_factor=[1.0 + i / 10 for i in range(8)]),
        },
        {
            "rope.scaling.original_context_length": 256,
            "rope.scaling.attn_factor": float(np.sqrt(1 + np.log(2) / np.log(256))),
        },
    ),
    "smollm3": GgufCase("smollm3", "smollm3", {"num_hidden_layers": 4, "tie_word_embeddings": True}),
    "olmo": GgufCase("olmo", "olmo", {"clip_qkv": 0.5}, {"attention.clamp_kqv": 0.5}),
    "olmo2": GgufCase("olmo2", "olmo2"),
    "olmo3": GgufCase(
        "olmo2",
        "olmo3",
        _WINDOWS,
        {"attention.sliding_window": 8, "attention.sliding_window_pattern": [True, True, True, False]},
    ),
    "olmoe": GgufCase(
        "olmoe",
        "olmoe",
        {"num_experts": 4, "num_experts_per_tok": 2, "num_key_value_heads": 4},
        {"expert_count": 4, "expert_used_count": 2},
    ),
    "granite": GgufCase(
        "granite",
        "granite",
        {"attention_multiplier": 0.2, "residual_multiplier": 0.5, "embedding_multiplier": 2.0, "logits_scaling": 2.0},
        {"attention.scale": 0.2, "residual_scale": 0.5, "embedding_scale": 2.0, "logit_scale": 2.0},
    ),
    "minicpm": GgufCase(
        "minicpm",
        "granite",
        {"attention_multiplier": 0.25, "residual_multiplier": 0.5, "embedding_multiplier": 2.0, "logits_scaling": 2.0},
        {"residual_scale": 0.5, "embedding_scale": 2.0, "logit_scale": 2.0},
    ),
    "exaone": GgufCase("exaone", "llama"),
    "starcoder2": GgufCase("starcoder2", "starcoder2", {"use_bias": True, "sliding_window": None}),
    "stablelm": GgufCase(
        "stablelm",
        "stablelm",
        {"use_qkv_bias": True, "partial_rotary_factor": 0.5, "qk_layernorm": True},
        {"rope.dimension_count": 8, "use_parallel_residual": False},
    ),
    "stablelm, parallel": GgufCase(
        "stablelm",
        "stablelm",
        {"use_parallel_residual": True, "partial_rotary_factor": 0.5},
        {"rope.dimension_count": 8, "use_parallel_residual": True},
    ),
    "command-r": GgufCase(
        "command-r",
        "cohere",
        {"logit_scale": 0.5, "tie_word_embeddings": True},
        {"logit_scale": 0.5},
    ),
    "cohere2": GgufCase(
        "cohere2",
        "cohere2",
        {**_WINDOWS, "logit_scale": 0.5, "tie_word_embeddings": True},
        {"attention.sliding_window": 8, "logit_scale": 0.5},
    ),
    "deepseek2": GgufCase(
        "deepseek2",
        "deepseek_v2",
        {**_LATENT, "topk_method": "greedy", "routed_scaling_factor": 1.5, "norm_topk_prob": False},
        _DEEP_METADATA,
    ),
    "deepseek2, sigmoid": GgufCase(
        "deepseek2",
        "deepseek_v3",
        {**_LATENT, "n_group": 2, "topk_group": 1, "routed_scaling_factor": 1.5, "norm_topk_prob": True},
        {
            **_DEEP_METADATA,
            "expert_gating_func": 2,
            "expert_weights_norm": True,
            "expert_group_count": 2,
            "expert_group_used_count": 1,
        },
        splits_latents=True,
    ),
    "glm4": GgufCase(
        "glm4", "glm4", {"attention_bias": True, "partial_rotary_factor": 0.5}, {"rope.dimension_count": 8}
    ),
    "glm4moe": GgufCase(
        "glm4moe",
        "glm4_moe",
        {
            **_DEEP,
            "n_shared_experts": 1,
            "n_group": 1,
            "topk_group": 1,
            "routed_scaling_factor": 1.5,
            "norm_topk_prob": True,
            "partial_rotary_factor": 0.5,
            "use_qk_norm": True,
            "attention_bias": True,
        },
        {
            **_DEEP_METADATA,
            "expert_gating_func": 2,
            "expert_weights_norm": True,
            "rope.dimension_count": 8,
            "expert_group_count": 1,
            "expert_group_used_count": 1,
        },
    ),
    "exaone4": GgufCase(
        "exaone4",
        "exaone4",
        {**_WINDOWS, "sliding_window_pattern": 4},
        {"attention.sliding_window": 8, "attention.sliding_window_pattern": [True, True, True, False]},
    ),
    "ernie4_5": GgufCase("ernie4_5", "ernie4_5", {"tie_word_embeddings": True}),
    "hunyuan-dense": GgufCase("hunyuan-dense", "hunyuan_v1_dense"),
    "seed_oss": GgufCase("seed_oss", "seed_oss", {"head_dim": 32, "attention_bias": True}),
    "arcee": GgufCase("arcee", "arcee"),
    "nemotron": GgufCase("nemotron", "nemotron", {"partial_rotary_factor": 0.5}, {"rope.dimension_count": 8}),
    "gpt-oss": GgufCase(
        "gpt-oss",
        "gpt_oss",
        {
            "head_dim": 32,
            "sliding_window": 8,
            "num_local_experts": 4,
            "num_experts_per_tok": 2,
            **_rope("yarn", factor=4.0, original_max_position_embeddings=128, truncate=False),
        },
        {
            "attention.sliding_window": 8,
            "expert_count": 4,
            "expert_used_count": 2,
            "expert_feed_forward_length": 96,
            "rope.scaling.type": "yarn",
            "rope.scaling.factor": 4.0,
            "rope.scaling.original_context_length": 128,
        },
    ),
}
"""By a name of their own; an architecture may have several."""

_PLUS_ONE = ("gemma", "gemma2", "gemma3", "nemotron")
_INTERLEAVED = ("llama", "smollm3", "olmo", "granite", "minicpm", "arcee")


def make_model(case: GgufCase, **settings: Any) -> Any:
    """A random model in float32, with biases and norms that are not what they start with."""
    import transformers

    kind = transformers.CONFIG_MAPPING[case.model_type]
    config = kind(**{**_SIZES, "vocab_size": len(gguf_pieces()), **case.settings, **settings})
    config._attn_implementation = "eager"
    with torch.random.fork_rng(devices=()), quiet():
        torch.manual_seed(0)
        model = model_class(config)(config).float().eval().requires_grad_(False)
        for name, parameter in model.named_parameters():
            is_norm = parameter.ndim == 1 and name.endswith(".weight")
            parameter.normal_(1.0 if is_norm and case.architecture not in _PLUS_ONE else 0.0, 0.1 if is_norm else 0.2)
        for name, buffer in model.named_buffers():
            if "e_score_correction_bias" in name:
                buffer.normal_(0, 0.2)
    return model


def write_model(path: Path, case: GgufCase, model: Any, kind: str = "F32") -> Path:
    """Write a model as a GGUF file, of which matrices have the type `kind`, except routers."""
    tensors = {name: _stored(name, values, kind) for name, values in gguf_tensors(case, model).items()}
    return write_gguf(path, tensors, gguf_metadata(case, model.config))[0]


def gguf_metadata(case: GgufCase, config: Any) -> dict[str, Any]:
    """All metadata of a file, with the vocabulary of `gguf_pieces`."""
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    rope = config.rope_parameters
    theta = (rope.get("full_attention") or rope)["rope_theta"]
    eps = next(
        getattr(config, name)
        for name in ("rms_norm_eps", "layer_norm_eps", "norm_epsilon", "norm_eps", "attention_dropout")
        if hasattr(config, name)
    )
    own = {
        "context_length": config.max_position_embeddings,
        "embedding_length": config.hidden_size,
        "block_count": config.num_hidden_layers,
        "feed_forward_length": config.intermediate_size,
        "attention.head_count": config.num_attention_heads,
        "attention.head_count_kv": config.num_key_value_heads,
        "attention.key_length": head_dim,
        "attention.value_length": head_dim,
        "rope.dimension_count": head_dim,
        "rope.freq_base": float(theta),
        "attention.layer_norm_rms_epsilon": float(eps or 1e-5),
        "attention.layer_norm_epsilon": float(eps or 1e-5),
        "vocab_size": config.vocab_size,
    }
    if case.architecture == "deepseek2":
        key_size = config.qk_nope_head_dim + config.qk_rope_head_dim
        own.update(
            {
                "attention.q_lora_rank": config.q_lora_rank,
                "attention.kv_lora_rank": config.kv_lora_rank,
                "attention.key_length": key_size,
                "attention.value_length": config.v_head_dim,
                "rope.dimension_count": config.qk_rope_head_dim,
            }
        )
        if case.splits_latents:
            own.update(
                {
                    "attention.head_count_kv": 1,
                    "attention.key_length": config.kv_lora_rank + config.qk_rope_head_dim,
                    "attention.value_length": config.kv_lora_rank,
                    "attention.key_length_mla": key_size,
                    "attention.value_length_mla": config.v_head_dim,
                }
            )
    own.update(case.metadata)
    pieces = gguf_pieces()
    return {
        "general.architecture": case.architecture,
        **{f"{case.architecture}.{name}": value for name, value in own.items()},
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": [piece for piece, _ in pieces],
        "tokenizer.ggml.scores": [-float(index) for index in range(len(pieces))],
        "tokenizer.ggml.token_type": [kind for _, kind in pieces],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
    }


def gguf_tensors(case: GgufCase, model: Any) -> dict[str, NDArray[np.float32]]:
    """The tensors of a file, in float32, by their names there."""
    import gguf
    from gguf.constants import MODEL_ARCH_NAMES

    (number,) = (each for each, name in MODEL_ARCH_NAMES.items() if name == case.architecture)
    table: Any = gguf.get_tensor_name_map(number, model.config.num_hidden_layers)
    found: dict[str, NDArray[np.float32]] = {}
    state = dict(model.state_dict())
    if model.config.tie_word_embeddings:
        state.pop("lm_head.weight", None)
    for name, values in _converted(case, model.config, state).items():
        known = table.get_name(name, try_suffixes=(".weight", ".bias"))
        found[known or name] = values.float().contiguous().numpy()
    rope = model.config.rope_parameters
    if rope.get("rope_type") == "llama3":
        found["rope_freqs.weight"] = _llama3_factors(model.config, rope)
    if rope.get("rope_type") == "longrope":
        for length in ("long", "short"):
            found[f"rope_factors_{length}.weight"] = np.array(rope[f"{length}_factor"], np.float32)
    return found


def _converted(case: GgufCase, config: Any, state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Tensors as the converter changes them, by names of transformers, or of the file where the package knows none."""
    found: dict[str, Tensor] = {}
    for name, given in state.items():
        layer = re.match(r"model\.layers\.(\d+)\.", name)
        block, values = f"blk.{layer[1]}." if layer else "", given
        if case.architecture in _PLUS_ONE and name.endswith("norm.weight"):
            values = values + 1
        elif case.architecture in _INTERLEAVED and re.search(r"\.[qk]_proj\.", name):
            heads = config.num_attention_heads if ".q_proj." in name else config.num_key_value_heads
            values = _interleaved(values, heads)
        if name.endswith("experts.gate_up_proj"):
            gates, ups = values.chunk(2, 1)
            if case.model_type == "gpt_oss":  # [experts, in, out], gate and up in turns
                gates, ups = values[..., ::2].transpose(1, 2), values[..., 1::2].transpose(1, 2)
            found[block + "ffn_gate_exps.weight"], found[block + "ffn_up_exps.weight"] = gates, ups
        elif name.endswith("experts.down_proj"):
            found[block + "ffn_down_exps.weight"] = values.transpose(1, 2) if case.model_type == "gpt_oss" else values
        elif name.endswith("experts.gate_up_proj_bias"):
            found[block + "ffn_gate_exps.bias"], found[block + "ffn_up_exps.bias"] = values[:, ::2], values[:, 1::2]
        elif name.endswith("experts.down_proj_bias"):
            found[block + "ffn_down_exps.bias"] = values
        elif name.endswith("e_score_correction_bias"):
            found[block + "exp_probs_b.bias"] = values
        elif name.endswith("shared_expert_gate.weight"):
            found[block + "ffn_gate_inp_shexp.weight"] = values[0]
        elif case.splits_latents and name.endswith("kv_b_proj.weight"):
            keys, latents = values.view(config.num_attention_heads, -1, config.kv_lora_rank).split(
                [config.qk_nope_head_dim, config.v_head_dim], 1
            )
            found[block + "attn_k_b.weight"], found[block + "attn_v_b.weight"] = keys.transpose(1, 2), latents
        elif "_layernorm.norms." in name:
            stem = "attn_q_norm" if ".q_layernorm." in name else "attn_k_norm"
            key = block + stem + ".weight"
            found[key] = torch.cat([found[key], values[None]]) if key in found else values[None]
        elif name.endswith("self_attn.sinks"):
            found[block + "attn_sinks.weight"] = values
        else:
            found[name] = values
    return found


def _interleaved(values: Tensor, num_heads: int) -> Tensor:
    """Rows of q or k whose halves alternate in each head."""
    return values.reshape(num_heads, 2, -1, *values.shape[1:]).transpose(1, 2).reshape(values.shape)


def _llama3_factors(config: Any, rope: dict[str, Any]) -> NDArray[np.float32]:
    """By how much each frequency is divided, by the definition in the code of transformers."""
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    scaled, _ = ROPE_INIT_FUNCTIONS["llama3"](config, torch.device("cpu"))
    plain = rope["rope_theta"] ** (-torch.arange(0, config.head_dim, 2).double() / config.head_dim)
    return (plain / scaled.double()).float().numpy()


def _stored(name: str, values: NDArray[np.float32], kind: str) -> StoredTensor | NDArray[np.float32]:
    is_plain = (
        values.ndim < 2 or values.shape[-1] % 32 or any(part in name for part in ("norm", "ffn_gate_inp", ".bias"))
    )
    return values if is_plain or kind == "F32" else stored(kind, values)
