"""Models used by benchmarks: seeded random ones, by default a Llama with 36 million parameters.

A model is written once as a checkpoint directory, so that every engine loads the same files. Weights are random but vary enough to make
the most likely token unambiguous; token ids beyond the tokenizer's decode to nothing.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import safe_open

if TYPE_CHECKING:
    from rtlang.model.loading.gguf.header import TensorEntry

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
HALF_BILLION: dict[str, Any] = {
    "vocab_size": 151_936,
    "hidden_size": 896,
    "intermediate_size": 4_864,
    "num_hidden_layers": 24,
    "num_attention_heads": 14,
    "num_key_value_heads": 2,
    "max_position_embeddings": 4_096,
    "tie_word_embeddings": True,
}
SMALL_HYBRID: dict[str, Any] = {
    "vocab_size": 2_048,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 12,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 64,
    "linear_value_head_dim": 64,
    "max_position_embeddings": 8_192,
    "tie_word_embeddings": True,
    "initializer_range": 0.05,
}
"""Three gated delta layers to one of full attention. A state is as large as the K and V of 1,600 tokens, as in Qwen3.5 models."""
SMALL_DENSE: dict[str, Any] = {
    "vocab_size": 2_048,
    "hidden_size": 128,
    "intermediate_size": 426,
    "num_hidden_layers": 12,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "max_position_embeddings": 8_192,
    "tie_word_embeddings": True,
    "initializer_range": 0.05,
}
"""As many weights as SMALL_HYBRID, without states."""
SHAPES: dict[str, tuple[str, Mapping[str, Any]]] = {
    "llama-36m": ("llama", SHAPE),
    "qwen2-0.5b": ("qwen2", HALF_BILLION | {"initializer_range": 0.05}),
    "qwen3.5-3m": ("qwen3_5_text", SMALL_HYBRID),
    "qwen3-3m": ("qwen3", SMALL_DENSE),
}
"""Model type and configuration of the random models, by name; the first is the default."""
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")


def write_random_llama(directory: Path, tokenizer_directory: Path, *, seed: int = 0, **overrides: Any) -> Path:
    """Write a config, bfloat16 weights and a copy of an existing tokenizer to `directory`; returns `directory`.

    Args:
        directory: created if missing.
        tokenizer_directory: contains the tokenizer.json and tokenizer_config.json to copy.
        seed: seed of the weights.
        overrides: fields that override SHAPE, for example num_hidden_layers=2.
    Raises:
        FileNotFoundError: a tokenizer file is missing.
    """
    return write_random(directory, tokenizer_directory, "llama", SHAPE | overrides, seed=seed)


def write_config(directory: Path, tokenizer_directory: Path, model_type: str, shape: Mapping[str, Any]) -> Any:
    """Write the configuration and the tokenizer files of `write_random`, without weights; returns the configuration of transformers."""
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
    config.architectures = [transformers.AutoModelForCausalLM._model_mapping[type(config)].__name__]
    config.save_pretrained(directory)
    return config


def write_random(
    directory: Path, tokenizer_directory: Path, model_type: str, shape: Mapping[str, Any], *, seed: int = 0
) -> Path:
    """Like `write_random_llama`, for any model type of transformers; `shape` holds the fields of its configuration."""
    import transformers

    config = write_config(directory, tokenizer_directory, model_type, shape)
    transformers.set_seed(seed)
    transformers.AutoModelForCausalLM.from_config(config).bfloat16().save_pretrained(directory)
    return directory


def num_weights(path: Path) -> int:
    """Weights that a step multiplies with: those of the checkpoint without the embedding, unless it is the output layer too.

    Args:
        path: a directory with safetensors, or a GGUF file.
    """
    if path.is_file():
        return sum(math.prod(each.shape) for each in _multiplied(path))
    counts: dict[str, int] = {}
    for file in sorted(path.glob("*.safetensors")):
        with safe_open(file, framework="pt") as tensors:
            counts |= {name: math.prod(tensors.get_slice(name).get_shape()) for name in list(tensors.keys())}
    if any("lm_head" in name for name in counts):
        counts = {name: count for name, count in counts.items() if "embed_tokens" not in name}
    return sum(counts.values())


def stored_bytes(path: Path) -> int | None:
    """Bytes of the same weights in a GGUF file, which are held as they are stored; None for a directory."""
    return sum(each.num_bytes for each in _multiplied(path)) if path.is_file() else None


def _multiplied(path: Path) -> list[TensorEntry]:
    from rtlang.model.loading.gguf.container import GgufFile

    with GgufFile.open(path) as file:
        has_head = "output.weight" in file.tensors
        return [each for name, each in file.tensors.items() if name != "token_embd.weight" or not has_head]


def _special_id(directory: Path, name: str) -> int | None:
    """The id of the special token `name` in tokenizer_config.json; None if it is not set."""
    settings = json.loads((directory / "tokenizer_config.json").read_text(encoding="utf-8"))
    token = settings.get(name)
    content = token.get("content") if isinstance(token, dict) else token
    added = json.loads((directory / "tokenizer.json").read_text(encoding="utf-8"))["added_tokens"]
    return next((int(entry["id"]) for entry in added if entry["content"] == content), None)
