"""Masks, and compiled code that writes one or many of them."""
# mypy: disable-error-code="no-untyped-def, untyped-decorator, misc, no-untyped-call"

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.machine.native.array_types import INT, INT32, INT32_TABLE, INT64_TABLE
from rtlang_grammars.machine.native.native_code import compiled
from rtlang_grammars.machine.native.pointers import address_of, int32_at

_MASK_BYTES = 500
"""Memory of a cached mask besides its arrays."""


@compiled(inner=True)
def copy_mask(base_at, ids_at, num_ids, row):  # pragma: no cover
    """Write the words at `base_at` with the bits for the ids at `ids_at` also set."""
    for i in range(row.shape[0]):
        row[i] = int32_at(base_at, i)
    for i in range(num_ids):
        u = np.uint32(int32_at(ids_at, i))
        row[u >> np.uint32(5)] |= np.int32(1) << np.int32(u & np.uint32(31))


@compiled(INT, INT, INT, INT32, nogil=True)
def write_mask(base_at, ids_at, num_ids, row):  # pragma: no cover
    """See `copy_mask`. `row`: int32 [num_mask_words]."""
    copy_mask(base_at, ids_at, num_ids, row)


@compiled(INT64_TABLE, INT32_TABLE, nogil=True)
def write_masks(places, bitmask):  # pragma: no cover
    """Write row i of `bitmask`, int32 [n, num_mask_words], from places[i], int64: base, ids, number of ids. base 0: leave it."""
    for i in range(places.shape[0]):
        if places[i, 0] != 0:
            copy_mask(places[i, 0], places[i, 1], places[i, 2], bitmask[i])


class Mask:
    """Allowed tokens, end tokens among them. Immutable, and so are its arrays.

    Attributes:
        base: uint32 [num_mask_words], contiguous.
        ids: int32, contiguous, the other allowed tokens.
        level: number of levels of frames that it depends on.
        place: the addresses of both arrays, and the number of ids.
        num_bytes: memory not shared with other masks.
        holds_names: whether a token holds a whole name after a comma or brace (see `repeated_names`); None: not known yet.
    """

    __slots__ = ("_is_empty", "base", "holds_names", "ids", "level", "num_bytes", "owns_base", "place")

    def __init__(
        self, base: NDArray[np.uint32], ids: NDArray[np.int32], level: int = 0, *, owns_base: bool = False
    ) -> None:
        """Take the arrays; owns_base: the base is not shared."""
        self.base, self.ids, self.level, self.owns_base = base, ids, level, owns_base
        self.holds_names: bool | None = None
        self.place = address_of(base), address_of(ids), len(ids)
        self._is_empty: bool | None = None
        self.num_bytes = ids.nbytes + owns_base * base.nbytes + _MASK_BYTES

    @property
    def is_empty(self) -> bool:
        """Whether no token is allowed."""
        if self._is_empty is None:
            self._is_empty = not len(self.ids) and not self.base.any()
        return self._is_empty

    def write(self, row: NDArray[np.int32]) -> None:
        """Write the mask into a row, int32 [num_mask_words]."""
        base, ids, num_ids = self.place
        write_mask(base, ids, num_ids, row)


def mask_of_ids(token_ids: NDArray[np.int32], num_words: int) -> NDArray[np.uint32]:
    """A mask of some tokens, uint32 [num_words], in a number of steps that hardly depends on how many there are."""
    bits = np.zeros(32 * num_words, dtype=np.bool_)
    bits[token_ids] = True
    return np.packbits(bits, bitorder="little").view(np.uint32)


def write_rows(masks: Sequence[Mask | None], bitmask: NDArray[np.int32]) -> None:
    """Write masks[i] into row i of `bitmask`, int32 [n, num_mask_words], contiguous; None: leave it as it is.

    One call of compiled code writes all rows, without the interpreter lock.
    """
    nothing = (0, 0, 0)
    places = [nothing if mask is None else mask.place for mask in masks]
    write_masks(np.array(places, dtype=np.int64).reshape(-1, 3), bitmask)
