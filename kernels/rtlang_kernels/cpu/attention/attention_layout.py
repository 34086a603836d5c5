"""Chooses the kernels of CPU attention for a head geometry: in matrix tiles (AMX) where the process may use them and they are right.

Bytes of a pool of int8 are multiplied as bytes where the processor has no such tiles but products of bytes, else as numbers of the queries'
type. The bits of these kinds of kernels differ, so a geometry uses one for every step.
"""

from __future__ import annotations

import logging
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rtlang_kernels.cpu.attention.attention_kernel import (
    RESULT_STRIDE,
    attend_kernel,
    geometry,
    scratch_bytes,
)
from rtlang_kernels.cpu.codegen.attention.attention_tiles import fits_tiles
from rtlang_kernels.cpu.codegen.attention.page_vectors import (
    BYTES_BFLOAT16,
    BYTES_FLOAT32,
    FLOAT32,
    INT8_POOL,
    PAIRED,
    WIDENED,
    PageForm,
)
from rtlang_kernels.cpu.codegen.tile_vectors import NO_TILES
from rtlang_kernels.cpu.linear_tuning import usable_tiles
from rtlang_kernels.host.processor import processor
from rtlang_kernels.planning.attention_passes import PASS_FIELDS

logger = logging.getLogger(__name__)

_CHECKED_TOKENS, _CHECKED_GROUP, _CHECKED_SIZES = 70, 3, (64, 48)  # a block and a part, tiles of several heights
# Relative difference of bfloat16 results that were summed in another order; one wrong result of the check causes ten times as much.
_MAX_DIFFERENCE = 3e-3


def form_of(
    is_bf16: int, head_dim: int, v_head_dim: int, *, is_int8: bool = False, has_tiles: bool = False
) -> PageForm:
    """The form of packed keys and values on this processor.

    Args:
        is_bf16: of queries.  is_int8: of the pool.  has_tiles: whether to prefer a form that fits tiles.
    """
    kind = FLOAT32 if not is_bf16 else PAIRED if processor().has_bf16_dot and head_dim % 2 == 0 else WIDENED
    form = PageForm(kind + is_int8 * INT8_POOL, head_dim, v_head_dim)
    if not is_int8 or (has_tiles and fits_tiles(form)):
        return form
    if form.fits_bytes and processor().has_int8_dot:
        return PageForm(BYTES_BFLOAT16 if is_bf16 else BYTES_FLOAT32, head_dim, v_head_dim)
    return form


def layout_of(
    is_bf16: int, num_kv_heads: int, group: int, head_dim: int, v_head_dim: int, *, is_int8: bool = False
) -> NDArray[np.int64]:
    """A new layout for the types of queries (is_bf16 0 or 1) and of the pool (theirs, or int8) and a head geometry; compiles its kernels.

    The entries of a layer are 0.
    """
    form = form_of(is_bf16, head_dim, v_head_dim, is_int8=is_int8, has_tiles=True)
    tiles = usable_tiles() if fits_tiles(form) else NO_TILES
    if tiles == NO_TILES or tile_fault(tiles) is not None:
        tiles, form = NO_TILES, form_of(is_bf16, head_dim, v_head_dim, is_int8=is_int8)
    return geometry(form, num_kv_heads, group, tiles).copy()


@cache
def tile_fault(tiles: int) -> str | None:
    """Compare matrix tiles with vectors on a small case. Returns what is wrong, with a warning, or None."""
    fault = None
    try:
        expected = _attended(NO_TILES, 0).double()
        found = _attended(tiles, 0)
        difference = float((found.double() - expected).norm() / expected.norm())
        if not difference <= _MAX_DIFFERENCE:
            fault = f"their results differ from those of vectors by {difference:.2g}"
        elif not torch.equal(_attended(tiles, _CHECKED_TOKENS - 1), found[-1:]):
            fault = "a result depends on the number of tokens"
    except Exception as error:  # any failure of the compiler: vectors are used instead
        fault = f"{type(error).__name__}: {error}"
    if fault is not None:
        logger.warning("matrix tiles (AMX) are not used for attention: %s", fault)
    return fault


def _attended(tiles: int, first_token: int) -> Tensor:
    """Results of the last tokens, from `first_token` on, of a small random prompt: [tokens, heads, size]."""
    (head_dim, v_head_dim), num_tokens, group = _CHECKED_SIZES, _CHECKED_TOKENS, _CHECKED_GROUP
    generator = torch.Generator().manual_seed(0)
    q, k, v = (
        torch.randn(num_tokens, heads, size, generator=generator).bfloat16()
        for heads, size in ((group, head_dim), (1, head_dim), (1, v_head_dim))
    )
    q = q[first_token:]
    out, lse = q.new_empty((len(q), group, v_head_dim)), torch.empty((len(q), group))
    layout = geometry(form_of(1, head_dim, v_head_dim), 1, group, tiles).copy()
    addresses = [tensor.data_ptr() for tensor in (q, k, v, out, lse)]
    layout[: RESULT_STRIDE + 1] = (*addresses, *(2 * tensor.stride(0) for tensor in (q, k, v, out)))
    passes = np.array([[0, len(q), 0, 0, num_tokens, 0, 0, 1, 0, 1]], np.int32)
    assert passes.shape[1] == PASS_FIELDS
    positions, zeros = np.arange(first_token, num_tokens, dtype=np.int32), np.zeros(num_tokens, np.int32)
    scratch = np.empty(scratch_bytes(layout, len(q) * group), np.uint8)
    attend_kernel()(
        layout,
        head_dim**-0.5,
        0.0,
        np.empty(0, np.float32),
        zeros[:1].reshape(1, 1),
        num_tokens,
        passes,
        positions,
        zeros[: len(q)],
        len(q),
        0,
        1,
        scratch.ctypes.data,
    )
    return out
