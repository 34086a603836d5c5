"""Matrices of compressed-tensors have the values that the library's own compressors give them, in float64."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from compressed_tensors.compressors import BaseCompressor
from compressed_tensors.compressors.pack_quantized.helpers import pack_to_int32
from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
from torch import Tensor

from rtlang.contract.errors import ModelLoadError
from rtlang.model.loading.quantized.int8_rows import int8_config
from rtlang.model.loading.quantized.schemes import quantization_obstacle
from rtlang_kernels.contract.low_bit import ScaleType
from tests.support.models.stored_matrices import check_matrix, written

NAME = "model.layers.0.mlp.down_proj.weight"


def config_of(layout: str, *weights: dict[str, Any], **changes: Any) -> dict[str, Any]:
    groups = {f"group_{index}": {"targets": ["Linear"], "weights": each} for index, each in enumerate(weights)}
    return {"quant_method": "compressed-tensors", "format": layout, "config_groups": groups, **changes}


def theirs(layout: str, weights: dict[str, Any], tensors: dict[str, Tensor]) -> Tensor:
    """The matrix multiplied out in float64 by the library."""
    scheme = QuantizationScheme(targets=["Linear"], weights=QuantizationArgs(**weights))
    own = {name.removeprefix("x."): each for name, each in tensors.items()}
    own = {
        name: each.double() if name == "weight_scale" and each.is_floating_point() else each
        for name, each in own.items()
    }
    found = BaseCompressor.get_value_from_registry(layout).decompress(own, scheme)["weight"]
    assert isinstance(found, Tensor)
    return found.double()


def scales_for(shape: tuple[int, int], args: dict[str, Any], dtype: torch.dtype) -> Tensor:
    num_outputs, num_inputs = shape
    strategy, group = args["strategy"], args.get("group_size") or num_inputs
    sizes = {"tensor": (1,), "channel": (num_outputs, 1), "group": (num_outputs, -(-num_inputs // group))}
    if strategy == "block":
        rows, columns = args["block_structure"]
        sizes["block"] = -(-num_outputs // rows), -(-num_inputs // columns)
    return (torch.rand(sizes[strategy]) * 0.01 + 0.001).to(dtype)


GROUPINGS: list[tuple[str, int | None, torch.dtype, int]] = [
    ("group", 32, torch.bfloat16, 96),
    ("group", 128, torch.float16, 256),
    ("group", 48, torch.float32, 96),
    ("group", 20, torch.float16, 60),  # fits no layer
    ("channel", None, torch.bfloat16, 160),
]


@pytest.mark.parametrize("bits", range(1, 9))
@pytest.mark.parametrize(
    ("symmetric", "strategy", "group", "dtype", "num_inputs"),
    [(symmetric, *each) for symmetric in (True, False) for each in GROUPINGS]
    + [(True, "tensor", None, torch.float32, 64)],  # the library does not pack one zero point
)
def test_packed_integers(
    bits: int, symmetric: bool, strategy: str, group: int | None, dtype: torch.dtype, num_inputs: int, tmp_path: Path
) -> None:
    torch.manual_seed(bits)
    shape, half = (19, num_inputs), 1 << (bits - 1)
    args = {"num_bits": bits, "type": "int", "symmetric": symmetric, "strategy": strategy, "group_size": group}
    scales = scales_for(shape, args, dtype)
    tensors = {
        "x.weight_packed": pack_to_int32(torch.randint(-half, half, shape, dtype=torch.int8), bits),
        "x.weight_shape": torch.tensor(shape),
        "x.weight_scale": scales,
    }
    if not symmetric:
        zeros = torch.randint(-half, half, tuple(scales.shape), dtype=torch.int8)
        tensors["x.weight_zero_point"] = pack_to_int32(zeros, bits, packed_dim=0)
    weights = written(tmp_path, tensors, config_of("pack-quantized", args))
    assert list(weights.names()) == ["x.weight"]
    expected = theirs("pack-quantized", args, tensors)
    check_matrix(
        weights,
        "x.weight",
        expected,
        is_low_bit=group != 20 and bits not in (1, 7) and (group, bits, symmetric) != (None, 8, True),
    )
    assert weights.num_bytes("x.weight") == sum(each.nbytes for each in tensors.values())


@pytest.mark.parametrize("kind", ["int", "float"])
@pytest.mark.parametrize(
    ("strategy", "options"),
    [
        ("tensor", {}),
        ("channel", {}),
        ("group", {"group_size": 32}),
        ("group", {"group_size": 128}),
        ("block", {"block_structure": [128, 128]}),
        ("block", {"block_structure": [8, 32]}),
    ],
)
def test_bytes_with_scales(kind: str, strategy: str, options: dict[str, Any], tmp_path: Path) -> None:
    torch.manual_seed(1)
    num_inputs = 160 if strategy == "block" else 256  # a last block that is shorter
    args = {"num_bits": 8, "type": kind, "symmetric": True, "strategy": strategy, **options}
    codes = torch.randint(0, 256, (40, num_inputs), dtype=torch.uint8)
    if kind == "float":
        codes[codes & 127 == 127] = 0  # NaN
    tensors = {
        "x.weight": codes.view(torch.int8 if kind == "int" else torch.float8_e4m3fn),
        "x.weight_scale": scales_for((40, num_inputs), args, torch.float32),
    }
    layout = f"{kind}-quantized"
    weights = written(tmp_path, tensors, config_of(layout, args))
    is_low_bit = kind == "float" or strategy not in ("tensor", "channel")  # int8 inputs would lose as much
    check_matrix(weights, "x.weight", theirs(layout, args, tensors), is_low_bit=is_low_bit)


def test_bytes_with_zero_points(tmp_path: Path) -> None:
    torch.manual_seed(2)
    args = {"num_bits": 8, "type": "int", "symmetric": False, "strategy": "channel"}
    tensors = {
        "x.weight": torch.randint(-128, 128, (9, 64), dtype=torch.int8),
        "x.weight_scale": torch.rand(9, 1).bfloat16(),
        "x.weight_zero_point": torch.randint(-128, 128, (9, 1), dtype=torch.int8),
    }
    weights = written(tmp_path, tensors, config_of("naive-quantized", args))
    check_matrix(weights, "x.weight", theirs("naive-quantized", args, tensors))


def test_float4_with_exponents_for_scales(tmp_path: Path) -> None:
    torch.manual_seed(3)
    args = {"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32}
    tensors = {
        "x.weight_packed": torch.randint(0, 256, (12, 48), dtype=torch.uint8),
        "x.weight_scale": torch.randint(100, 150, (12, 3), dtype=torch.uint8),
    }
    weights = written(tmp_path, tensors, config_of("mxfp4-pack-quantized", args))
    check_matrix(weights, "x.weight", theirs("mxfp4-pack-quantized", args, tensors))


def test_float8_with_exponents_for_scales(tmp_path: Path) -> None:
    torch.manual_seed(4)
    codes = torch.randint(0, 127, (12, 96), dtype=torch.uint8)
    args = {"num_bits": 8, "type": "float", "strategy": "group", "group_size": 32, "scale_dtype": "torch.uint8"}
    tensors = {
        "x.weight": codes.view(torch.float8_e4m3fn),
        "x.weight_scale": torch.randint(100, 150, (12, 3), dtype=torch.uint8),
    }
    weights = written(tmp_path, tensors, config_of("mxfp8-quantized", args))
    check_matrix(weights, "x.weight", theirs("mxfp8-quantized", args, tensors))


@pytest.mark.parametrize("factor", [8.0, 1234.5])
def test_float4_with_a_global_scale(factor: float, tmp_path: Path) -> None:
    torch.manual_seed(5)
    args = {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}
    scales = torch.randint(0, 127, (12, 6), dtype=torch.uint8).view(torch.float8_e4m3fn)
    tensors = {
        "x.weight_packed": torch.randint(0, 256, (12, 48), dtype=torch.uint8),
        "x.weight_scale": scales,
        "x.weight_global_scale": torch.tensor([factor]),
        "x.input_global_scale": torch.tensor([3.0]),
    }
    weights = written(tmp_path, tensors, config_of("nvfp4-pack-quantized", args))
    assert list(weights.names()) == ["x.weight"]
    if factor == 8.0:  # theirs are bfloat16, which has these values
        check_matrix(weights, "x.weight", theirs("nvfp4-pack-quantized", args, tensors))
    whole = {**tensors, "x.weight_global_scale": torch.ones(1)}
    expected = theirs("nvfp4-pack-quantized", args, whole) / factor
    # a layer multiplies with the inverse, which is rounded to float32
    torch.testing.assert_close(weights.tensor("x.weight", torch.float64), expected, rtol=2**-23, atol=0)


@pytest.mark.parametrize("is_regular", [True, False])
def test_inputs_in_an_order_of_their_own(is_regular: bool, tmp_path: Path) -> None:
    torch.manual_seed(6)
    args = {"num_bits": 4, "type": "int", "symmetric": True, "strategy": "group", "group_size": 32, "actorder": "group"}
    groups = torch.arange(128) // 32 if is_regular else torch.randint(0, 4, (128,))
    groups = groups[torch.randperm(128)].int()
    codes, scales = torch.randint(-8, 8, (10, 128), dtype=torch.int8), torch.rand(10, 4).half()
    tensors = {
        "x.weight_packed": pack_to_int32(codes, 4),
        "x.weight_shape": torch.tensor([10, 128]),
        "x.weight_scale": scales,
        "x.weight_g_idx": groups,
    }
    weights = written(tmp_path, tensors, config_of("pack-quantized", args))
    check_matrix(weights, "x.weight", codes.double() * scales.double()[:, groups.long()], is_low_bit=is_regular)


def test_layers_of_one_checkpoint_differ(tmp_path: Path) -> None:
    torch.manual_seed(7)
    four = {"num_bits": 4, "type": "int", "symmetric": True, "strategy": "group", "group_size": 64}
    eight = {"num_bits": 8, "type": "float", "symmetric": True, "strategy": "channel"}
    codes = torch.randint(-8, 8, (10, 64), dtype=torch.int8)
    tensors = {
        "a.weight_packed": pack_to_int32(codes, 4),
        "a.weight_shape": torch.tensor([10, 64]),
        "a.weight_scale": torch.ones(10, 1).half(),
        "b.weight": codes.to(torch.float8_e4m3fn),
        "b.weight_scale": torch.ones(10, 1),
        "c.weight": torch.ones(10, 64),
        "c.k_scale": torch.ones(1),
    }
    weights = written(tmp_path, tensors, config_of("mixed-precision", four, eight, ignore=["c"]))
    assert sorted(weights.names()) == ["a.weight", "b.weight", "c.weight"]
    for name in ("a.weight", "b.weight"):
        check_matrix(weights, name, codes.double())
    assert weights.low_bit("c.weight") is None
    formats = [weight.format for name in ("a.weight", "b.weight") if (weight := weights.low_bit(name)) is not None]
    assert [(each.bits, each.scales) for each in formats] == [(4, ScaleType.NONE), (8, ScaleType.NONE)]


PACKED = {
    "x.weight_packed": torch.zeros(6, 8, dtype=torch.int32),
    "x.weight_shape": torch.tensor([6, 64]),
    "x.weight_scale": torch.ones(6, 2),
    "x.weight_zero_point": torch.zeros(6, 2, dtype=torch.int8),
    "x.weight_g_idx": torch.arange(64) // 32,
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x.weight_shape": None}, r"x\.weight lacks x\.weight_shape"),
        ({"x.weight_shape": torch.tensor([6, 96])}, r"x\.weight of shape \[6, 96\] is packed as I32 of shape \[6, 8\]"),
        ({"x.weight_shape": torch.tensor([6])}, r"x\.weight has shape \[6\]; expected a matrix"),
        ({"x.weight_shape": torch.tensor([1 << 60, 64])}, r"is packed as I32 of shape \[6, 8\]"),
        ({"x.weight_scale": torch.ones(6, 5)}, r"x\.weight scales of shape \[6, 5\] do not match"),
        ({"x.weight_scale": torch.ones(6, 2, dtype=torch.int8)}, r"x\.weight has scales of type I8"),
        ({"x.weight_scale": torch.ones(6, 2, dtype=torch.uint8)}, r"x\.weight has scales of type U8"),
        ({"x.weight_zero_point": torch.zeros(6, 2)}, r"zero points of type torch.float32"),
        ({"x.weight_zero_point": torch.full((6, 2), 9)}, r"zero points beyond 4 bits"),
        ({"x.weight_g_idx": torch.full((64,), 2)}, r"groups of \[64\] inputs"),
        ({"x.weight_g_idx": torch.zeros(7)}, r"groups of \[7\] inputs"),
        ({"x.weight_g_idx": None}, r"lacks x\.weight_g_idx, which actorder in config\.json implies"),
        ({"x.weight_zero_point": None}, r"lacks x\.weight_zero_point, which symmetric = False in config\.json implies"),
        (
            {"x.weight_scale": torch.ones(6, 1)},
            r"scales of shape \[6, 1\], but config\.json implies \[6, 2\]",
        ),
        ({"x.weight_scale": torch.ones(1)}, r"scales of shape \[1\], but config\.json implies \[6, 2\]"),
    ],
)
def test_damaged_matrices_are_refused_by_name(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    args = {
        "num_bits": 4,
        "type": "int",
        "symmetric": False,
        "strategy": "group",
        "group_size": 32,
        "actorder": "group",
    }
    tensors = {name: each for name, each in {**PACKED, **changes}.items() if each is not None}
    with pytest.raises(ModelLoadError, match=message):
        written(tmp_path, tensors, config_of("pack-quantized", args)).tensor("x.weight", torch.float32)


WEIGHTS = int8_config()["config_groups"]["group_0"]["weights"]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({**int8_config(), "format": "marlin-24"}, "marlin-24.*pack-quantized"),
        ({**int8_config(), "config_groups": {}}, "no config_groups"),
        (config_of("int-quantized", {}), "int of 1 to 8 bits"),
        (config_of("int-quantized", {**WEIGHTS, "num_bits": 9}), "int of 1 to 8 bits"),
        (config_of("int-quantized", {**WEIGHTS, "num_bits": True}), "int of 1 to 8 bits"),
        (config_of("float-quantized", {**WEIGHTS, "type": "float", "num_bits": 6}), "float of 4 or 8"),
        (config_of("float-quantized", {**WEIGHTS, "type": "float", "symmetric": False}), "symmetric"),
        (config_of("int-quantized", {**WEIGHTS, "strategy": "attn_head"}), "strategy = 'attn_head'"),
        (config_of("int-quantized", {**WEIGHTS, "actorder": "random"}), "actorder"),
        (
            config_of("int-quantized", {**WEIGHTS, "strategy": "group"}),
            "group_size = None: expected a positive integer",
        ),
        (config_of("int-quantized", {**WEIGHTS, "strategy": "group", "group_size": 0}), "group_size = 0"),
        (config_of("int-quantized", {**WEIGHTS, "strategy": "block"}), "block_structure = None: expected two positive"),
        (
            config_of(
                "nvfp4-pack-quantized",
                {**WEIGHTS, "type": "float", "num_bits": 4, "strategy": "tensor_group", "group_size": 17},
            ),
            "group_size = 17: expected 16 or 32 for float of 4 bits",
        ),
        ({**int8_config(), "config_groups": {"a": {"weights": None}}}, "a has no weights entry"),
        (
            {**int8_config(), "config_groups": {"a": {"weights": WEIGHTS, "format": "sparse"}}},
            r"a\.format = 'sparse': expected one of int-quantized",
        ),
        (
            {**int8_config(), "config_groups": {"a": {"weights": WEIGHTS, "output_activations": {"num_bits": 8}}}},
            "output_activations",
        ),
        ({**int8_config(), "transform_config": {"config_groups": {"R1": {"type": "hadamard"}}}}, "transform_config"),
        ({**int8_config(), "sparsity_config": {"format": "sparse-24-bitmask"}}, "sparsity_config"),
    ],
    ids=str,
)
def test_other_configs_are_refused_by_the_entry(config: dict[str, Any], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        assert quantization_obstacle(config) is None, quantization_obstacle(config)


@pytest.mark.parametrize(
    "changes",
    [
        {"transform_config": {}, "sparsity_config": {}},
        {"transform_config": {"config_groups": {}}, "sparsity_config": {"format": "dense"}},
        {"kv_cache_scheme": {"num_bits": 8}},
        {"config_groups": {"a": {"weights": {**WEIGHTS, "actorder": "weight"}, "input_activations": WEIGHTS}}},
    ],
    ids=["nothing said", "nothing done", "KV cache", "order of calibration, inputs"],
)
def test_entries_about_other_things_are_no_obstacle(changes: dict[str, Any]) -> None:
    assert quantization_obstacle({**int8_config(), **changes}) is None
