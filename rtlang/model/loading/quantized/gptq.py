"""Checkpoints of GPTQ: integers of 2, 3, 4 or 8 bits with zero points, packed along inputs.

A matrix X has `X.qweight` (int32 [in * bits / 32, out], dense codes of consecutive inputs), `X.qzeros` (int32 [groups, out * bits / 32]),
`X.scales` ([groups, out]) and `X.g_idx` (int32 [in], the group of each input, which need not rise: act-order). Format `gptq` stores zero
points minus 1, modulo the number of codes; `gptq_v2` stores them as they are. Bits and groups of a matrix show in its shapes, so
`dynamic` rules of config.json need no evaluation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from rtlang.model.loading.quantized.input_order import input_order_of, reordered
from rtlang.model.loading.quantized.matrix import SCALE_TYPES, CodedMatrix, Codes, Matrix
from rtlang.model.loading.quantized.packed_bits import unpacked
from rtlang.model.loading.stored_tensors import StoredTensors

_BITS = (2, 3, 4, 8)
_FORMATS = ("gptq", "gptq_v2")
_SUFFIXES = (".qweight", ".qzeros", ".scales", ".g_idx")


def obstacle(config: Mapping[str, Any]) -> str | None:
    """The reason why a `quantization_config` is not supported, or None."""
    layout = _format(config)
    if layout not in _FORMATS or config.get("is_marlin_format"):
        return f"the weights are quantized (gptq, {layout}); supported formats are {' and '.join(_FORMATS)}"
    bits, group = config.get("bits"), config.get("group_size")
    if isinstance(bits, bool) or bits not in _BITS:
        return f"quantization_config.bits = {bits!r}: expected one of {', '.join(map(str, _BITS))} for gptq"
    if isinstance(group, bool) or not isinstance(group, int) or not (group == -1 or group > 0):
        return f"quantization_config.group_size = {group!r}: expected a positive integer or -1"
    return None


def _format(config: Mapping[str, Any]) -> object:
    return config.get("checkpoint_format") or config.get("format") or "gptq"


class Gptq:
    """The scheme of a supported config; implements `Scheme`."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.bits = 2 if config.get("dynamic") else config["bits"]
        self._group, self._zero_shift = config["group_size"], 1 if _format(config) == "gptq" else 0
        self._all_bits = _BITS if config.get("dynamic") else (config["bits"],)
        self._needs_order, self._has_rules = config.get("desc_act") is True, bool(config.get("dynamic"))

    def matrices(self, stored: StoredTensors) -> dict[str, Matrix]:
        """See `Scheme`."""
        found: dict[str, Matrix] = {}
        for name in stored.names():
            if name.endswith(".qweight"):
                module = name.removesuffix(".qweight")
                try:
                    found[f"{module}.weight"] = self._matrix(stored, module)
                except ValueError as error:
                    raise ValueError(f"{module}.weight {error}") from None
        return found

    def is_dropped(self, name: str) -> bool:
        """See `Scheme`."""
        return False

    def _matrix(self, stored: StoredTensors, module: str) -> Matrix:
        parts = [f"{module}{suffix}" for suffix in _SUFFIXES]
        words, zeros, scales, order = parts
        for name in parts[:3]:
            if name not in stored:
                raise ValueError(f"lacks {name}")
        if order not in stored:
            if self._needs_order:
                raise ValueError(f"lacks {order}, which desc_act in config.json implies")
            parts.pop()
        shapes = [stored.shape(name) for name in parts[:3]]
        if any(len(each) != 2 or min(each) < 1 for each in shapes) or {stored.dtype(words), stored.dtype(zeros)} != {
            "I32"
        }:
            raise ValueError(
                f"has tensors of shapes {list(map(list, shapes))}; expected matrices, of I32 for codes and zero points"
            )
        (num_words, num_outputs), (_, num_zero_words), (num_groups, _) = shapes
        fitting = [bits for bits in self._all_bits if num_zero_words == -(-num_outputs * bits // 32)]
        if shapes[1][0] != num_groups or shapes[2][1] != num_outputs or not fitting:
            shown = " or ".join(map(str, self._all_bits))
            raise ValueError(
                f"has tensors of shapes {list(map(list, shapes))}, which do not fit together with {shown} bits"
            )
        bits = fitting[0]
        num_inputs = stored.shape(order)[0] if len(parts) == 4 and stored.shape(order) else num_words * 32 // bits
        if num_words != -(-num_inputs * bits // 32):
            raise ValueError(f"has {num_words} words of {bits} bits for {num_inputs} inputs")
        if stored.dtype(scales) not in SCALE_TYPES:
            raise ValueError(f"has scales of type {stored.dtype(scales)}; only floats of 16 and 32 bits are supported")
        group = self._group_of(num_inputs, num_groups)
        shape = num_outputs, num_inputs

        def read() -> Codes:
            packed, factors = stored.tensor(words), stored.tensor(scales)
            points = unpacked(stored.tensor(zeros), bits, num_outputs) + self._zero_shift & (1 << bits) - 1
            fields = {} if len(parts) < 4 else input_order_of(stored.tensor(order), num_inputs, group)
            codes = reordered(
                lambda first, last: unpacked(packed[:, first:last].t(), bits, num_inputs), fields.get("input_order")
            )
            return Codes(
                shape,
                bits,
                codes,
                scale_type=SCALE_TYPES[stored.dtype(scales)],
                scales=lambda first, last: factors[:, first:last].t(),
                group=group,
                **zero_fields(points.t()),
                **fields,
            )

        return CodedMatrix(stored, parts, shape, read)

    def _group_of(self, num_inputs: int, num_groups: int) -> int:
        """Inputs of a group: as config.json says, or as `dynamic` rules may say for a layer."""
        group = num_inputs if self._group == -1 else self._group
        if -(-num_inputs // group) == num_groups:
            return int(group)
        if not self._has_rules or num_inputs % num_groups:
            raise ValueError(f"has {num_groups} groups for {num_inputs} inputs, but group_size is {self._group}")
        return num_inputs // num_groups


def zero_fields(points: Tensor) -> dict[str, Any]:
    """The fields of `Codes` for zero points, uint8 [out, groups]: one number where all are the same."""
    first = points[:1, :1]
    if bool((points == first).all()):
        return {"zero": int(first)}
    held = points.contiguous()
    return {"zero_points": lambda start, stop: held[start:stop]}
