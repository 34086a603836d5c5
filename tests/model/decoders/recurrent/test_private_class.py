"""Private subclasses whose methods find other functions."""

from __future__ import annotations

from typing import Any

import torch
from transformers.models.mamba.modeling_mamba import MambaMixer

from rtlang.model.decoders.recurrent.private_class import methods_of, names_used, weights_read, with_functions
from tests.support.models.tiny_models import make_model


def mixer_of(model: Any) -> Any:
    return model.backbone.layers[0].mixer


def test_one_module_calls_other_functions_and_its_class_stays() -> None:
    calls: list[str] = []

    def noted(hidden_states: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
        calls.append("conv")
        return hidden_states

    changed, stock = make_model("mamba"), make_model("mamba")
    x = torch.randn(1, 5, 64, generator=torch.Generator().manual_seed(0))
    before = mixer_of(stock)(x)
    globals_before = dict(MambaMixer.forward.__globals__)
    mixer_of(changed).__class__ = with_functions(MambaMixer, {"causal_conv1d_fn": noted})
    assert isinstance(mixer_of(changed), MambaMixer)
    assert not torch.allclose(mixer_of(changed)(x), before)
    assert calls == ["conv"]
    assert torch.equal(mixer_of(stock)(x), before)
    assert torch.equal(mixer_of(make_model("mamba"))(x), before)
    assert calls == ["conv"]
    assert dict(MambaMixer.forward.__globals__) == globals_before


def test_a_hidden_method_is_there_under_another_name() -> None:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return -torch.as_tensor(self.stock_forward(x))

    module, stock = mixer_of(make_model("mamba")), mixer_of(make_model("mamba"))
    module.__class__ = with_functions(MambaMixer, {}, forward=forward)
    x = torch.randn(1, 5, 64, generator=torch.Generator().manual_seed(0))
    assert torch.equal(module(x), -stock(x))


def test_code_is_read_below_decorators() -> None:
    assert "forward" in dict(methods_of(MambaMixer))
    assert {"update_conv_state", "mamba_selective_scan", "causal_conv1d_fn"} <= names_used(MambaMixer)
    assert {"dt_proj", "conv1d"} <= weights_read(MambaMixer)
    assert "out_proj" not in weights_read(MambaMixer) or "mamba_inner_fn" in names_used(MambaMixer)
