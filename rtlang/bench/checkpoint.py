"""Models that benchmarks run on: by default a seeded random Llama of 36 million parameters.

A model is written once as a checkpoint directory, so that every engine loads the same file. Weights are random but spread enough that the
most likely token is clear; token ids beyond the tokenizer's have no text.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SHAPE: dict[str, Any] = {
    "vocab_size": 32_000,
    "hidden_size": 512,
    "intermediate_size": 1_536,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 64,
    "max_position_embeddings": 4_096,
    "tie_word_embeddings": True,
    "initializer_range": 0.05,
}
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")


def write_random_llama(directory: Path, tokenizer_directory: Path, *, seed: int = 0, **overrides: Any) -> Path:
    """Write config, bfloat16 weights and the files of an existing tokenizer into `directory`, and return it.

    Args:
        directory: made if missing.
        tokenizer_directory: holds tokenizer.json and tokenizer_config.json, which are copied.
        seed: of the weights.
        overrides: fields of SHAPE, for example num_hidden_layers=2.
    Raises:
        FileNotFoundError: a tokenizer file is missing.
    """
    return write_random(directory, tokenizer_directory, "llama", SHAPE | overrides, seed=seed)


def write_random(
    directory: Path, tokenizer_directory: Path, model_type: str, shape: Mapping[str, Any], *, seed: int = 0
) -> Path:
    """`write_random_llama` for any model type of transformers; `shape` are fields of its configuration."""
    import transformers

    directory.mkdir(parents=True, exist_ok=True)
    for name in TOKENIZER_FILES:
        shutil.copyfile(tokenizer_directory / name, directory / name)
    config = transformers.AutoConfig.for_model(
        model_type,
        **shape,
        bos_token_id=_special_id(directory, "bos_token"),
        eos_token_id=_special_id(directory, "eos_token"),
    )
    transformers.set_seed(seed)
    transformers.AutoModelForCausalLM.from_config(config).bfloat16().save_pretrained(directory)
    return directory


def _special_id(directory: Path, name: str) -> int | None:
    """The id of a special token that tokenizer_config.json names, if it names one."""
    settings = json.loads((directory / "tokenizer_config.json").read_text(encoding="utf-8"))
    token = settings.get(name)
    content = token.get("content") if isinstance(token, dict) else token
    added = json.loads((directory / "tokenizer.json").read_text(encoding="utf-8"))["added_tokens"]
    return next((int(entry["id"]) for entry in added if entry["content"] == content), None)
