"""Tile sizes of attention, as a table: which shape of program serves a rectangle on which processor.

There is no tuning at run time: a kernel is compiled for the entries below and nothing else, and every entry is compiled ahead of
time by a test that fails on a register spill or on too much shared memory (`aot`). A program holds BLOCK_M query lines (tokens x
heads of one KV head) and walks over BLOCK_N keys at a time. Rectangles with few lines are memory bound and get a small tile, since
lines beyond those that exist are computed in vain; wide ones re-read their keys once per tile.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch

SM_80, SM_90, GFX942 = "sm_80", "sm_90", "gfx942"
LINES = (16, 64, 128)  # BLOCK_M of the three classes of rectangles
LARGEST_GROUP = LINES[-1]  # query heads of one KV head: all of a token's must fit one tile


@dataclass(frozen=True, slots=True)
class Tile:
    """How one program is cut. Stages is the depth of the load pipeline."""

    block_m: int
    block_n: int
    num_warps: int
    num_stages: int


@dataclass(frozen=True, slots=True)
class Machine:
    """What planning needs to know of a processor."""

    arch: str
    num_multiprocessors: int
    l2_bytes: int


@cache
def machine_of(device: torch.device) -> Machine:
    """The processor behind a device; of a CPU (kernels interpreted) an imagined small one, so that small cases are split too."""
    if device.type != "cuda":
        return Machine(SM_90, 4, 1 << 20)
    properties = torch.cuda.get_device_properties(device)
    if torch.version.hip is not None:
        arch = GFX942
    else:
        arch = SM_90 if properties.major >= 9 else SM_80
    return Machine(arch, properties.multi_processor_count, properties.L2_cache_size)


def split_dim(size: int) -> tuple[int, int]:
    """A head dimension as one or two powers of two of at least 16, the second 0 where one is enough: 80 is 64 + 16, not 128."""
    low = max(16, 1 << size.bit_length() - 1)
    rest = max(0, size - low)
    return low, 0 if rest == 0 else max(16, 1 << (rest - 1).bit_length())


def attention_tile(arch: str, lines_class: int, head_dim: int, v_head_dim: int, item_bytes: int) -> Tile:
    """The tile for rectangles of a class (an index of LINES). Bytes of one key with its value decide how many fit a stage."""
    key_bytes = (sum(split_dim(head_dim)) + sum(split_dim(v_head_dim))) * item_bytes
    block_m = LINES[lines_class]
    num_warps = 8 if block_m == 128 else 4
    block_n = 64 if key_bytes <= 1024 else 32
    if key_bytes > 1024 and item_bytes == 4 and block_m == 128:
        block_n = 16  # float32 products run without matrix units and keep both operands in registers
    num_stages = 3 if key_bytes <= 512 and (arch == SM_90 or block_m < 128) else 2
    if arch == GFX942:
        num_stages = 2
    return Tile(block_m, block_n, num_warps, num_stages)
