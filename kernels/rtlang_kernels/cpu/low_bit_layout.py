"""The packed layout of weights of few bits: codes of blocks of 16 outputs, and records of what belongs to their groups.

Nothing is rounded: `LowBitLayout.rows_of` returns what was packed. A weight is packed a few rows at a time, so packing needs little
memory beside the packed weight.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from rtlang_kernels.contract.fused_step import BLOCK
from rtlang_kernels.contract.low_bit import (
    INPUT_GROUP,
    GroupedRows,
    LowBitWeight,
    ScaleType,
    StackedWeight,
    WeightFormat,
)
from rtlang_kernels.cpu.codegen.float8_vectors import ORDER
from rtlang_kernels.cpu.codegen.low_bit_vectors import (
    AVX2,
    LANES,
    LINE,
    NO_EXTRA,
    OFFSETS,
    PLAIN,
    SCALES,
    VNNI_256,
    VNNI_512,
    WORD,
    ZERO_POINTS,
    Field,
    LowBitCode,
)
from rtlang_kernels.cpu.threads import share_out
from rtlang_kernels.host.huge_pages import zeros_in_huge_pages
from rtlang_kernels.host.numba_jit import kernel
from rtlang_kernels.host.processor import Processor

HALVES = BLOCK // LANES  # blocks of codes of a block of outputs
_CHUNK_CODES = 1 << 20  # codes that a reader hands out at a time, to a thread: they stay in the second cache
_MAX_NARROW = 31  # see `low_bit_vectors`: width of a table whose products AVX2 adds up in 16 bits
_LARGEST_SHIFTED = 2.0**100  # times MAGIC, a scale is finite
_MIDDLE = 128  # of unsigned bytes
_FLOAT8_NAN = 127  # magnitude of a code that is no number


class PackedWeight(NamedTuple):
    """A weight in the layout of the kernels.

    Attributes:
        codes: uint8 [blocks of 16 outputs, bytes].
        records: uint8 [blocks of 16 outputs, records, bytes].
        row_scales: float32 [out].
        largest_scale: magnitude of a bfloat16 scale; 0 of other types.
    """

    codes: Tensor
    records: Tensor
    row_scales: Tensor
    largest_scale: float


@dataclass(frozen=True, slots=True)
class LowBitLayout:
    """How weights of one format and shape lie in memory, and what the kernels need to know of their format.

    Attributes:
        fmt: the format of the stored codes: where there is no instruction for tables, bytes instead of indices.
        code: for scales of any size.
        zero: the operand that stands for 0, where groups have no zero points.
        table: the operands of codes, uint8 [LINE], or None.
        translated: the bytes for the indices of a table that is not kept, uint8 [16], or None.
    """

    fmt: WeightFormat
    code: LowBitCode
    num_inputs: int
    zero: int
    table: Tensor | None
    translated: Tensor | None

    @classmethod
    def of(cls, fmt: WeightFormat, num_inputs: int, machine: Processor) -> LowBitLayout:
        """The layout for a processor."""
        products = products_of(machine)
        low = 0 if fmt.table is None else min(fmt.table)
        is_wide = fmt.table is not None and max(fmt.table) - low > _MAX_NARROW
        table = translated = None
        is_signed, zero = products == AVX2 and not fmt.is_float8 and (fmt.bits == 8 or is_wide), fmt.zero
        if fmt.table is not None:
            zero = 0 if is_signed else -low
            operands = torch.tensor([value + zero for value in fmt.table]).to(torch.uint8)
            if products == PLAIN:
                fmt, translated = WeightFormat(8, fmt.group, fmt.scales, zero), operands
            else:
                table = operands.repeat(LINE // len(operands))
        elif is_signed:
            zero -= _MIDDLE
        extra = OFFSETS if fmt.has_offsets else ZERO_POINTS if fmt.has_zero_points else NO_EXTRA
        shifts = fmt.scales in (ScaleType.FLOAT16, ScaleType.SUPER)
        has_start = zero != 0 and extra != ZERO_POINTS
        flags = int(table is not None), int(has_start), int(is_signed), int(shifts)
        code = LowBitCode(fmt.bits, fmt.group, SCALES.index(fmt.scales), extra, *flags, products)
        return cls(fmt, code, num_inputs, zero, table, translated)

    @property
    def num_spans(self) -> int:
        """Records of a block."""
        return -(-self.num_inputs // self.code.span)

    @property
    def num_chunks(self) -> int:
        """Chunks of inputs, with padding."""
        return self.num_spans * self.code.span // INPUT_GROUP

    @property
    def block_bytes(self) -> int:
        """Bytes of the codes of 16 outputs."""
        return self.num_chunks * self.code.chunk_bytes

    def code_for(self, largest_scale: float) -> LowBitCode:
        """The machine code for weights whose bfloat16 scales are at most this large."""
        is_small = self.fmt.scales is ScaleType.BFLOAT16 and largest_scale < _LARGEST_SHIFTED
        return self.code._replace(is_shifted=1) if is_small else self.code

    def pack(self, weight: LowBitWeight, *, is_gated: bool = False) -> PackedWeight:
        """Copy a weight of this format and number of inputs.

        Args:
            is_gated: the outputs are gates, then as many factors, and a block of outputs holds 16 of each.
        """
        num_outputs = weight.shape[0]
        parts = HALVES if is_gated else 1
        size = num_outputs // parts
        num_blocks = -(-size // (BLOCK // parts)) * HALVES
        codes = zeros_in_huge_pages((num_blocks, self.block_bytes), torch.uint8)
        records = zeros_in_huge_pages((num_blocks, self.num_spans, self.code.record_bytes), torch.uint8)
        row_scales, largest = torch.ones(num_outputs), [0.0]
        step = max(LANES, _CHUNK_CODES // self.num_inputs // LANES * LANES)
        starts = weight.starts if isinstance(weight, StackedWeight) else (0,)
        chunks = [
            (part, *chunk)
            for part in range(parts)
            for chunk in _chunks(size, step, [start - part * size for start in starts])
        ]

        def copy(chunk: tuple[int, int, int]) -> None:
            part, first, last = chunk
            start = part * size + first
            rows = weight.rows(start, part * size + last)
            place = first // LANES * parts + part
            self._pack_codes(rows.codes, codes, place, parts)
            for name, field in self.code.fields.items():
                self._pack_field(getattr(rows, name), records[place::parts], field)
            own = row_scales[start : start + len(rows.codes)]
            if rows.row_scales is not None:
                own.copy_(rows.row_scales)
            if self.fmt.is_float8:  # an output with a weight that is NaN
                own[(rows.codes & _FLOAT8_NAN == _FLOAT8_NAN).any(1)] = float("nan")
            if self.fmt.scales is ScaleType.BFLOAT16 and rows.scales is not None and rows.scales.numel():
                largest.append(float(rows.scales.abs().max()))

        share_out(copy, chunks, torch.get_num_threads())
        return PackedWeight(codes, records, row_scales, max(largest))

    def _pack_codes(self, source: Tensor, target: Tensor, place: int, step: int) -> None:
        """Copy codes [n, in] into every `step`-th block from `place` on."""
        if self.translated is not None:
            source = self.translated[source.int()]
        if padding := self.num_chunks * INPUT_GROUP - self.num_inputs:
            source = functional.pad(source, (0, padding))
        if self.fmt.is_float8:
            source = source.view(len(source), -1, WORD)[:, :, ORDER].flatten(1)
        words = source.contiguous().view(torch.int32).numpy().view(np.uint32)
        blocks = target.view(torch.int32).numpy().view(np.uint32)
        shift = 0
        for plane in self.code.planes:
            _plane_packer(plane, shift)(words, blocks, self.fmt.bits, place, step)
            shift += plane

    def _pack_field(self, values: Tensor, target: Tensor, field: Field) -> None:
        """Copy values of groups [n, groups] into the records of blocks."""
        if values.numel():
            values = values.contiguous().view(torch.uint8)
            _pack_values(values.numpy(), target.numpy(), field.start, field.vectors, field.item)

    def rows_of(self, packed: PackedWeight, outputs: Tensor, *, is_gated: bool = False) -> GroupedRows:
        """Some outputs, int64 [n], as they were packed; codes have the format `fmt`."""
        parts = HALVES if is_gated else 1
        size = len(packed.row_scales) // parts
        within = outputs % size
        blocks, lanes = within // LANES * parts + outputs // size, within % LANES
        words = packed.codes.view(torch.int32).numpy().view(np.uint32)
        codes = torch.empty((len(outputs), self.num_chunks * INPUT_GROUP), dtype=torch.uint8)
        target = codes.view(torch.int32).numpy().view(np.uint32)
        _unpack_rows(words, blocks.numpy(), lanes.numpy(), np.array(self.code.planes), target)
        if self.fmt.is_float8:
            codes = codes.view(len(codes), self.num_chunks * INPUT_GROUP // WORD, WORD)[:, :, ORDER].flatten(1)
        found = GroupedRows(codes[:, : self.num_inputs].contiguous(), row_scales=packed.row_scales[outputs])
        records = packed.records[blocks]
        for name, field, dtype in self._typed_fields():
            part = records[:, :, field.start : field.start + LANES * field.vectors * field.item]
            part = part.view(len(outputs), self.num_spans, field.vectors, LANES, field.item)
            values = part[torch.arange(len(outputs)), :, :, lanes].contiguous().view(dtype)
            count = -(-self.num_inputs * field.vectors // self.code.span)
            setattr(found, name, values.view(len(outputs), self.num_spans * field.vectors)[:, :count].contiguous())
        return found

    def _typed_fields(self) -> Iterator[tuple[str, Field, torch.dtype]]:
        is_super = self.fmt.scales is ScaleType.SUPER
        for name, field in self.code.fields.items():
            if name == "scales":
                yield name, field, torch.int8 if is_super else getattr(torch, self.fmt.scales.value)
            else:
                yield name, field, torch.uint8 if field.item == 1 else torch.float16


def products_of(machine: Processor) -> int:
    """The fastest products of bytes of a processor."""
    if machine.has_int8_dot:
        return VNNI_512
    if machine.has_avx_vnni:
        return VNNI_256
    return AVX2 if machine.has_avx2 and machine.has_fma else PLAIN


def _chunks(size: int, step: int, starts: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Cut `size` outputs every `step` of them, and before parts that start at a block, so that rows of parts need not be joined."""
    borders = sorted({*range(0, size, step), size, *(each for each in starts if 0 < each < size and not each % LANES)})
    return itertools.pairwise(borders)


@cache
def _plane_packer(plane: int, shift: int) -> Callable[..., None]:
    """Compile the packing of some bits of codes: of `plane` bits, from bit `shift` on."""
    per_chunk, mask_of = INPUT_GROUP // WORD, 0x01010101 * ((1 << plane) - 1)
    per_line = per_chunk // plane

    @kernel()
    def pack(words: Any, blocks: Any, bits: Any, place: Any, step: Any) -> None:
        """Copy these bits of codes, uint32 [n, in / WORD] of a byte each: blocks of 16 rows into every `step`-th of uint32
        [blocks, bytes / 4] from `place` on.

        bits: of a code, all together.
        """
        mask = np.uint32(mask_of)
        for block in range((len(words) + LANES - 1) // LANES):
            target = blocks[place + block * step]
            for lane in range(min(LANES, len(words) - block * LANES)):
                source = words[block * LANES + lane]
                for chunk in range(words.shape[1] // per_chunk):
                    for index in range(plane):
                        found = np.uint32(0)
                        for part in range(per_line):
                            word = source[chunk * per_chunk + index * per_line + part]
                            found |= ((word >> np.uint32(shift)) & mask) << np.uint32(part * plane)
                        target[(chunk * bits + shift + index) * LANES + lane] = found

    return pack


@kernel()
def _pack_values(values: Any, records: Any, start: Any, vectors: Any, item: Any) -> None:
    """Copy values of groups, uint8 [n, groups * item], into records, uint8 [blocks, spans, bytes], from byte `start` of each on.

    vectors: groups of a record.  item: bytes of a value.
    """
    for row in range(len(values)):
        block, lane = row // LANES, row % LANES
        for place in range(values.shape[1] // item):
            span, vector = place // vectors, place % vectors
            target = start + (vector * LANES + lane) * item
            for byte in range(item):
                records[block, span, target + byte] = values[row, place * item + byte]


@kernel()
def _unpack_rows(blocks: Any, places: Any, lanes: Any, planes: Any, words: Any) -> None:
    """Copy lane lanes[i] of block places[i] back to row i of `words`; see `_plane_packer`."""
    per_chunk = INPUT_GROUP // WORD
    for row in range(len(words)):
        for chunk in range(words.shape[1] // per_chunk):
            for index in range(per_chunk):
                found, shift, line = np.uint32(0), 0, chunk * planes.sum()
                for plane in planes:
                    mask = np.uint32(0x01010101 * ((1 << plane) - 1))
                    per_line = per_chunk // plane
                    word = blocks[places[row], (line + index // per_line) * LANES + lanes[row]]
                    part = np.uint32(index % per_line * plane)
                    found |= ((word >> part) & mask) << np.uint32(shift)
                    shift += plane
                    line += plane
                words[row, chunk * per_chunk + index] = found
