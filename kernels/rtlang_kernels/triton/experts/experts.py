"""Experts of a layer on a GPU: five launches for any number of tokens, which a captured graph may hold.

`route` chooses the experts. Pairs are sorted by expert on the device, and cut into blocks of one expert each; the host only knows how many
blocks there may be, and surplus programs end at once. The first product applies the gate. Results of a token are added in the order
of its slots. Weights of few bits stay as the file has them (`linear.low_bit_linear`); all experts of a layer are one weight.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from rtlang_kernels.contract.experts import ExpertGate, StackedLayer, check_experts
from rtlang_kernels.planning.tile_sizes import float32_precision, gpu_properties, power_of_two
from rtlang_kernels.triton.experts import experts_kernel as kernels
from rtlang_kernels.triton.experts import routing_kernel as routing
from rtlang_kernels.triton.experts.experts_kernel import FloatFormat, GateForm
from rtlang_kernels.triton.linear.low_bit_linear import MIDDLE_ROWS, SMALL_ROWS, launch_options, product_tile
from rtlang_kernels.triton.linear.stored_codes import StoredFormat, store
from rtlang_kernels.triton.primitives.jit import check_device, current_device, is_interpreting

CHUNK, STEP = 512, 16  # pairs of a program that sorts, and pairs that it compares at a time
CHUNK_STEP = 8  # chunks whose counts it reads at a time
SUM_BLOCK = 1024
_FIELDS = int(routing.BLOCK_FIELDS.value)
Launch = Callable[..., None]


def float_format(item_bytes: int) -> FloatFormat:
    """How many inputs of floats are multiplied at a time: 128 bytes, a line of shared memory."""
    return FloatFormat(128 // item_bytes, 128 // item_bytes)


def gate_form(gate: ExpertGate | None) -> GateForm | None:
    """A gate as a constant of kernels."""
    if gate is None:
        return None
    limit = gate.limit
    return GateForm(gate.is_alternating, gate.alpha, gate.offset, limit is not None, 0.0 if limit is None else limit)


def route(logits: Tensor, num_slots: int, is_normalized: bool) -> tuple[Tensor, Tensor]:
    """See `Backend.route`; one launch."""
    check_device(logits.device)
    num_tokens, num_experts = logits.shape
    expert_ids = torch.empty((num_tokens, num_slots), dtype=torch.int64, device=logits.device)
    weights = torch.empty((num_tokens, num_slots), dtype=torch.float32, device=logits.device)
    if num_tokens:
        block = power_of_two(num_experts)
        routing.route_tokens[(num_tokens,)](
            logits if logits.stride(1) == 1 else logits.contiguous(),
            expert_ids,
            weights,
            num_experts,
            logits.stride(0) if logits.stride(1) == 1 else num_experts,
            NUM_SLOTS=num_slots,
            IS_NORMALIZED=is_normalized,
            BLOCK_E=block,
            BLOCK_S=power_of_two(num_slots),
            num_warps=1 if block <= 256 else 4,
            enable_fp_fusion=False,
        )
    return expert_ids, weights


def block_pairs(num_pairs: int, num_experts: int) -> int:
    """Pairs of a block, by how many an expert has on average. Any number gives the same bits."""
    mean = -(-num_pairs // num_experts)
    return next(count for count in (SMALL_ROWS, MIDDLE_ROWS, mean) if mean <= count)


def most_blocks(num_pairs: int, num_experts: int, block: int) -> int:
    """The most blocks of `block` pairs that pairs of some experts can need."""
    return min(num_pairs, num_experts) + num_pairs // block


class _Layer:
    """One layer of all experts on the device."""

    def __init__(self, layer: StackedLayer, num_experts: int, dtype: torch.dtype, device: torch.device) -> None:
        weight = layer.weight
        num_rows, self.num_inputs = weight.shape
        if num_rows % num_experts:
            raise ValueError(f"weight = {[num_rows, self.num_inputs]}: expected outputs of {num_experts} experts")
        self.num_outputs = num_rows // num_experts
        self.order: Tensor | None = None
        self.orders = None if layer.input_orders is None else layer.input_orders.to(device, torch.int32).contiguous()
        self.format: FloatFormat | StoredFormat
        if isinstance(weight, Tensor):
            if weight.dtype != dtype or weight.device != device or not weight.is_contiguous():
                raise ValueError(f"weight = {weight.dtype} on {weight.device}: expected contiguous {dtype} on {device}")
            self.format, self.held = float_format(weight.element_size()), [weight] * 8
            self.num_bytes = weight.nbytes
        else:
            codes = store(weight, device)
            self.format, self.num_bytes = codes.format, codes.num_bytes
            self.held = [codes.held.low if each is None else each for each in codes.held]
            self.order = None if weight.input_order is None else weight.input_order.to(device)
        self.bias = None if layer.bias is None else layer.bias.to(device, dtype).contiguous()


class GpuExperts:
    """`Experts` on the current GPU; in triton's interpreter, on the CPU.

    Attributes:
        num_bytes: of the weights on the device.
    """

    def __init__(
        self, up: StackedLayer, down: StackedLayer, num_experts: int, gate: ExpertGate | None, dtype: torch.dtype
    ) -> None:
        """Take over the weights of all experts.

        Args:
            gate: the activation of calls that give none.  dtype: of inputs and results.
        Raises:
            ValueError: a weight is empty, or has other sizes, another dtype or device; names it.
        """
        self.device = current_device()
        check_device(self.device)
        self.num_experts, self._dtype, self._gate = num_experts, dtype, gate_form(gate)
        self._up, self._down = (_Layer(each, num_experts, dtype, self.device) for each in (up, down))
        if gate is not None and self._up.num_outputs != 2 * self._down.num_inputs:
            raise ValueError(f"up = {self._up.num_outputs} outputs: expected 2 * {self._down.num_inputs}")
        self._arch = gpu_properties(self.device).arch
        if self.device.type == "cuda":
            self.compile_kernels()

    @property
    def num_bytes(self) -> int:
        """Bytes of the weights on the device."""
        return self._up.num_bytes + self._down.num_bytes

    def __call__(
        self,
        x: Tensor,
        expert_ids: Tensor,
        weights: Tensor,
        activation: Callable[[Tensor], Tensor] | None = None,
        norm: Callable[[Tensor], Tensor] | None = None,
    ) -> Tensor:
        """See `Experts`. Does not wait for the device."""
        check_experts(x, expert_ids, weights, self._up.num_inputs, self._dtype)
        if activation is None and self._gate is None:
            raise ValueError("activation = None: expected a function, since the experts have no gate")
        num_tokens, num_slots = expert_ids.shape
        num_pairs = num_tokens * num_slots
        out = x.new_empty((num_tokens, self._down.num_outputs))
        if num_pairs == 0:
            return out.zero_()
        expert_ids, weights = expert_ids.contiguous(), weights.contiguous()
        block = block_pairs(num_pairs, self.num_experts)
        order, blocks = self._sorted(expert_ids, block, _run)
        gate = self._gate if activation is None else None
        # Functions of the caller see all pairs, and the results of pairs of no expert are not written.
        make = x.new_empty if activation is None else x.new_zeros
        width = self._up.num_outputs // (1 if gate is None else 2)
        up = self._multiply(self._up, x, make((num_pairs, width)), order, blocks, num_slots, block, gate, _run)
        if activation is not None:
            up = activation(up).to(self._dtype)
        make = x.new_empty if norm is None else x.new_zeros
        results = make((num_pairs, self._down.num_outputs))
        y = self._multiply(self._down, up, results, order, blocks, 1, block, None, _run)
        if norm is not None:
            y = norm(y).to(self._dtype).contiguous()
        self._add(y, expert_ids, weights, out, _run)
        return out

    def compile_kernels(self) -> None:
        """Compile what calls with any number of tokens launch, so that none waits for it; the sum is left to the first call."""
        x = torch.empty((1, self._up.num_inputs), dtype=self._dtype, device=self.device)
        inner = torch.empty((1, self._down.num_inputs), dtype=self._dtype, device=self.device)
        order = torch.empty(1, dtype=torch.int32, device=self.device)
        out = torch.empty((1, max(self._up.num_outputs, self._down.num_outputs)), dtype=x.dtype, device=self.device)
        for block in (SMALL_ROWS, MIDDLE_ROWS, MIDDLE_ROWS + 1):
            self._multiply(self._down, inner, out, order, order, 1, block, None, _compile)
            self._multiply(self._up, x, out, order, order, 1, block, self._gate, _compile)
        for num_tokens in (1, CHUNK + 1):
            self._sorted(torch.empty((num_tokens, 1), dtype=torch.int64, device=self.device), SMALL_ROWS, _compile)

    def _tile(self, layer: _Layer, block: int) -> Any:
        return product_tile(self._arch, block, self._dtype.itemsize, layer.format.step)

    def _sorted(self, expert_ids: Tensor, block: int, launch: Launch) -> tuple[Tensor, Tensor]:
        """The pairs by expert, and their blocks; see `place_pairs`."""
        num_pairs, block_e = expert_ids.numel(), power_of_two(self.num_experts)
        num_chunks, block_m = -(-num_pairs // CHUNK), self._tile(self._up, block).block_m
        capacity = most_blocks(num_pairs, self.num_experts, block_m)
        sizes = num_pairs, _FIELDS * (1 + capacity), num_chunks * block_e if num_chunks > 1 else 0
        memory = torch.empty(sum(-(-size // 4) * 4 for size in sizes), dtype=torch.int32, device=self.device)
        order, blocks, counts = _parts(memory, sizes)
        if num_chunks > 1:
            launch(
                routing.count_pairs,
                (num_chunks,),
                expert_ids,
                counts,
                num_pairs,
                self.num_experts,
                CHUNK=CHUNK,
                BLOCK_E=block_e,
                num_warps=8,
            )
        launch(
            routing.place_pairs,
            (num_chunks,),
            expert_ids,
            counts,
            order,
            blocks,
            num_pairs,
            self.num_experts,
            num_chunks,
            block_m,
            IS_COUNTED=num_chunks > 1,
            CHUNK=CHUNK,
            STEP=STEP,
            CHUNK_STEP=CHUNK_STEP,
            BLOCK_E=block_e,
            num_warps=8,
        )
        return order, blocks

    def _multiply(
        self,
        layer: _Layer,
        x: Tensor,
        out: Tensor,
        order: Tensor,
        blocks: Tensor,
        pairs_per_row: int,
        block: int,
        gate: GateForm | None,
        launch: Launch,
    ) -> Tensor:
        """Write the results of one layer for all pairs to `out`."""
        if layer.order is not None:
            x = x.index_select(1, layer.order)
        elif x.stride(1) != 1:
            x = x.contiguous()
        tile = self._tile(layer, block)
        num_results = out.shape[1]
        results = tile.block_n if gate is None else tile.block_n // 2
        launch(
            kernels.expert_product,
            (most_blocks(len(out), self.num_experts, tile.block_m), -(-num_results // results)),
            x,
            *layer.held,
            out if layer.bias is None else layer.bias,
            out,
            order,
            blocks,
            order if layer.orders is None else layer.orders,
            self.num_experts,
            layer.num_outputs,
            layer.num_inputs,
            pairs_per_row,
            x.stride(0),
            out.stride(0),
            FORMAT=layer.format,
            GATE=gate,
            HAS_BIAS=layer.bias is not None,
            HAS_ORDERS=layer.orders is not None,
            IS_EVEN=layer.num_inputs % layer.format.step == 0,
            BLOCK_N=tile.block_n,
            BLOCK_M=tile.block_m,
            NUM_STAGES=tile.num_stages,
            PRECISION=float32_precision(self._arch),
            UPCAST=is_interpreting(),
            num_warps=tile.num_warps,
            **launch_options(self._arch),
        )
        return out

    def _add(self, y: Tensor, expert_ids: Tensor, weights: Tensor, out: Tensor, launch: Launch) -> None:
        size = out.shape[1]
        launch(
            kernels.add_slots,
            (len(out), -(-size // SUM_BLOCK)),
            y,
            expert_ids,
            weights,
            out,
            self.num_experts,
            size,
            y.stride(0),
            NUM_SLOTS=expert_ids.shape[1],
            BLOCK=min(SUM_BLOCK, power_of_two(size)),
            num_warps=4,
            **launch_options(self._arch),
        )


def _parts(memory: Tensor, sizes: tuple[int, ...]) -> list[Tensor]:
    """Parts of some sizes that begin at multiples of 16 bytes."""
    found, start = [], 0
    for size in sizes:
        found.append(memory[start : start + size])
        start += -(-size // 4) * 4
    return found


def _run(kernel: Any, grid: tuple[int, ...], *args: Any, **options: Any) -> None:
    kernel[grid](*args, **options)


def _compile(kernel: Any, grid: tuple[int, ...], *args: Any, **options: Any) -> None:
    kernel.warmup(*args, grid=grid, **options)
