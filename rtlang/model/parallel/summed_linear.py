"""A linear layer whose inputs are divided among the ranks."""

from __future__ import annotations

from torch import Tensor

from rtlang.model.layers.linear import Linear
from rtlang.model.parallel.group import RankGroup


class SummedLinear(Linear):
    """A linear layer of which every rank has some of the inputs; results are added up over all ranks."""

    __slots__ = ("_group",)
    _group: RankGroup

    @classmethod
    def of(cls, linear: Linear, group: RankGroup) -> SummedLinear:
        """Take over a layer."""
        made = cls.__new__(cls)
        for name in Linear.__slots__:
            setattr(made, name, getattr(linear, name))
        made._group = group
        return made

    def __call__(self, x: Tensor) -> Tensor:
        """The inputs of this rank [num_rows, own features] -> [num_rows, out_features]."""
        return self._group.all_reduce(super().__call__(x))

    def add_to(self, residual: Tensor, x: Tensor) -> Tensor | None:
        """Returns the result, which the norm that follows adds to the residual."""
        return self(x)
