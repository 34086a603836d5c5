"""Lightning attention of MiniMax over state slots: linear attention with a fixed decay per head.

The library computes it in blocks inside of one method, and keeps its state in a cache of the model's own. Here it is one recurrence.
Source: Qin et al. 2024 (Lightning Attention-2); MiniMax-01.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from rtlang.model.decoders.recurrent.primitives import RecurrentStep
from rtlang.model.decoders.recurrent.private_class import names_used

_PARTS = {"qkv_proj", "act_fn", "norm", "output_gate", "out_proj", "slope_rate", "set_linear_cache"}
_DECAYS = "slope_rate", "query_decay", "key_decay", "diagonal_decay"


def is_lightning(kind: type) -> bool:
    """Whether modules of this class compute lightning attention as MiniMax does."""
    return kind.__name__.endswith("LightningAttention") and names_used(kind) >= _PARTS


@contextmanager
def exact_decays(modules: Iterable[torch.nn.Module]) -> Iterator[None]:
    """While it is open, the decays of these modules are in float32; the library rounds them to the dtype of the model."""
    rounded: list[tuple[Any, str, Tensor]] = []
    for module in modules:
        slope, device = _slope_rate(module), next(module.parameters()).device
        for name, value in zip(_DECAYS, (slope, *module.decay_factors(slope)), strict=True):  # type: ignore[operator]
            rounded.append((module, name, getattr(module, name)))
            setattr(module, name, value.to(device))
    try:
        yield
    finally:
        for module, name, value in rounded:
            setattr(module, name, value)


def keep_exact_slopes(modules: Iterable[torch.nn.Module]) -> None:
    """Give modules their slopes in float32 for good."""
    for module in modules:
        module.slope_rate = _slope_rate(module).to(next(module.parameters()).device)


def _slope_rate(module: Any) -> Tensor:
    return torch.as_tensor(module.get_slope_rate(torch.device("cpu")), dtype=torch.float32)


def forward_over(step: RecurrentStep) -> Callable[..., tuple[Tensor, None]]:
    """The method `forward` for modules on the states of `step`."""

    def forward(self: Any, hidden_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, None]:
        def compute() -> Tensor:
            num_tokens, heads = hidden_states.shape[1], self.num_attention_heads
            qkv = self.act_fn(self.qkv_proj(hidden_states)).view(num_tokens, heads, 3 * self.head_dim)
            q, k, v = qkv.split(self.head_dim, dim=2)
            log_decay = -self.slope_rate.view(1, heads).float().expand(num_tokens, heads)
            out = step.recurrence(q, k, v, log_decay.contiguous())
            out = self.norm(out.reshape(1, num_tokens, -1))
            gated: Tensor = functional.sigmoid(self.output_gate(hidden_states)) * out
            return torch.as_tensor(self.out_proj(gated))

        return step.run(self.rtlang_states, compute), None

    return forward
