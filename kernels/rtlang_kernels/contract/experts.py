"""Contract of the experts of a layer: each token is computed by a few of them, and their results are added.

    y[t] = sum over slots s of weights[t, s] * down[e](act(up[e](x[t]))), with e = expert_ids[t, s]

A token's experts are its *slots*, in the order of its row of `expert_ids`; a token in a slot is a *pair*.

A backend packs the layers of each expert, or stacks them: the weights of all experts are one, whose outputs follow one another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from rtlang_kernels.contract.low_bit import LowBitWeight


class ExpertGate(NamedTuple):
    """The activation of a gated expert: g * sigmoid(alpha * g) * (u + offset), of the outputs g and u of its first layer.

    Attributes:
        is_alternating: whether outputs are g, u, g, u and so on; else all g come first.
        limit: g is at most `limit`, and u from -limit to limit, before the rest; None for no limit.
    """

    is_alternating: bool = False
    alpha: float = 1.0
    offset: float = 0.0
    limit: float | None = None


@dataclass(frozen=True, slots=True)
class StackedLayer:
    """One layer of all experts.

    Attributes:
        weight: [num_experts * outputs, inputs], the outputs of the first expert first; floats on their device, or codes.
        bias: [num_experts * outputs], or None.
        input_orders: int64 [num_experts, inputs]: column i of an expert's codes belongs to its input input_orders[expert, i], where the
            orders of experts differ; the weight then has none of its own. None for one order, the weight's.
    """

    weight: Tensor | LowBitWeight
    bias: Tensor | None = None
    input_orders: Tensor | None = None


class Experts(Protocol):
    """The experts of one layer, packed by a backend. One call at a time."""

    @property
    def num_experts(self) -> int:
        """Number of experts."""

    def __call__(
        self,
        x: Tensor,
        expert_ids: Tensor,
        weights: Tensor,
        activation: Callable[[Tensor], Tensor] | None = None,
        norm: Callable[[Tensor], Tensor] | None = None,
    ) -> Tensor:
        """Compute the experts of each token and add their weighted results: [T, hidden] in the dtype of x.

        Each chosen expert is read once for all its tokens. Results of a token are added in float32 in the order of its slots. The bits of
        a token depend on its own row only, if the results of `activation` and `norm` for a row do not depend on other rows.

        Args:
            x: [T, hidden] in the dtype of the layers.
            expert_ids: int64 [T, k]; an id outside 0 to num_experts - 1 stands for no expert and adds nothing.
            weights: [T, k], any float dtype.
            activation: applied to results of the first layers, [T * k, width] in the order of pairs, pairs of no expert are zeros;
                returns [T * k, inputs of the second layers]. None: silu(gate) * up, computed by the first layers if they are
                gated, else from their results, which have all gates first.
            norm: applied to results of the second layers, [T * k, hidden] in the order of pairs, before they are weighted.
        Raises:
            ValueError: an argument has a wrong shape or dtype; names it.
        """


def check_experts(x: Tensor, expert_ids: Tensor, weights: Tensor, hidden: int, dtype: torch.dtype) -> None:
    """Check the arguments of experts with `hidden` inputs of `dtype`. Raises ValueError."""
    if x.shape[1:] != (hidden,) or x.dtype != dtype:
        raise ValueError(f"x = {x.dtype} {list(x.shape)}: expected {dtype} [any, {hidden}]")
    if expert_ids.ndim != 2 or len(expert_ids) != len(x) or expert_ids.dtype != torch.int64:
        raise ValueError(
            f"expert_ids = {expert_ids.dtype} {list(expert_ids.shape)}: expected {torch.int64} [{len(x)}, any]"
        )
    if weights.shape != expert_ids.shape:
        raise ValueError(f"weights = {list(weights.shape)}: expected {list(expert_ids.shape)}, as of expert_ids")
