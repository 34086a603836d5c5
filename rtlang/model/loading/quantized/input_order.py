"""Columns in another order than the inputs of a layer, as quantization by decreasing activation leaves them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rtlang.model.loading.quantized.matrix import Rows


def input_order_of(group_of: Tensor, num_inputs: int, group: int) -> dict[str, Any]:
    """The fields of `Codes` for columns whose groups do not follow one another: sorted by group where each has the same number of columns.

    Args:
        group_of: integers [in], the group of each column.
    Raises:
        ValueError: there are other numbers of columns or of groups.
    """
    groups, num_groups = group_of.long(), -(-num_inputs // max(1, group))
    if groups.shape != (num_inputs,) or (num_inputs and not 0 <= int(groups.min()) <= int(groups.max()) < num_groups):
        raise ValueError(f"has groups of {list(groups.shape)} inputs that are not those of its {num_inputs} inputs")
    plain = torch.arange(num_inputs) // max(1, group)
    if torch.equal(groups, plain):
        return {}
    order = torch.argsort(groups, stable=True)
    if not torch.equal(groups[order], plain):
        return {"group_of": groups}
    return {"input_order": order}


def reordered(codes: Rows, order: Tensor | None) -> Rows:
    """Codes with their columns in an order of inputs."""
    if order is None:
        return codes
    return lambda first, last: torch.gather(codes(first, last), 1, order.expand(last - first, -1))
