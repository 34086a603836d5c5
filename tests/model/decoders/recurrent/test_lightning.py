"""Lightning attention of MiniMax."""

from __future__ import annotations

import torch
from transformers.models.minimax.modeling_minimax import MiniMaxAttention, MiniMaxLightningAttention

from rtlang.model.decoders.recurrent.lightning import exact_decays, is_lightning, keep_exact_slopes
from tests.support.models.families import FAMILIES, make_config
from tests.support.models.tiny_models import random_model

(MINIMAX,) = (family for family in FAMILIES if family.model_type == "minimax")


def test_it_is_known_by_its_parts() -> None:
    assert is_lightning(MiniMaxLightningAttention)
    assert not is_lightning(MiniMaxAttention)


def test_decays_are_exact_while_asked_for_and_slopes_for_good() -> None:
    exact = random_model(make_config(MINIMAX)).model.layers[0].self_attn
    module = random_model(make_config(MINIMAX)).to(torch.bfloat16).model.layers[0].self_attn
    rounded = {name: getattr(module, name) for name in ("slope_rate", "query_decay", "key_decay", "diagonal_decay")}
    assert all(each.dtype is torch.bfloat16 for each in rounded.values())
    with exact_decays([module]):
        for name in rounded:
            torch.testing.assert_close(getattr(module, name), getattr(exact, name), rtol=1e-6, atol=0)
    assert all(torch.equal(getattr(module, name), value) for name, value in rounded.items())
    keep_exact_slopes([module])
    torch.testing.assert_close(module.slope_rate, exact.slope_rate, rtol=1e-6, atol=0)
