"""The configurations of linear layers over weights of few bits that are compiled ahead of time.

Every format for one row of a sequence, as decoding multiplies it; the tiles for more rows, other types of inputs, and gated layers with the
formats that need most registers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rtlang_kernels.contract.low_bit import ScaleType, WeightFormat
from rtlang_kernels.planning.tile_sizes import SM_90, SM_100, float32_precision
from rtlang_kernels.triton.aot.variant import ANY_FLUSH, ARITHMETIC_FLUSH, CompiledVariant
from rtlang_kernels.triton.linear import low_bit_kernel as kernels
from rtlang_kernels.triton.linear.low_bit_kernel import Form
from rtlang_kernels.triton.linear.low_bit_linear import FINISH_BLOCK, ROWS_BLOCK, launch_options, product_tile
from rtlang_kernels.triton.linear.stored_codes import E2M1_TWICE, Held, StoredFormat, stored_format

ITEM_BYTES = {"bf16": 2, "fp16": 2, "fp32": 4}
NUM_INPUTS = 4096
_TABLE = tuple(range(-120, 120, 15))
_SUPER, _NONE = ScaleType.SUPER, ScaleType.NONE
_OPTIONS: dict[str, tuple[WeightFormat, dict[str, Any]]] = {
    "q4_0": (WeightFormat(4, zero=8), {}),
    "q4_1": (WeightFormat(4, has_offsets=True), {}),
    "q5_0": (WeightFormat(5, zero=16), {}),
    "q8_0": (WeightFormat(8, zero=128), {}),
    "q2_k": (WeightFormat(2, 16, _SUPER, has_offsets=True), {"has_nibbles": True}),
    "q3_k": (WeightFormat(3, 16, _SUPER, zero=4), {}),
    "q4_k": (WeightFormat(4, 32, _SUPER, has_offsets=True), {}),
    "q5_k": (WeightFormat(5, 32, _SUPER, has_offsets=True), {}),
    "q6_k": (WeightFormat(6, 16, _SUPER, zero=32), {}),
    "iq4_xs": (WeightFormat(4, 32, _SUPER, table=_TABLE), {}),
    "mxfp4": (WeightFormat(4, 32, table=E2M1_TWICE), {"scales": "e8m0", "has_row_scales": True}),
    "nvfp4": (WeightFormat(4, 16, table=E2M1_TWICE), {"scales": "e4m3", "has_row_scales": True}),
    "int4": (WeightFormat(4, 128, ScaleType.BFLOAT16, has_zero_points=True), {"has_nibbles": True}),
    "float8": (WeightFormat(8, scales=_NONE, is_float8=True), {"has_row_scales": True}),
    "float8-128": (WeightFormat(8, 128, ScaleType.FLOAT32, is_float8=True), {"has_nan": True}),
}
FORMATS: dict[str, StoredFormat] = {
    name: stored_format(fmt, NUM_INPUTS, **options) for name, (fmt, options) in _OPTIONS.items()
}


def linear_variants(arch: str) -> Iterator[CompiledVariant]:
    """All kernels of linear layers."""
    for name in FORMATS:
        yield product_variant(arch, "bf16", name, 1)
    for name in ("q4_0", "q4_k", "q6_k", "iq4_xs", "mxfp4", "float8"):
        for rows in (64, 128):
            yield product_variant(arch, "bf16", name, rows)
    for kind, name, rows in (("fp16", "q4_k", 128), ("fp32", "q4_k", 1), ("fp32", "q4_k", 128)):
        yield product_variant(arch, kind, name, rows)
    for rows in (1, 64, 128):
        yield product_variant(arch, "bf16", "q4_k", rows, Form(is_gated=True, has_bias=True))
    yield product_variant(arch, "bf16", "q5_k", 128, Form(has_residual=True))
    for form in (Form(has_residual=True), Form(is_gated=True, has_bias=True)):
        integers = dict.fromkeys(("num_rows", "num_outputs", "num_parts", "out_stride"), "i32")
        yield CompiledVariant(
            f"finish_product bf16{_text(form)}",
            kernels.finish_product,
            {"partial": "*fp32", "bias": "*bf16", "out": "*bf16"} | integers,
            {"FORM": form, "BLOCK": FINISH_BLOCK},
            launch_options(arch),
        )
    for name in ("q6_k", "nvfp4"):
        yield CompiledVariant(
            f"low_bit_rows bf16 {name}",
            kernels.low_bit_rows,
            _held_types(FORMATS[name])
            | {"indices": "*i64", "out": "*bf16"}
            | dict.fromkeys(("num_rows", "num_outputs", "num_inputs"), "i32"),
            {"FORMAT": FORMATS[name], "BLOCK": ROWS_BLOCK},
            launch_options(arch),
            _flush(FORMATS[name]),
        )


def product_variant(arch: str, kind: str, name: str, num_rows: int, form: Form | None = None) -> CompiledVariant:
    """`low_bit_product` for some rows; one row is a part, more have all parts."""
    is_split = num_rows == 1
    form = form or Form()
    if is_split:  # the rest is left to `finish_product`
        form = Form(form.is_gated)
    tile = product_tile(SM_90 if arch == SM_100 else arch, num_rows, ITEM_BYTES[kind], FORMATS[name].step)
    integers = ("num_rows", "num_outputs", "num_inputs", "num_parts", "x_stride", "out_stride")
    return CompiledVariant(
        f"low_bit_product {kind} {name} {tile.block_n}x{tile.block_m}{_text(form)}",
        kernels.low_bit_product,
        _held_types(FORMATS[name])
        | dict.fromkeys(("x", "bias", "out"), f"*{kind}")
        | {"partial": "*fp32" if is_split else f"*{kind}"}
        | dict.fromkeys(integers, "i32"),
        {
            "FORMAT": FORMATS[name],
            "FORM": form,
            "IS_SPLIT": is_split,
            "IS_EVEN": True,
            "BLOCK_N": tile.block_n,
            "BLOCK_M": tile.block_m,
            "NUM_STAGES": tile.num_stages,
            "PRECISION": float32_precision(arch),
            "UPCAST": False,
        },
        launch_options(arch) | {"num_warps": tile.num_warps},
        _flush(FORMATS[name]),
    )


def _text(form: Form) -> str:
    return " gated" * form.is_gated + " bias" * form.has_bias + " residual" * form.has_residual


def _flush(fmt: StoredFormat) -> str:
    """Codes of floats and scales pass through subnormal numbers; other weights may be subnormal themselves."""
    return ARITHMETIC_FLUSH if fmt.code == "float8" else ANY_FLUSH


def _held_types(fmt: StoredFormat) -> dict[str, str]:
    """Types of the tensors of a weight; those that it lacks are its low plane."""
    has_scales = fmt.scales != "none"
    are_held = {
        "scales": has_scales,
        "offsets": fmt.has_offsets,
        "zero_points": fmt.has_zero_points,
        "super_scales": fmt.scales == "super",
        "super_offsets": fmt.scales == "super" and fmt.has_offsets,
    }
    types = dict.fromkeys(Held._fields, "*u16") | {name: "*u32" for name, is_held in are_held.items() if is_held}
    return (
        types
        | ({"high": "*u8"} if fmt.high_bits == 1 else {})
        | ({"row_scales": "*fp32"} if fmt.has_row_scales else {})
    )
