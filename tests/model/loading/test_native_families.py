"""The layer tables of families, against the configuration classes of transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rtlang.contract.errors import ModelLoadError
from rtlang.model.loading.layer_table import Activation, QkNorm
from rtlang.model.loading.model_config import ModelConfig

PUBLISHED: dict[str, dict[str, Any]] = {
    # as in google/gemma-3-4b-it, whose text half has the older names of rope entries
    "gemma3": {
        "architectures": ["Gemma3ForConditionalGeneration"],
        "model_type": "gemma3",
        "text_config": {
            "model_type": "gemma3_text",
            "hidden_size": 2560,
            "intermediate_size": 10240,
            "num_hidden_layers": 34,
            "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
            "sliding_window": 1024,
        },
        "vision_config": {"hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27},
    },
    # as in microsoft/Phi-4-mini-instruct, with fewer layers
    "phi4-mini": {
        "architectures": ["Phi3ForCausalLM"],
        "model_type": "phi3",
        "hidden_size": 3072,
        "intermediate_size": 8192,
        "num_attention_heads": 24,
        "num_key_value_heads": 8,
        "num_hidden_layers": 3,
        "partial_rotary_factor": 0.75,
        "max_position_embeddings": 131072,
        "original_max_position_embeddings": 4096,
        "rope_scaling": {"type": "longrope", "long_factor": [2.0] * 48, "short_factor": [1.5] * 48},
        "rope_theta": 10000.0,
        "sliding_window": 262144,
        "tie_word_embeddings": True,
        "vocab_size": 200064,
    },
    # as in allenai/Olmo-3-7B-Instruct
    "olmo3": {
        "architectures": ["Olmo3ForCausalLM"],
        "model_type": "olmo3",
        "num_hidden_layers": 4,
        "max_position_embeddings": 65536,
        "rope_theta": 500000,
        "rope_scaling": {
            "attention_factor": 1.2079441541679836,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "factor": 8.0,
            "original_max_position_embeddings": 8192,
            "rope_type": "yarn",
        },
        "sliding_window": 4096,
    },
}


def read(tmp_path: Path, entries: dict[str, Any]) -> ModelConfig:
    (tmp_path / "config.json").write_text(json.dumps(entries))
    return ModelConfig.from_pretrained(tmp_path)


def test_local_and_global_layers_of_gemma_have_their_own_rotations(tmp_path: Path) -> None:
    config = read(tmp_path, PUBLISHED["gemma3"])
    assert config.native is not None, config.native_obstacle
    native = config.native
    assert native.norms_add_one
    assert native.embedding_multiplier == 2560**0.5
    assert len(native.layers) == 34
    for index, layer in enumerate(native.layers):
        is_global = index % 6 == 5
        rope = layer.attention.rope
        assert rope is not None
        assert (rope.theta, rope.kind, rope.factor) == ((1e6, "linear", 8.0) if is_global else (1e4, "default", 1.0))
        assert layer.attention.sliding_window == (None if is_global else 1024)
        assert layer.attention.scale == 256**-0.5
        assert layer.attention.qk_norm is QkNorm.HEADS
        assert layer.feed_forward.activation is Activation.GELU
        assert layer.norms.after_attention == "post_attention_layernorm"


def test_phi_rotates_a_part_of_each_head_and_joins_tensors(tmp_path: Path) -> None:
    config = read(tmp_path, PUBLISHED["phi4-mini"])
    assert config.native is not None, config.native_obstacle
    assert config.native.depends_on_length
    layer = config.native.layers[0]
    rope = layer.attention.rope
    assert rope is not None
    assert (rope.rotary_dim, rope.kind, rope.short_factors) == (96, "longrope", (1.5,) * 48)
    assert rope.attention_factor == pytest.approx((1 + 5 / 12) ** 0.5)  # 32 times 4096, which are powers of 2
    assert layer.attention.is_joined
    assert layer.feed_forward.is_joined
    assert layer.attention.sliding_window == 262144


def test_olmo_norms_results_and_all_heads_together(tmp_path: Path) -> None:
    config = read(tmp_path, PUBLISHED["olmo3"])
    assert config.native is not None, config.native_obstacle
    assert not config.native.is_divisible
    kinds = [layer.attention.rope.kind for layer in config.native.layers if layer.attention.rope is not None]
    assert kinds == ["default"] * 3 + ["yarn"]
    assert config.native.sliding_windows == (4096, 4096, 4096, None)
    last = config.native.layers[3]
    assert last.attention.rope is not None
    assert last.attention.rope.attention_factor == 1.2079441541679836
    assert last.attention.qk_norm is QkNorm.ALL_HEADS
    assert (last.norms.before_attention, last.norms.before_feed_forward) == (None, None)


def test_layers_without_rotation_and_the_factors_of_granite(tmp_path: Path) -> None:
    smol = read(tmp_path, {"architectures": ["SmolLM3ForCausalLM"], "model_type": "smollm3", "num_hidden_layers": 8})
    assert smol.native is not None, smol.native_obstacle
    assert [layer.attention.rope is None for layer in smol.native.layers] == [False, False, False, True] * 2
    factors = {"residual_multiplier": 0.22, "attention_multiplier": 0.0078125, "embedding_multiplier": 12.0}
    entries = {"architectures": ["GraniteForCausalLM"], "model_type": "granite", "logits_scaling": 16.0, **factors}
    granite = read(tmp_path, entries)
    assert granite.native is not None, granite.native_obstacle
    assert {layer.residual_multiplier for layer in granite.native.layers} == {0.22}
    assert {layer.attention.scale for layer in granite.native.layers} == {0.0078125}
    assert (granite.native.embedding_multiplier, granite.native.logits_divisor) == (12.0, 16.0)


@pytest.mark.parametrize(
    ("entries", "obstacle"),
    [
        ({"model_type": "granite", "hidden_act": "relu"}, "hidden_act 'relu' is not"),
        ({"model_type": "gemma3_text", "use_bidirectional_attention": True}, "attention to later tokens"),
        ({"model_type": "granite", "rope_parameters": {"rope_type": "dynamic", "factor": 2.0}}, "rope type 'dynamic'"),
    ],
    ids=["activation", "both directions", "dynamic rope"],
)
def test_what_the_table_cannot_describe_is_left_to_transformers(
    entries: dict[str, Any], obstacle: str, tmp_path: Path
) -> None:
    name = {"granite": "GraniteForCausalLM", "gemma3_text": "Gemma3ForCausalLM"}[entries["model_type"]]
    config = read(tmp_path, {"architectures": [name], **entries})
    assert config.native is None
    assert config.native_obstacle is not None
    assert obstacle in config.native_obstacle


def test_wrong_factors_are_named(tmp_path: Path) -> None:
    entries = {"architectures": ["GraniteForCausalLM"], "model_type": "granite", "residual_multiplier": -1.0}
    with pytest.raises(ModelLoadError, match=r"residual_multiplier = -1\.0: expected a number > 0"):
        read(tmp_path, entries)
