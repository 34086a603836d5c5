"""A small random decoder with a recurrent layer and an attention layer, and its logits in float64 without states, pages or recurrences."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from rtlang.model.layers.attention import HeadGeometry, StepAttention, Window
from rtlang.model.layers.states import StateShape
from rtlang_kernels import ops

WIDTH, HEADS, SIZE, HIDDEN = 3, 2, 8, 24
"""Of the convolution; heads and head size of the recurrence; channels."""


class RecurrentDecoder:
    """A convolution, linear attention with a decay per head, softmax attention. As `Decoder`.

    Args:
        has_attention: whether there is the attention layer.
    """

    def __init__(self, vocab_size: int, *, has_attention: bool = True) -> None:
        generator = torch.Generator().manual_seed(0)

        def weight(*shape: int) -> Tensor:
            return torch.randn(shape, generator=generator) / shape[-1] ** 0.5

        self.dtype, self.is_row_invariant = torch.float32, False
        self.geometries = (HeadGeometry(2, 1, 16, 16),) if has_attention else ()
        self.windows: tuple[Window, ...] = ((None, None),) * len(self.geometries)
        self.state_shapes = (
            StateShape(0, "conv", (HIDDEN, WIDTH - 1), torch.float32),
            StateShape(0, "recurrent", (HEADS, SIZE, SIZE), torch.float32),
        )
        self.embedding, self.filter = weight(vocab_size, HIDDEN) * HIDDEN**0.5, weight(HIDDEN, WIDTH)
        self.inputs, self.rates = weight(SIZE + SIZE + HEADS * SIZE, HIDDEN), weight(HEADS, HIDDEN)
        self.output, self.qkv = weight(HIDDEN, HEADS * SIZE), weight(4 * 16, HIDDEN)
        self.attended, self.head = weight(HIDDEN, 2 * 16), weight(vocab_size, HIDDEN)

    def reserve(self, longest: int) -> None:
        """See `Decoder`."""

    def forward(self, attention: StepAttention) -> Tensor:
        """See `Decoder`."""
        assert attention.states is not None
        memory, plan = attention.states.memory, attention.states.plan
        x = self.embedding[attention.input_ids]
        mixed = ops.causal_conv(x, self.filter, None, memory.of(0, "conv"), plan, activation="silu")
        q, k, v = (mixed @ self.inputs.T).split_with_sizes([SIZE, SIZE, HEADS * SIZE], 1)
        out = ops.gated_recurrence(
            q[:, None],
            k[:, None],
            v.unflatten(1, (HEADS, SIZE)),
            -functional.softplus(x @ self.rates.T),
            None,
            memory.of(0, "recurrent"),
            plan,
        )
        x = x + out.flatten(1) @ self.output.T
        if self.geometries:
            q, k, v = ((x @ self.qkv.T).view(-1, 4, 16)).split_with_sizes([2, 1, 1], 1)
            x = x + attention.run(0, q.contiguous(), k, v, scale=0.25).flatten(1) @ self.attended.T
        return x.index_select(0, attention.batch.logit_indices)

    def project(self, states: Tensor) -> Tensor:
        """See `Decoder`."""
        return states @ self.head.T

    def exact(self, token_ids: list[int]) -> Tensor:
        """Logits of a whole sequence, float64 [len(token_ids), vocab_size]; the recurrence as a sum over pairs of tokens."""
        length = len(token_ids)
        x = self.embedding[token_ids].double()
        padded = functional.pad(x.T, (WIDTH - 1, 0))
        mixed = functional.silu((padded.unfold(1, WIDTH, 1) * self.filter.double()[:, None]).sum(-1)).T
        q, k, v = (mixed @ self.inputs.double().T).split_with_sizes([SIZE, SIZE, HEADS * SIZE], 1)
        decay = -functional.softplus(x @ self.rates.double().T).cumsum(0).T  # [heads, length]
        is_past = torch.ones(length, length).tril().bool()
        spans = (decay[:, :, None] - decay[:, None]).masked_fill(~is_past, -torch.inf).exp()
        out = torch.einsum("hts,shd->thd", spans * (q @ k.T), v.unflatten(1, (HEADS, SIZE)))
        x = x + out.flatten(1) @ self.output.double().T
        if self.geometries:
            q, k, v = ((x @ self.qkv.double().T).view(length, 4, 16)).split_with_sizes([2, 1, 1], 1)
            scores = torch.einsum("thd,sd->hts", q, k[:, 0]) * 0.25
            weights = scores.masked_fill(~is_past, -torch.inf).softmax(-1)
            x = x + torch.einsum("hts,sd->thd", weights, v[:, 0]).flatten(1) @ self.attended.double().T
        return x @ self.head.double().T
