"""A linear layer whose inputs are divided among the ranks."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from rtlang.model.layers.linear import Linear
from rtlang.model.parallel.group import RankGroup


class SummedLinear(Linear):
    """A linear layer of which every rank has some of the inputs; results are added up over all ranks.

    With int8 inputs, all ranks quantize a token's inputs with one scale, as a single process does: a further input, whose weights are
    zero, carries the largest value of all ranks.
    """

    __slots__ = ("_group",)
    _group: RankGroup

    @classmethod
    def of(cls, linear: Linear, group: RankGroup) -> SummedLinear:
        """Take over a layer; an int8 one must have been made from `with_shared_scale`."""
        made = cls.__new__(cls)
        for name in Linear.__slots__:
            setattr(made, name, getattr(linear, name))
        made._group = group
        return made

    def __call__(self, x: Tensor) -> Tensor:
        """The inputs of this rank [num_rows, own features] -> [num_rows, out_features]."""
        if self.is_int8:
            largest = self._group.all_max(x.abs().amax(1, keepdim=True))
            x = torch.cat([x, largest], 1)
        return self._group.all_reduce(super().__call__(x))

    def add_to(self, residual: Tensor, x: Tensor) -> Tensor | None:
        """Returns the result, which the norm that follows adds to the residual."""
        return self(x)


def with_shared_scale(weight: Tensor) -> Tensor:
    """An int8 weight [out, in] with a further input of weight zero; see `SummedLinear`."""
    return functional.pad(weight, (0, 1))
