"""Triton's interpreter without three of its costs per call and per operation, and with the rounding to bfloat16 of a GPU.

The interpreter cuts off the bits that bfloat16 lacks, where a GPU rounds to nearest even. What else it computes and checks stays the same.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any


def install() -> None:
    """Change the interpreter of this process. Processes that compile kernels must not call this."""
    import numpy as np
    import triton.language as tl
    from triton.runtime import interpreter

    replace_functions: Callable[[Any], object] = interpreter._patch_lang
    replaced_in: set[str] = set()

    def replace_once(function: Any) -> Any:
        """Replace the functions of `triton.language` that a module sees; nothing puts them back after the call."""
        if function.__module__ not in replaced_in:
            replaced_in.add(function.__module__)
            replace_functions(function)
        return interpreter._LangPatchScope()

    convert: Callable[..., Any] = interpreter._convert_float

    def convert_float(values: Any, source: Any, target: Any, rounding: Any) -> Any:
        """Float32 to bfloat16, rounded to nearest even; other types as before."""
        if source != tl.float32 or target != tl.bfloat16:
            return convert(values, source, target, rounding)
        bits = np.asarray(values, np.float32).view(np.uint32)
        rounded = bits + 0x7FFF + ((bits >> 16) & 1)
        return (np.where(np.isnan(values), bits | 1 << 22, rounded) >> 16).astype(np.uint16)

    find_type = cache(interpreter._get_np_dtype)

    def numpy_type(kind: Any) -> Any:
        """Look up the numpy type of a scalar or a block once."""
        return np.dtype(np.uint64) if isinstance(kind.scalar, tl.pointer_type) else find_type(kind.scalar)

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
    interpreter._convert_float = convert_float
    interpreter._get_np_dtype = numpy_type
    interpreter.interpreter_semantic.binary_op_sanitize_overflow_impl = check_overflow
