"""A kernel with all that determines its code, as the ahead-of-time compilation takes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

# Exact noise and weights need every bit; the conversion of float8 passes through subnormal numbers.
ANY_FLUSH = r"\.ftz"
ARITHMETIC_FLUSH = r"\b(?:mul|add|sub|min|max|cvt)\.[a-z0-9.]*ftz"
_EXACT = frozenset(
    {
        "sample_finish",
        "sample_filtered",
        "filter_histogram",
        "filter_collect",
        "filter_choose",
        "penalize",
        "copy_lines",
    }
)


@dataclass(frozen=True)
class CompiledVariant:
    """One kernel with all that determines its code.

    Attributes:
        name: of the kernel, followed by the label of its case and by its tile.
        types: the type of each argument; of pointers with a star, of constants "constexpr".
        constants: by name of the argument.
        attributes: properties of arguments beside their types, by index; most are multiples of 16.
        options: of the compiler, where they differ from the target's defaults.
    """

    name: str
    kernel: Any
    types: dict[str, Any]
    constants: dict[str, Any]
    attributes: dict[tuple[int, ...], Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def flush_pattern(self) -> str | None:
        """NVIDIA instructions that must not occur, since they would flush subnormal numbers to zero."""
        kernel = self.name.split()[0]
        if kernel in _EXACT:
            return ANY_FLUSH
        if kernel == "round_rows" or self.constants.get("KV_FLOAT8") or self.constants.get("TO_FLOAT8"):
            return ARITHMETIC_FLUSH
        if kernel in ("low_bit_product", "low_bit_rows"):  # other weights than float8 may be subnormal themselves
            return ARITHMETIC_FLUSH if self.constants["FORMAT"].code == "float8" else ANY_FLUSH
        return None
