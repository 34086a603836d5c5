"""Arrays read by their address, so that one call of compiled code reads any number of them.

Whoever passes an address keeps the array alive and in place until the call returns.
"""
# mypy: disable-error-code="no-untyped-def, untyped-decorator, misc, no-untyped-call, import-untyped"

from __future__ import annotations

import ctypes
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload
from numpy.typing import NDArray


def address_of(array: NDArray[Any]) -> int:
    """The address of a contiguous array."""
    address: int = array.__array_interface__["data"][0]
    return address


@intrinsic
def _load(typing_context, address, index):  # pragma: no cover
    def generate(context, builder, signature, arguments):
        pointer = builder.inttoptr(arguments[0], ir.IntType(32).as_pointer())
        return builder.load(builder.gep(pointer, [arguments[1]]))

    return types.int32(types.int64, types.int64), generate


def int32_at(address: int, index: int) -> int:
    """Element `index` of the int32 array at an address; callable from compiled and from interpreted code."""
    return ctypes.c_int32.from_address(int(address) + 4 * int(index)).value


@overload(int32_at, inline="always")
def _int32_at(address, index):  # pragma: no cover
    return lambda address, index: _load(address, index)
