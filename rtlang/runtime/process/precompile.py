"""Compiles numba code in a background process while the model loads, unless it is cached on disk."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ConstraintError
from rtlang.contract.params import Constraint, ConstraintKind
from rtlang_grammars.api import precompile
from rtlang_grammars.machine.native import native_code

CPU_CODE = ("rtlang_kernels.precompile",)
_LEXED = Constraint(ConstraintKind.LARK, 'start: "a"')  # a grammar with a lexer uses all of the code


def start_background_compile(config: RuntimeConfig) -> None:
    """Start a background process if compiled grammar code is missing and no such process runs; it also compiles the CPU kernels.

    Call this before importing torch, which takes seconds as well.
    """
    precompile.start_background_compile(CPU_CODE if config.device == "cpu" else ())


def preload_grammars(report: Callable[[Constraint], object]) -> None:
    """Load the native code of grammars, which takes a second of the interpreter: streams would stop with the first constraint.

    Does nothing if the code is not on disk.

    Args:
        report: compiles a constraint.
    """
    if not native_code.is_any_missing_on_disk():
        with suppress(ConstraintError):  # a vocabulary that cannot spell it; the code is loaded
            report(_LEXED)
