"""What is read from the configuration of a draft head, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rtlang.contract.errors import ModelLoadError
from rtlang.model.draft_heads.head_config import HeadKind, is_head, mtp_head, read_head
from rtlang.model.loading.layer_table import AttentionConfig, QkNorm
from rtlang.model.loading.model_config import ModelConfig

# Entries of published configurations: EAGLE and EAGLE-3 by their authors, EAGLE-3 by the package `speculators`.
SIZES: dict[str, Any] = {
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "num_hidden_layers": 1,
    "vocab_size": 128256,
    "rms_norm_eps": 1e-5,
    "hidden_act": "silu",
    "max_position_embeddings": 2048,
    "model_type": "llama",
}
EAGLE = {**SIZES, "architectures": ["LlamaForCausalLM"], "bias": False}
EAGLE_3 = {**SIZES, "architectures": ["LlamaForCausalLMEagle3"], "draft_vocab_size": 32000}
SPECULATORS = {
    "architectures": ["Eagle3Speculator"],
    "speculators_model_type": "eagle3",
    "draft_vocab_size": 32000,
    "norm_before_residual": True,
    "eagle_aux_hidden_state_layer_ids": [1, 8, 30],
    "transformer_layer_config": {**SIZES, "rope_theta": 5e5},
}
NAMES_OF_EAGLE = (
    "fc.weight",
    "layers.0.self_attn.q_proj.weight",
    "layers.0.mlp.down_proj.weight",
    "embed_tokens.weight",
)
NAMES_OF_EAGLE_3 = (
    "fc.weight",
    "midlayer.hidden_norm.weight",
    "midlayer.self_attn.q_proj.weight",
    "d2t",
    "lm_head.weight",
)


def target(**entries: Any) -> ModelConfig:
    raw = {**SIZES, "num_hidden_layers": 32, "architectures": ["LlamaForCausalLM"], **entries}
    return ModelConfig.from_entries(raw, Path("target"))


def write(path: Path, entries: dict[str, Any]) -> Path:
    (path / "config.json").write_text(json.dumps(entries))
    return path


def test_the_layouts(tmp_path: Path) -> None:
    first = read_head(write(tmp_path, EAGLE), NAMES_OF_EAGLE, target())
    assert (first.kind, first.tapped_layers, first.num_outputs) == (HeadKind.EAGLE, (), 128256)
    assert first.layers.native is not None
    assert first.layers.native.layers[0].norms.before_attention is None
    assert first.names["model.layers.0.mlp.down_proj.weight"] == "layers.0.mlp.down_proj.weight"
    third = read_head(write(tmp_path, EAGLE_3), NAMES_OF_EAGLE_3, target())
    assert (third.kind, third.tapped_layers, third.num_outputs) == (HeadKind.EAGLE_3, (2, 16, 29), 32000)
    assert third.names["model.layers.0.self_attn.q_proj.weight"] == "midlayer.self_attn.q_proj.weight"
    assert not third.norms_residual
    names = [f"model.{name.replace('midlayer', 'layers.0')}" for name in NAMES_OF_EAGLE_3]
    other = read_head(write(tmp_path, SPECULATORS), names, target())
    assert (other.kind, other.tapped_layers, other.norms_residual) == (HeadKind.EAGLE_3, (1, 8, 30), True)
    assert other.layers.native is not None
    (attention,) = other.layers.native.attentions
    assert attention.rope is not None
    assert attention.rope.theta == 5e5


def test_parts_are_those_for_which_there_are_tensors(tmp_path: Path) -> None:
    names = (*NAMES_OF_EAGLE, *(f"layers.0.self_attn.{part}" for part in ("q_proj.bias", "q_norm.weight")))
    head = read_head(write(tmp_path, {**EAGLE, "model_type": "qwen2"}), names, target())
    assert head.layers.native is not None
    (attention,) = head.layers.native.attentions
    assert (attention.has_qkv_bias, attention.has_output_bias, attention.qk_norm) == (True, False, QkNorm.HEADS)


def test_a_model_is_no_head() -> None:
    assert is_head(EAGLE_3, ())
    assert is_head(SPECULATORS, ())
    assert is_head(EAGLE, NAMES_OF_EAGLE)
    for damaged in (7, True, {"eagle": 1}, "eagle"):
        assert not is_head({"architectures": damaged}, ())
    assert not is_head(EAGLE, ("model.embed_tokens.weight", "model.layers.0.self_attn.q_proj.weight"))


@pytest.mark.parametrize(
    ("entries", "names", "message"),
    [
        ({**EAGLE, "vocab_size": 1000}, NAMES_OF_EAGLE, "vocab_size = 1000: expected 128256, that of the model"),
        ({**EAGLE, "model_type": "mamba"}, NAMES_OF_EAGLE, "model_type = 'mamba': expected llama, qwen2, qwen3"),
        ({**EAGLE, "model_type": ["llama"]}, NAMES_OF_EAGLE, r"model_type = \['llama'\]: expected llama, qwen2, qwen3"),
        ({**EAGLE, "hidden_act": "relu"}, NAMES_OF_EAGLE, "hidden_act 'relu' is not silu"),
        ({**EAGLE_3, "draft_vocab_size": 0}, NAMES_OF_EAGLE_3, "draft_vocab_size = 0: expected 1 to 128256"),
        (
            {**SPECULATORS, "eagle_aux_hidden_state_layer_ids": [2, 40]},
            NAMES_OF_EAGLE_3,
            r"eagle_aux_hidden_state_layer_ids = \[2, 40\]: expected layers of the model, 0 to 31",
        ),
        (
            {**SPECULATORS, "eagle_aux_hidden_state_layer_ids": [True, 2, 3]},
            NAMES_OF_EAGLE_3,
            r"eagle_aux_hidden_state_layer_ids = \[True, 2, 3\]: expected layers of the model, 0 to 31",
        ),
    ],
)
def test_refusals_name_the_entry(entries: dict[str, Any], names: tuple[str, ...], message: str, tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError, match=message):
        read_head(write(tmp_path, entries), names, target())


def test_the_layer_of_a_model_itself() -> None:
    with pytest.raises(ModelLoadError, match="has no multi-token prediction layer"):
        mtp_head(Path("target"), ("model.layers.0.mlp.up_proj.weight",), target())
    names = ("mtp.fc.weight", "mtp.norm.weight", "mtp.layers.0.mlp.up_proj.weight")
    head = mtp_head(Path("target"), names, target())
    assert (head.kind, head.layers.num_layers, head.num_outputs) == (HeadKind.MTP, 1, 128256)
    assert head.names["model.layers.0.mlp.up_proj.weight"] == "mtp.layers.0.mlp.up_proj.weight"
    assert head.names["norm.weight"] == "mtp.norm.weight"
    assert head.layers.native is not None
    assert isinstance(head.layers.native.layers[0].attention, AttentionConfig)
    with pytest.raises(ModelLoadError, match="2 multi-token prediction layers: expected 1"):
        mtp_head(Path("target"), (*names, "mtp.layers.1.mlp.up_proj.weight"), target())
    other = replace(target(), native=None, native_obstacle="model_type 'deepseek_v3' has no layer table")
    with pytest.raises(ModelLoadError, match="'deepseek_v3' has no layer table"):
        mtp_head(Path("target"), names, other)
