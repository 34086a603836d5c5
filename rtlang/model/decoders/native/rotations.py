"""Rotation tables of the native decoder, one pair for each rotary embedding of a model.

Sources: Su et al. 2021 (rotary embedding), Peng et al. 2023 (YaRN), Ding et al. 2024 (LongRoPE).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from rtlang.model.loading.layer_table import RopeConfig

_FIRST_LEN = 4096  # initial length of the tables; doubled for longer sequences


class Rotations:
    """Tables of the rotary embeddings of all layers, which grow with the longest sequence.

    Args:
        ropes: of each layer, None for none; equal ones share their tables.
        head_dim: elements of a head.
        device: of the tables.
        length: of the tables at first, in tokens.
    """

    def __init__(
        self, ropes: Sequence[RopeConfig | None], head_dim: int, device: torch.device, length: int = _FIRST_LEN
    ) -> None:
        self._ropes, self._head_dim, self._device = tuple(ropes), head_dim, device
        self.num_positions = 0
        self._tables: list[tuple[Tensor, Tensor]] = []
        self.reserve(length)

    def reserve(self, longest: int) -> None:
        """Make the tables long enough for sequences of `longest` tokens."""
        if longest <= self.num_positions:
            return
        made: dict[RopeConfig | None, tuple[Tensor, Tensor]] = {}
        for rope in self._ropes:
            if rope is not None and rope not in made:
                cos, sin = rope_tables(rope, self._head_dim, longest)
                made[rope] = cos.to(self._device), sin.to(self._device)
        if None in self._ropes:  # by an angle of 0, in as many lanes as elsewhere
            half = max((cos.shape[1] for cos, _ in made.values()), default=self._head_dim // 2)
            cos = torch.ones((longest, half), device=self._device)
            made[None] = cos, torch.zeros_like(cos)
        self._tables = [made[rope] for rope in self._ropes]  # a new object whenever addresses change
        self.num_positions = longest

    def up_to(self, longest: int) -> Sequence[tuple[Tensor, Tensor]]:
        """Cosines and sines of each layer for sequences of up to `longest` tokens; the same object until the tables grow."""
        if longest > self.num_positions:
            self.reserve(2 * longest)
        return self._tables


def rope_tables(rope: RopeConfig, head_dim: int, max_len: int) -> tuple[Tensor, Tensor]:
    """Cosine and sine of every angle: float32 [max_len, half] each; element i rotates lanes i and i + half of the rotated ones."""
    dim = head_dim if rope.rotary_dim is None else rope.rotary_dim
    # Computed in float32, like the published checkpoints: the rounding of frequencies times long positions is part of the model.
    frequencies = 1.0 / rope.theta ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim)
    if rope.kind == "linear":
        frequencies = frequencies / rope.factor
    elif rope.kind == "llama3":
        frequencies = _llama3_frequencies(rope, frequencies)
    elif rope.kind == "yarn":
        frequencies = _yarn_frequencies(rope, frequencies, dim)
    elif rope.kind == "longrope":
        frequencies = frequencies / torch.tensor(rope.short_factors)
    angles = torch.arange(max_len, dtype=torch.float32)[:, None] * frequencies
    return angles.cos() * rope.attention_factor, angles.sin() * rope.attention_factor


def _llama3_frequencies(rope: RopeConfig, frequencies: Tensor) -> Tensor:
    """Stretch long wavelengths by `factor`, keep short ones, and interpolate in between."""
    turns = rope.original_max_position_embeddings * frequencies / (2 * math.pi)  # full turns within the original length
    blend = ((turns - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor)).clamp(0.0, 1.0)
    return blend * frequencies + (1.0 - blend) * frequencies / rope.factor


def _yarn_frequencies(rope: RopeConfig, frequencies: Tensor, dim: int) -> Tensor:
    """Keep pairs that turn more than `beta_fast` times within the original length, stretch slow ones, and interpolate by index."""

    def pair_that_turns(count: float) -> float:
        turns = rope.original_max_position_embeddings / (count * 2 * math.pi)
        return dim * math.log(turns) / (2 * math.log(rope.theta))

    low, high = pair_that_turns(rope.beta_fast), pair_that_turns(rope.beta_slow)
    if rope.truncates:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    high += 0.001 if low == high else 0.0
    blend = ((torch.arange(dim // 2, dtype=torch.float32) - low) / (high - low)).clamp(0.0, 1.0)
    return frequencies / rope.factor * blend + frequencies * (1.0 - blend)
