"""Layers with float8 inputs against float64 on the rounded inputs and the weights; on the CPU, torch multiplies float8 matrices too."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from rtlang.model.gpu import sync_check
from rtlang.model.layers.linear import Linear
from rtlang_kernels import ops
from rtlang_kernels.contract.low_bit import HeldWeight, LinearInputs
from rtlang_kernels.dispatch import triton_backend
from rtlang_kernels.reference.low_bit import exact_weight
from rtlang_kernels.triton.linear.float8_linear import GpuFloat8Linear
from rtlang_kernels.triton.linear.low_bit_linear import GpuLowBitLinear
from tests.support.kernels.attention_cases import relative_error
from tests.support.kernels.gpu import DEVICE
from tests.support.models.low_bit_weights import FLOAT8, FORMATS, random_weight

ROWS = FLOAT8["float8 of rows"]
DTYPE = torch.bfloat16 if DEVICE.type == "cuda" else torch.float32
ERROR = 3e-3 if DEVICE.type == "cuda" else 2e-6


def inputs(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(DTYPE).to(DEVICE)


def rounded(x: Tensor) -> Tensor:
    """The inputs that a layer multiplies, in float64."""
    values = x.cpu().float()
    scales = values.abs().amax(1, keepdim=True) / 448
    return (values * (1 / scales)).to(torch.float8_e4m3fn).double() * scales.double()


def layer_of(*weights: HeldWeight, bias: Tensor | None = None, is_gated: bool = False) -> Any:
    make = triton_backend().float8_input_linear
    assert make is not None
    return make(weights, bias, is_gated, DTYPE)


def test_inputs_are_rounded_and_nothing_else() -> None:
    """Two weights with a bias, added to a residual; any number of rows, of a longer tensor."""
    weights = [random_weight(ROWS, 32, 48), random_weight(ROWS, 16, 48, seed=1)]
    exact = torch.cat([exact_weight(each) for each in weights])
    bias = inputs(48)
    layer, x = layer_of(*weights, bias=bias), inputs(5, 64)[:, :48]
    assert isinstance(layer, GpuFloat8Linear)
    wanted = rounded(x) @ exact.T + bias.cpu().double()
    assert relative_error(layer(x).cpu(), wanted) < ERROR
    residual = inputs(5, 48)
    before = residual.clone().cpu().double()
    assert layer(x, residual) is residual
    assert relative_error(residual.cpu(), before + wanted) < ERROR
    assert layer(x[:0]).shape == (0, 48)
    assert relative_error(layer(x[1:2]).cpu(), wanted[1:2]) < ERROR
    change = layer(x).cpu() - bias.cpu()
    assert 0.01 < relative_error(change, x.cpu().double() @ exact.T) < 0.05  # of rounding


def test_gates_are_applied() -> None:
    weights = [random_weight(ROWS, 16, 32, seed) for seed in range(2)]
    layer, x = layer_of(*weights, is_gated=True), inputs(3, 32)
    gate, up = (rounded(x) @ exact_weight(each).T for each in weights)
    assert layer.out_features == 16
    assert relative_error(layer(x).cpu(), functional.silu(gate) * up) < 2 * ERROR


def test_rows_of_the_weight_are_exact() -> None:
    weight = random_weight(ROWS, 32, 48)
    layer, places = layer_of(weight), torch.tensor([31, 0, 7])
    assert torch.equal(layer.rows(places.to(DEVICE)).cpu(), exact_weight(weight)[places].to(DTYPE))
    assert layer.num_bytes == 32 * 48 + 32 * 4
    if DEVICE.type == "cpu":
        with pytest.raises(IndexError, match=r"indices\[0\] = 32"):
            layer.rows(torch.tensor([32]))


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # of numpy, in the interpreter
def test_a_row_that_is_not_finite_changes_no_other() -> None:
    layer, x = layer_of(random_weight(ROWS, 16, 32)), inputs(3, 32)
    clean = layer(x).clone()
    for bad in (torch.nan, torch.inf):
        x[1, 3] = bad
        found = layer(x)
        assert torch.equal(found[[0, 2]], clean[[0, 2]])
        assert bool(found[1].isnan().all())


def test_a_call_does_not_wait_for_the_device() -> None:
    layer, x = layer_of(random_weight(ROWS, 16, 32)), inputs(3, 32)
    layer(x)
    assert sync_check.obstacle(lambda: layer(x), torch.device("cpu")) is None


@pytest.mark.parametrize(
    "weight",
    [
        random_weight(FLOAT8["float8 of 128"], 16, 128),
        random_weight(FORMATS["int8 of rows"], 16, 64),
        random_weight(ROWS, 24, 64),
        random_weight(ROWS, 16, 40),
    ],
    ids=["groups", "integers", "outputs", "inputs"],
)
def test_other_weights_have_float_inputs(weight: HeldWeight) -> None:
    assert isinstance(layer_of(weight), GpuLowBitLinear)


def test_a_wrong_number_of_inputs_is_told() -> None:
    with pytest.raises(ValueError, match=r"x = \[2, 16\]: expected 32 inputs"):
        layer_of(random_weight(ROWS, 16, 32))(inputs(2, 16))


def test_layers_have_them_only_if_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    if DEVICE.type == "cpu":
        monkeypatch.setenv("RTLANG_KERNELS", "triton")
    weights = [random_weight(ROWS, 16, 32)]
    for asked, kind in ((LinearInputs.FLOAT8, GpuFloat8Linear), (LinearInputs.FLOAT, GpuLowBitLinear)):
        assert type(Linear.of_parts(weights, dtype=DTYPE, device=DEVICE, inputs=asked).packed) is kind
    assert ops.backend_named("cpu").float8_input_linear is None
