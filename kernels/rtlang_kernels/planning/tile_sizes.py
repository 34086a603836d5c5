"""Tile sizes of GPU attention, as a table by processor and rectangle class.

There is no tuning at run time: kernels are compiled for the entries below and nothing else, and a test compiles every entry ahead of time
and fails on a register spill or on too much shared memory (`triton.aot`). A program holds BLOCK_M query lines (tokens x heads of one KV
head) and iterates over BLOCK_N keys at a time. Rectangles with few lines are memory bound and get a small tile, since work on missing lines
is wasted; wide ones re-read their keys once per tile.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache

import torch

SM_80, SM_90, SM_100, GFX942 = "sm_80", "sm_90", "sm_100", "gfx942"  # sm_100 has the tiles of sm_90
LINES = (16, 64, 128)  # largest number of query lines of an item, by rectangle class
FLOAT8_CAPABILITY = (8, 9)  # from which torch multiplies float8 matrices
LARGEST_GROUP = LINES[-1]  # query heads per KV head: the heads of one token must fit in one tile


@dataclass(frozen=True, slots=True)
class Tile:
    """Shape of one program: query lines, keys per iteration, warps, and depth of the load pipeline."""

    block_m: int
    block_n: int
    num_warps: int
    num_stages: int


@dataclass(frozen=True, slots=True)
class GpuProperties:
    """Properties of a processor that planning needs."""

    arch: str
    num_multiprocessors: int
    l2_bytes: int


PRETENDED: ContextVar[GpuProperties | None] = ContextVar("PRETENDED", default=None)
"""The processor of meta tensors while launches are recorded (`triton.aot.recording`); None otherwise."""


def gpu_properties(device: torch.device) -> GpuProperties:
    """Properties of a device. A CPU (interpreted kernels) counts as a small GPU, so that small cases are split as well."""
    pretended = PRETENDED.get()
    return pretended if pretended is not None and device.type == "meta" else _device_properties(device)


@cache
def _device_properties(device: torch.device) -> GpuProperties:
    if device.type != "cuda":
        return GpuProperties(SM_90, 4, 1 << 20)
    properties = torch.cuda.get_device_properties(device)
    if torch.version.hip is not None:
        arch = GFX942
    else:
        # From version 12 on, a multiprocessor has less than half the shared memory of 9 and 10, and the matrix instructions of 8.
        arch = SM_90 if 9 <= properties.major < 12 else SM_80
    return GpuProperties(arch, properties.multi_processor_count, properties.L2_cache_size)


def float8_product_obstacle(device: torch.device) -> str | None:
    """Why torch cannot multiply float8_e4m3fn matrices with a scale per row on a device, or None; the CPU can."""
    if device.type != "cuda":
        return None
    if torch.version.hip is not None:
        return "AMD GPUs before gfx950 have another float8 than the weights"
    found = torch.cuda.get_device_capability(device)
    if found >= FLOAT8_CAPABILITY:
        return None
    return (
        f"{torch.cuda.get_device_name(device)} has compute capability {found[0]}.{found[1]}, float8 products need 8.9"
    )


def power_of_two(size: int) -> int:
    """Round up to a power of two, at least 1."""
    return 1 << max(0, size - 1).bit_length()


def split_dim(size: int) -> tuple[int, int]:
    """Split a head dimension into one or two powers of two of at least 16 (the second is 0 if one is enough): 80 is 64 + 16, not 128."""
    low = max(16, 1 << size.bit_length() - 1)
    rest = max(0, size - low)
    return low, 0 if rest == 0 else max(16, 1 << (rest - 1).bit_length())


def reuses_keys(head_dim: int, v_head_dim: int, item_bytes: int) -> bool:
    """Whether a tile of keys serves as values that are the first elements of the keys (latent attention).

    They have to be a whole part of the tile. In float32, tiles of 512 elements would spill 2 KB of registers.
    """
    return split_dim(head_dim)[0] == v_head_dim and item_bytes == 2


def attention_tile(
    arch: str, lines_class: int, head_dim: int, v_head_dim: int, item_bytes: int, *, is_shared: bool = False
) -> Tile:
    """The tile for rectangles of a class (an index of LINES). The bytes of a key and its value limit the keys in a pipeline stage.

    If the registers cannot hold all lines of the class, several programs share them: block_m divides LINES[lines_class].

    Args:
        v_head_dim: 0 if tiles of keys serve as values, see `reuses_keys`.
        is_shared: whether the step has rectangles of a wider class. Then rectangles of this class are mostly short, and more programs per
            multiprocessor are worth more than long loads.
    """
    key_bytes = (sum(split_dim(head_dim)) + (sum(split_dim(v_head_dim)) if v_head_dim else 0)) * item_bytes
    is_wide, is_widest = key_bytes > 512, key_bytes > 1024
    most = 16 if item_bytes == 4 or (is_wide and arch == SM_80) else 64 if is_wide and arch == GFX942 else 128
    # On an H200, triton 3.6 compiled tiles of 64 and 128 lines to illegal memory accesses for head sizes 80 and 96, whose second part
    # has fewer than 64 dimensions. Tiles of 16 lines are right there.
    is_uneven = arch == SM_90 and 0 < split_dim(head_dim)[1] < 64
    if is_widest or is_uneven:
        most = 16
    block_m = min(LINES[lines_class], most)
    num_warps = 8 if block_m == 128 or (block_m == 64 and (is_wide or arch == SM_80)) or is_widest else 4
    block_n = 32 if is_wide or item_bytes == 4 or (arch == SM_80 and (key_bytes > 256 or block_m > 16)) else 64
    if is_widest and (item_bytes == 4 or arch == GFX942):
        block_n = 16
    num_stages = 3 if not is_wide and (arch == SM_90 or (arch == SM_80 and block_m < 64)) else 2
    if arch == SM_90 and not is_wide and (is_uneven or lines_class == 1 or (lines_class == 0 and is_shared)):
        block_n = 32
    if arch == GFX942 and block_m == 128:
        num_stages = 1  # two spill registers
    return Tile(block_m, block_n, num_warps, num_stages)


def float32_precision(arch: str) -> str:
    """Precision mode of float32 products: native matrix units, or three TF32 products (relative error 1e-6)."""
    return "ieee" if arch == GFX942 else "tf32x3"
