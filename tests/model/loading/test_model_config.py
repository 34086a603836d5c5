"""config.json as numbers, against the configuration classes of transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rtlang.contract.errors import ModelLoadError
from rtlang.model.loading.layer_table import ExpertsConfig, FeedForwardConfig, RopeConfig
from rtlang.model.loading.model_config import ModelConfig
from tests.support.models.tiny_models import EOS_TOKEN_ID, make_checkpoint

PLAIN: dict[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 300,
}


QWEN_EXPERTS = {"model_type": "qwen2_moe", "architectures": ["Qwen2MoeForCausalLM"]}


def read(tmp_path: Path, changes: dict[str, Any], generation: dict[str, Any] | None = None) -> ModelConfig:
    entries = {key: value for key, value in {**PLAIN, **changes}.items() if value != "absent"}
    (tmp_path / "config.json").write_text(json.dumps(entries))
    if generation is not None:
        (tmp_path / "generation_config.json").write_text(json.dumps(generation))
    return ModelConfig.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    "family", ["llama", "mistral", "qwen2", "qwen3", "gemma2", "gemma3", "gpt2", "opt", "gpt_neox"]
)
def test_numbers_equal_those_of_transformers(family: str, tmp_path: Path) -> None:
    from transformers import AutoConfig

    config = ModelConfig.from_pretrained(make_checkpoint(tmp_path, family))
    expected = AutoConfig.from_pretrained(tmp_path)
    heads = expected.num_attention_heads
    assert config.model_type == expected.model_type
    assert config.vocab_size == expected.vocab_size
    assert config.hidden_size == expected.hidden_size
    assert config.num_layers == expected.num_hidden_layers
    assert config.num_q_heads == heads
    assert config.num_kv_heads == getattr(expected, "num_key_value_heads", heads)
    assert config.head_dim == (getattr(expected, "head_dim", None) or expected.hidden_size // heads)
    assert config.max_position_embeddings == expected.max_position_embeddings
    assert config.eos_token_ids == {EOS_TOKEN_ID}
    assert (config.native is not None) == (family not in ("gpt2", "opt", "gpt_neox"))
    assert (config.native is None) == (config.native_obstacle is not None)


def test_a_rope_theta_of_null_is_the_one_beside_it(tmp_path: Path) -> None:
    config = read(tmp_path, {"rope_theta": 5e5, "rope_parameters": {"rope_type": "default", "rope_theta": None}})
    assert config.native is not None
    assert config.native.layers[0].attention.rope.theta == 5e5


@pytest.mark.parametrize(
    ("model_type", "defaults"),
    [
        *[("llama", {}), ("mistral", {"sliding_window": 4096}), ("qwen2", {}), ("qwen3", {})],
        *[("mixtral", {}), ("qwen2_moe", {}), ("qwen3_moe", {})],
    ],
)
def test_absent_entries_take_the_family_defaults(model_type: str, defaults: dict[str, Any], tmp_path: Path) -> None:
    from transformers import AutoConfig

    architecture = "".join(part.capitalize() for part in model_type.split("_"))
    changes = {"model_type": model_type, "architectures": [f"{architecture}ForCausalLM"], "num_attention_heads": 32}
    config = read(tmp_path, {**changes, "hidden_size": 4096})
    expected = AutoConfig.from_pretrained(tmp_path)
    assert config.native is not None
    assert config.num_kv_heads == expected.num_key_value_heads
    assert config.head_dim == (getattr(expected, "head_dim", None) or 128)
    assert config.native.rms_norm_eps == expected.rms_norm_eps
    assert config.native.layers[0].attention.rope.theta == expected.rope_parameters["rope_theta"]
    assert config.native.sliding_windows == (defaults.get("sliding_window"),) * 2


@pytest.mark.parametrize("model_type", ["mixtral", "qwen2_moe", "qwen3_moe"])
@pytest.mark.parametrize("changes", [{}, {"num_experts_per_tok": 3, "norm_topk_prob": True, "intermediate_size": 80}])
def test_experts_are_those_of_transformers(model_type: str, changes: dict[str, Any], tmp_path: Path) -> None:
    from transformers import AutoConfig

    architecture = "".join(part.capitalize() for part in model_type.split("_"))
    names = {"model_type": model_type, "architectures": [f"{architecture}ForCausalLM"], "intermediate_size": 96}
    config = read(tmp_path, {**names, **changes})
    expected = AutoConfig.from_pretrained(tmp_path)
    assert config.native is not None
    assert config.native.has_experts
    for layer in config.native.layers:
        own = layer.feed_forward
        assert isinstance(own, ExpertsConfig)
        assert own.num_experts == expected.num_experts
        assert own.num_slots == expected.num_experts_per_tok
        assert own.intermediate_size == getattr(expected, "moe_intermediate_size", expected.intermediate_size)
        assert own.is_normalized == getattr(expected, "norm_topk_prob", True)
        assert own.shared_size == getattr(expected, "shared_expert_intermediate_size", None)


def test_layers_without_experts_are_dense(tmp_path: Path) -> None:
    changes = {"model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"], "num_hidden_layers": 6}
    config = read(tmp_path, {**changes, "decoder_sparse_step": 2, "mlp_only_layers": [3]})
    assert config.native is not None
    kinds = [isinstance(layer.feed_forward, ExpertsConfig) for layer in config.native.layers]
    assert kinds == [False, True, False, False, False, True]
    assert config.native.layers[0].feed_forward == FeedForwardConfig(96)


def test_old_and_new_rope_entries_mean_the_same(tmp_path: Path) -> None:
    scaling = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 512}
    old = read(tmp_path, {"rope_theta": 5e5, "rope_scaling": {"type": "llama3", **scaling}})
    new = read(tmp_path, {"rope_parameters": {"rope_type": "llama3", "rope_theta": 5e5, **scaling}})
    assert old.native == new.native
    assert old.native is not None
    assert old.native.layers[0].attention.rope == RopeConfig(5e5, "llama3", 8.0, 1.0, 4.0, 512)


def test_windows_of_qwen_follow_layer_types_or_the_first_window_layer(tmp_path: Path) -> None:
    qwen = {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "num_hidden_layers": 3, "sliding_window": 8}
    assert read(tmp_path, qwen).native.sliding_windows == (None,) * 3  # type: ignore[union-attr]
    used = {**qwen, "use_sliding_window": True, "max_window_layers": 2}
    assert read(tmp_path, used).native.sliding_windows == (None, None, 8)  # type: ignore[union-attr]
    kinds = ["sliding_attention", "full_attention", "full_attention"]
    assert read(tmp_path, {**used, "layer_types": kinds}).native.sliding_windows == (8, None, None)  # type: ignore[union-attr]
    with pytest.raises(ModelLoadError, match="2 entries for 3 layers"):
        read(tmp_path, {**used, "layer_types": kinds[:2]})


@pytest.mark.parametrize(
    ("changes", "obstacle"),
    [
        ({"model_type": "stablelm"}, "has no layer table"),
        ({"architectures": ["LlavaLlamaForCausalLM"]}, "is not LlamaForCausalLM"),
        ({"hidden_act": "gelu"}, "gelu"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, "yarn"),
        ({"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5}}, "partial rotary embeddings"),
        ({"rope_parameters": {"full_attention": {"rope_type": "default"}}}, "differ by layer type"),
        ({"head_dim": 15}, "odd"),
        ({**QWEN_EXPERTS, "use_sliding_window": True}, "sliding windows of a model with experts"),
        ({**QWEN_EXPERTS, "qkv_bias": False}, "qkv_bias"),
    ],
    ids=str,
)
def test_the_native_decoder_is_not_offered_where_it_would_be_wrong(
    changes: dict[str, Any], obstacle: str, tmp_path: Path
) -> None:
    config = read(tmp_path, changes)
    assert config.native is None
    assert config.native_obstacle is not None
    assert obstacle in config.native_obstacle


def test_end_tokens_come_from_the_generation_config_first(tmp_path: Path) -> None:
    assert read(tmp_path, {"eos_token_id": 2}).eos_token_ids == {2}
    assert read(tmp_path, {"eos_token_id": [2, 3]}).eos_token_ids == {2, 3}
    assert read(tmp_path, {"eos_token_id": 2}, {"eos_token_id": [7, 8]}).eos_token_ids == {7, 8}
    assert read(tmp_path, {"eos_token_id": 2}, {}).eos_token_ids == {2}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_size": "absent"}, "hidden_size or n_embd or d_model is missing"),
        ({"vocab_size": -1}, "vocab_size = -1"),
        ({"num_hidden_layers": True}, "num_hidden_layers = True"),
        ({"model_type": "absent"}, "model_type is missing"),
        ({"intermediate_size": "absent"}, "intermediate_size is missing"),
        ({"rope_scaling": {"type": "linear"}}, "rope type linear requires factor"),
        ({"hidden_size": 10**200}, "hidden_size exceeds"),
        ({"num_hidden_layers": 10**9}, "1000000000 layers exceed"),
        ({"eos_token_id": ["x"]}, "eos_token_id = .*: expected a list of integers"),
        ({"rms_norm_eps": "tiny"}, "rms_norm_eps = 'tiny': expected a number >= 0"),
        ({"rms_norm_eps": []}, "rms_norm_eps = "),
        ({"rms_norm_eps": None}, "rms_norm_eps = None"),
        ({"rms_norm_eps": -1}, "rms_norm_eps = -1"),
        ({"rms_norm_eps": float("nan")}, "rms_norm_eps = nan"),
        ({"rope_parameters": {"rope_theta": 0}}, "rope_theta = 0: expected a number > 0"),
        ({"rope_parameters": {"rope_theta": True}}, "rope_theta = True"),
        ({"rope_parameters": {"rope_type": "linear", "factor": 0}}, "factor = 0: expected a number > 0"),
        ({"rope_parameters": {"rope_type": "linear", "factor": -2.0}}, "factor = -2.0"),
        ({"layer_types": 5}, "unexpected type"),
        ({"layer_types": [[1], [2]]}, "unexpected type"),
    ],
    ids=str,
)
def test_what_is_missing_or_senseless_is_named(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError, match=message):
        read(tmp_path, changes)


def test_a_missing_directory_or_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError, match="no such directory"):
        ModelConfig.from_pretrained(tmp_path / "nowhere")
    with pytest.raises(ModelLoadError, match=r"config\.json is missing"):
        ModelConfig.from_pretrained(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ModelLoadError, match=r"config\.json cannot be read"):
        ModelConfig.from_pretrained(tmp_path)
    (tmp_path / "config.json").write_text("[" * 200_000)
    with pytest.raises(ModelLoadError, match=r"config\.json cannot be read.*recursion"):
        ModelConfig.from_pretrained(tmp_path)
    with pytest.raises(ModelLoadError, match="name too long"):
        ModelConfig.from_pretrained(tmp_path / ("x" * 300))
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(ModelLoadError, match="must contain a JSON object"):
        ModelConfig.from_pretrained(tmp_path)
