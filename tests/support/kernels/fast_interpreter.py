"""Triton's interpreter without two of its costs per call and per operation; what it computes and checks stays the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def install() -> None:
    """Change the interpreter of this process. Processes that compile kernels must not call this."""
    import numpy as np
    from triton.runtime import interpreter

    replace_functions: Callable[[Any], object] = interpreter._patch_lang
    replaced_in: set[str] = set()

    def replace_once(function: Any) -> Any:
        """Replace the functions of `triton.language` that a module sees; nothing puts them back after the call."""
        if function.__module__ not in replaced_in:
            replaced_in.add(function.__module__)
            replace_functions(function)
        return interpreter._LangPatchScope()

    operations = {"add": np.add, "sub": np.subtract, "mul": np.multiply}

    def check_overflow(left: Any, right: Any, operation: Any) -> None:
        """The check of integer arithmetic, in numpy instead of ten interpreted operations."""
        kind = left.type.scalar
        if kind.int_bitwidth < 64:
            wide = (side.handle.data.astype(np.int64) for side in (left, right))
            result = operations[operation.__name__](*wide)
            fits = kind.get_int_min_value() <= result.min() and result.max() <= kind.get_int_max_value()
            assert fits, f"int{kind.int_bitwidth} overflow detected for operation {operation.__name__}"

    interpreter._patch_lang = replace_once
    interpreter.interpreter_semantic.binary_op_sanitize_overflow_impl = check_overflow
