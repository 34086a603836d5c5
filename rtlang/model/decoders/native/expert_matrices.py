"""The matrices of the experts of a layer, in any of the layouts of published checkpoints.

A checkpoint has two or three matrices per expert, or two tensors of all experts. Gate and up are separate, or one matrix with the rows of
gate first or with alternating rows. A backend that computes all experts at once gets them as one weight; otherwise each expert has layers
of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from rtlang.model.layers.linear import Linear, own_memory
from rtlang.model.layers.weight_source import WeightSource, matrix
from rtlang.model.loading.layer_table import ExpertsConfig
from rtlang_kernels.contract.experts import ExpertGate, StackedLayer
from rtlang_kernels.contract.low_bit import ColumnsOf, LowBitWeight, StackedWeight, can_stack

_BOTH, _DOWN = "gate_up_proj", "down_proj"
Parts = list[Tensor | LowBitWeight]


class ExpertMatrices:
    """Reads the matrices of one layer.

    Args:
        source: the weights.  prefix: of their names, with the part's.
        config: of the experts.  hidden_size: inputs and outputs of an expert.

    Attributes:
        gate: the activation, for the order of outputs that the layers have.
    """

    def __init__(self, source: WeightSource, prefix: str, config: ExpertsConfig, hidden_size: int) -> None:
        self._source, self._prefix, self._config, self._hidden = source, prefix, config, hidden_size
        self._wholes = {name for name in (_BOTH, _DOWN) if source.has(f"{prefix}{name}")}
        self._is_joined = source.has(f"{prefix}0.{_BOTH}.weight")
        has_both = _BOTH in self._wholes or self._is_joined
        self.gate: ExpertGate = config.gate if has_both else config.gate._replace(is_alternating=False)

    def stacked(self) -> tuple[StackedLayer, StackedLayer] | None:
        """Both layers of all experts, or None if the formats of weights differ. Raises ModelLoadError."""
        biases = self._biases()
        found = []
        for name, bias in zip((_BOTH, _DOWN), biases, strict=True):
            layer = self._stacked(name)
            if layer is None:
                return None
            found.append(layer if bias is None else replace(layer, bias=bias.flatten()))
        return found[0], found[1]

    def packed(self, make: Callable[..., Linear]) -> tuple[tuple[Linear, ...], tuple[Linear, ...]]:
        """The first and the second layer of each expert, each made before the next one is read.

        Args:
            make: `Linear.of_parts`. First layers are gated, if they can be.
        """
        up, down = [], []
        is_gated = self.gate == ExpertGate()
        of_up, of_down = self._biases()
        wholes = {name: self._whole(name) for name in self._wholes}

        def matrices(expert: int, name: str) -> Parts:
            if name in wholes:
                return [wholes[name][expert]]
            return self._up(expert) if name == _BOTH else self._down(expert)

        for expert in range(self._config.num_experts):
            bias, options = None if of_up is None else of_up[expert].clone(), {"is_gated": True} if is_gated else {}
            up.append(make(matrices(expert, _BOTH), bias, **options))
            bias = None if of_down is None else of_down[expert].clone()
            down.append(make(matrices(expert, _DOWN), bias))
        return tuple(up), tuple(down)

    def _up(self, expert: int) -> Parts:
        """Gate and up of an expert, or both as one matrix."""
        inner, first, second = self._config.intermediate_size, *self._config.names[:2]
        sizes = {_BOTH: 2 * inner} if self._is_joined else {first: inner, second: inner}
        return [self._matrix(expert, name, size, self._hidden) for name, size in sizes.items()]

    def _down(self, expert: int) -> Parts:
        """The matrix of the second layer."""
        name = _DOWN if self._is_joined else self._config.names[2]
        return [self._matrix(expert, name, self._hidden, self._config.intermediate_size)]

    def _matrix(self, expert: int, name: str, num_outputs: int, num_inputs: int) -> Tensor | LowBitWeight:
        return matrix(self._source, f"{self._prefix}{expert}.{name}.weight", (num_outputs, num_inputs))

    def _whole(self, name: str) -> Tensor:
        """A tensor of all experts, [experts, out, in]."""
        config, inner = self._config, self._config.intermediate_size
        sizes = (2 * inner, self._hidden) if name == _BOTH else (self._hidden, inner)
        if config.is_transposed:
            return self._source.tensor(f"{self._prefix}{name}", (config.num_experts, *sizes[::-1])).transpose(1, 2)
        return self._source.tensor(f"{self._prefix}{name}", (config.num_experts, *sizes))

    def _biases(self) -> tuple[Tensor | None, Tensor | None]:
        """Biases of the layers, [experts, out]."""
        if not self._config.has_bias:
            return None, None
        count = self._config.num_experts
        up = self._source.tensor(f"{self._prefix}{_BOTH}_bias", (count, 2 * self._config.intermediate_size))
        if self._config.gate.is_alternating and not self.gate.is_alternating:
            up = torch.cat([up[:, ::2], up[:, 1::2]], 1)
        return up, self._source.tensor(f"{self._prefix}{_DOWN}_bias", (count, self._hidden))

    def _stacked(self, name: str) -> StackedLayer | None:
        """One layer of all experts without its biases, or None."""
        if name in self._wholes:
            return StackedLayer(own_memory(self._whole(name).contiguous()).flatten(0, 1))
        part = self._up if name == _BOTH else self._down
        count, first = self._config.num_experts, part(0)
        if not any(isinstance(each, Tensor) for each in first):
            return _stacked_codes([first, *(part(expert) for expert in range(1, count))])
        stack: Tensor | None = None
        for expert in range(count):  # one in memory at a time beside the stack
            floats = [each for each in (first if expert == 0 else part(expert)) if isinstance(each, Tensor)]
            if len(floats) < len(first):
                return None
            num_rows = sum(map(len, floats))
            if stack is None:
                stack = floats[0].new_empty((count * num_rows, floats[0].shape[1]))
            torch.cat(floats, out=stack[expert * num_rows : (expert + 1) * num_rows])
        return None if stack is None else StackedLayer(stack)


def _stacked_codes(parts_of: Sequence[Parts]) -> StackedLayer | None:
    """The matrices of each expert as one weight; None if a matrix is of floats, or formats or the orders of inputs of an expert differ."""
    codes = [[each for each in parts if not isinstance(each, Tensor)] for parts in parts_of]
    if any(len(own) < len(parts) for own, parts in zip(codes, parts_of, strict=True)):
        return None
    if not all(can_stack(own[0], each) for own in codes for each in own):
        return None
    first = codes[0][0]
    if all(can_stack(first, own[0]) for own in codes):
        return StackedLayer(StackedWeight([each for own in codes for each in own]))
    columns = [ColumnsOf(each) for own in codes for each in own]
    if not all(can_stack(columns[0], each) for each in columns):
        return None
    usual = torch.arange(first.shape[1])
    orders = (own[0].input_order for own in codes)
    return StackedLayer(
        StackedWeight(columns), input_orders=torch.stack([usual if each is None else each for each in orders])
    )
