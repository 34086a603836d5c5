"""Finds the files of a checkpoint that hold its weights, and names the content of a folder without them.

Works on names, so that a repository on a hub is judged before anything of it is downloaded. Of a directory, only safetensors in the layout
of transformers are loaded: the files of the index, or one file. GGUF files are named one by one, or found by gguf/model_files.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection
from fnmatch import fnmatch
from pathlib import Path

from rtlang.contract.errors import ModelLoadError

INDEX = "model.safetensors.index.json"
ADAPTER_CONFIG = "adapter_config.json"
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
_NO_WEIGHTS = re.compile(r"training_args\.|optimizer\.|scheduler\.|scaler\.|rng_state|openvino_")
_OTHER_FORMATS = {
    "*.h5": "TensorFlow",
    "*.msgpack": "Flax",
    "*.npz": "MLX or NumPy",
    "*.onnx": "ONNX",
    "*.tflite": "TensorFlow Lite",
    "*.mlpackage": "Core ML",
    "*.engine": "TensorRT",
    "openvino_model.xml": "OpenVINO",
}
_LARGE_FILE_POINTER = b"version https://git-lfs"


def weight_files(directory: Path) -> list[Path]:
    """The safetensors files of a checkpoint, in shard order.

    Raises:
        ModelLoadError: there are none, they are in another format, or shards are missing; names the files.
    """
    names = names_in(directory)
    try:
        files = [
            directory / name
            for name in weight_names(names, lambda name: (directory / name).read_text(encoding="utf-8"))
        ]
    except ValueError as error:
        raise ModelLoadError(str(directory), str(error)) from None
    for path in files:
        if _begins_with(path, _LARGE_FILE_POINTER):
            raise ModelLoadError(
                str(directory), f"{path.name} is a pointer of git-lfs and holds no weights; run git lfs pull there"
            )
    return files


def names_in(directory: Path) -> list[str]:
    """Names of the files in a directory; empty if it cannot be read."""
    try:
        return sorted(path.name for path in directory.iterdir() if path.is_file())
    except OSError:
        return []


def weight_names(names: Collection[str], read: Callable[[str], str]) -> list[str]:
    """The files of a checkpoint that hold its weights, in shard order.

    Args:
        names: its files, relative to the checkpoint; files in subfolders are never used.
        read: returns the text of a file.
    Raises:
        ValueError: there are none, they are in another format, or shards are missing; names the files.
    """
    if INDEX in names:
        shards = _shards(read)
        missing = [name for name in shards if name not in names]
        if missing:
            raise ValueError(f"{len(missing)} of {len(shards)} shards are missing: {', '.join(missing[:4])}")
        return shards
    found = _own_weights(names)
    if "model.safetensors" in found:
        return ["model.safetensors"]
    if len(found) == 1:
        return found
    if found:
        raise ValueError(f"{len(found)} safetensors files but no {INDEX} to select from them")
    raise ValueError(other_format(names, read) or "no weights found: model.safetensors is missing")


def config_obstacle(names: Collection[str], read: Callable[[str], str]) -> str:
    """Why a checkpoint without config.json is none; arguments as for `weight_names`."""
    if INDEX not in names and not _own_weights(names) and (found := other_format(names, read)):
        return found
    inside = sorted({name.rpartition("/")[0] for name in names if name.endswith("/config.json")})
    if "model_index.json" in names:
        return "it is a pipeline of diffusers (model_index.json), not a language model"
    if any(name.startswith("snapshots/") for name in names):
        return "it is a folder of the hub's cache; pass the name owner/name, or the folder of a revision: " + ", ".join(
            inside[:3]
        )
    if inside:
        return f"config.json is missing; subfolders that contain one: {', '.join(inside[:3])}"
    if not names:
        return "config.json is missing: the directory is empty"
    return "config.json is missing; a model directory must contain it"


def other_format(names: Collection[str], read: Callable[[str], str]) -> str | None:
    """The format of a checkpoint without safetensors of its own, and what to do; None if none is recognised."""
    root = sorted(name for name in names if "/" not in name)
    if ADAPTER_CONFIG in root or any(fnmatch(name, "adapter_model.*") for name in root):
        return _adapter(read)
    if "params.json" in root and any(name.startswith("consolidated.") for name in root):
        return (
            "its weights are in the layout of the model's authors (params.json, consolidated.*); pass the checkpoint in the layout of "
            "transformers (config.json, model.safetensors)"
        )
    ggufs = [name for name in root if name.lower().endswith(".gguf")]
    if ggufs:
        return f"its weights are GGUF ({_shown(ggufs)}); pass one of these files: on a hub owner/name:{ggufs[0]}"
    pickles = [name for pattern in _PICKLES for name in root if fnmatch(name, pattern) and not _NO_WEIGHTS.match(name)]
    if pickles:
        return (
            f"the weights are pickled ({_shown(pickles)}), and unpickling can run code; convert them to safetensors where you trust "
            "them, with save_pretrained of transformers, or use a revision that has them (on a hub often owner/name@refs/pr/N)"
        )
    for pattern, kind in _OTHER_FORMATS.items():
        found = sorted(name for name in names if fnmatch(name.rpartition("/")[2], pattern))
        if found:
            return (
                f"its weights are in the format of {kind} ({_shown(found)}); only safetensors and GGUF files are loaded"
            )
    return None


def _own_weights(names: Collection[str]) -> list[str]:
    """Safetensors files that may hold all weights: neither an adapter nor the layout of the model's authors."""
    found = sorted(name for name in names if name.endswith(".safetensors") and "/" not in name)
    has_params = "params.json" in names
    return [
        name
        for name in found
        if not name.startswith("adapter_") and not (has_params and name.startswith("consolidated"))
    ]


def _shards(read: Callable[[str], str]) -> list[str]:
    try:
        names = sorted({str(name) for name in json.loads(read(INDEX))["weight_map"].values()})
    except (ValueError, KeyError, TypeError, AttributeError, OSError, RecursionError) as error:
        raise ValueError(f"{INDEX} cannot be read: {error!r}") from None
    if any(Path(name).name != name for name in names):
        raise ValueError(f"{INDEX} points outside the directory")
    return names


def _adapter(read: Callable[[str], str]) -> str:
    try:
        base = json.loads(read(ADAPTER_CONFIG)).get("base_model_name_or_path")
    except (ValueError, AttributeError, OSError, RecursionError):
        base = None
    of = f" of {base!r}" if isinstance(base, str) and base else ""
    return (
        f"it is an adapter (LoRA){of}, not a whole model; adapters are not applied: merge it with merge_and_unload() of peft, and pass the "
        "directory of the merged model"
    )


def _shown(names: Collection[str]) -> str:
    first = min(names)
    return first if len(names) == 1 else f"{first} and {len(names) - 1} more"


def _begins_with(path: Path, start: bytes) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(start)) == start
    except OSError:
        return False
