"""Measures the limits of the machine: the rate of reading memory, and that of the multipliers in bfloat16 products, in matrix tiles (AMX)
where linear layers may use them.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from rtlang_kernels.cpu.codegen.llvm_bridge import FLOAT, INT32
from rtlang_kernels.cpu.codegen.pair_vectors import NEAREST, at, dot, fused_add, prefetch
from rtlang_kernels.cpu.codegen.tile_vectors import (
    HALVES,
    HEIGHT,
    INPUTS,
    LANES,
    NO_TILES,
    WEIGHTS,
    close_tiles,
    open_tiles,
    tiles_of,
)
from rtlang_kernels.cpu.codegen.vector_builder import (
    INT64,
    call,
    literal_values,
    load,
    splat,
    typed_intrinsic,
)
from rtlang_kernels.cpu.linear_tuning import usable_tiles
from rtlang_kernels.cpu.threads import run_chunks
from rtlang_kernels.host.huge_pages import in_huge_pages
from rtlang_kernels.host.numba_jit import kernel
from rtlang_kernels.host.processor import processor

READ_BYTES = 256 << 20
_SUMS, _LANES, _LOOPS = 16, 16, 200_000
_TILE_SUMS = 2 * HALVES  # of two tiles of inputs and those of a block of weights
_LINE, _READ_AHEAD = 64, 4096  # bytes


@dataclass(frozen=True, slots=True)
class MachineRates:
    """Bytes read from memory per second, and floating-point operations (an addition or a multiplication) per second."""

    read_bytes_s: float
    operations_s: float


def multiply_operations(tiles: int) -> int:
    """Operations of one `multiply(tiles)`."""
    if tiles != NO_TILES:
        return 2 * _TILE_SUMS * HEIGHT * LANES * 2 * LANES * _LOOPS
    return (2 if processor().has_bf16_dot else 1) * 2 * _LANES * _SUMS * _LOOPS


def machine_rates(
    num_threads: int, rounds: int = 5, *, read_bytes: int = READ_BYTES, tiles: int | None = None
) -> MachineRates:
    """Medians of a few measurements on `num_threads` threads at once, by wall clock.

    Args:
        read_bytes: size of the memory that is read again and again; what fits a cache of the machine is read from there.
        tiles: the kind of matrix tiles in which is multiplied; None for those that linear layers in bfloat16 may use.
    """
    kind = usable_tiles() if tiles is None else tiles
    memory = in_huge_pages(torch.ones(read_bytes // 8, dtype=torch.int64)).numpy()  # as weights lie
    parts = np.array_split(memory, num_threads)
    found: dict[str, list[float]] = {"read": [], "multiply": []}
    for name, run in (
        ("read", lambda: run_chunks(read, [(part,) for part in parts])),
        ("multiply", lambda: run_chunks(lambda _: multiply(kind), [(part,) for part in parts])),
    ):
        for turn in range(rounds + 1):
            begun = time.perf_counter()
            run()  # type: ignore[no-untyped-call]
            if turn:  # the first compiles
                found[name].append(time.perf_counter() - begun)
    return MachineRates(
        memory.nbytes / statistics.median(found["read"]),
        num_threads * multiply_operations(kind) / statistics.median(found["multiply"]),
    )


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def _added(typing_context: Any, address: Any, groups: Any) -> Any:
    """Add the int64 words of `groups` groups of `_SUMS` cache lines, which are requested some groups ahead."""
    line = ir.VectorType(INT64, _LINE // 8)

    def emit(builder: Any, address: Any, groups: Any) -> Any:
        total = cgutils.alloca_once(builder, line)
        builder.store(ir.Constant(line, [0] * line.count), total)
        with cgutils.for_range(builder, groups) as loop:
            group = at(builder, address, (loop.index, _SUMS * _LINE))
            for index in range(_SUMS):
                prefetch(builder, at(builder, group, _READ_AHEAD + index * _LINE), NEAREST)
            found = [load(builder, line, group, index * _LINE) for index in range(_SUMS)]
            while len(found) > 1:
                found = [builder.add(a, b) for a, b in zip(found[::2], found[1::2], strict=True)]
            builder.store(builder.add(builder.load(total), found[0]), total)
        return call(builder, f"llvm.vector.reduce.add.v{line.count}i64", INT64, builder.load(total))

    return typed_intrinsic(types.int64, (types.int64, types.int64), 0, emit)


@kernel()
def read(words: Any) -> Any:
    """Add contiguous int64 words: reads memory as fast as one core can."""
    per_group = _SUMS * _LINE // 8
    groups = len(words) // per_group
    total = _added(words.ctypes.data, groups)
    for i in range(groups * per_group, len(words)):
        total += words[i]
    return total


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def _multiplied(typing_context: Any, loops: Any, is_native: Any) -> Any:
    """Multiply `loops` times `_SUMS` independent vectors in registers and return one lane."""
    constants = literal_values(is_native)
    if constants is None:
        return None
    native = bool(constants[0])
    floats, words = ir.VectorType(FLOAT, _LANES), ir.VectorType(INT32, _LANES)

    def emit(builder: Any, loops: Any) -> Any:
        factor = splat(builder, builder.trunc(loops, INT32), _LANES)
        sums = [cgutils.alloca_once(builder, floats) for _ in range(_SUMS)]
        for total in sums:
            builder.store(ir.Constant(floats, [0.0] * _LANES), total)
        with cgutils.for_range(builder, loops):
            for total in sums:
                if native:
                    result = dot(builder, builder.load(total), factor, factor, is_native=True)
                else:
                    wide = builder.bitcast(factor, floats)
                    result = fused_add(builder, wide, wide, builder.load(total))
                builder.store(result, total)
        lanes = [builder.bitcast(builder.load(total), words) for total in sums]
        for lane in lanes[1:]:
            lanes[0] = builder.xor(lanes[0], lane)
        return builder.zext(builder.extract_element(lanes[0], INT32(0)), INT64)

    return typed_intrinsic(types.int64, (types.int64, is_native), 1, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def _multiplied_tiles(typing_context: Any, loops: Any, work: Any, kind: Any) -> Any:
    """Multiply `loops` times two tiles of inputs with those of a block of weights; all are zeros."""
    constants = literal_values(kind)
    if constants is None:
        return None

    def emit(builder: Any, loops: Any, work: Any) -> None:
        tiles = tiles_of(constants[0], work)
        with cgutils.for_range(builder, loops):
            for index in range(_TILE_SUMS):
                tiles.multiply(builder, index, INPUTS + index // HALVES, WEIGHTS + index % HALVES)

    return typed_intrinsic(types.void, (types.int64, types.int64, kind), 1, emit)


def tile_multiplier(kind: int) -> Callable[[int], int]:
    """A function that multiplies tiles of this kind as often as its argument says."""

    @kernel()
    def multiply(loops: Any) -> Any:
        work = open_tiles(2 * HEIGHT, kind, 2)
        _multiplied_tiles(loops, work, kind)
        close_tiles(work, kind)
        return loops

    return multiply


@cache
def _multiplier(tiles: int) -> Callable[[int], int]:
    if tiles != NO_TILES:
        return tile_multiplier(tiles)
    is_native = int(processor().has_bf16_dot)

    @kernel(is_exact=True)
    def multiply(loops: Any) -> Any:
        return _multiplied(loops, is_native)

    return multiply


def multiply(tiles: int) -> None:
    """Multiply and add `multiply_operations(tiles)` times in registers: in vectors, or in a kind of tiles."""
    _multiplier(tiles)(_LOOPS)
