"""Arrays read by their address, so that one call of compiled code reads any number of them.

Whoever passes an address keeps the array alive and in place until the call returns.
"""

from __future__ import annotations

import ctypes
from typing import Any

from numpy.typing import NDArray


def address_of(array: NDArray[Any]) -> int:
    """The address of a contiguous array."""
    address: int = array.__array_interface__["data"][0]
    return address


def int32_at(address: int, index: int) -> int:
    """Element `index` of the int32 array at an address; callable from compiled and from interpreted code."""
    return ctypes.c_int32.from_address(int(address) + 4 * int(index)).value
