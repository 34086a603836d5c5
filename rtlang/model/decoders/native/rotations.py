"""Rotation tables of the native decoder, one pair for each rotary embedding of a model.

Source: Su et al. 2021 (rotary embedding).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor

from rtlang.model.loading.layer_table import RopeConfig

_FIRST_LEN = 4096  # initial length of the tables; doubled for longer sequences


class Rotations:
    """Tables of several rotary embeddings, which grow with the longest sequence.

    Args:
        ropes: the embeddings; equal ones share their tables.
        head_dim: elements of a head.
        device: of the tables.
        length: of the tables at first, in tokens.
    """

    def __init__(
        self, ropes: Iterable[RopeConfig], head_dim: int, device: torch.device, length: int = _FIRST_LEN
    ) -> None:
        self._ropes, self._head_dim, self._device = tuple(dict.fromkeys(ropes)), head_dim, device
        self.num_positions = 0
        self._tables: dict[RopeConfig, tuple[Tensor, Tensor]] = {}
        self.reserve(length)

    def reserve(self, longest: int) -> None:
        """Make the tables long enough for sequences of `longest` tokens."""
        if longest <= self.num_positions:
            return
        for rope in self._ropes:
            cos, sin = rope_tables(rope, self._head_dim, longest)
            self._tables[rope] = cos.to(self._device), sin.to(self._device)
        self.num_positions = longest

    def up_to(self, longest: int) -> dict[RopeConfig, tuple[Tensor, Tensor]]:
        """Cosines and sines of each embedding, for sequences of up to `longest` tokens."""
        if longest > self.num_positions:
            self.reserve(2 * longest)
        return self._tables


def rope_tables(rope: RopeConfig, head_dim: int, max_len: int) -> tuple[Tensor, Tensor]:
    """Cosine and sine of every angle: float32 [max_len, head_dim // 2] each; element i rotates lanes i and i + head_dim // 2."""
    # Computed in float32, like the published checkpoints: the rounding of frequencies times long positions is part of the model.
    frequencies = 1.0 / rope.theta ** (torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim)
    if rope.kind == "linear":
        frequencies = frequencies / rope.factor
    elif rope.kind == "llama3":
        frequencies = _llama3_frequencies(rope, frequencies)
    angles = torch.arange(max_len, dtype=torch.float32)[:, None] * frequencies
    return angles.cos(), angles.sin()


def _llama3_frequencies(rope: RopeConfig, frequencies: Tensor) -> Tensor:
    """Stretch long wavelengths by `factor`, keep short ones, and interpolate in between."""
    turns = rope.original_max_position_embeddings * frequencies / (2 * math.pi)  # full turns within the original length
    blend = ((turns - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor)).clamp(0.0, 1.0)
    return blend * frequencies + (1.0 - blend) * frequencies / rope.factor
