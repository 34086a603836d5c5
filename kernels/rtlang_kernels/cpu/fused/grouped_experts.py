"""The experts of a layer in one compiled call, which several threads may run together. The contract is in `contract.experts`.

Pairs are sorted by expert, so each chosen expert has a range of rows and is a linear layer of its own in the tables of `fused_linears`.
Threads go through the chosen experts in the same order and take blocks of outputs of one until none are left: a thread that is done with
an expert begins the next one, and each weight is read once for all rows of its expert, in memory order. Barriers separate only the two
layers and the sum.

A row has the same bits in a tile of any height, so the bits of a token do not depend on the other tokens of its experts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, cast

import numpy as np
import torch
from numba.core import types
from numpy.typing import NDArray
from torch import Tensor

from rtlang_kernels.contract.experts import Experts, check_experts
from rtlang_kernels.contract.fused_step import LinearLayer
from rtlang_kernels.cpu.codegen import layer_vectors as vector
from rtlang_kernels.cpu.codegen.linear_vectors import LINE, STEP, WORD, stack_sums
from rtlang_kernels.cpu.codegen.llvm_bridge import address_of, invoke, source_digest
from rtlang_kernels.cpu.codegen.team_sync import barrier, yield_address
from rtlang_kernels.cpu.codegen.tile_vectors import NO_TILES
from rtlang_kernels.cpu.fused.fused_linears import (
    CODE,
    FIRST,
    GROUPS,
    IS_SPLIT,
    LAST,
    MULTIPLY_TYPES,
    RECORDS_AHEAD,
    TILE,
    FusedLinears,
    is_supported,
    multiply_kernel,
    quantize,
)
from rtlang_kernels.cpu.layer_ops import gate_kernel, line_block
from rtlang_kernels.cpu.linear import WORTH_THREADS, tiling
from rtlang_kernels.cpu.low_bit_inputs import QUANTIZE_TYPES, quantize_kernel
from rtlang_kernels.cpu.low_bit_linear import JoinedLowBitLinear, LowBitLinear, LowBitProduct
from rtlang_kernels.cpu.threads import run_team
from rtlang_kernels.cpu.tiled_low_bit import LEAST_ROWS
from rtlang_kernels.host.numba_jit import kernel
from rtlang_kernels.reference.experts import ReferenceExperts

_SITES = 2  # of an expert
_UP, _DOWN, _SUM, _END = range(4)  # stages
# Entries of the int64 vector of buffers: addresses of lines of the pairs by expert, of the results, and of quantized inputs.
_INPUTS, _SPLIT, _GATED, _OUTPUTS, _RESULT, _QUANTIZED = range(6)
# Entries of the int64 vector of sizes: elements of a line of the first four buffers, bytes of an element, experts that are chosen, bytes of
# the quantized inputs of a row, rows by which these are rounded up at most.
_HIDDEN, _WIDTH, _INNER, _OUT, _ITEM, _CHOSEN, _INPUT_BYTES, _HEIGHT = range(8)
# Entries of the int64 vector of machine code addresses.
_MULTIPLY, _QUANTIZE, _ACTIVATE, _YIELD = range(4)
_ENDED = 1 << 40  # arrivals that release all threads from their barriers
_WORDS, _INTS, _TABLE = (
    types.Array(kind, ndim, "C") for kind, ndim in ((types.int32, 2), (types.int64, 1), (types.int64, 2))
)
_FLOATS = types.Array(types.float32, 2, "C")


@kernel()
def _route(expert_ids: Any, starts: Any, order: Any, places: Any, chosen: Any) -> tuple[int, int]:
    """Sort pairs by expert, those of an expert in their order. Returns how many experts are chosen, and the most pairs of one.

    Args:
        expert_ids: int64 [pairs].
        starts: int64 [experts + 1], written: where the pairs of an expert begin among the sorted ones.
        order, places: int64 [pairs], written: the pairs by place, and the place of a pair, -1 without an expert.
        chosen: int64 [experts], written: the experts that have pairs come first.
    """
    num_experts = len(starts) - 1
    starts[:] = 0
    for expert in expert_ids:
        if 0 <= expert < num_experts:
            starts[expert + 1] += 1
    count = most = 0
    for expert in range(num_experts):
        if starts[expert + 1] > 0:
            chosen[count] = expert
            count += 1
            most = max(most, starts[expert + 1])
        starts[expert + 1] += starts[expert]
    for pair in range(len(expert_ids)):
        expert = expert_ids[pair]
        places[pair] = -1
        if 0 <= expert < num_experts:
            places[pair] = starts[expert]
            order[starts[expert]] = pair
            starts[expert] += 1
    for expert in range(num_experts, 0, -1):  # each is where the next one begins by now
        starts[expert] = starts[expert - 1]
    starts[0] = 0
    return count, most


@kernel()
def _select(starts: Any, codes: Any, kind_of: Any, height_of: Any, parts: Any, sites: Any) -> int:
    """Write what depends on the number of rows of an expert to its parts and sites.

    Returns 0, or a number of rows that is not in `codes` yet: int64 [kinds and heights, numbers of rows, fields].

    Args:
        kind_of, height_of: places in `codes` of parts, and of sites, -1 without quantized inputs.
    """
    for expert in range(len(starts) - 1):
        count = starts[expert + 1] - starts[expert]
        if count == 0:
            continue
        for index in range(_SITES * expert, _SITES * (expert + 1)):
            site = sites[index]
            if height_of[index] >= 0:
                site[TILE] = codes[height_of[index], count, 0]
            for part in range(site[FIRST], site[LAST]):
                found = codes[kind_of[part], count]
                if found[0] == 0:
                    return int(count)
                for field in range(len(found)):
                    parts[part, CODE + field] = found[field]
    return 0


@cache
def experts_kernel(is_bf16: int, block: int) -> Callable[..., None]:
    """Compile the kernel for an element type and `line_block` of the results.

    Args of the kernel:
        parts, sites: the tables of `fused_linears`: the layers of an expert are two sites.
        buffers, sizes, code: int64, see above.
        starts, order, places, chosen: see `_route`.
        words: int32 [T, words of a row], the inputs.  inputs: int32 [pairs, words of a row], where they are copied in order of experts.
        weights: float32 [T, k].
        begin, end: range of stages.
        thread, num_threads: which of how many.  shared: address of their counters, zeros at first.
    """
    digest = source_digest()
    item, lines = 2 if is_bf16 else 4, -(-block * 4 // STEP)

    def experts(
        parts: Any,
        sites: Any,
        buffers: Any,
        sizes: Any,
        code: Any,
        starts: Any,
        order: Any,
        places: Any,
        chosen: Any,
        words: Any,
        inputs: Any,
        weights: Any,
        begin: Any,
        end: Any,
        thread: Any,
        num_threads: Any,
        shared: Any,
    ) -> None:
        if digest < 0:  # never true; ties the disk cache to the sources
            return
        num_tokens, num_slots = weights.shape
        num, num_chosen = starts[-1], sizes[_CHOSEN]
        wide, width, inner, out = sizes[_HIDDEN], sizes[_WIDTH], sizes[_INNER], sizes[_OUT]
        multiply, quantizing, yield_function = code[_MULTIPLY], code[_QUANTIZE], code[_YIELD]
        expected = np.int64(0)
        for stage in range(begin, min(end, _SUM)):
            is_up = stage == _UP
            source, stride = (buffers[_INPUTS], wide * item) if is_up else (buffers[_GATED], inner * item)
            has_work = False
            if is_up:
                for place in range(num * thread // num_threads, num * (thread + 1) // num_threads):
                    inputs[place] = words[order[place] // num_slots]
                has_work = True
            else:
                for index in range(num_chosen):
                    expert = chosen[index]
                    if sites[_SITES * expert][IS_SPLIT] != 0 and code[_ACTIVATE] != 0:
                        first, count = starts[expert], starts[expert + 1] - starts[expert]
                        own, last = count * thread // num_threads, count * (thread + 1) // num_threads
                        line = buffers[_SPLIT] + (first + own) * width * item
                        target = source + (first + own) * stride
                        invoke(code[_ACTIVATE], (line, target, last - own, inner))
                        has_work = True
            if has_work:
                expected = barrier(shared, expected, num_threads, yield_function)
            has_work = False
            for index in range(num_chosen):
                expert = chosen[index]
                site = sites[_SITES * expert + stage]
                if site[TILE] > 0:
                    count = starts[expert + 1] - starts[expert]
                    room = buffers[_QUANTIZED] + (starts[expert] + index * sizes[_HEIGHT]) * sizes[_INPUT_BYTES]
                    groups = site[GROUPS] * thread // num_threads, site[GROUPS] * (thread + 1) // num_threads
                    place = source + starts[expert] * stride
                    quantize(quantizing, site, place, stride, room, count, (0, count), groups)
                    has_work = True
            if has_work:
                expected = barrier(shared, expected, num_threads, yield_function)
            for index in range(num_chosen):
                expert = chosen[index]
                first, count = starts[expert], starts[expert + 1] - starts[expert]
                site = sites[_SITES * expert + stage]
                target, line = buffers[_OUTPUTS], out * item
                if is_up:
                    is_split = site[IS_SPLIT] != 0
                    target, line = (buffers[_SPLIT], width * item) if is_split else (buffers[_GATED], inner * item)
                room = buffers[_QUANTIZED] + (first + index * sizes[_HEIGHT]) * sizes[_INPUT_BYTES]
                invoke(
                    multiply,
                    (
                        parts,
                        site,
                        source + first * stride,
                        stride,
                        room,
                        np.int64(0),
                        target + first * line,
                        line,
                        np.int64(item),
                        count,
                        num_threads,
                        shared + LINE,
                    ),
                )
            expected = barrier(shared, expected, num_threads, yield_function)
        if end <= _SUM:
            return
        total = stack_sums(lines)
        step = block * item
        for token in range(num_tokens * thread // num_threads, num_tokens * (thread + 1) // num_threads):
            for start in range(0, out * item, step):
                has_sum = False
                for slot in range(num_slots):
                    place = places[token * num_slots + slot]
                    if place >= 0:
                        line = buffers[_OUTPUTS] + place * out * item + start
                        if has_sum:
                            vector.accumulated(line, weights[token, slot], total, 1, is_bf16, block)
                        else:
                            vector.accumulated(line, weights[token, slot], total, 0, is_bf16, block)
                        has_sum = True
                if has_sum:
                    vector.write_total(total, buffers[_RESULT] + token * out * item + start, is_bf16, block)

    compiled: Any = kernel(is_exact=True)(experts)
    # Only for these types: calls by address are not type-checked.
    routes = (*(_INTS,) * 4, _WORDS, _WORDS, _FLOATS)
    compiled.compile((_TABLE, _TABLE, *(_INTS,) * 3, *routes, *(types.int64,) * 5))
    compiled.disable_compile()
    return cast(Callable[..., None], compiled)


class CpuExperts:
    """Experts whose layers have kernels in the tables of `fused_linears`."""

    def __init__(self, up: Sequence[LinearLayer], down: Sequence[LinearLayer], dtype: torch.dtype) -> None:
        """Take the addresses of the weights.

        Args:
            up, down: the first and the second layer of each expert, which `are_supported`.  dtype: of inputs and results.
        """
        self.num_experts, self._dtype = len(up), dtype
        self._hidden, self._inner, self._out = up[0].in_features, down[0].in_features, down[0].out_features
        self._width = max(each.out_features for each in up)
        self._linears = FusedLinears(list(zip(up, down, strict=True)), (self._inner, self._out), dtype)
        parts, sites = self._linears.parts, self._linears.sites
        self._kinds = list(self._linears.kinds)
        self._kind_of, self._height_of = np.zeros(len(parts), np.int64), np.full(len(sites), -1, np.int64)
        for number, indices in enumerate(self._linears.kinds.values()):
            self._kind_of[indices] = number
        for number, indices in enumerate(self._linears.heights.values(), len(self._kinds)):
            self._height_of[indices] = number
        # Fields of parts by kind and number of rows; behind the kinds, heights of tiles of quantized inputs likewise.
        self._codes = np.zeros((len(self._kinds) + len(self._linears.heights), 1, RECORDS_AHEAD + 1 - CODE), np.int64)
        self._is_split = self._linears.has_split
        item, is_bf16 = dtype.itemsize, int(dtype == torch.bfloat16)
        height = self._linears.max_height
        self._sizes = np.array(
            (self._hidden, self._width, self._inner, self._out, item, 0, self._linears.input_bytes, height), np.int64
        )
        self._run = experts_kernel(is_bf16, line_block(self._out))
        quantizing = address_of(quantize_kernel(is_bf16), QUANTIZE_TYPES) if self._linears.is_quantized else 0
        self._has_gates = {each.out_features for each in up} <= {self._inner, 2 * self._inner}
        gate = gate_kernel(is_bf16, line_block(self._inner)) if self._is_split and self._has_gates else None
        self._gate = 0 if gate is None else address_of(gate, (types.int64,) * 4)
        multiply = address_of(multiply_kernel(), MULTIPLY_TYPES)
        self._code = np.array((multiply, quantizing, 0, yield_address()), np.int64)
        self._shared = np.zeros((1 + len(parts)) * LINE // 8, np.int64)
        self._expert_bytes = self._linears.num_bytes(1) // self.num_experts
        self._by_tiles = _by_tiles(up, down, dtype)

    @classmethod
    def of(cls, up: Sequence[LinearLayer], down: Sequence[LinearLayer], dtype: torch.dtype) -> Experts:
        """The experts of these layers; of some that are not supported, those of the reference."""
        return cls(up, down, dtype) if are_supported(up, down, dtype) else ReferenceExperts(up, down, dtype)

    def __call__(
        self,
        x: Tensor,
        expert_ids: Tensor,
        weights: Tensor,
        activation: Callable[[Tensor], Tensor] | None = None,
        norm: Callable[[Tensor], Tensor] | None = None,
    ) -> Tensor:
        """See `Experts`."""
        check_experts(x, expert_ids, weights, self._hidden, self._dtype)
        if activation is None and not self._has_gates:
            raise ValueError(
                f"activation = None: expected a function of {self._width} results for {self._inner} inputs"
            )
        self._code[_ACTIVATE] = self._gate if activation is None else 0
        num_tokens, num = len(x), expert_ids.numel()
        starts, chosen = np.empty(self.num_experts + 1, np.int64), np.empty(self.num_experts, np.int64)
        order, places = np.empty(num, np.int64), np.empty(num, np.int64)
        num_chosen, most = _route(expert_ids.reshape(-1).contiguous().numpy(), starts, order, places, chosen)
        if num_chosen == 0:
            return x.new_zeros((num_tokens, self._out))
        num_pairs = int(starts[-1])
        if self._by_tiles is not None and num_pairs >= LEAST_ROWS * num_chosen:
            return self._by_tiles(x, expert_ids, weights, activation, norm)
        self._cut(starts, most)
        self._sizes[_CHOSEN] = num_chosen
        inputs, up, gated, outputs = (
            x.new_empty((num_pairs, size))
            for size in (self._hidden, self._width if self._is_split else 0, self._inner, self._out)
        )
        # Tokens of no expert are not written.
        result = x.new_empty((num_tokens, self._out)) if num_pairs == num else x.new_zeros((num_tokens, self._out))
        height, input_bytes = self._linears.max_height, self._linears.input_bytes
        quantized = np.empty((num_pairs + num_chosen * height) * input_bytes, np.int8)
        buffers = np.zeros(_QUANTIZED + 1, np.int64)

        def run(begin: int, end: int) -> None:
            for place, memory in ((_SPLIT, up), (_GATED, gated), (_OUTPUTS, outputs), (_INPUTS, inputs)):
                buffers[place] = memory.data_ptr()
            buffers[_RESULT], buffers[_QUANTIZED] = result.data_ptr(), quantized.ctypes.data
            num_threads = self._num_threads(num_pairs, num_chosen)
            self._shared[:] = 0
            run_team(
                self._run,
                [
                    (
                        self._linears.parts,
                        self._linears.sites,
                        buffers,
                        self._sizes,
                        self._code,
                        starts,
                        order,
                        places,
                        chosen,
                        words,
                        copied,
                        factors,
                        begin,
                        end,
                        thread,
                        num_threads,
                        self._shared.ctypes.data,
                    )
                    for thread in range(num_threads)
                ],
                self._end_waiting,
            )

        words, copied = (each.view(torch.int32).numpy() for each in (x.contiguous(), inputs))
        factors = weights.float().contiguous().numpy()
        if activation is None and norm is None:
            run(_UP, _END)
            return result
        # What torch computes sees all pairs in their order: its bits may depend on the place of a row.
        pairs, back = torch.from_numpy(places), torch.from_numpy(order[:num_pairs])
        if activation is not None:
            run(_UP, _DOWN)
            activated = activation(_in_order(up if self._is_split else gated, pairs))
            gated = activated.to(self._dtype).index_select(0, back)
            run(_DOWN, _SUM)
        else:
            run(_UP, _SUM)
        if norm is not None:
            outputs = norm(_in_order(outputs, pairs)).to(self._dtype).index_select(0, back)
        run(_SUM, _END)
        return result

    def _num_threads(self, num_pairs: int, num_chosen: int) -> int:
        """Threads that run a call: each has some 100 us of work, since waking one takes 30 us."""
        tiles = max(num_chosen, num_pairs // max(kind.code.max_rows for kind in self._kinds))
        return torch.get_num_threads() if tiles * self._expert_bytes >= 2 * WORTH_THREADS * STEP else 1

    def _cut(self, starts: NDArray[np.int64], most: int) -> None:
        """Select the kernels for the numbers of rows of the experts, the largest of which is `most`."""
        if most >= self._codes.shape[1]:
            grown = np.zeros((len(self._codes), 1 << most.bit_length(), self._codes.shape[2]), np.int64)
            grown[:, : self._codes.shape[1]] = self._codes
            self._codes = grown
        tables = self._linears.parts, self._linears.sites
        while count := int(_select(starts, self._codes, self._kind_of, self._height_of, *tables)):
            for number, kind in enumerate(self._kinds):
                self._codes[number, count] = kind.fields(count)
            for number, height in enumerate(self._linears.heights, len(self._kinds)):
                self._codes[number, count] = tiling(count, height).rows

    def _end_waiting(self) -> None:
        """Release all threads from their barriers."""
        self._shared[0] = _ENDED


def are_supported(up: Sequence[LinearLayer], down: Sequence[LinearLayer], dtype: torch.dtype) -> bool:
    """Whether all layers have kernels in the tables, and lines of inputs are whole words."""
    is_whole = up[0].in_features * dtype.itemsize % WORD == 0 and dtype in (torch.float32, torch.bfloat16)
    return is_whole and all(is_supported(each, dtype) for each in (*up, *down))


def _in_order(lines: Tensor, places: Tensor) -> Tensor:
    """Lines of pairs by expert in the order of pairs; zeros for those of no expert."""
    found = lines.index_select(0, places.clamp_min(0))
    return found.masked_fill_((places < 0)[:, None], 0.0)


def _by_tiles(up: Sequence[LinearLayer], down: Sequence[LinearLayer], dtype: torch.dtype) -> ReferenceExperts | None:
    """The same experts one after another, if a layer uses matrix tiles for many rows, which the tables do not have."""
    products = [each.product for each in (*up, *down) if isinstance(each, LowBitLinear | JoinedLowBitLinear)]
    has_tiles = any(isinstance(each, LowBitProduct) and each.tiles != NO_TILES for each in products)
    return ReferenceExperts(up, down, dtype) if has_tiles else None
