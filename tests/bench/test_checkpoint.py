from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import transformers

from rtlang.bench.checkpoint import SHAPE, num_weights, write_random_llama
from tests.support.models.tiny_models import BOS_TOKEN_ID, EOS_TOKEN_ID, write_tokenizer

SMALL = {"vocab_size": 300, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2}


@pytest.fixture
def tokenizer_directory(tmp_path: Path) -> Path:
    (tmp_path / "tokenizer").mkdir()
    write_tokenizer(tmp_path / "tokenizer")
    return tmp_path / "tokenizer"


def test_transformers_reads_what_is_written(tmp_path: Path, tokenizer_directory: Path) -> None:
    directory = write_random_llama(tmp_path / "model", tokenizer_directory, **SMALL)
    model = transformers.AutoModelForCausalLM.from_pretrained(directory)
    assert model.dtype == torch.bfloat16
    assert model.config.vocab_size == 300
    assert (model.config.bos_token_id, model.config.eos_token_id) == (BOS_TOKEN_ID, EOS_TOKEN_ID)
    assert model.get_output_embeddings().weight is model.get_input_embeddings().weight
    assert (directory / "tokenizer.json").read_bytes() == (tokenizer_directory / "tokenizer.json").read_bytes()


def test_weights_repeat_with_the_seed(tmp_path: Path, tokenizer_directory: Path) -> None:
    one, again, other = (
        (
            write_random_llama(tmp_path / name, tokenizer_directory, seed=seed, **SMALL) / "model.safetensors"
        ).read_bytes()
        for name, seed in [("one", 1), ("again", 1), ("other", 2)]
    )
    assert one == again
    assert one != other


def test_the_default_shape_has_between_30_and_60_million_parameters() -> None:
    config = transformers.LlamaConfig(**SHAPE)
    with torch.device("meta"):
        model = transformers.LlamaForCausalLM(config)
    assert 30e6 < sum(parameter.numel() for parameter in model.parameters()) < 60e6


def test_a_missing_tokenizer_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"tokenizer\.json"):
        write_random_llama(tmp_path / "model", tmp_path, **SMALL)


def test_a_tokenizer_without_special_tokens_gives_none(tmp_path: Path, tokenizer_directory: Path) -> None:
    (tokenizer_directory / "tokenizer_config.json").write_text(json.dumps({"bos_token": None}))
    directory = write_random_llama(tmp_path / "model", tokenizer_directory, **SMALL)
    config = json.loads((directory / "config.json").read_text())
    assert config.get("bos_token_id") is None
    assert config.get("eos_token_id") is None


@pytest.mark.parametrize("is_tied", [True, False])
def test_the_weights_of_a_step_are_counted(tmp_path: Path, tokenizer_directory: Path, is_tied: bool) -> None:
    directory = write_random_llama(tmp_path / "model", tokenizer_directory, **SMALL, tie_word_embeddings=is_tied)
    model = transformers.AutoModelForCausalLM.from_pretrained(directory)
    everything = sum(weight.numel() for weight in model.parameters())
    embedding = model.get_input_embeddings().weight.numel()
    assert num_weights(directory) == (everything if is_tied else everything - embedding)
