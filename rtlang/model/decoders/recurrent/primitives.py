"""The functions that recurrent layers of `transformers` call, over the states of a step.

They have the signatures of the library's functions for whole sequences, take one flattened batch [1, T, ...] of all rows, and continue each
row from its state. Everything else that a layer computes (projections, norms, gates) sees the tokens of all rows as one batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from rtlang.model.layers.states import StateShape, StepStates
from rtlang_kernels import ops

_NORM_EPS = 1e-6  # of normalized queries and keys, in every family
_NOTHING = torch.empty(0)


class MixerStates:
    """The states of one recurrent module, by the order in which it asks for them.

    Attributes:
        layer: its number among the recurrent modules of the model.
        shapes: of its states, by name, once it was run without a step.
    """

    def __init__(self, layer: int) -> None:
        self.layer = layer
        self.shapes: dict[str, StateShape] = {}
        self.counts: Counter[str] = Counter()


class RecurrentStep:
    """What the recurrent modules of one model compute with in the current forward pass.

    Attributes:
        states: of the step; None in a pass that only learns the shapes of states.
    """

    def __init__(self) -> None:
        self.states: StepStates | None = None
        self._mixer: MixerStates | None = None

    def run(self, mixer: MixerStates, compute: Callable[[], Any]) -> Any:
        """Call `compute`, whose functions work on the states of `mixer`."""
        before, self._mixer = self._mixer, mixer
        mixer.counts.clear()
        try:
            return compute()
        finally:
            self._mixer = before

    @property
    def functions(self) -> dict[str, Callable[..., Any]]:
        """By the names that files of the library give them."""
        return {
            "causal_conv1d_fn": self.causal_conv,
            "torch_chunk_gated_delta_rule": self.delta_rule,
            "chunk_kimi_delta_attention": self.delta_rule,
            "mamba2_chunk_scan": self.mamba2_scan,
            "mamba_selective_scan": self.mamba_scan,
        }

    def take(self, kind: str, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor | None:
        """The next state of this kind of the current module, in all slots: [num_slots, *shape]; None while shapes are learned."""
        mixer = self._mixer
        assert mixer is not None, "a recurrent function was called outside of its module"
        name = f"{kind}{mixer.counts[kind]}"
        mixer.counts[kind] += 1
        if self.states is None:
            mixer.shapes[name] = StateShape(mixer.layer, name, shape, dtype)
            return None
        return self.states.memory.of(mixer.layer, name)

    def causal_conv(
        self,
        hidden_states: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        activation: str | None = None,
        **_: Any,
    ) -> Tensor:
        """Convolve [1, C, T] with weight [C, width]: [1, C, T]."""
        states = self.take("conv", (weight.shape[0], weight.shape[1] - 1), hidden_states.dtype)
        if states is None:
            return torch.zeros_like(hidden_states)
        assert self.states is not None
        dtype = hidden_states.dtype
        is_fused = activation in (None, "silu", "swish")
        y = ops.causal_conv(
            hidden_states[0].T,
            weight.to(dtype),
            None if bias is None else bias.to(dtype),
            states,
            self.states.plan,
            activation=activation if is_fused else None,
        )
        y = y if is_fused else _activation(activation)(y)
        return y.T[None]

    def recurrence(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        log_decay: Tensor,
        beta: Tensor | None = None,
        *,
        scale: float = 1.0,
        is_delta: bool = False,
        norm_eps: float | None = None,
    ) -> Tensor:
        """`ops.gated_recurrence` on the next state of the current module."""
        states = self.take("recurrent", (v.shape[1], k.shape[2], v.shape[2]), torch.float32)
        if states is None:
            return torch.zeros_like(v)
        assert self.states is not None
        plan = self.states.plan
        return ops.gated_recurrence(
            q, k, v, log_decay, beta, states, plan, scale=scale, is_delta=is_delta, norm_eps=norm_eps
        )

    def delta_rule(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        g: Tensor,
        beta: Tensor,
        *_: Any,
        use_qk_l2norm_in_kernel: bool = False,
        **__: Any,
    ) -> tuple[Tensor, Tensor]:
        """The gated delta rule with a decay per head, g [1, T, H], or per key dimension, g [1, T, H, Dk]."""
        eps = _NORM_EPS if use_qk_l2norm_in_kernel else None
        dtype = value.dtype
        out = self.recurrence(
            query[0].to(dtype),
            key[0].to(dtype),
            value[0],
            g[0].float(),
            beta[0].to(dtype),
            scale=query.shape[-1] ** -0.5,
            is_delta=True,
            norm_eps=eps,
        )
        return out[None].to(query.dtype), _NOTHING

    def mamba2_scan(
        self,
        hidden_states: Tensor,
        dt: Tensor,
        A: Tensor,
        B: Tensor,
        C: Tensor,
        *_: Any,
        D: Tensor | None = None,
        dt_bias: Tensor | None = None,
        dt_softplus: bool = False,
        dt_limit: tuple[float, float] = (0.0, float("inf")),
        return_final_states: bool = False,
        **__: Any,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """The scan of Mamba-2 over hidden_states [1, T, H, P], B and C [1, T, G, N]: [1, T, H, P] in float32."""
        dt = _time_steps(dt, dt_bias, dt_softplus).clamp(*dt_limit)[0].float()  # [T, H]
        x = hidden_states[0].float()
        out = self.recurrence(C[0].float(), B[0].float(), x * dt[..., None], dt * A.float())
        if D is not None:
            out = out + D[:, None] * x
        return (out[None], _NOTHING) if return_final_states else out[None]

    def mamba_scan(
        self,
        hidden_states: Tensor,
        dt: Tensor,
        A: Tensor,
        B: Tensor,
        C: Tensor,
        D: Tensor | None = None,
        z: Tensor | None = None,
        delta_bias: Tensor | None = None,
        delta_softplus: bool = False,
        return_last_state: bool = False,
        **_: Any,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """The scan of Mamba over hidden_states and dt [1, C, T], B and C [1, N, T]: [1, C, T] in float32."""
        states = self.take("recurrent", (A.shape[0], A.shape[1]), torch.float32)
        bias = None if delta_bias is None else delta_bias[:, None]
        dt = _time_steps(dt, bias, delta_softplus)
        x = hidden_states[0].T.float()
        if states is None:
            out = torch.zeros_like(x)
        else:
            assert self.states is not None
            out = ops.selective_scan(
                x,
                dt[0].T.float(),
                A.float(),
                B[0].T.float(),
                C[0].T.float(),
                None if D is None else D.float(),
                states,
                self.states.plan,
            )
        out = out.T[None]
        if z is not None:
            out = out * functional.silu(z)
        return (out, _NOTHING) if return_last_state else out


def _time_steps(dt: Tensor, bias: Tensor | None, has_softplus: bool) -> Tensor:
    dt = dt if bias is None else dt + bias.to(dt.dtype)
    return functional.softplus(dt) if has_softplus else dt


def _activation(name: str | None) -> Any:
    from transformers.activations import ACT2FN

    return ACT2FN[name]
