"""The interface to the weights of a checkpoint."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from rtlang_kernels.contract.low_bit import LowBitWeight


class WeightSource(Protocol):
    """A source of weights: files, or a random generator."""

    def tensor(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """The named tensor in the decoder's dtype. Raises ModelLoadError if it is missing or has another shape."""

    def int8(self, name: str, shape: tuple[int, ...]) -> tuple[Tensor, Tensor] | None:
        """The named matrix as int8 with a float32 scale per row, if the layer computes with int8 inputs as well; else None."""

    def low_bit(self, name: str, shape: tuple[int, ...]) -> LowBitWeight | None:
        """The named matrix as it is stored, if a layer computes with its codes; None if `tensor` has it.

        Raises:
            ModelLoadError: it is missing or has another shape.
        """

    def has(self, name: str) -> bool:
        """Whether an optional tensor exists."""
