"""Compiles numba code in a background process while the model loads, unless it is cached on disk."""

from __future__ import annotations

from rtlang.contract.config import RuntimeConfig
from rtlang_grammars.api import precompile

CPU_CODE = ("rtlang_kernels.precompile",)


def start_background_compile(config: RuntimeConfig) -> None:
    """Start a background process if compiled grammar code is missing and no such process runs; it also compiles the CPU kernels.

    Call this before importing torch, which takes seconds as well.
    """
    precompile.start_background_compile(CPU_CODE if config.device == "cpu" else ())
