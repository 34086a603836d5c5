"""The types of the arguments that compiled code takes: integers, numpy arrays in C order, and groups of such arrays.

A group is a NamedTuple whose fields are annotated with the types below: `Annotated[NDArray[np.int32], Int32.FLAT]`.
"""

from __future__ import annotations

import functools
from enum import Enum
from typing import Any, NamedTuple, TypeAlias, get_type_hints


class Scalar(Enum):
    """Arguments that are no arrays."""

    INT = "int64"
    BOOL = "bool"


class ArrayType(NamedTuple):
    """An array in C order.

    Attributes:
        is_written: False: compiled code only reads it, so it may be read-only.
    """

    dtype: str
    num_dims: int = 1
    is_written: bool = True


INT, BOOL = Scalar.INT, Scalar.BOOL
INT32, INT64, UINT8, UINT32 = (ArrayType(each) for each in ("int32", "int64", "uint8", "uint32"))
INT32_TABLE, INT64_TABLE, UINT8_TABLE, UINT32_TABLE = (
    ArrayType(each.dtype, 2) for each in (INT32, INT64, UINT8, UINT32)
)
TEXT = ArrayType("uint8", 1, is_written=False)
"""Bytes that are only read."""

ArgumentType: TypeAlias = Scalar | ArrayType | type
"""A scalar, an array, or a group's NamedTuple."""


@functools.cache
def arrays_of(group: type) -> dict[str, ArrayType]:
    """The arrays of a group by their names, in order."""
    hints: dict[str, Any] = get_type_hints(group, include_extras=True)
    return {name: hint.__metadata__[0] for name, hint in hints.items()}
