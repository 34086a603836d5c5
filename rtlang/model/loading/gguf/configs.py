"""Makes the config.json of a model from the metadata of its GGUF file.

The entries are those of a published config.json of the model type, in its older form, which every version of transformers reads. Where
metadata lack a number that llama.cpp has in its code, such as every how many layers attention is global, it is here as well.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from rtlang.contract.errors import ModelLoadError
from rtlang.model.loading.gguf.architectures import (
    ARCHITECTURES,
    DEEPSEEK3,
    MIXTRAL,
    OLMO3,
    OUTPUT,
    TOKEN_EMBEDDING,
    Architecture,
)
from rtlang.model.loading.gguf.container import GgufFile
from rtlang.model.loading.gguf.fields import Fields
from rtlang.model.loading.gguf.rope_entries import rope_entries

logger = logging.getLogger(__name__)

_MAX_LAYERS = 4096
# Metadata that repeat what tensors say, or that do not change what is computed
_SAID_ELSEWHERE = frozenset(
    (
        *(
            "vocab_size",
            "attention.layer_norm_epsilon",
            "use_parallel_residual",
            "tensor_data_layout",
            "attention.causal",
        ),
        *(
            "rope.scaling.finetuned",
            "rope.dimension_sections",
            "expert_gating_func",
            "n_deepstack_layers",
            "pooling_type",
        ),
        *(
            "rope.dimension_count_swa",
            "attention.key_length_swa",
            "attention.value_length_swa",
            "interleave_moe_layer_step",
        ),
    )
)
_SIGMOID = 2  # of expert_gating_func


def architecture_of(fields: Fields) -> Architecture:
    """The architecture of a file.

    Raises:
        ModelLoadError: it is not served; names those that are.
    """
    name = fields.architecture
    if name == "llama" and fields.has("expert_count") and fields.number("expert_count", least=0):
        name = MIXTRAL
    elif name == "olmo2" and fields.has("attention.sliding_window"):
        name = OLMO3
    elif name == "deepseek2" and fields.number("expert_gating_func", 1, least=0) == _SIGMOID:
        name = DEEPSEEK3
    found = ARCHITECTURES.get(name)
    if found is None:
        served = ", ".join(each for each in ARCHITECTURES if " " not in each)
        raise fields.fail("general.architecture", name, f"one of {served}")
    return found


def fields_of(file: GgufFile) -> Fields:
    """The metadata of a file. Raises ModelLoadError if the architecture is missing."""
    return Fields(str(file.paths[0]), file.metadata, {name: each.shape for name, each in file.tensors.items()})


def config_entries(file: GgufFile) -> dict[str, Any]:
    """The content of config.json.

    Raises:
        ModelLoadError: the architecture is not served, or metadata are missing or invalid; names the entry and what is allowed.
    """
    fields = fields_of(file)
    architecture = architecture_of(fields)
    model_type = architecture.model_type
    hidden_size, num_layers = fields.number("embedding_length"), num_blocks(fields)
    num_layers -= fields.number("nextn_predict_layers", 0, least=0)  # which predict later tokens, after the others
    if not 0 < num_layers <= _MAX_LAYERS:
        raise fields.fail(fields.key("block_count"), num_layers, f"1 to {_MAX_LAYERS}")
    num_heads = fields.number("attention.head_count")
    head_dim = fields.number("attention.key_length", max(1, hidden_size // num_heads))
    embedding = fields.shapes.get(TOKEN_EMBEDDING)
    if embedding is None or len(embedding) != 2 or embedding[1] != hidden_size:
        shown = "is missing" if embedding is None else f"has shape {list(embedding)}"
        raise ModelLoadError(fields.path, f"tensor {TOKEN_EMBEDDING} {shown}: expected [tokens, {hidden_size}]")
    entries: dict[str, Any] = {
        "architectures": [architecture.class_name],
        "model_type": model_type,
        "vocab_size": embedding[0],
        "hidden_size": hidden_size,
        "num_hidden_layers": num_layers,
        "num_attention_heads": num_heads,
        "num_key_value_heads": fields.number("attention.head_count_kv", num_heads),
        "max_position_embeddings": fields.number("context_length"),
        "tie_word_embeddings": not fields.has_tensor(OUTPUT),
        **token_entries(file, embedding[0]),
    }
    if fields.has("feed_forward_length"):
        entries["intermediate_size"] = fields.number("feed_forward_length")
    norm_eps = fields.given("attention.layer_norm_rms_epsilon")
    kind = "attention.layer_norm_epsilon" if norm_eps is None else "attention.layer_norm_rms_epsilon"
    entries[_EPS_NAMES.get(model_type, "rms_norm_eps")] = fields.real(kind, 1e-5, least=0.0)
    if "attn_kv_b" in architecture.stems:
        num_turned = fields.number("rope.dimension_count")
    else:
        num_turned = entries["head_dim"] = head_dim
        value_length = fields.number("attention.value_length", head_dim)
        if value_length != head_dim:
            raise fields.fail(
                fields.key("attention.value_length"), value_length, f"{head_dim}, as attention.key_length"
            )
    entries.update(rope_entries(fields, model_type, num_turned, lambda name: file.tensor(name).float().numpy()))
    complete = _OWN_ENTRIES.get(model_type)
    if complete is not None:
        entries.update(complete(fields, entries))
    unread = [key for key in fields.unread() if key.partition(".")[2] not in _SAID_ELSEWHERE]
    if unread:
        logger.warning("%s: metadata that are not used: %s", fields.path, ", ".join(unread[:8]))
    return entries


def num_blocks(fields: Fields) -> int:
    """Number of layers that a file has, with those that predict later tokens."""
    return fields.number("block_count")


def token_entries(file: GgufFile, num_tokens: int) -> dict[str, Any]:
    """The numbers below `num_tokens` of the tokens that start a text, fill it up and end it."""
    found: dict[str, Any] = {}
    metadata = file.metadata
    for entry, name in (("bos_token_id", "bos"), ("pad_token_id", "padding")):
        value = metadata.get(f"tokenizer.ggml.{name}_token_id")
        found[entry] = value if isinstance(value, int) and value < num_tokens else None
    ends = (metadata.get(f"tokenizer.ggml.{name}_token_id") for name in ("eos", "eot", "eom"))
    ids = sorted({each for each in ends if isinstance(each, int) and each < num_tokens})
    found["eos_token_id"] = ids[0] if len(ids) == 1 else ids or None
    return found


_EPS_NAMES = {
    **dict.fromkeys(("phi", "stablelm", "cohere", "cohere2"), "layer_norm_eps"),
    "starcoder2": "norm_epsilon",
    "nemotron": "norm_eps",
}


def _layer_types(fields: Fields, num_layers: int, pattern: int) -> dict[str, Any]:
    """Sliding windows: in all layers but every `pattern`th, unless metadata have another pattern; in none without a window."""
    window = fields.number("attention.sliding_window", 0, least=0)
    if not window:
        return {"sliding_window": None, "layer_types": ["full_attention"] * num_layers}
    given = fields.given("attention.sliding_window_pattern")
    if isinstance(given, list):
        if len(given) < num_layers or not all(isinstance(each, bool) for each in given):
            raise fields.fail(
                fields.key("attention.sliding_window_pattern"), given, f"{num_layers} times true or false"
            )
        are_sliding = given[:num_layers]
    else:
        pattern = fields.number("attention.sliding_window_pattern", pattern)
        are_sliding = [(layer + 1) % pattern != 0 for layer in range(num_layers)]
    kinds = ["sliding_attention" if is_sliding else "full_attention" for is_sliding in are_sliding]
    return {"sliding_window": window, "layer_types": kinds}


def _biases(fields: Fields, stems: Mapping[str, str]) -> dict[str, Any]:
    """Entries that say whether layers have biases, from the biases of the first layer: by the stem of the tensor."""
    return {entry: fields.has_tensor(f"blk.0.{stem}.bias") for stem, entry in stems.items()}


def _llama(fields: Fields, entries: Mapping[str, Any]) -> dict[str, Any]:
    return _biases(fields, {"attn_q": "attention_bias", "ffn_gate": "mlp_bias"})


def _qwen2_moe(fields: Fields, entries: Mapping[str, Any]) -> dict[str, Any]:
    width = fields.number("expert_feed_forward_length", entries.get("intermediate_size", 1))
    return {
        **_experts(fields, "num_experts"),
        "moe_intermediate_size": width,
        "shared_expert_intermediate_size": fields.number("expert_shared_feed_forward_length", width),
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "norm_topk_prob": fields.flag("expert_weights_norm", False),
    }


def _qwen3_moe(fields: Fields, entries: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **_experts(fields, "num_experts"),
        "moe_intermediate_size": fields.number("expert_feed_forward_length"),
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "norm_topk_prob": True,
    }


def _experts(fields: Fields, entry: str) -> dict[str, Any]:
    return {entry: fields.number("expert_count"), "num_experts_per_tok": fields.number("expert_used_count")}


def _mixtral(fields: Fields, entries: Mapping[str, Any]) -> dict[str, Any]:
    return {**_experts(fields, "num_local_experts"), "sliding_window": None}


def _gemma2(fields: Fields, entries: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **_layer_types(fields, entries["num_hidden_layers"], 2),
        "hidden_activation": "gelu_pytorch_tanh",
        "attn_logit_softcapping": fields.real("attn_logit_softcapping", 50.0),
        "final_logit_softcapping": fields.real("final_logit_softcapping", 30.0),
        "query_pre_attn_scalar": _query_scale(entries, 46),
    }


def _gemma3(fields: Fields, entries: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **_layer_types(fields, entries["num_hidden_layers"], 6),
        "hidden_activation": "gelu_pytorch_tanh",
        "attn_logit_softcapping": fields.real("attn_logit_softcapping", 0.0) or None,
        "final_logit_softcapping": fields.real("final_logit_softcapping", 0.0) or None,
        "query_pre_attn_scalar": _query_scale(entries, 62),
        "rope_local_base_freq": fields.real("rope.freq_base_swa", 10000.0),
    }


def _query_scale(entries: Mapping[str, Any], num_layers_of_27b: int) -> int:
    """Of which number the root divides the scores: that of the two models of 27B, which metadata lack, or the size of a head."""
    if entries["num_hidden_layers"] == num_layers_of_27b:
        return int(entries["hidden_size"] // entries["num_attention_heads"])
    return int(entries["head_dim"])


def _phi3(fields: Fields, entries: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "sliding_window": fields.number("attention.sliding_window", 0, least=0) or None,
        "original_max_position_embeddings": fields.number(
            "rope.scaling.original_context_length", entries["max_position_embeddings"]
        ),
    }


def _smollm3(fields: Fields, entries: Mapping[str, Any]) -> dict[str, Any]:
    return {"no_rope_layer_interval": 4, "use_sliding_window": False, **_llama(fields, entries)}


def _olmo(fields: Fields, entries: Mapping[str, Any]) -> dict[str, Any]:
    return {"clip_qkv": fields.real("attention.clamp_kqv", 0.0) or None}


def _granite(fields: Fields, entries: Mapping[str, Any]) -> dict[str, Any]:
    # without them, llama.cpp takes the numbers of a certain MiniCPM
    default = None if fields.architecture == "minicpm" else 1.0
    return {
        "attention_multiplier": fields.real("attention.scale", entries["head_dim"] ** -0.5),
        "embedding_multiplier": fields.real("embedding_scale", default),
        "residual_multiplier": fields.real("residual_scale", default),
        "logits_scaling": fields.real("logit_scale", default),
        **_llama(fields, entries),
    }


def _starcoder2(fields: Fields, entries: Mapping[str, Any]) -> dict[str, Any]:
    return {**_biases(fields, {"attn_q": "use_bias"}), "sliding_window": None}


def _stablelm(fields: Fields, entries: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **_biases(fields, {"attn_q": "use_qkv_bias"}),
        "use_parallel_residual": not fields.has_tensor("blk.0.ffn_norm.weight"),
        "qk_layernorm": fields.has_tensor("blk.0.attn_q_norm.weight"),
    }


def _cohere(fields: Fields, entries: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "logit_scale": fields.real("logit_scale"),
        "use_qk_norm": fields.has_tensor("blk.0.attn_q_norm.weight"),
    }


def _cohere2(fields: Fields, entries: Mapping[str, Any]) -> dict[str, Any]:
    return {**_layer_types(fields, entries["num_hidden_layers"], 4), "logit_scale": fields.real("logit_scale")}


def _deepseek(fields: Fields, entries: Mapping[str, Any]) -> dict[str, Any]:
    num_turned = fields.number("rope.dimension_count")
    key_length = fields.number("attention.key_length_mla", fields.number("attention.key_length"))
    if key_length <= num_turned:
        raise fields.fail(
            fields.key("attention.key_length"), key_length, f"more than rope.dimension_count, {num_turned}"
        )
    return {
        **_deep_experts(fields),
        "num_key_value_heads": entries["num_attention_heads"],
        "q_lora_rank": fields.number("attention.q_lora_rank", 0, least=0) or None,
        "kv_lora_rank": fields.number("attention.kv_lora_rank"),
        "qk_rope_head_dim": num_turned,
        "qk_nope_head_dim": key_length - num_turned,
        "v_head_dim": fields.number("attention.value_length_mla", fields.number("attention.value_length")),
    }


def _deepseek_v2(fields: Fields, entries: Mapping[str, Any]) -> dict[str, Any]:
    found = _deepseek(fields, entries)
    return {**found, "topk_method": "group_limited_greedy" if found["n_group"] > 1 else "greedy"}


def _deep_experts(fields: Fields) -> dict[str, Any]:
    """Experts after some dense layers, beside experts that see every token."""
    return {
        "n_routed_experts": fields.number("expert_count"),
        "num_experts_per_tok": fields.number("expert_used_count"),
        "moe_intermediate_size": fields.number("expert_feed_forward_length"),
        "n_shared_experts": fields.number("expert_shared_count", 0, least=0),
        "first_k_dense_replace": fields.number("leading_dense_block_count", 0, least=0),
        "routed_scaling_factor": fields.real("expert_weights_scale", 1.0),
        "norm_topk_prob": fields.flag("expert_weights_norm", False),
        "n_group": fields.number("expert_group_count", 1),
        "topk_group": fields.number("expert_group_used_count", 1),
    }


def _glm4(fields: Fields, entries: Mapping[str, Any]) -> dict[str, Any]:
    return _biases(fields, {"attn_q": "attention_bias"})


def _glm4_moe(fields: Fields, entries: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **_deep_experts(fields),
        **_biases(fields, {"attn_q": "attention_bias"}),
        "use_qk_norm": fields.has_tensor("blk.0.attn_q_norm.weight"),
    }


def _exaone4(fields: Fields, entries: Mapping[str, Any]) -> dict[str, Any]:
    return _layer_types(fields, entries["num_hidden_layers"], 4)


def _seed_oss(fields: Fields, entries: Mapping[str, Any]) -> dict[str, Any]:
    return _biases(fields, {"attn_q": "attention_bias", "attn_output": "attention_out_bias", "ffn_gate": "mlp_bias"})


def _gpt_oss(fields: Fields, entries: Mapping[str, Any]) -> dict[str, Any]:
    found = {
        **_layer_types(fields, entries["num_hidden_layers"], 2),
        **_experts(fields, "num_local_experts"),
        "intermediate_size": fields.number("expert_feed_forward_length", entries.get("intermediate_size", 1)),
    }
    if "rope_scaling" in entries:  # the model was trained with borders between frequencies that are not rounded
        found["rope_scaling"] = {**entries["rope_scaling"], "truncate": False}
    return found


_OWN_ENTRIES: dict[str, Callable[[Fields, Mapping[str, Any]], dict[str, Any]]] = {
    "llama": _llama,
    "mixtral": _mixtral,
    "qwen2_moe": _qwen2_moe,
    "qwen3_moe": _qwen3_moe,
    "gemma2": _gemma2,
    "gemma3_text": _gemma3,
    "phi3": _phi3,
    "smollm3": _smollm3,
    "olmo": _olmo,
    "olmo3": _exaone4,
    "olmoe": lambda fields, entries: {**_experts(fields, "num_experts"), "norm_topk_prob": False},
    "granite": _granite,
    "starcoder2": _starcoder2,
    "stablelm": _stablelm,
    "cohere": _cohere,
    "cohere2": _cohere2,
    "deepseek_v2": _deepseek_v2,
    "deepseek_v3": _deepseek,
    "glm4": _glm4,
    "glm4_moe": _glm4_moe,
    "exaone4": _exaone4,
    "ernie4_5": lambda fields, entries: _biases(fields, {"attn_q": "use_bias"}),
    "hunyuan_v1_dense": lambda fields, entries: _biases(fields, {"attn_q": "attention_bias"}),
    "seed_oss": _seed_oss,
    "arcee": lambda fields, entries: _biases(fields, {"attn_q": "attention_bias", "ffn_up": "mlp_bias"}),
    "nemotron": lambda fields, entries: _biases(fields, {"attn_q": "attention_bias", "ffn_up": "mlp_bias"}),
    "gpt_oss": _gpt_oss,
}
