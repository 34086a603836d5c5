"""Small GGUF files, written by the `gguf` package, for tests; and what their weights are, according to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from gguf.constants import GGMLQuantizationType, GGUFValueType
from numpy.typing import NDArray

from rtlang.model.loading.gguf.block_types import BLOCK_TYPES

QUANTIZED = sorted(each.name for each in BLOCK_TYPES.values() if each.format is not None)
"""Names of the types of blocks."""
NUMBERS = sorted(each.name for each in BLOCK_TYPES.values() if each.dtype is not None)
"""Names of the types of numbers."""
_FLOAT16S = {  # where float16 scales are in a block
    "Q4_0": [0],
    "Q4_1": [0, 2],
    "Q5_0": [0],
    "Q5_1": [0, 2],
    "Q8_0": [0],
    "Q2_K": [80, 82],
    "Q3_K": [108],
    "Q4_K": [0, 2],
    "Q5_K": [0, 2],
    "Q6_K": [208],
    "IQ4_NL": [0],
    "IQ4_XS": [0],
}


@dataclass(frozen=True)
class StoredTensor:
    """A tensor as a file stores it.

    Attributes:
        kind: name of its type.
        data: numbers; or uint8, of which the last dimension has the bytes of a row.
    """

    kind: str
    data: NDArray[Any]

    @property
    def values(self) -> NDArray[np.float32]:
        """The numbers, or the dequantized weights, [.., out, in]."""
        found: NDArray[np.float32] = gguf.quants.dequantize(self.data, GGMLQuantizationType[self.kind])
        return found


def stored(kind: str, values: NDArray[np.float32], seed: int = 0) -> StoredTensor:
    """Values [.., out, in] in a type: quantized if the package can do that, else random weights about as large as them."""
    try:
        return StoredTensor(kind, gguf.quants.quantize(values.astype(np.float32), GGMLQuantizationType[kind]))
    except NotImplementedError:
        return random_blocks(kind, values.shape, seed, size=float(values.std()))


def random_blocks(kind: str, shape: tuple[int, ...], seed: int = 0, size: float = 0.02) -> StoredTensor:
    """Random weights [.., out, in] of a type of blocks, with a standard deviation of about `size`."""
    found = any_blocks(kind, shape, seed)
    blocks = found.data.reshape(-1, gguf.constants.GGML_QUANT_SIZES[GGMLQuantizationType[kind]][1])
    _set_scales(kind, blocks, 1.0)
    _set_scales(kind, blocks, size / float(found.values.std()))
    return found


def _set_scales(kind: str, blocks: NDArray[np.uint8], size: float) -> None:
    """Change the scales of blocks to half of `size` or more, up to `size`."""
    generator = np.random.default_rng(0)
    for start in _FLOAT16S.get(kind, []):
        scales = (generator.uniform(0.5, 1, len(blocks)) * size).astype(np.float16)
        blocks[:, start : start + 2] = scales[:, None].view(np.uint8)
    if kind == "MXFP4":  # exponents of 2
        blocks[:, 0] = np.clip(127 + np.round(np.log2(size)), 0, 254)
    if kind == "NVFP4":  # unsigned float8 e4m3, of 8 steps to a power of 2
        blocks[:, :4] = np.clip(56 + 8 * np.round(np.log2(size)) - generator.integers(0, 8, (len(blocks), 4)), 1, 126)


def any_blocks(kind: str, shape: tuple[int, ...], seed: int = 0) -> StoredTensor:
    """Weights [.., out, in] of random bytes: scales may be infinite, NaN or of any size."""
    block, block_bytes = gguf.constants.GGML_QUANT_SIZES[GGMLQuantizationType[kind]]
    row = shape[-1] // block * block_bytes
    data = np.random.default_rng(seed).integers(0, 256, (*shape[:-1], row), dtype=np.uint8)
    return StoredTensor(kind, data)


def write_gguf(
    path: Path,
    tensors: Mapping[str, Any],
    metadata: Mapping[str, Any] | None = None,
    *,
    alignment: int | None = None,
    tensors_per_file: int = 0,
) -> list[Path]:
    """Write a file, or several if it is to be split, and return their paths.

    Args:
        tensors: `StoredTensor`, or arrays [.., out, in] of numbers, which are stored in their dtype.
        metadata: integers become uint32 (int32 if negative or in a list, uint64 if large), floats float32; the architecture is `llama` if
            not given.
        tensors_per_file: 0 for one file.
    """
    metadata = dict(metadata or {})
    writer = gguf.GGUFWriter(path, metadata.pop("general.architecture", "llama"), split_max_tensors=tensors_per_file)
    if alignment is not None:
        writer.add_custom_alignment(alignment)
    for key, value in metadata.items():
        sub_type = _value_type(value) if isinstance(value, list) else None
        writer.add_key_value(key, value, _value_type(value) if sub_type is None else GGUFValueType.ARRAY, sub_type)
    for name, tensor in tensors.items():
        if isinstance(tensor, StoredTensor):
            writer.add_tensor(name, tensor.data, raw_dtype=GGMLQuantizationType[tensor.kind])
        else:
            writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    paths: list[Path] = writer.format_shard_names(path)
    writer.close()
    return paths


def _value_type(value: Any) -> GGUFValueType:
    """The type of a value, or of all items of a list."""
    items = value if isinstance(value, list) else [value]
    first = items[0]
    if isinstance(first, bool):
        return GGUFValueType.BOOL
    if isinstance(first, int):
        if min(items) < 0 or (isinstance(value, list) and max(items) < 1 << 31):
            return GGUFValueType.INT32
        return GGUFValueType.UINT32 if max(items) < 1 << 32 else GGUFValueType.UINT64
    return GGUFValueType.FLOAT32 if isinstance(first, float) else GGUFValueType.STRING
