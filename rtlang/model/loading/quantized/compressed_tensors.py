"""Checkpoints of compressed-tensors: integers of 1 to 8 bits, float8 and float4 with scales of any extent.

A matrix X has `X.weight` (int8, float8) or `X.weight_packed` (words of int32 with dense codes and `X.weight_shape`, or bytes of two
float4), with `X.weight_scale`, and where config.json says so `X.weight_zero_point`, `X.weight_g_idx` (the group of each input) and
`X.weight_global_scale` (float4, which divides). All of this shows in names, dtypes and shapes; config.json says which of it may occur. So
the targets of its groups and its list of ignored layers need no evaluation: a layer is quantized if its tensors are.

Quantization of inputs and of the KV cache is not part of the weights, and is not applied.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rtlang.model.loading.quantized.float4 import float4_codes
from rtlang.model.loading.quantized.input_order import input_order_of, reordered
from rtlang.model.loading.quantized.matrix import (
    SCALE_TYPES,
    CodedMatrix,
    Codes,
    Matrix,
    Rows,
    matrix_shape,
    unpacked_int8,
)
from rtlang.model.loading.quantized.packed_bits import unpacked
from rtlang.model.loading.quantized.scale_layout import ScaleLayout, one_float, scale_fields
from rtlang.model.loading.stored_tensors import StoredTensors

logger = logging.getLogger(__name__)

_FORMATS = (
    *("int-quantized", "float-quantized", "naive-quantized", "pack-quantized"),
    *("nvfp4-pack-quantized", "mxfp4-pack-quantized", "mxfp8-quantized", "mixed-precision"),
)
_FLOAT4_GROUPS = (16, 32)
_STRATEGIES = ("tensor", "channel", "group", "tensor_group", "block")
_DROPPED = (
    *(".input_scale", ".input_zero_point", ".input_global_scale", ".output_scale", ".output_zero_point"),
    *(".k_scale", ".v_scale", ".q_scale", ".k_zero_point", ".v_zero_point", ".k_global_scale", ".v_global_scale"),
)


def obstacle(config: Mapping[str, Any]) -> str | None:
    """The reason why a `quantization_config` is not supported, or None."""
    layout = config.get("format")
    if layout not in _FORMATS:
        return f"the weights are quantized (compressed-tensors, {layout}); supported formats are {', '.join(_FORMATS)}"
    transforms, sparsity = config.get("transform_config"), config.get("sparsity_config")
    if transforms and not (isinstance(transforms, Mapping) and not transforms.get("config_groups")):
        return "transform_config: rotations of activations are not supported"
    if sparsity and not (isinstance(sparsity, Mapping) and sparsity.get("format") == "dense"):
        return "sparsity_config: sparse weights are not supported; only dense weights are"
    groups = config.get("config_groups")
    if not isinstance(groups, Mapping) or not groups:
        return "quantization_config has no config_groups"
    for name, group in groups.items():
        found = _group_obstacle(group if isinstance(group, Mapping) else {})
        if found is not None:
            return f"quantization_config.config_groups.{name}{found}"
    return None


def _group_obstacle(group: Mapping[str, Any]) -> str | None:
    weights = group.get("weights")
    if not isinstance(weights, Mapping):
        return " has no weights entry"
    layout = group.get("format")
    if layout is not None and layout not in _FORMATS:
        return f".format = {layout!r}: expected one of {', '.join(_FORMATS)}"
    kind, bits = weights.get("type"), weights.get("num_bits")
    if (
        isinstance(bits, bool)
        or not isinstance(bits, int)
        or not ((kind == "int" and 1 <= bits <= 8) or (kind == "float" and bits in (4, 8)))
    ):
        return f".weights = {kind} of {bits} bits: expected int of 1 to 8 bits, or float of 4 or 8"
    if kind == "float" and weights.get("symmetric") is False:
        return ".weights.symmetric = False: expected True for floats"
    if weights.get("strategy") not in _STRATEGIES:
        return f".weights.strategy = {weights.get('strategy')!r}: expected one of {', '.join(_STRATEGIES)}"
    size = weights.get("group_size")
    if weights["strategy"] in ("group", "tensor_group") and (type(size) is not int or size < 1):
        return f".weights.group_size = {size!r}: expected a positive integer for strategy {weights['strategy']}"
    if kind == "float" and bits == 4 and size not in _FLOAT4_GROUPS:
        return f".weights.group_size = {size!r}: expected 16 or 32 for float of 4 bits"
    block = weights.get("block_structure")
    if weights["strategy"] == "block" and _block_size(block) is None:
        return f".weights.block_structure = {block!r}: expected two positive integers"
    if weights.get("actorder") not in (None, False, "weight", "static", "group", "dynamic"):
        return f".weights.actorder = {weights['actorder']!r}: expected weight, static, group or dynamic"
    if group.get("output_activations"):
        return ".output_activations: quantized outputs are not supported"
    return None


def quantizes_inputs(config: Mapping[str, Any]) -> bool:
    """Whether a supported config asks for int8 inputs of all its linear layers, with a scale per token that is found at run time."""
    return all(_is_per_token(group.get("input_activations")) for group in config["config_groups"].values())


def _is_per_token(inputs: object) -> bool:
    if not isinstance(inputs, Mapping):
        return False
    kind = (inputs.get("num_bits"), inputs.get("type"), inputs.get("symmetric"), inputs.get("dynamic"))
    return kind == (8, "int", True, True) and inputs.get("strategy") == "token"


@dataclass(frozen=True, slots=True)
class _Part:
    """Names of the tensors of a matrix."""

    module: str

    def __call__(self, suffix: str) -> str:
        return f"{self.module}.weight{suffix}"


class CompressedTensors:
    """The scheme of a supported config; implements `Scheme`."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        weights = [group["weights"] for group in config["config_groups"].values()]
        self.bits = min(each["num_bits"] for each in weights)
        self._bits = {each["num_bits"] for each in weights if each["type"] == "int"}
        self._strategies = {each["strategy"] for each in weights}
        self._groups = {each["group_size"] for each in weights if each["strategy"] in ("group", "tensor_group")}
        self._blocks = {
            size
            for each in weights
            if each["strategy"] == "block" and (size := _block_size(each["block_structure"])) is not None
        }
        integers = [each for each in weights if each["type"] == "int"]
        self._has_zero_points, self._needs_zero_points = _some_and_all(
            each.get("symmetric") is False for each in integers
        )
        self._has_order, self._needs_order = _some_and_all(
            each.get("actorder") in ("group", "dynamic") for each in integers
        )
        if config.get("kv_cache_scheme"):
            logger.info("kv_cache_scheme of the checkpoint is not applied; kv_dtype sets the precision of the KV cache")

    def matrices(self, stored: StoredTensors) -> dict[str, Matrix]:
        """See `Scheme`."""
        found: dict[str, Matrix] = {}
        for name in stored.names():
            if not name.endswith(".weight_scale"):
                continue
            module = name.removesuffix(".weight_scale")
            part = _Part(module)
            try:
                if part("_packed") in stored:
                    is_float4 = stored.dtype(part("_packed")) == "U8"
                    matrix = self._float4(stored, part) if is_float4 else self._packed_integers(stored, part)
                elif part("") in stored:
                    matrix = self._plain(stored, part)
                else:
                    continue
            except ValueError as error:
                raise ValueError(f"{part('')} {error}") from None
            found[part("")] = matrix
        return found

    def is_dropped(self, name: str) -> bool:
        """See `Scheme`."""
        return name.endswith(_DROPPED)

    def _plain(self, stored: StoredTensors, part: _Part) -> Matrix:
        """A matrix of bytes: int8 or float8."""
        kind, name = stored.dtype(part("")), part("")
        if kind not in ("I8", "F8_E4M3"):
            raise ValueError(f"is {kind} with scales; only I8 and F8_E4M3 may have scales")
        shape = matrix_shape(stored.shape(name))
        zero_points = self._zero_points_of(stored, part) if kind == "I8" else None
        parts = [name, part("_scale"), *([part("_zero_point")] if zero_points else [])]
        order = self._order_of(stored, part, parts)

        def read() -> Codes:
            values = stored.tensor(name)
            if kind == "I8":
                return self._codes(
                    stored, part, shape, 8, lambda first, last: unpacked_int8(values[first:last]), zero_points, order
                )
            layout, codes = self._layout(stored, part, shape), values.view(torch.uint8)
            fields = scale_fields(stored, part("_scale"), layout)
            return Codes(shape, 8, lambda first, last: codes[first:last], is_float8=True, **fields)

        return CodedMatrix(stored, parts, shape, read)

    def _packed_integers(self, stored: StoredTensors, part: _Part) -> Matrix:
        if part("_shape") not in stored:
            raise ValueError(f"lacks {part('_shape')}")
        sizes = stored.tensor(part("_shape"))
        shape = matrix_shape(tuple(sizes.tolist()) if sizes.ndim == 1 and not sizes.is_floating_point() else ())
        num_outputs, num_inputs = shape
        found, kind = stored.shape(part("_packed")), stored.dtype(part("_packed"))
        fitting = [bits for bits in self._bits if found == (num_outputs, -(-num_inputs * bits // 32))]
        if not fitting or kind != "I32":
            raise ValueError(
                f"of shape {list(shape)} is packed as {kind} of shape {list(found)}, but config.json implies I32 with codes of "
                f"{' or '.join(map(str, sorted(self._bits))) or 'no'} bits"
            )
        bits = max(fitting)
        zero_points = self._zero_points_of(stored, part)
        parts = [part("_packed"), part("_shape"), part("_scale"), *([part("_zero_point")] if zero_points else [])]
        order = self._order_of(stored, part, parts)

        def read() -> Codes:
            words = stored.tensor(part("_packed"))
            return self._codes(
                stored,
                part,
                shape,
                bits,
                lambda first, last: unpacked(words[first:last], bits, num_inputs),
                zero_points,
                order,
            )

        return CodedMatrix(stored, parts, shape, read)

    def _codes(
        self,
        stored: StoredTensors,
        part: _Part,
        shape: tuple[int, int],
        bits: int,
        codes: Rows,
        zero_points: str | None,
        order: str | None,
    ) -> Codes:
        """Codes of integers, whose zero is in the middle or given."""
        layout, kind = self._layout(stored, part, shape), stored.dtype(part("_scale"))
        if kind not in SCALE_TYPES:
            raise ValueError(f"has scales of type {kind}; integers have floats of 16 and 32 bits")
        fields = scale_fields(stored, part("_scale"), layout, has_zero_points=zero_points is not None)
        if zero_points is None:
            fields["zero"] = 1 << (bits - 1)
        else:
            values = _unsigned_zero_points(stored, zero_points, layout, bits)
            fields["zero_points"] = lambda first, last: layout.expanded(values, first, last)
        if order is not None and "scales" in fields:
            fields |= input_order_of(stored.tensor(order), shape[1], layout.group)
        return Codes(shape, bits, reordered(codes, fields.get("input_order")), **fields)

    def _float4(self, stored: StoredTensors, part: _Part) -> Matrix:
        """NVFP4, with a global scale, or MXFP4."""
        packed = matrix_shape(stored.shape(part("_packed")))
        shape = packed[0], 2 * packed[1]
        has_global = part("_global_scale") in stored
        parts = [part("_packed"), part("_scale"), *([part("_global_scale")] if has_global else [])]

        def read() -> Codes:
            kind = stored.dtype(part("_scale"))
            if kind not in ("U8", "F8_E4M3", "F8_E8M0") or has_global != (kind == "F8_E4M3"):
                raise ValueError(f"has scales of type {kind}; expected F8_E4M3 with a global scale, or U8 without")
            layout = self._layout(stored, part, shape)
            words, scales = stored.tensor(part("_packed")), stored.tensor(part("_scale"))
            fields: dict[str, Any] = {}
            if has_global:
                factor = one_float(stored, part("_global_scale"))
                fields["row_scales"] = lambda first, last: (1 / factor).expand(last - first)
            return float4_codes(shape, words, scales, layout, **fields)

        return CodedMatrix(stored, parts, shape, read)

    def _layout(self, stored: StoredTensors, part: _Part, shape: tuple[int, int]) -> ScaleLayout:
        found = stored.shape(part("_scale"))
        layout = ScaleLayout.of(shape, found, self._groups, self._blocks)
        num_outputs, num_inputs = shape
        expected = {"tensor": (1, 1), "channel": (num_outputs, 1)}
        implied = [
            *(sizes for strategy, sizes in expected.items() if strategy in self._strategies),
            *((num_outputs, -(-num_inputs // group)) for group in self._groups),
            *((-(-num_outputs // rows), -(-num_inputs // group)) for rows, group in self._blocks),
        ]
        if layout.sizes not in implied:
            raise ValueError(
                f"of shape {list(shape)} has scales of shape {list(found)}, but config.json implies "
                f"{' or '.join(str(list(each)) for each in implied)}"
            )
        return layout

    def _zero_points_of(self, stored: StoredTensors, part: _Part) -> str | None:
        name = part("_zero_point")
        if self._needs_zero_points and name not in stored:
            raise ValueError(f"lacks {name}, which symmetric = False in config.json implies")
        return name if self._has_zero_points and name in stored else None

    def _order_of(self, stored: StoredTensors, part: _Part, parts: list[str]) -> str | None:
        """The name of the groups of inputs, which is added to `parts`."""
        name = part("_g_idx")
        if self._needs_order and name not in stored:
            raise ValueError(f"lacks {name}, which actorder in config.json implies")
        if not self._has_order or name not in stored:
            return None
        parts.append(name)
        return name


def _unsigned_zero_points(stored: StoredTensors, name: str, layout: ScaleLayout, bits: int) -> Tensor:
    """Zero points of unsigned codes: uint8, one per scale."""
    num_outputs, num_inputs = layout.shape
    num_rows, num_groups = -(-num_outputs // layout.rows), -(-num_inputs // layout.group)
    found, values = stored.shape(name), stored.tensor(name)
    if stored.dtype(name) == "I32" and found == (-(-num_outputs * bits // 32), num_groups) and layout.rows == 1:
        return unpacked(values.t(), bits, num_outputs).t().contiguous()
    if values.is_floating_point() or values.numel() != num_rows * num_groups:
        raise ValueError(
            f"has zero points of type {values.dtype} and shape {list(found)}, which do not match its scales"
        )
    shifted = values.reshape(num_rows, num_groups).long() + (1 << (bits - 1))
    if shifted.numel() and not 0 <= int(shifted.min()) <= int(shifted.max()) < 1 << bits:
        raise ValueError(f"has zero points beyond {bits} bits")
    return shifted.to(torch.uint8)


def _some_and_all(values: Iterable[bool]) -> tuple[bool, bool]:
    """Whether some of the values are true, and whether all of at least one are."""
    found = list(values)
    return any(found), bool(found) and all(found)


def _block_size(block: object) -> tuple[int, int] | None:
    """The numbers of outputs and inputs of a block; older configs spell them as text."""
    sizes = block.split("x") if isinstance(block, str) else block
    if not isinstance(sizes, list) or len(sizes) != 2 or not all(str(each).isdecimal() and int(each) for each in sizes):
        return None
    return int(sizes[0]), int(sizes[1])
