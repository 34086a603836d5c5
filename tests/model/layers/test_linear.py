"""Linear layers of the decoders, packed and plain, against float64."""

from __future__ import annotations

import dataclasses
import weakref
from pathlib import Path

import pytest
import torch

from rtlang.model.gpu import sync_check
from rtlang.model.layers.linear import JoinedLayers, Linear, PackedModule, pack_linears, tune_linears
from rtlang_kernels import dispatch
from rtlang_kernels.contract.low_bit import LinearInputs
from rtlang_kernels.reference.low_bit import exact_weight
from tests.support.models.low_bit_weights import FORMATS, random_weight

TOLERANCE = {torch.float32: 2e-6, torch.bfloat16: 4e-3}


def exact(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    y = x.double() @ weight.double().T
    return y if bias is None else y + bias.double()


def relative_error(found: torch.Tensor, expected: torch.Tensor) -> float:
    return float((found.double() - expected).norm() / expected.norm())


@pytest.mark.parametrize("is_packed", [True, False], ids=["packed", "plain"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(("out_features", "in_features"), [(64, 64), (515, 384), (259, 1030)])
@pytest.mark.parametrize("has_bias", [False, True])
@torch.inference_mode()
def test_every_batch_size_agrees_with_float64(
    dtype: torch.dtype,
    out_features: int,
    in_features: int,
    has_bias: bool,
    is_packed: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not is_packed:
        monkeypatch.setenv("RTLANG_KERNELS", "reference")
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(out_features, in_features, generator=generator).to(dtype)
    bias = torch.randn(out_features, generator=generator).to(dtype) if has_bias else None
    layer = Linear(weight.clone(), bias)
    assert (layer.in_features, layer.out_features) == (in_features, out_features)
    assert (layer.packed is not None) == is_packed
    for num_rows in (1, 2, 3, 7, 16, 31, 33, 100, 257):
        x = torch.randn(num_rows, in_features, generator=generator).to(dtype)
        y = layer(x)
        assert y.shape == (num_rows, out_features)
        assert y.dtype == dtype
        assert relative_error(y, exact(x, weight, bias)) < TOLERANCE[dtype]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@torch.inference_mode()
def test_strided_input_gives_the_same(dtype: torch.dtype) -> None:
    weight = torch.randn(768, 512, generator=torch.Generator().manual_seed(1)).to(dtype)
    x = torch.randn(5, 1024, generator=torch.Generator().manual_seed(2)).to(dtype)[:, 512:]
    layer = Linear(weight)
    assert torch.equal(layer(x), layer(x.contiguous()))


def test_the_plain_copy_is_not_kept_after_packing() -> None:
    layer = Linear(torch.zeros(256, 256, dtype=torch.bfloat16))
    assert layer.packed is not None
    assert layer.weight is None


def test_a_packed_layer_adds_to_the_residual_and_a_plain_one_leaves_that_to_the_norm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    weight, x = torch.randn(40, 32), torch.randn(3, 32)
    residual = torch.ones(3, 40)
    assert Linear(weight).add_to(residual, x) is None
    assert relative_error(residual, 1 + exact(x, weight, None)) < 1e-6
    monkeypatch.setenv("RTLANG_KERNELS", "reference")
    residual = torch.ones(3, 40)
    y = Linear(weight).add_to(residual, x)
    assert y is not None
    assert relative_error(y, exact(x, weight, None)) < 1e-6
    assert torch.equal(residual, torch.ones(3, 40))


def test_types_without_a_kernel_stay_plain() -> None:
    weight = torch.randn(32, 32).half()
    assert Linear(weight).packed is None
    assert pack_linears(torch.nn.Sequential(torch.nn.Linear(8, 8).half())) == 0


@torch.inference_mode()
def test_modules_are_replaced_in_place_and_compute_the_same() -> None:
    torch.manual_seed(0)
    head = torch.nn.Linear(64, 96, bias=False)
    embedding = torch.nn.Embedding(96, 64)
    head.weight = embedding.weight
    model = torch.nn.ModuleDict({"up": torch.nn.Linear(32, 64), "embedding": embedding, "head": head}).bfloat16()
    x = torch.randn(2, 3, 32).bfloat16()
    before = model["head"](torch.tanh(model["up"](x)))
    assert pack_linears(model) == 2
    assert isinstance(model["up"], PackedModule)
    assert isinstance(model["head"], PackedModule)
    after = model["head"](torch.tanh(model["up"](x)))
    assert after.shape == before.shape == (2, 3, 96)
    assert relative_error(after, before.double()) < 1e-2
    assert model["embedding"](torch.tensor([5])).shape == (1, 64)
    assert model["up"](x[:, :0]).shape == (2, 0, 64)
    assert model["up"].weight.dtype is torch.bfloat16
    with pytest.raises(RuntimeError):
        torch.nn.functional.linear(x, model["up"].weight)


def test_subclasses_of_linear_are_left_alone() -> None:
    class Scaled(torch.nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return 2 * super().forward(x)

    model = torch.nn.Sequential(Scaled(600, 600).bfloat16())
    assert pack_linears(model) == 0


class Scaled(torch.nn.Embedding):
    """As some families of transformers scale their embeddings."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return super().forward(input) * 3.0


@pytest.mark.parametrize("kind", [torch.nn.Embedding, Scaled])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_an_embedding_tied_to_a_packed_layer_keeps_no_weight_of_its_own(
    kind: type[torch.nn.Embedding], dtype: torch.dtype
) -> None:
    model = torch.nn.ModuleDict({"embed": kind(70, 30, padding_idx=0), "head": torch.nn.Linear(30, 70, bias=False)})
    model.to(dtype).requires_grad_(False)
    model["embed"].weight = model["head"].weight
    ids = torch.tensor([[0, 69, 5], [7, 7, 1]])
    expected, freed = model["embed"](ids), weakref.ref(model["head"].weight)
    with torch.inference_mode():
        assert pack_linears(model) == 1
        assert torch.equal(model["embed"](ids), expected)
        assert model["embed"](ids[:, :0]).shape == (2, 0, 30)
    assert freed() is None
    assert not list(model.parameters())
    assert (model["embed"].weight.dtype, model["embed"].weight.device.type) == (dtype, "cpu")


def test_a_weight_that_other_modules_use_is_kept() -> None:
    clipped = torch.nn.Embedding(70, 30, max_norm=1.0)  # modifies its weight
    other = torch.nn.Bilinear(1, 1, 1)
    for module in (clipped, other):
        head = torch.nn.Linear(30, 70, bias=False)
        module.weight = head.weight
        model = torch.nn.ModuleDict({"module": module, "embed": torch.nn.Embedding(70, 30), "head": head})
        model["embed"].weight = head.weight
        expected = head.weight.detach().clone()
        assert pack_linears(model.requires_grad_(False)) == 1
        assert torch.equal(module.weight, expected)
        assert torch.equal(model.get_submodule("embed")(torch.arange(70)), expected)


def test_a_bias_of_a_mapped_file_is_copied(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(bytes(4 * 64))
    mapped = torch.from_file(str(path), shared=False, size=64)
    layer = torch.nn.Linear(2, 64)
    layer.bias = torch.nn.Parameter(mapped, requires_grad=False)
    assert not layer.bias.untyped_storage().resizable()
    model = torch.nn.Sequential(layer)
    pack_linears(model)
    packed = model.get_submodule("0")
    assert isinstance(packed, PackedModule)
    assert packed.bias is not None
    assert packed.bias.untyped_storage().resizable()


@pytest.mark.parametrize("has_floats", [False, True])
@torch.inference_mode()
def test_parts_in_several_formats_are_one_layer(has_floats: bool) -> None:
    weights = [random_weight(FORMATS[name], size, 256) for name, size in (("q4_0", 64), ("q6_k", 32), ("q6_k", 32))]
    exacts, parts = [exact_weight(weight) for weight in weights], [*weights]
    if has_floats:
        floats = torch.randn(16, 256, generator=torch.Generator().manual_seed(0))
        exacts, parts = [*exacts, floats.double()], [*parts, floats]
    bias = torch.randn(sum(len(each) for each in exacts))
    layer = Linear.of_parts(parts, bias, dtype=torch.float32, is_gated=True)
    assert not layer.is_gated
    assert layer.is_low_bit
    assert isinstance(layer.packed, JoinedLayers) == has_floats
    x = torch.randn(5, 256, generator=torch.Generator().manual_seed(1))
    expected = x.double() @ torch.cat(exacts).T + bias
    assert relative_error(layer(x), expected) < 0.0075
    index = torch.tensor([100, 3, 70])
    assert torch.equal(layer.rows(index), torch.cat(exacts)[index].float())


def test_rows_of_several_layers_are_looked_up_without_waiting_for_a_device() -> None:
    layers = [Linear(torch.randn(size, 8, dtype=torch.float16)) for size in (3, 1, 4)]
    joined = JoinedLayers(layers)
    index = torch.tensor([7, 0, 3, 2, 4])
    whole = torch.cat([layer.rows(torch.arange(layer.out_features)) for layer in layers])
    assert torch.equal(joined.rows(index), whole[index])
    assert sync_check.obstacle(lambda: joined.rows(index), torch.device("cpu")) is None
    for wrong in (8, -1):
        with pytest.raises(IndexError, match=rf"indices\[1\] = {wrong}: expected 0 to 7"):
            joined.rows(torch.tensor([0, wrong]))


def test_inputs_stay_floats_if_asked() -> None:
    weights = [random_weight(FORMATS[name], 40, 64) for name in ("q4_0", "q8_0")]
    x, floats = torch.randn(3, 64), [exact_weight(weight).float() for weight in weights]
    for count in (1, 2):
        layer = Linear.of_parts(weights[:count], dtype=torch.float32, inputs=LinearInputs.FLOAT)
        assert torch.equal(layer(x), Linear(torch.cat(floats[:count]))(x))
        assert not torch.equal(layer(x), Linear.of_parts(weights[:count], dtype=torch.float32)(x))


def test_the_layers_of_joined_ones_are_tuned(monkeypatch: pytest.MonkeyPatch) -> None:
    tuned: list[object] = []
    backend = dataclasses.replace(dispatch.cpu_backend(), tune=tuned.extend)
    monkeypatch.setattr("rtlang_kernels.ops.backend_named", lambda name: backend)
    parts = [random_weight(FORMATS["q4_0"], 40, 64), torch.randn(40, 64), random_weight(FORMATS["q8_0"], 40, 64)]
    joined = Linear.of_parts(parts, dtype=torch.float32, inputs=LinearInputs.FLOAT)
    tune_linears([joined])
    assert [type(each).__name__ for each in tuned] == ["FloatInputLinear", "PackedLinear", "FloatInputLinear"]
