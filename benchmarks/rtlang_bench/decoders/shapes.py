"""Random models of half a billion weights, one of each family, and the Llama with as many.

All have the depth, width and vocabulary of Qwen2.5-0.5B. What differs is what the family is: norms, rotation, activation, windows, factors.
Layers of Qwen3.5 have the heads of Qwen3.5-0.8B, and a narrower gate in exchange for their larger projections.
"""

from __future__ import annotations

from typing import Any

SIZES: dict[str, Any] = {
    "vocab_size": 151_936,
    "hidden_size": 896,
    "intermediate_size": 4_864,
    "num_hidden_layers": 24,
    "num_attention_heads": 14,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "max_position_embeddings": 4_096,
    "tie_word_embeddings": True,
    "pad_token_id": None,
}
_LOCAL_AND_GLOBAL = ["sliding_attention"] * 5 + ["full_attention"]
TWIN = "llama"
"""The family that the others are compared with; it has as many weights in the same matrices."""
FAMILIES: dict[str, dict[str, Any]] = {
    "gemma3_text": {"sliding_window": 512, "layer_types": _LOCAL_AND_GLOBAL * 4, "query_pre_attn_scalar": 64},
    "phi3": {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.75}},
    "granite": {
        "attention_multiplier": 0.015625,
        "residual_multiplier": 0.22,
        "embedding_multiplier": 12.0,
        "logits_scaling": 8.0,
    },
    "olmo3": {"sliding_window": 512},
    "smollm3": {},
    "glm4": {},
    "qwen3_5_text": {
        "layer_types": (["linear_attention"] * 3 + ["full_attention"]) * 6,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 16,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "intermediate_size": 2_720,
    },
}
"""Entries of config.json by model type, over `SIZES`."""


def entries(family: str) -> dict[str, Any]:
    """The entries of config.json of a family. Raises KeyError if it is not one of FAMILIES or TWIN."""
    return dict(SIZES) if family == TWIN else SIZES | FAMILIES[family]
