"""The tensors of safetensors files as they are stored, by the names that a model of text alone gives them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

import safetensors
from torch import Tensor

from rtlang.contract.errors import ModelLoadError
from rtlang.model.loading.published import text_readers

_BITS = {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8}
_BITS |= {"I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32, "I64": 64, "U64": 64, "F64": 64}
_BITS |= {"C64": 64}


class StoredTensors:
    """The tensors of some safetensors files, memory-mapped.

    Args:
        is_multimodal: keep only the text half of a multimodal model.
    Raises:
        ModelLoadError: a file is not readable safetensors.
    """

    def __init__(self, directory: Path, files: Iterable[Path], *, is_multimodal: bool = False) -> None:
        self._reader_of: dict[str, Any] = {}
        for path in files:
            try:
                reader: Any = safetensors.safe_open(str(path), framework="pt")
            except (safetensors.SafetensorError, OSError) as error:
                raise ModelLoadError(
                    str(directory), f"{path.name} is not a readable safetensors file: {error}"
                ) from None
            self._reader_of.update(text_readers(reader) if is_multimodal else dict.fromkeys(reader.keys(), reader))

    def names(self) -> Collection[str]:
        """Names of all tensors."""
        return self._reader_of.keys()

    def __contains__(self, name: str) -> bool:
        return name in self._reader_of

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor."""
        return tuple(self._slice(name).get_shape())

    def dtype(self, name: str) -> str:
        """The dtype of a tensor as safetensors names it, such as BF16."""
        return str(self._slice(name).get_dtype())

    def num_bytes(self, name: str) -> int:
        """Bytes of a tensor in its file."""
        return math.prod(self.shape(name)) * _BITS.get(self.dtype(name), 8) // 8

    def tensor(self, name: str) -> Tensor:
        """A tensor, backed by its mapped file.

        Raises:
            ValueError: torch lacks its dtype, or the tensor does not exist.
        """
        found: Tensor = self._read(name, lambda reader: reader.get_tensor(name))
        return found

    def _slice(self, name: str) -> Any:
        return self._read(name, lambda reader: reader.get_slice(name))

    def _read(self, name: str, read: Callable[[Any], Any]) -> Any:
        if name not in self._reader_of:
            raise ValueError(f"lacks {name}")
        try:
            return read(self._reader_of[name])
        except (safetensors.SafetensorError, RuntimeError, ValueError) as error:
            raise ValueError(f"cannot be read: {error}") from None
