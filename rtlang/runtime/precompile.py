"""Compiling beside the loading of the model: what numba compiles is made by a process of its own, where it is not on disk already."""

from __future__ import annotations

from rtlang.contract.config import RuntimeConfig
from rtlang_grammars import warm_up

CPU_CODE = ("rtlang_kernels.cpu.ahead",)


def begin(config: RuntimeConfig) -> None:
    """Start that process where code of our grammars is missing, unless one is at work. Code of the CPU's kernels is made with it.

    Best called before torch is imported, which takes seconds, too.
    """
    if config.grammar_backend == "rtlang":
        warm_up.begin(CPU_CODE if config.device == "cpu" else ())
