"""Writes a checkpoint whose linear layers are rounded to 4 or 8 bits, in the pack-quantized layout of compressed-tensors.

Matrices are read, rounded and written one after the other; shards keep the memory small. Embeddings, the head, routers, towers for
images and sound, and whatever is not a matrix with whole groups stay as they are; config.json lists the matrices among them.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from rtlang.model.layers.weight_source import CheckpointWeights
from rtlang.model.loading.model_config import MODELOPT_CONFIG
from rtlang.model.quantization.rounding import Rounding, rounded
from rtlang_kernels.contract.low_bit import HeldWeight
from rtlang_kernels.reference.low_bit import exact_weight

SHARD_BYTES = 1 << 30
_WORD_BITS = 32
_NOT_LINEAR = (
    *("embed", "wte", "wpe", "norm", "lm_head", "router", "rotary"),
    *("vision", "visual", "audio", "image", "multi_modal", "mm_projector"),  # towers, whose accuracy text does not show
)
_ROUTERS = (".gate.weight", ".shared_expert_gate.weight", ".gate_weight")
_ROWS = 1 << 22  # elements of a matrix whose error is computed at a time

Adjust = Callable[[str, Tensor], Tensor]
"""Changes a weight before it is rounded or written."""


@dataclass(frozen=True, slots=True)
class MatrixReport:
    """What rounding did to one matrix.

    Attributes:
        name: of the weight.  shape: [out, in].
        error: norm of the difference over the norm of the weight; with importance, inputs count by its root.
        num_bytes: of codes, scales and zero points.
    """

    name: str
    shape: tuple[int, int]
    error: float
    num_bytes: int


def is_rounded(name: str, shape: tuple[int, ...], rounding: Rounding) -> bool:
    """Whether a weight is the matrix of a linear layer with whole groups of inputs."""
    return _is_matrix(name, shape) and shape[1] % rounding.group == 0


def _is_matrix(name: str, shape: tuple[int, ...]) -> bool:
    is_other = any(part in name for part in _NOT_LINEAR) or name.endswith(_ROUTERS)
    return len(shape) == 2 and name.endswith(".weight") and not is_other


def write_rounded(
    weights: CheckpointWeights,
    out: Path,
    rounding: Rounding,
    *,
    dtype: torch.dtype = torch.bfloat16,
    importance: Mapping[str, Tensor] | None = None,
    adjust: Adjust | None = None,
    on_progress: Callable[[int], None] = lambda num_bytes: None,
) -> list[MatrixReport]:
    """Write the weights of a checkpoint to a directory that exists; returns what was rounded, in the order of the names.

    Args:
        dtype: of everything that is not rounded.
        importance: by the name of a weight, how much the squared error of each of its inputs counts.
        on_progress: called with the bytes that were read.
    Raises:
        ModelLoadError: a weight cannot be read.
        OSError: a file cannot be written.
    """
    reports: list[MatrixReport] = []

    def tensors() -> Iterator[tuple[str, Tensor]]:
        for name in sorted(weights.names(), key=_order):
            shape = weights.shape(name)
            weight = weights.tensor(name, torch.float32 if is_rounded(name, shape, rounding) else dtype)
            if adjust is not None:
                weight = adjust(name, weight)
            on_progress(weights.num_bytes(name))
            if not is_rounded(name, shape, rounding):
                yield name, weight
                continue
            counted = None if importance is None else importance.get(name)
            found = rounded(weight, rounding, counted)
            stored = dict(stored_tensors(name, found))
            num_bytes = sum(each.nbytes for each in stored.values())
            reports.append(MatrixReport(name, found.shape, relative_error(weight, found, counted), num_bytes))
            yield from stored.items()

    _write_shards(tensors(), out)
    return reports


def write_config(config: Mapping[str, Any], out: Path, rounding: Rounding, weights: CheckpointWeights) -> None:
    """Write the config.json of a rounded checkpoint."""
    left = [
        name.removesuffix(".weight")
        for name in sorted(weights.names(), key=_order)
        if (_is_matrix(name, weights.shape(name)) and not is_rounded(name, weights.shape(name), rounding))
        or name.endswith(_ROUTERS)
    ]
    group = {
        "targets": ["Linear"],
        "weights": {
            "num_bits": rounding.bits,
            "type": "int",
            "symmetric": not rounding.has_zero_points,
            "strategy": "group",
            "group_size": rounding.group,
            "dynamic": False,
        },
        "input_activations": None,
        "output_activations": None,
    }
    quantization = {
        "quant_method": "compressed-tensors",
        "format": "pack-quantized",
        "quantization_status": "compressed",
        "config_groups": {"group_0": group},
        "ignore": ["lm_head", *left],
        "kv_cache_scheme": None,
    }
    content = {**config, "quantization_config": quantization}
    (out / "config.json").write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def copy_other_files(source: Path, out: Path) -> None:
    """Copy what a model directory has besides weights and config.json: tokenizer, templates, settings of generation, licenses."""
    weights = (".safetensors", ".bin", ".gguf", ".pt", ".pth", ".safetensors.index.json", ".onnx", ".h5", ".msgpack")
    for path in sorted(source.iterdir()):
        if path.is_file() and path.name not in ("config.json", MODELOPT_CONFIG) and not path.name.endswith(weights):
            shutil.copyfile(path, out / path.name)


def stored_tensors(name: str, weight: HeldWeight) -> Iterator[tuple[str, Tensor]]:
    """The tensors of a rounded weight in the pack-quantized layout: packed codes, scales, zero points, shape."""
    rows, bits = weight.held, weight.format.bits
    assert rows.scales is not None
    yield f"{name}_packed", packed_words(rows.codes, bits)
    yield f"{name}_scale", rows.scales
    if rows.zero_points is not None:
        yield f"{name}_zero_point", packed_words(rows.zero_points.T, bits).T.contiguous()
    yield f"{name}_shape", torch.tensor(weight.shape, dtype=torch.int64)


def packed_words(codes: Tensor, bits: int) -> Tensor:
    """Consecutive codes of the last dimension in int32 words, the first one in the lowest bits, padded with zeros."""
    per_word = _WORD_BITS // bits
    padded = torch.nn.functional.pad(codes, (0, -codes.shape[-1] % per_word))
    grouped = padded.reshape(*codes.shape[:-1], -1, per_word).to(torch.int64)
    words = (grouped << torch.arange(0, _WORD_BITS, bits)).sum(-1)
    return torch.where(words >= 1 << 31, words - (1 << 32), words).to(torch.int32)


def relative_error(weight: Tensor, found: HeldWeight, importance: Tensor | None) -> float:
    """See `MatrixReport.error`."""
    step, parts = max(1, _ROWS // weight.shape[1]), []
    for first in range(0, len(weight), step):
        exact, values = exact_weight(found, first, first + step), weight[first : first + step]
        squares = torch.stack([(exact - values.double()).square(), values.double().square()])
        parts.append((squares if importance is None else squares * importance.double()).sum((1, 2)))
    difference, size = torch.stack(parts).sum(0).tolist()
    return float((difference / size) ** 0.5) if size else 0.0


def _write_shards(tensors: Iterable[tuple[str, Tensor]], out: Path) -> None:
    """Write tensors to one file, or to several with an index."""
    held: dict[str, Tensor] = {}
    shards: list[tuple[Path, list[str]]] = []
    total = num_held = 0

    def write() -> None:
        path = out / f"part-{len(shards)}.safetensors"
        try:
            save_file(held, path, metadata={"format": "pt"})
        except SafetensorError as error:  # how the library reports a full disk
            raise OSError(f"{path.name} cannot be written: {error}") from None
        shards.append((path, list(held)))
        held.clear()

    for name, tensor in tensors:
        if held and num_held + tensor.nbytes > SHARD_BYTES:
            write()
            num_held = 0
        held[name] = tensor.contiguous()
        num_held += tensor.nbytes
        total += tensor.nbytes
    write()
    if len(shards) == 1:
        shards[0][0].rename(out / "model.safetensors")
        return
    weight_map = {}
    for number, (path, names) in enumerate(shards, start=1):
        file_name = f"model-{number:05}-of-{len(shards):05}.safetensors"
        path.rename(out / file_name)
        weight_map.update(dict.fromkeys(names, file_name))
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (out / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")


def _order(name: str) -> list[tuple[int, int, str]]:
    """Sorts layer 10 after layer 9."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in name.split(".")]
