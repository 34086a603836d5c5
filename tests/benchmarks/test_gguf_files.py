"""Random GGUF files: rtlang reads what is written, and other tokenizers are refused."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path

import gguf
import pytest
from typer.testing import CliRunner

from rtlang.contract.config import EMBEDDED_MODEL
from rtlang.model.loader import load_tokenizer, model_directory
from rtlang.model.loading.gguf.model_files import gguf_weights
from rtlang.model.loading.model_config import ModelConfig
from rtlang_bench.gguf_files import SHAPES, app, tensors, token_metadata, write_float16

SMALL = SHAPES["qwen2-0.5b"] | {
    "vocab_size": 2_100,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}


def test_a_written_model_is_read(tmp_path: Path) -> None:
    path = tmp_path / "small.gguf"
    write_float16(path, SMALL, model_directory(EMBEDDED_MODEL))
    config = ModelConfig.from_pretrained(path)
    assert (config.vocab_size, config.architecture) == (2_100, "Qwen2ForCausalLM")
    weights, _ = gguf_weights(path)
    assert weights.shape("model.layers.1.self_attn.k_proj.weight") == (32, 64)
    reader = gguf.GGUFReader(path)
    assert {each.name for each in reader.tensors} == {name for name, _ in tensors(SMALL)}
    ours, tiny = load_tokenizer(path), load_tokenizer(model_directory(EMBEDDED_MODEL))
    assert ours.encode("bafo dek", is_start=True) == tiny.encode("bafo dek", is_start=True)


def test_the_shapes_have_the_weights_of_the_models() -> None:
    counts = {name: sum(prod(dims) for _, dims in tensors(shape)) for name, shape in SHAPES.items()}
    assert counts == {"qwen2-0.5b": 494_032_768, "qwen2-1.5b": 1_543_714_304}


def test_other_tokenizers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="2048 tokens, more than the 100"):
        token_metadata(model_directory(EMBEDDED_MODEL), 100)
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": {"type": "Unigram"}, "pre_tokenizer": None}))
    (tmp_path / "tokenizer_config.json").write_text("{}")
    with pytest.raises(ValueError, match="byte-level BPE"):
        token_metadata(tmp_path, 100)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--shape", "round"], "--shape round"),
        (["--kind", "q4_0,q9"], "--kind q9"),
        ([], "no libggml-base"),
    ],
)
def test_options_that_cannot_be_are_named(options: list[str], named: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, [str(tmp_path / "out"), "--llama-cpp", str(tmp_path), *options])
    assert result.exit_code == 1
    assert named in result.output
