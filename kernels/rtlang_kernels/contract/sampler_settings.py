"""Sampling options as plain arrays, checked once for all backends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

GREEDY_TEMPERATURE = np.float32(1e-5)  # below it, the rounding of x / temperature swallows the noise
MAX_INT32 = np.iinfo(np.int32).max


@dataclass(frozen=True, slots=True)
class SamplerSettings:
    """Sampling options per row of logits. Arrays are contiguous, with one entry per row.

    Attributes:
        temperature, top_p, min_p: float32.  top_k, choices, mask_rows: int32.  seeds: uint64.  steps: int64.
        bitmask: int32 [num_masks, ceil(vocab_size / 32)], or None if no row is masked.
    """

    temperature: NDArray[np.float32]
    top_k: NDArray[np.int32]
    top_p: NDArray[np.float32]
    min_p: NDArray[np.float32]
    seeds: NDArray[np.uint64]
    choices: NDArray[np.int32]
    steps: NDArray[np.int64]
    bitmask: NDArray[np.int32] | None
    mask_rows: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class RowSettings:
    """Settings of rows in the form of the GPU kernels, the same in every step. Arrays have one entry per row.

    Attributes:
        kinds, top_k: int32; a kind is greedy, sampled or filtered.  factors, top_p, min_p: float32.  keys: uint64, of the noise.
    """

    kinds: NDArray[np.int32]
    factors: NDArray[np.float32]
    keys: NDArray[np.uint64]
    top_k: NDArray[np.int32]
    top_p: NDArray[np.float32]
    min_p: NDArray[np.float32]

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """The arrays, in the order of the arguments."""
        return self.kinds, self.factors, self.keys, self.top_k, self.top_p, self.min_p


def checked_settings(
    num_rows: int,
    vocab_size: int,
    temperature: Any,
    top_k: Any,
    top_p: Any,
    min_p: Any,
    seeds: Any,
    choices: Any,
    steps: Any,
    bitmask: Any,
    mask_rows: Any,
) -> SamplerSettings:
    """Convert the arguments of `ops.sample` to arrays.

    Raises:
        ValueError: an argument has a wrong shape; names it.
    """
    if bitmask is None or mask_rows is None:
        masks, rows = None, np.full(num_rows, -1, dtype=np.int32)
    else:
        masks, rows = checked_bitmask(num_rows, vocab_size, bitmask, mask_rows)
    settings = SamplerSettings(
        temperature=np.ascontiguousarray(temperature, dtype=np.float32),
        top_k=np.minimum(np.asarray(top_k), MAX_INT32).astype(np.int32),
        top_p=np.ascontiguousarray(top_p, dtype=np.float32),
        min_p=np.ascontiguousarray(min_p, dtype=np.float32),
        seeds=np.ascontiguousarray(seeds, dtype=np.uint64),
        choices=np.ascontiguousarray(choices, dtype=np.int32),
        steps=np.ascontiguousarray(steps, dtype=np.int64),
        bitmask=masks,
        mask_rows=rows,
    )
    for name in ("temperature", "top_k", "top_p", "min_p", "seeds", "choices", "steps"):
        shape = getattr(settings, name).shape
        if shape != (num_rows,):
            raise ValueError(f"{name} has shape {list(shape)}: expected [{num_rows}]")
    return settings


def checked_bitmask(
    num_rows: int, vocab_size: int, bitmask: Any, mask_rows: Any
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Convert a packed mask table, and the number of the mask row for each row of logits, to int32 arrays.

    Raises:
        ValueError: a shape or a row number is wrong; names the argument.
    """
    masks = np.ascontiguousarray(bitmask, dtype=np.int32)
    rows = np.ascontiguousarray(mask_rows, dtype=np.int32)
    if masks.ndim != 2 or masks.shape[1] * 32 < vocab_size:
        raise ValueError(f"bitmask has shape {list(masks.shape)}: expected [num_masks, {(vocab_size + 31) // 32}]")
    if rows.shape != (num_rows,):
        raise ValueError(f"mask_rows has shape {list(rows.shape)}: expected [{num_rows}]")
    if num_rows and int(rows.max()) >= len(masks):
        raise ValueError(
            f"mask_rows = {int(rows.max())}: expected indices below {len(masks)}, the number of rows of the bitmask"
        )
    return masks, rows
