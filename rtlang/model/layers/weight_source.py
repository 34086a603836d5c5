"""The interfaces to the weights of a checkpoint."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

import torch
from torch import Tensor

from rtlang_kernels.contract.low_bit import LowBitWeight


class CheckpointWeights(Protocol):
    """All weights of a checkpoint in any file format, by the names that transformers gives to those of a float checkpoint.

    A weight of few bits has the one name of its matrix, such as `model.layers.0.self_attn.q_proj.weight`; its scales and zero points have
    none. Experts are matrices of their own [out, in], whether or not files and models stack them:
    `model.layers.0.mlp.experts.7.down_proj.weight`, and either `gate_proj` and `up_proj` or `gate_up_proj`, in whose rows the two follow
    one another or take turns as in the model; or w1, w2 and w3. Biases of experts are the stacked tensors of a float checkpoint, such as
    `model.layers.0.mlp.experts.gate_up_proj_bias`.
    """

    def names(self) -> Collection[str]:
        """Names of all weights."""

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a weight: [out, in] of a matrix."""

    def num_bytes(self, name: str) -> int:
        """Bytes of a weight in the files, with its scales."""

    def low_bit(self, name: str) -> LowBitWeight | None:
        """A matrix as it is stored, if a layer can compute with its codes; else None."""

    def tensor(self, name: str, dtype: torch.dtype) -> Tensor:
        """A weight as floats of `dtype`, multiplied out if necessary. Raises ModelLoadError if it cannot be read."""


class WeightSource(Protocol):
    """A source of weights for the native decoder: a checkpoint, or a random generator."""

    def tensor(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """The named tensor in the decoder's dtype. Raises ModelLoadError if it is missing or has another shape."""

    def low_bit(self, name: str, shape: tuple[int, ...]) -> LowBitWeight | None:
        """The named matrix as it is stored, if a layer computes with its codes; None if `tensor` has it.

        Raises:
            ModelLoadError: it is missing or has another shape.
        """

    def has(self, name: str) -> bool:
        """Whether an optional tensor exists."""


def matrix(source: WeightSource, name: str, shape: tuple[int, int]) -> Tensor | LowBitWeight:
    """A matrix in few bits if it is stored so, else as floats."""
    found = source.low_bit(name, shape)
    return source.tensor(name, shape) if found is None else found
