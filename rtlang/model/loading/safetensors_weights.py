"""The weights of a safetensors checkpoint, quantized or not; implements `CheckpointWeights`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from pathlib import Path

import torch
from torch import Tensor

from rtlang.contract.errors import ModelLoadError
from rtlang.model.loading.quantized.matrix import Matrix
from rtlang.model.loading.quantized.schemes import quantizes_inputs, scheme_of
from rtlang.model.loading.stored_tensors import StoredTensors
from rtlang_kernels.contract.low_bit import LowBitWeight, ScaleType, WeightFormat

_INT8_ROWS = WeightFormat(8, scales=ScaleType.NONE, zero=128)
_ADVICE = "only floats are supported, and codes that config.json describes in a quantization_config"
_BESIDE_A_WEIGHT = re.compile(
    r"\.(weight_[a-z_0-9]+|qweight|qzeros|scales|g_idx|SCB)$|_(blocks|scales)$|\.weight\.[a-z_]+"
)


def is_beside_a_weight(name: str) -> bool:
    """Whether a tensor modifies a weight, as scales and zero points do; ignoring it would give wrong weights."""
    return _BESIDE_A_WEIGHT.search(name) is not None


class SafetensorsWeights:
    """The weights of safetensors files.

    Int8 weights with scales of whole rows are multiplied out unless config.json asks for int8 inputs, which lose as much as the weights.

    Args:
        quantization: the supported `quantization_config` of the checkpoint; None if there is none.
        is_multimodal: read only the text half, under the names that a model of text alone has.
    Raises:
        ModelLoadError: a file is not readable safetensors, or a quantized matrix is spelled in an unknown way; names it.
    """

    def __init__(
        self, directory: Path, files: Iterable[Path], quantization: object = None, *, is_multimodal: bool = False
    ) -> None:
        self._directory = directory
        self._stored = StoredTensors(directory, files, is_multimodal=is_multimodal)
        self._matrices: dict[str, Matrix] = {}
        left = dict.fromkeys(self._stored.names())
        scheme, self._quantizes_inputs = scheme_of(quantization), quantizes_inputs(quantization)
        if scheme is not None:
            try:
                self._matrices = scheme.matrices(self._stored)
            except ValueError as error:
                raise ModelLoadError(str(directory), f"tensor {error}") from None
            parts = {part for matrix in self._matrices.values() for part in matrix.parts}
            left = {name: None for name in left if name not in parts and not scheme.is_dropped(name)}
        self._names = {**dict.fromkeys(self._matrices), **left}
        for name in left:
            kind = self._stored.dtype(name)
            if name.endswith(".weight") and not kind.startswith(("F", "BF")):
                raise self._failure(name, ValueError(f"is {kind}; {_ADVICE}"))
            if name.endswith(".weight") and kind.startswith("F8") and scheme is not None:
                raise self._failure(
                    name, ValueError(f"is {kind} without scales; expected a tensor of scales beside it")
                )

    def names(self) -> Collection[str]:
        """See `CheckpointWeights`."""
        return self._names.keys()

    def shape(self, name: str) -> tuple[int, ...]:
        """See `CheckpointWeights`."""
        matrix = self._matrices.get(name)
        return self._stored.shape(name) if matrix is None else matrix.shape

    def num_bytes(self, name: str) -> int:
        """See `CheckpointWeights`."""
        matrix = self._matrices.get(name)
        return self._stored.num_bytes(name) if matrix is None else matrix.num_bytes()

    def low_bit(self, name: str) -> LowBitWeight | None:
        """See `CheckpointWeights`."""
        matrix = self._matrices.get(name)
        if matrix is None:
            return None
        try:
            found = matrix.low_bit()
        except ValueError as error:
            raise self._failure(name, error) from None
        is_int8 = found is not None and found.format == _INT8_ROWS
        return None if is_int8 and not self._quantizes_inputs else found

    def tensor(self, name: str, dtype: torch.dtype) -> Tensor:
        """See `CheckpointWeights`."""
        matrix = self._matrices.get(name)
        try:
            if matrix is not None:
                return matrix.floats(dtype)
            found = self._stored.tensor(name)
            if not found.is_floating_point():
                raise ValueError(f"is {found.dtype}; {_ADVICE}")
        except ValueError as error:
            raise self._failure(name, error) from None
        return found.to(dtype)

    def _failure(self, name: str, error: ValueError) -> ModelLoadError:
        return ModelLoadError(str(self._directory), f"tensor {name} {error}")
