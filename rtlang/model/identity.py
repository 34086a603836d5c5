"""A digest of what determines the outputs of a loaded model."""

from __future__ import annotations

import hashlib
from pathlib import Path

from rtlang.contract.config import RuntimeConfig
from rtlang.model.loader import model_directory
from rtlang.model.loading.gguf.container import GgufFile
from rtlang.model.loading.gguf.model_files import TOKENIZER_FILES, is_gguf
from rtlang.model.scripted.script_file import script_path

_SAMPLE_BYTES = 1 << 16
_GGUF_SAMPLE_BYTES = 1 << 24  # with the tokenizer and the chat template
_WEIGHTS = (".safetensors", ".gguf")
_SUFFIXES = (".json", ".jinja", ".safetensors", ".model", ".txt")


def model_identity(config: RuntimeConfig) -> str:
    """The name of the model and a digest of its files and number formats.

    Of files with weights the size, the first and the last bytes count, so that the digest of a large model takes milliseconds.
    """
    if (script := script_path(config.model)) is not None:
        return f"{script.name}@{hashlib.sha256(script.read_bytes()).hexdigest()[:24]}"
    directory = model_directory(config.model)
    number_formats = config.dtype, config.kv_dtype, config.linear_inputs
    found = hashlib.sha256(repr((*number_formats, config.decoder, config.device)).encode())
    if config.weights == "dummy":
        found.update(repr(config.weights_seed).encode())
    for path in _files(directory):
        if not path.is_file() or (path.suffix == ".safetensors" and config.weights == "dummy"):
            continue
        found.update(f"\0{path.name}\0{path.stat().st_size}\0".encode())
        _add_sample(found, path)
    return f"{Path(config.model).name}@{found.hexdigest()[:24]}"


def _files(directory: Path) -> list[Path]:
    """The files that may determine the outputs of a model: of a directory, or of a GGUF file."""
    if is_gguf(directory):
        with GgufFile.open(directory) as file:
            return [*file.paths, *(directory.parent / name for name in TOKENIZER_FILES)]
    return [path for path in sorted(directory.iterdir()) if path.suffix in _SUFFIXES]


def _add_sample(digest: hashlib._Hash, path: Path) -> None:
    size = path.stat().st_size
    with path.open("rb") as file:
        if path.suffix.lower() not in _WEIGHTS:
            digest.update(file.read())
            return
        digest.update(file.read(_SAMPLE_BYTES if path.suffix == ".safetensors" else _GGUF_SAMPLE_BYTES))
        file.seek(max(0, size - _SAMPLE_BYTES))
        digest.update(file.read(_SAMPLE_BYTES))
