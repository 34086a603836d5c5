"""A narrow model inside the mode computes what the same model in float32 does."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from rtlang.model.decoders import float32_math
from rtlang.model.decoders.float32_math import Float32Math
from tests.support.models.tiny_models import make_model

FAMILIES = ["llama", "gemma2", "gpt2", "gpt_oss", "mixtral", "deepseek_v3", "opt"]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_logits_are_those_of_the_same_weights_in_float32(family: str, dtype: torch.dtype) -> None:
    model = make_model(family).to(dtype)
    ids = torch.arange(40, 63)[None]
    with torch.inference_mode(), Float32Math():
        found = model(ids, use_cache=False).logits
    with torch.inference_mode():
        narrow = model(ids, use_cache=False).logits
        expected = model.float()(ids, use_cache=False).logits
    assert found.dtype is torch.float32
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    assert float((narrow.float() - expected).abs().max()) > 1e-3, "the dtype should matter"


def test_weights_stay_as_they_are() -> None:
    model = make_model("llama").to(torch.bfloat16)
    before = {name: each.clone() for name, each in model.state_dict().items()}
    with torch.inference_mode(), Float32Math():
        model(torch.arange(5)[None], use_cache=False)
    for name, each in model.state_dict().items():
        assert each.dtype is torch.bfloat16
        assert torch.equal(each, before[name]), name


def test_a_large_weight_is_converted_a_few_rows_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(float32_math, "_BLOCK", 64)
    layer, x = torch.nn.Linear(16, 50).to(torch.bfloat16), torch.randn(3, 16)
    expected = torch.nn.functional.linear(x, layer.weight.float(), layer.bias.float())
    sizes: list[int] = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            out = func(*args, **(kwargs or {}))
            if "to" in func.name() and isinstance(out, torch.Tensor) and out.dtype is torch.float32:
                sizes.append(out.numel())
            return out

    with torch.inference_mode(), Watch(), Float32Math():
        found = layer(x)
    torch.testing.assert_close(found, expected)
    assert max(sizes) == 64  # 4 rows of the weight
    assert sum(sizes) == layer.weight.numel() + layer.bias.numel()


@pytest.mark.parametrize(
    ("operation", "dtype"),
    [
        (lambda x: x.bfloat16(), torch.float32),
        (lambda x: x.to(torch.bfloat16), torch.float32),
        (lambda x: x.to(torch.float64), torch.float64),
        (lambda x: torch.zeros(2, dtype=torch.bfloat16), torch.float32),
        (lambda x: x.sum(0, dtype=torch.bfloat16), torch.float32),
        (lambda x: torch.softmax(x, -1, dtype=torch.float16), torch.float32),
        (lambda x: x + 1, torch.float32),
        (lambda x: torch.cat([x, x.float()]), torch.float32),
        (lambda x: x.view(-1), torch.bfloat16),  # computed with in float32 later
        (lambda x: x[torch.tensor([0])], torch.float32),
        (lambda x: x.float().index_add_(0, torch.tensor([0]), x[:1]), torch.float32),
        (lambda x: x.clone().float().masked_fill_(x > 0, x.amax()), torch.float32),
        (lambda x: x.long(), torch.int64),
    ],
)
def test_operations_return_float32(operation: Any, dtype: torch.dtype) -> None:
    x = torch.randn(3, 4).to(torch.bfloat16)
    with torch.inference_mode(), Float32Math():
        assert operation(x).dtype is dtype


def test_operations_in_place_keep_the_dtype_of_their_target() -> None:
    target = torch.zeros(2, 4, dtype=torch.bfloat16)
    with torch.inference_mode(), Float32Math():
        target[torch.tensor([1])] = torch.full((1, 4), 0.5)
        target.add_(torch.ones(4))
    assert target.dtype is torch.bfloat16
    assert target.tolist() == [[1.0] * 4, [1.5] * 4]
