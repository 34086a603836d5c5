"""A kernel with all that determines its code, as the ahead-of-time compilation takes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class CompiledVariant:
    """One kernel with all that determines its code. `types` has the types of its other arguments; those with a star are pointers.

    Attributes:
        flush_pattern: NVIDIA instructions that must not occur, since they would flush subnormal numbers to zero.
    """

    name: str
    kernel: Any
    types: dict[str, str]
    constants: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)
    flush_pattern: str | None = None


# Exact noise and weights need every bit; the conversion of float8 passes through subnormal numbers.
ANY_FLUSH = r"\.ftz"
ARITHMETIC_FLUSH = r"\b(?:mul|add|sub|min|max|cvt)\.[a-z0-9.]*ftz"
