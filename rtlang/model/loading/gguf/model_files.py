"""Finds the GGUF file that a model path means, and reads a model from it: what other checkpoints have in several files."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from rtlang.contract.errors import ModelLoadError
from rtlang.model.loading.gguf.configs import config_entries
from rtlang.model.loading.gguf.container import GgufFile
from rtlang.model.loading.gguf.weights import GgufWeights
from rtlang.model.loading.gguf_tokenizer.tokenizer_json import TokenizerParts, tokenizer_parts

SUFFIX = ".gguf"
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")
"""Files beside a GGUF file that replace the tokenizer in its metadata, if the first one is there."""
_SHARD = re.compile(r"(?P<stem>.*)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf", re.IGNORECASE | re.DOTALL)
_PROJECTOR = "mmproj"  # begins the name of a file with the towers of a multimodal model


def is_gguf(path: Path) -> bool:
    """Whether a model path is a GGUF file, rather than a directory."""
    return path.suffix.lower() == SUFFIX and path.is_file()


def first_files(names: list[str]) -> list[str]:
    """The GGUF files among some names: the first one of each model, in order."""
    found = []
    for name in sorted(names):
        shard = _SHARD.fullmatch(name)
        is_first = shard is None or int(shard["number"]) == 1
        if name.lower().endswith(SUFFIX) and is_first and not name.lower().startswith(_PROJECTOR):
            found.append(name)
    return found


def shards_of(name: str) -> list[str]:
    """The names of all files of the model of which one is named."""
    shard = _SHARD.fullmatch(name)
    if shard is None:
        return [name]
    count, end = int(shard["count"]), name[-len(SUFFIX) :]
    return [f"{shard['stem']}-{number:05}-of-{shard['count']}{end}" for number in range(1, count + 1)]


def gguf_in(directory: Path, names: list[str]) -> Path | None:
    """The GGUF file of a directory with some files, None if it holds another kind of model or none.

    Raises:
        ModelLoadError: there are files of several models.
    """
    found = first_files(names)
    if not found or any(name.endswith(".safetensors") for name in names):
        return None
    if len(found) > 1:
        shown = ", ".join(found[:6]) + (f" and {len(found) - 6} more" if len(found) > 6 else "")
        raise ModelLoadError(str(directory), f"it has {len(found)} GGUF models; pass one of the files: {shown}")
    return directory / found[0]


def gguf_config(path: Path) -> dict[str, Any]:
    """The content of config.json for a GGUF file.

    Raises:
        ModelLoadError: the file cannot be read, its architecture is not served, or its metadata are invalid.
    """
    try:
        status = os.stat(path)
    except OSError as error:
        raise ModelLoadError(str(path), f"the file cannot be read: {error}") from None
    return dict(_config(str(path), status.st_size, status.st_mtime_ns))


@lru_cache(maxsize=4)  # it is asked for several times while a model is loaded
def _config(path: str, size: int, time_ns: int) -> dict[str, Any]:
    with GgufFile.open(path) as file:
        return config_entries(file)


def gguf_tokenizer(path: Path) -> TokenizerParts:
    """The tokenizer in the metadata of a GGUF file. Raises ModelLoadError if they are missing, damaged or not supported."""
    with GgufFile.open(path) as file:
        return tokenizer_parts(file.metadata, str(path))


def gguf_weights(path: Path) -> tuple[GgufWeights, list[Path]]:
    """The weights of a GGUF file, and the files that have them. Raises ModelLoadError if a tensor has no place in the model."""
    file = GgufFile.open(path)
    return GgufWeights(file, config_entries(file)), file.paths
