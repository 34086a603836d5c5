"""The matrices of experts as a checkpoint stores them, and the layers that are made of them.

A module of experts of `transformers` declares what it needs: whether experts have gates and biases, whether rows of gates and of the other
half take turns, whether a stacked parameter is transposed. So one class serves all model types.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor

from rtlang.model.layers.linear import Linear, own_memory
from rtlang.model.layers.low_bit_modules import LowBitExperts
from rtlang.model.layers.packed_experts import BOTH, DOWN, UP
from rtlang_kernels.contract.low_bit import LinearInputs, LowBitWeight

_GATE = "gate_proj"
_ROLES = {_GATE: _GATE, "w1": _GATE, UP: UP, "w3": UP, BOTH: BOTH, DOWN: DOWN, "w2": DOWN}
_NAME = re.compile(rf"(?P<path>.+)\.(?P<expert>\d+)\.(?P<leaf>{'|'.join(_ROLES)})\.weight")


def expert_name(name: str) -> tuple[str, int, str] | None:
    """The module, the number of the expert and the role of a matrix by its name; None if it has no name of one."""
    found = _NAME.fullmatch(name)
    return None if found is None else (found["path"], int(found["expert"]), _ROLES[found["leaf"]])


class ExpertReader(Protocol):
    """The weights of a checkpoint, with an account of what has been read."""

    def low_bit(self, name: str) -> LowBitWeight | None:
        """See `CheckpointWeights`."""

    def tensor(self, name: str, dtype: torch.dtype) -> Tensor:
        """See `CheckpointWeights`."""

    def note_packed(self, name: str) -> None:
        """Account for a weight that has been packed."""


class ExpertParts:
    """The names of the matrices of one module of experts.

    Attributes:
        parameters: names of the stock module's stacked parameters: of the first layer, and of the second.
    """

    def __init__(self, path: str, stock: Any) -> None:
        """Describe `stock`, the module at `path`, while it has its parameters."""
        self._path, self._num_experts = path, stock.num_experts
        self.parameters = (BOTH if stock.has_gate else UP), DOWN
        self._shape_of: dict[str, tuple[int, int]] = {}  # of an expert, [out, in]
        for parameter in self.parameters:
            _, rows, columns = getattr(stock, parameter).shape
            self._shape_of[parameter] = (columns, rows) if stock.is_transposed else (rows, columns)
        self._name_of: dict[str, dict[int, str]] = {}  # by role and expert
        self._stacked: dict[str, str] = {}  # by parameter: the name of a tensor of all experts

    def add(self, expert: int, role: str, name: str) -> None:
        """Add the matrix `name`. Raises ValueError if there is no such expert, or another matrix in its place."""
        if expert >= self._num_experts:
            raise ValueError(f"tensor {name} is unexpected: config.json implies {self._num_experts} experts")
        other = self._name_of.setdefault(role, {}).setdefault(expert, name)
        if other != name:
            raise ValueError(f"tensors {other} and {name} are the same weight of the model")

    def add_stacked(self, parameter: str, name: str) -> None:
        """Add a tensor of the matrices of all experts, in the layout of the stock module."""
        self._stacked[parameter] = name

    def matrices(self) -> Iterator[str]:
        """Names of the matrices of single experts."""
        for by_expert in self._name_of.values():
            yield from by_expert.values()

    def names(self) -> Iterator[str]:
        """Names of all weights."""
        yield from self._stacked.values()
        yield from self.matrices()

    def check(self) -> None:
        """Raises ValueError if a matrix is missing, or the checkpoint has one twice."""
        needed = [
            role for parameter in self.parameters if parameter not in self._stacked for role in self._roles(parameter)
        ]
        missing = [
            f"{self._path}.{expert}.{role}.weight"
            for role in needed
            for expert in range(self._num_experts)
            if expert not in self._name_of.get(role, {})
        ]
        if missing:
            raise ValueError(f"the weights lack {len(missing)} tensors that config.json implies, such as {missing[0]}")
        for role in self._name_of.keys() - needed:
            name = next(iter(self._name_of[role].values()))
            raise ValueError(f"tensor {name} is unexpected: the same weights have another name as well")

    def pack(
        self,
        stock: Any,
        reader: ExpertReader,
        dtype: torch.dtype,
        device: torch.device,
        *,
        has_float_inputs: bool = False,
    ) -> LowBitExperts:
        """Make the module that stands in for `stock`, which has its biases by now.

        Args:
            has_float_inputs: do not round the inputs of weights of few bits.

        Raises:
            ValueError: a matrix has another shape than the model's.
        """
        inputs = LinearInputs.FLOAT if has_float_inputs else LinearInputs.INT8
        make = partial(Linear.of_parts, dtype=dtype, device=device, inputs=inputs)
        layers = [self._layers(parameter, stock, reader, dtype, device, make) for parameter in self.parameters]
        return LowBitExperts(stock, layers[0], layers[1], is_split=self._is_split(self.parameters[0], stock))

    def _roles(self, parameter: str) -> tuple[str, ...]:
        """The roles of the matrices of one layer."""
        return (_GATE, UP) if parameter == BOTH and BOTH not in self._name_of else (parameter,)

    def _is_split(self, parameter: str, stock: Any) -> bool:
        """Whether rows that take turns in the stock module do not do so here."""
        is_apart = parameter not in self._stacked and len(self._roles(parameter)) > 1
        return is_apart and not stock.is_concatenated

    def _layers(
        self,
        parameter: str,
        stock: Any,
        reader: ExpertReader,
        dtype: torch.dtype,
        device: torch.device,
        make: Callable[..., Linear],
    ) -> list[tuple[Linear, Tensor | None]]:
        biases = getattr(stock, f"{parameter}_bias").detach().to(device) if stock.has_bias else None
        if biases is not None and self._is_split(parameter, stock):
            biases = torch.cat([biases[:, ::2], biases[:, 1::2]], 1)
        stacked = None
        if parameter in self._stacked:
            stacked = reader.tensor(self._stacked[parameter], dtype)
            stacked = stacked.transpose(1, 2) if stock.is_transposed else stacked
        made = []
        for expert in range(self._num_experts):
            bias = None if biases is None else own_memory(biases[expert].contiguous())
            if stacked is not None:
                parts: Sequence[Tensor | LowBitWeight] = [stacked[expert].contiguous().to(device)]
                names: list[str] = []
            else:
                names = [self._name_of[role][expert] for role in self._roles(parameter)]
                parts = [_matrix(reader, name, dtype, device) for name in names]
                self._check_shapes(parameter, names, parts)
            made.append((make(parts, bias), bias))
            for name in names:
                reader.note_packed(name)
        if stacked is not None:
            reader.note_packed(self._stacked[parameter])
        return made

    def _check_shapes(self, parameter: str, names: Sequence[str], parts: Sequence[Tensor | LowBitWeight]) -> None:
        num_outputs, num_inputs = self._shape_of[parameter]
        expected = [num_outputs // len(parts), num_inputs]
        for name, part in zip(names, parts, strict=True):
            if list(part.shape) != expected:
                raise ValueError(f"tensor {name} has shape {list(part.shape)}, but config.json implies {expected}")


def _matrix(reader: ExpertReader, name: str, dtype: torch.dtype, device: torch.device) -> Tensor | LowBitWeight:
    found = reader.low_bit(name)
    return reader.tensor(name, dtype).to(device) if found is None else found
