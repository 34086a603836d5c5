"""The config.json that metadata make: of small files, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rtlang.contract.errors import ModelLoadError
from rtlang.model.loading.gguf.architectures import ARCHITECTURES
from rtlang.model.loading.gguf.configs import config_entries
from rtlang.model.loading.gguf.container import GgufFile
from tests.support.models.gguf_files import write_gguf

_LLAMA = {
    "llama.embedding_length": 64,
    "llama.block_count": 2,
    "llama.attention.head_count": 4,
    "llama.context_length": 128,
    "llama.feed_forward_length": 96,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
}


def _entries(tmp_path: Path, metadata: dict[str, Any], tensors: dict[str, tuple[int, ...]] | None = None) -> Any:
    shapes = {"token_embd.weight": (5, 64), **(tensors or {})}
    arrays = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    (path,) = write_gguf(tmp_path / "model.gguf", arrays, metadata)
    with GgufFile.open(path) as file:
        return config_entries(file)


def test_numbers_are_those_that_were_written(tmp_path: Path) -> None:
    found = _entries(tmp_path, _LLAMA)
    assert found == {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": 5,
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "head_dim": 16,
        "max_position_embeddings": 128,
        "intermediate_size": 96,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "tie_word_embeddings": True,
        "attention_bias": False,
        "mlp_bias": False,
        "bos_token_id": None,
        "eos_token_id": None,
        "pad_token_id": None,
    }
    assert not _entries(tmp_path, _LLAMA, {"output.weight": (5, 64)})["tie_word_embeddings"]


@pytest.mark.parametrize(
    ("metadata", "ends"),
    [
        ({"tokenizer.ggml.eos_token_id": 1}, 1),
        ({"tokenizer.ggml.eos_token_id": 1, "tokenizer.ggml.eot_token_id": 3}, [1, 3]),
        ({}, None),
        ({"tokenizer.ggml.eos_token_id": 77}, None),
    ],
)
def test_texts_end_at_the_tokens_that_are_named(tmp_path: Path, metadata: dict[str, Any], ends: object) -> None:
    assert _entries(tmp_path, {**_LLAMA, **metadata})["eos_token_id"] == ends


def test_an_architecture_that_is_not_served_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError) as error:
        _entries(tmp_path, {"general.architecture": "mamba"})
    assert "general.architecture = 'mamba': expected one of llama, " in error.value.reason
    for name in ARCHITECTURES:
        assert " " in name or name in error.value.reason


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ({"llama.block_count": None}, "llama.block_count is missing: expected a number from 1"),
        ({"llama.block_count": 0}, "llama.block_count = 0: expected a number from 1"),
        ({"llama.block_count": "two"}, "llama.block_count = 'two': expected a number from 1"),
        ({"llama.block_count": 5000}, "llama.block_count = 5000: expected 1 to 4096"),
        ({"llama.attention.head_count_kv": [4, 2]}, r"head_count_kv = \[4, 2\]: expected one number for all layers"),
        ({"llama.embedding_length": 32}, r"token_embd.weight has shape \[5, 64\]: expected \[tokens, 32\]"),
        ({"llama.attention.value_length": 8}, "value_length = 8: expected 16, as attention.key_length"),
        ({"llama.attention.layer_norm_rms_epsilon": float("nan")}, "epsilon = nan: expected a finite number"),
        ({"llama.rope.dimension_count": 8}, "rope.dimension_count = 8: expected the size of a head, 16"),
        ({"llama.rope.scaling.type": "ntk"}, "rope.scaling.type = 'ntk': expected none, linear, yarn or longrope"),
    ],
)
def test_metadata_that_cannot_be_used_are_named(tmp_path: Path, metadata: dict[str, Any], reason: str) -> None:
    with pytest.raises(ModelLoadError, match=reason):
        _entries(tmp_path, {name: value for name, value in {**_LLAMA, **metadata}.items() if value is not None})


def test_unknown_metadata_are_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    _entries(tmp_path, {**_LLAMA, "llama.new_scale": 2.0, "llama.vocab_size": 5})
    assert "metadata that are not used: llama.new_scale" in caplog.text


def test_windows_follow_the_pattern_of_the_file_or_of_the_architecture(tmp_path: Path) -> None:
    base = {name.replace("llama.", "cohere2."): value for name, value in _LLAMA.items()}
    base |= {"general.architecture": "cohere2", "cohere2.logit_scale": 0.5, "cohere2.block_count": 5}
    full, local = "full_attention", "sliding_attention"
    window = {"cohere2.attention.sliding_window": 8}
    pattern = "cohere2.attention.sliding_window_pattern"
    assert _entries(tmp_path, base)["layer_types"] == [full] * 5
    assert _entries(tmp_path, {**base, **window})["layer_types"] == [local, local, local, full, local]
    assert _entries(tmp_path, {**base, **window, pattern: 2})["layer_types"] == [local, full, local, full, local]
    given = [True, False, False, True, True]
    assert _entries(tmp_path, {**base, **window, pattern: given})["layer_types"] == [local, full, full, local, local]
    with pytest.raises(ModelLoadError, match="expected 5 times true or false"):
        _entries(tmp_path, {**base, **window, pattern: [True]})
