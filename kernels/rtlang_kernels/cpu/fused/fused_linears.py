"""The linear layers of a fused step, in tables that compiled code reads.

A layer of the model has four sites of linear layers. A site is one packed weight, of floats, float8 or few bits, or several with the same
inputs and formats of their own; each is a part. What differs between parts is in a table: the address of their machine code and of their
weights. So one compiled function serves all sites of all models, and only the kernels of the formats that a model has are compiled.

Inputs of parts of few bits are quantized once for a site.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numba.core import types

from rtlang_kernels.contract.fused_step import LinearLayer
from rtlang_kernels.contract.low_bit import INPUT_GROUP
from rtlang_kernels.cpu.codegen.linear_vectors import LINE, STEP, WORD
from rtlang_kernels.cpu.codegen.llvm_bridge import invoke, source_digest
from rtlang_kernels.cpu.codegen.low_bit_vectors import LowBitCode
from rtlang_kernels.cpu.codegen.team_sync import fetch_add
from rtlang_kernels.cpu.float8_linear import Float8Code, Float8Product, float8_address
from rtlang_kernels.cpu.linear import Code, PackedLinear, Prefetch, Tiling, finish_address, linear_address, tiling
from rtlang_kernels.cpu.low_bit_inputs import SCALES_AT, InputPlan
from rtlang_kernels.cpu.low_bit_layout import HALVES
from rtlang_kernels.cpu.low_bit_linear import (
    JoinedLowBitLinear,
    LowBitLinear,
    LowBitProduct,
    low_bit_address,
    low_bit_finish,
    records_ahead,
)
from rtlang_kernels.host.numba_jit import kernel

SITES = 4  # of a layer: qkv, output, gate_up, down
SHARES = 4  # of a part, for each thread

FLOATS, FEW_BITS, FLOAT8 = range(3)  # kinds of parts
# Fields of the int64 table of parts. Of floats, WEIGHT has all of the weight, and SPANS are steps; of float8, CHUNKS are those of a span.
KIND, WEIGHT, RECORDS, WORDS, CONSTANTS, STARTS, EXTRAS, SPANS, CHUNKS, OUTPUTS, COLUMN, BLOCKS = range(12)
IS_GATED, FINISH = 12, 13
CODE, PASSES, AHEAD, RECORDS_AHEAD = range(14, 18)  # these depend on the number of tokens
PART_FIELDS = 18
# Fields of the int64 table of sites: the range of parts; whether results have to be gated; how inputs are quantized. TILE is the height of
# a tile of quantized inputs, which depends on the number of tokens, or 0 if no part needs them.
FIRST, LAST, IS_SPLIT, ORDER, KINDS, PLANES, GROUPS, TILE = range(8)
SITE_FIELDS = 8

MULTIPLY_TYPES = (types.Array(types.int64, 2, "C"), types.Array(types.int64, 1, "C"), *(types.int64,) * 10)
"""The types of the arguments of `multiply_kernel`, for `address_of`."""


@cache
def multiply_kernel() -> Callable[..., None]:
    """Compile the multiplication of a thread at a site: it takes blocks of its parts until none are left.

    Args of the kernel:
        parts: the table.  site: of the other table.
        x, x_stride: address of the inputs, bytes of a row.  quantized: address of the same, quantized; not used if no part has few bits.
        residual, target, stride, item: addresses of what to add, or 0, and of results; bytes of a row of either, and of an element.
        num_tokens, num_threads.  shared: address of counters, a cache line each; that of a part follows that of the part before it.
    """
    digest = source_digest()

    @kernel()
    def multiply(
        parts: Any,
        site: Any,
        x: Any,
        x_stride: Any,
        quantized: Any,
        residual: Any,
        target: Any,
        stride: Any,
        item: Any,
        num_tokens: Any,
        num_threads: Any,
        shared: Any,
    ) -> None:
        if digest < 0:  # never true; ties the disk cache to the sources
            return
        size = tiled_tokens(site, num_tokens) * site[GROUPS]
        for index in range(site[FIRST], site[LAST]):
            part, counter = parts[index], shared + index * LINE
            num_blocks, column = part[BLOCKS], part[COLUMN]
            added = residual + column if residual != 0 else residual
            share = num_blocks if num_threads == 1 else max(1, num_blocks // (num_threads * SHARES))
            first = fetch_add(counter, share)
            while first < num_blocks:
                last = min(first + share, num_blocks)
                if part[KIND] == FEW_BITS:
                    invoke(
                        part[CODE],
                        (
                            quantized,
                            quantized + size * SCALES_AT,
                            quantized + size * part[STARTS],
                            quantized + size * part[EXTRAS],
                            part[WEIGHT],
                            part[RECORDS],
                            part[WORDS],
                            part[CONSTANTS],
                            added,
                            target + column,
                            stride,
                            item,
                            part[SPANS],
                            part[CHUNKS],
                            part[OUTPUTS],
                            num_tokens,
                            part[PASSES],
                            part[AHEAD],
                            part[RECORDS_AHEAD],
                            part[IS_GATED],
                            part[FINISH],
                            first,
                            last,
                        ),
                    )
                elif part[KIND] == FLOAT8:
                    invoke(
                        part[CODE],
                        (
                            x,
                            x_stride,
                            part[WEIGHT],
                            part[RECORDS],
                            part[CONSTANTS],
                            added,
                            target + column,
                            stride,
                            part[SPANS],
                            part[CHUNKS],
                            part[OUTPUTS],
                            num_tokens,
                            part[PASSES],
                            part[AHEAD],
                            part[RECORDS_AHEAD],
                            part[IS_GATED],
                            part[FINISH],
                            first,
                            last,
                        ),
                    )
                else:
                    invoke(
                        part[CODE],
                        (
                            x,
                            x_stride,
                            part[WEIGHT],
                            part[CONSTANTS],
                            added,
                            target + column,
                            stride,
                            part[SPANS],
                            part[OUTPUTS],
                            num_tokens,
                            part[PASSES],
                            part[AHEAD],
                            part[IS_GATED],
                            part[FINISH],
                            first,
                            last,
                        ),
                    )
                first = fetch_add(counter, share)

    return multiply


@kernel(inline=True)
def tiled_tokens(site: Any, num_tokens: Any) -> Any:
    """Rows of the quantized inputs of a site, with those missing in the last tile; 0 if there are none."""
    tile = site[TILE]
    return (num_tokens + tile - 1) // tile * tile if tile > 0 else tile


@kernel(inline=True)
def quantize(
    code: Any, site: Any, x: Any, x_stride: Any, target: Any, num_tokens: Any, tokens: Any, groups: Any
) -> None:
    """Quantize a range of tokens and a range of groups for a site that needs it; the last token includes the rest of its tile.

    code: address of `quantize_kernel`.
    """
    if site[TILE] > 0:
        rows = tiled_tokens(site, num_tokens)
        last = rows if tokens[1] == num_tokens else tokens[1]
        fixed = (x, x_stride, site[ORDER], target, rows * site[GROUPS], site[KINDS], site[PLANES])
        invoke(code, (*fixed, num_tokens, site[GROUPS], site[TILE], groups[0], groups[1], tokens[0], last))


class Kind(NamedTuple):
    """What decides about the machine code of a part."""

    code: Code | LowBitCode | Float8Code
    prefetch: Prefetch

    def fields(self, num_tokens: int) -> tuple[int, int, int, int]:
        """The fields CODE to RECORDS_AHEAD of a part for this many tokens."""
        code, cut = self.code, tiling(num_tokens, self.code.max_rows)
        ahead = self.prefetch.ahead(cut)
        if isinstance(code, Float8Code):
            skip = records_ahead(code.weights, ahead)
            return float8_address(code, cut, ahead), cut.passes, ahead.num_bytes, skip
        if isinstance(code, LowBitCode):
            return low_bit_address(code, cut, ahead), cut.passes, ahead.num_bytes, records_ahead(code, ahead)
        return linear_address(code, cut, ahead), cut.passes, ahead.num_bytes, 0


class FusedLinears:
    """The tables of the linear layers of a model.

    Attributes:
        parts, sites: the tables.
        kinds: the parts with the same machine code.
        heights: the sites of quantized inputs, by the highest tile.
        input_bytes: of the quantized inputs of a token, the most of a site.
        max_height: of a tile of quantized inputs.
    """

    def __init__(
        self, layers: Sequence[Sequence[LinearLayer]], results: Sequence[int | None], dtype: torch.dtype
    ) -> None:
        """Take the addresses of packed weights.

        Args:
            layers: the linear layers of each layer in the order of their use.
            results: numbers of results of the sites, None where any will do; a site with twice as many has results that are not gated yet.
            dtype: of inputs and results.
        Raises:
            ValueError: a layer is not supported, see `is_supported`.
        """
        self._layers = tuple(layers)  # owns the memory whose addresses are in the tables
        self.kinds: dict[Kind, list[int]] = {}
        self._bytes: dict[int, int] = {}  # of weights, by the highest tile
        self.heights: dict[int, list[int]] = {}
        self._cuts: tuple[Tiling, ...] = ()
        self.input_bytes = self.max_height = 0
        self._dtype = dtype
        parts: list[list[int]] = []
        self.sites = np.zeros((len(results) * len(layers), SITE_FIELDS), np.int64)
        for index, linear in enumerate(linear for layer in layers for linear in layer):
            if not is_supported(linear, dtype):
                raise ValueError(f"layer {index // len(results)}: expected a linear layer whose is_supported is true")
            site, first = self.sites[index], len(parts)
            if isinstance(linear, PackedLinear):
                parts.append(self._packed_part(linear, first))
            elif isinstance(linear, LowBitLinear) and isinstance(linear.product, Float8Product):
                parts.append(self._float8_part(linear.product, linear.prefetch, first))
            elif isinstance(linear, LowBitLinear | JoinedLowBitLinear):
                product = linear.product
                assert isinstance(product, LowBitProduct)
                parts.extend(self._low_bit_parts(linear, product, first))
                self._set_inputs(index, product.shares[0].plan, product.max_rows)
            site[FIRST], site[LAST] = first, len(parts)
            site[IS_SPLIT] = results[index % len(results)] not in (None, linear.out_features)
        self.parts = np.array(parts, np.int64)

    @property
    def is_quantized(self) -> bool:
        """Whether inputs of a site have to be quantized."""
        return self.input_bytes > 0

    @property
    def has_split(self) -> bool:
        """Whether results of a site have to be gated."""
        return bool(self.sites[:, IS_SPLIT].any())

    def num_bytes(self, num_tokens: int) -> int:
        """Bytes of weights that a step reads from the caches or from memory, tile by tile."""
        return sum(size * -(-num_tokens // height) for height, size in self._bytes.items())

    def cut(self, num_tokens: int) -> None:
        """Select the kernels for a step of this many tokens."""
        cuts = tuple(tiling(num_tokens, height) for height in self._bytes)
        if cuts == self._cuts:
            return
        for kind, indices in self.kinds.items():
            self.parts[indices, CODE : RECORDS_AHEAD + 1] = kind.fields(num_tokens)
        for height, places in self.heights.items():
            self.sites[places, TILE] = tiling(num_tokens, height).rows
        self._cuts = cuts

    def _note(self, code: Code | LowBitCode | Float8Code, prefetch: Prefetch, index: int, num_bytes: int) -> None:
        """Note what machine code a part needs."""
        self.kinds.setdefault(Kind(code, prefetch), []).append(index)
        self._bytes[code.max_rows] = self._bytes.get(code.max_rows, 0) + num_bytes

    def _packed_part(self, linear: PackedLinear, index: int) -> list[int]:
        num_blocks, num_steps = linear.weight.shape[:2]
        self._note(linear.code, linear.prefetch, index, num_blocks * num_steps * STEP)
        part = [0] * PART_FIELDS
        part[WEIGHT], part[CONSTANTS] = linear.weight.data_ptr(), linear.constants.data_ptr()
        part[SPANS], part[OUTPUTS], part[BLOCKS] = num_steps, linear.out_features, num_blocks
        part[IS_GATED], part[FINISH] = int(linear.is_gated), finish_address(linear.code)
        return part

    def _float8_part(self, product: Float8Product, prefetch: Prefetch, index: int) -> list[int]:
        packed = product.part.packed
        self._note(product.code, prefetch, index, product.num_bytes)
        part = [0] * PART_FIELDS
        part[KIND], part[FINISH] = FLOAT8, low_bit_finish(self._dtype)
        part[WEIGHT], part[RECORDS] = packed.codes.data_ptr(), packed.records.data_ptr()
        part[CONSTANTS], part[OUTPUTS] = product.part.constants.data_ptr(), product.part.out_features
        part[SPANS], part[CHUNKS], part[BLOCKS] = product.num_spans, product.num_chunks, len(packed.codes) // HALVES
        part[IS_GATED] = int(product.part.is_gated)
        return part

    def _low_bit_parts(
        self, linear: LowBitLinear | JoinedLowBitLinear, product: LowBitProduct, first: int
    ) -> list[list[int]]:
        found = []
        prefetch = linear.parts[0].prefetch if isinstance(linear, JoinedLowBitLinear) else linear.prefetch
        for index, work in enumerate(product.shares[0].works, first):
            self._note(work.code, prefetch, index, work.num_bytes)
            part = [0] * PART_FIELDS
            part[KIND], part[FINISH] = FEW_BITS, low_bit_finish(self._dtype)
            part[WEIGHT], part[RECORDS], part[WORDS], part[CONSTANTS] = work.weights
            part[STARTS], part[EXTRAS] = work.starts, work.extras
            part[SPANS], part[CHUNKS], part[OUTPUTS] = work.sizes
            part[COLUMN], part[BLOCKS], part[IS_GATED] = (
                work.column * self._dtype.itemsize,
                work.num_blocks,
                work.is_gated,
            )
            found.append(part)
        return found

    def _set_inputs(self, index: int, plan: InputPlan, height: int) -> None:
        """Note how the inputs of a site are quantized."""
        site = self.sites[index]
        site[ORDER] = 0 if plan.order is None else plan.order.data_ptr()
        site[KINDS], site[PLANES], site[GROUPS] = plan.kinds.ctypes.data, len(plan.kinds), plan.num_groups
        self.heights.setdefault(height, []).append(index)
        self.input_bytes = max(self.input_bytes, plan.num_groups * plan.num_bytes)
        self.max_height = max(self.max_height, height)


def is_supported(linear: LinearLayer, dtype: torch.dtype) -> bool:
    """Whether a layer can be a site: packed for the CPU, with inputs of `dtype` that fill words and groups, in one order."""
    if isinstance(linear, PackedLinear):
        return linear.dtype == dtype and linear.in_features * dtype.itemsize % WORD == 0
    if not isinstance(linear, LowBitLinear | JoinedLowBitLinear):
        return False
    product = linear.product
    if isinstance(product, Float8Product):
        is_whole = product.part.layout.num_chunks * INPUT_GROUP == product.part.layout.num_inputs
        return product.dtype == dtype and is_whole and product.part.input_order is None
    if not isinstance(product, LowBitProduct):  # it multiplies weights out
        return False
    plan = product.shares[0].plan
    is_whole = plan.num_groups * INPUT_GROUP == product.in_features
    return product.dtype == dtype and len(product.shares) == 1 and is_whole
