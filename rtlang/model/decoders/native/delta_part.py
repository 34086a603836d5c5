"""A gated delta layer in the place of attention: one linear layer for q, k, v, z, b and a, the layer of the kernels, output linear layer.

Its state has the names and shapes of that on the transformers decoder.

Sources: Yang et al. 2025 (Gated DeltaNet), Qwen3-Next and Qwen3.5 model cards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rtlang.model.decoders.native.layers import LayerStep, added
from rtlang.model.layers.linear import Linear
from rtlang.model.layers.states import StateShape
from rtlang.model.loading.layer_table import DeltaConfig
from rtlang_kernels.contract.delta_layer import DeltaLayer

CONV, MATRIX = "conv0", "recurrent0"
"""Names of the two tensors of a state."""


@dataclass(frozen=True, slots=True)
class DeltaPart:
    """The weights of one layer; `delta` computes from the results of `inputs` what `output` takes."""

    config: DeltaConfig
    inputs: Linear
    delta: DeltaLayer
    output: Linear

    @property
    def linears(self) -> tuple[Linear, ...]:
        """The linear layers in the order of their use."""
        return self.inputs, self.output

    def add_to(self, residual: Tensor | None, h: Tensor, step: LayerStep, layer: int) -> Tensor | None:
        """Compute states h [num_tokens, hidden_size] and write the states of sequences. Returns None, or the result that is not added yet.

        Args:
            residual: where the result is added; None for nowhere.
            layer: number of the layer among those with a recurrence.
        """
        states = step.states
        assert states is not None, "rows of a model with recurrent layers have states"
        tensors = states.memory.of(layer, CONV), states.memory.of(layer, MATRIX)
        return added(self.output, residual, self.delta(self.inputs(h), *tensors, states.plan))


def state_shapes(deltas: Sequence[DeltaConfig], dtype: torch.dtype) -> tuple[StateShape, ...]:
    """The tensors of a state in all layers, for inputs of convolutions in `dtype`."""
    return tuple(
        shape
        for layer, each in enumerate(deltas)
        for shape in (
            StateShape(layer, CONV, (each.num_channels, each.width - 1), dtype),
            StateShape(layer, MATRIX, (each.num_v_heads, each.k_dim, each.v_dim), torch.float32),
        )
    )
