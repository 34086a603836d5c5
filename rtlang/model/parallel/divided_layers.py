"""Divides a model of `transformers` among ranks, in place: each rank keeps its part of the parameters, and layers sum or gather outputs.

A divided linear layer is an ordinary `torch.nn.Linear` with fewer rows or columns, so kernels may replace it as they do elsewhere; a layer
around it talks to the other ranks. Every rank computes the same number of tokens in the same order, or all of them wait for ever.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn import functional

from rtlang.model.parallel.group import RankGroup
from rtlang.model.parallel.plan_table import Cut, Range, Style


def divide(model: nn.Module, cuts: Iterable[Cut], group: RankGroup) -> None:
    """Keep this rank's part of `model`, in place. Parts are copies, so that the memory of what is left out can be freed."""
    parts = _Parts()
    for cut in cuts:
        if cut.style is Style.WHOLE:
            continue
        if cut.is_parameter:
            _divide_parameter(model, cut, parts)
            continue
        module = model.get_submodule(cut.name)
        if cut.style is Style.SUM:
            module.register_forward_hook(lambda _, __, output: group.all_reduce(output))
        elif cut.style is Style.SHARE:
            module.register_forward_pre_hook(lambda _, args: (args[0] / group.size, *args[1:]))
        elif cut.style is Style.VOCABULARY:
            assert isinstance(module, nn.Embedding)
            model.set_submodule(cut.name, DividedEmbedding(module, cut.ranges[0], group, parts))
        else:
            assert type(module) is nn.Linear
            model.set_submodule(cut.name, _divided_linear(module, cut, group, parts))


class _Parts:
    """Parts of parameters. Tied layers that are cut alike stay tied."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, int, tuple[Range, ...]], tuple[weakref.ref[Tensor], nn.Parameter]] = {}

    def of(self, parameter: Tensor, dim: int, ranges: tuple[Range, ...]) -> nn.Parameter:
        """The part of `parameter` with `ranges` of a dimension, one after another."""
        key = id(parameter), dim, ranges
        whole, part = self._made.get(key, (None, None))
        if (
            part is None or whole is None or whole() is not parameter
        ):  # the id may have belonged to another one, freed by now
            pieces = [parameter.detach().narrow(dim, start, stop - start) for start, stop in ranges]
            made = torch.cat(pieces, dim) if len(pieces) > 1 else pieces[0].clone(memory_format=torch.contiguous_format)
            part = nn.Parameter(made, requires_grad=False)
            self._made[key] = weakref.ref(parameter), part
        return part


def _divide_parameter(model: nn.Module, cut: Cut, parts: _Parts) -> None:
    owner_name, _, leaf = cut.name.rpartition(".")
    owner = model.get_submodule(owner_name)
    parameter = getattr(owner, leaf)
    is_by_rows = cut.style in (Style.COLUMNS, Style.PACKED_COLUMNS) and parameter.ndim > 1
    setattr(owner, leaf, parts.of(parameter, parameter.ndim - 2 if is_by_rows else parameter.ndim - 1, cut.ranges))


def _divided_linear(module: nn.Linear, cut: Cut, group: RankGroup, parts: _Parts) -> nn.Module:
    if cut.style in (Style.COLUMNS, Style.PACKED_COLUMNS, Style.GATHERED_COLUMNS):
        bias = None if module.bias is None else parts.of(module.bias, 0, cut.ranges)
        linear = _linear(parts.of(module.weight, 0, cut.ranges), bias)
        return GatheredModule(linear, cut.size, group) if cut.style is Style.GATHERED_COLUMNS else linear
    own_input = cut.ranges[0] if cut.style is Style.ROWS_OF_WHOLE else None
    return SummedModule(_linear(parts.of(module.weight, 1, cut.ranges), None), module.bias, own_input, group)


def _linear(weight: nn.Parameter, bias: nn.Parameter | None) -> nn.Linear:
    with torch.device("meta"):
        made = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, dtype=weight.dtype)
    made.weight = weight
    if bias is not None:
        made.bias = bias
    return made


class _AroundLinear(nn.Module):
    """A linear layer, and what needs other ranks."""

    def __init__(self, linear: nn.Linear, group: RankGroup) -> None:
        super().__init__()
        self.linear, self.group = linear, group

    @property
    def weight(self) -> Tensor:
        """This rank's part of the weight, or an empty tensor of its dtype; for code that reads dtype or device."""
        return self.linear.weight


class SummedModule(_AroundLinear):
    """A linear layer with a part of the inputs; outputs of all ranks are summed, then a bias is added once."""

    def __init__(self, linear: nn.Linear, bias: Tensor | None, own_input: Range | None, group: RankGroup) -> None:
        """Take over `linear` [out_features, a part of in_features] without a bias.

        Args:
            own_input: indices of the features that the layer takes from a whole input; None if it gets its part only.
        """
        super().__init__(linear, group)
        self.bias, self.own_input = bias, own_input

    def forward(self, x: Tensor) -> Tensor:
        """x [..., in_features or a part of it] -> [..., out_features], equal on all ranks."""
        if self.own_input is not None:
            x = x[..., slice(*self.own_input)]
        y = self.group.all_reduce(self.linear(x))
        return y if self.bias is None else y.add_(self.bias)


class GatheredModule(_AroundLinear):
    """A linear layer with a part of the outputs, which all ranks put together."""

    def __init__(self, linear: nn.Linear, out_features: int, group: RankGroup) -> None:
        super().__init__(linear, group)
        self.out_features = out_features
        self._longest = -(-out_features // group.size)

    def forward(self, x: Tensor) -> Tensor:
        """x [..., in_features] -> [..., out_features], equal on all ranks."""
        y = self.linear(x)
        y = functional.pad(y, (0, self._longest - y.shape[-1])) if y.shape[-1] < self._longest else y
        return self.group.all_gather(y.contiguous())[..., : self.out_features]


class DividedEmbedding(nn.Module):
    """An embedding with a part of the vocabulary; outputs of all ranks are summed, all but one of which are zero for a token."""

    def __init__(self, embedding: nn.Embedding, own: Range, group: RankGroup, parts: _Parts) -> None:
        """Take over `embedding`, of which this rank keeps the token ids `own`; it may be of a subclass that scales its output."""
        super().__init__()
        self.own, self.group = own, group
        self.embedding = embedding
        embedding.weight = parts.of(embedding.weight, 0, (own,))
        embedding.num_embeddings, embedding.padding_idx = own[1] - own[0], None

    @property
    def weight(self) -> Tensor:
        """This rank's part of the weight; for code that reads dtype or device."""
        return self.embedding.weight

    def forward(self, input_ids: Tensor) -> Tensor:
        """input_ids int64 [...] -> [..., hidden_size], equal on all ranks."""
        start, stop = self.own
        is_foreign = (input_ids < start) | (input_ids >= stop)
        rows = self.embedding((input_ids - start).masked_fill(is_foreign, 0))
        return self.group.all_reduce(rows.masked_fill_(is_foreign[..., None], 0))
