"""What the register of an object says of its properties, for searches in Python: as `registers` reads it."""

from __future__ import annotations

from array import array

from rtlang_grammars.machine.layout import (
    BITS,
    OBJ_CAP,
    OBJ_IS_OPEN,
    OBJ_IS_ORDERED,
    OBJ_LEAVES,
    OBJ_MAX,
    OBJ_MIN,
    OBJ_NAMES,
    OBJ_NUM_LEAVES,
    OBJ_REQUIRED,
    OBJ_WORDS,
)
from rtlang_grammars.machine.tables import Register


class Members:
    """What an object's register says, as `kernels` reads it."""

    def __init__(self, words: array[int], description: int, register: Register) -> None:
        self._X, self._o = words, description
        if isinstance(register, int):
            self.seen, self.count = register, 0
        else:
            self.seen, self.count = sum(word << (BITS * i) for i, word in enumerate(register[1:])), register[0]
        self.register = register
        begin, size = words[description + OBJ_REQUIRED], words[description + OBJ_WORDS] or 2
        self.required = sum(word << (BITS * i) for i, word in enumerate(words[begin : begin + size]))

    @property
    def missing(self) -> int:
        """The required names that have not come, as bits."""
        return self.required & ~self.seen

    @property
    def slack(self) -> int:
        """Properties that may come beside the missing ones."""
        most = self._X[self._o + OBJ_MAX]
        return 1 << 30 if most < 0 else most - self.count - self.missing.bit_count()

    def may_come(self, low: int, high: int) -> bool:
        """Whether a name of these leaves may still come."""
        X, leaves, free = self._X, self._X[self._o + OBJ_LEAVES], self.slack > 0
        names = (X[leaves + 2 * leaf] for leaf in range(low, high))
        return any(
            not self.seen >> name & 1 and (free or self.required >> name & 1) and self._is_in_order(name)
            for name in names
        )

    def _is_in_order(self, name: int) -> bool:
        X, o = self._X, self._o
        if not X[o + OBJ_IS_ORDERED]:
            return True
        if self.missing & ((1 << name) - 1):
            return False
        return bool(
            X[o + OBJ_WORDS] == 0 or X[o + OBJ_IS_OPEN] or self.count + X[o + OBJ_NAMES] - name >= X[o + OBJ_MIN]
        )

    @property
    def may_go_on(self) -> bool:
        """Whether one more property may come."""
        is_open = bool(self._X[self._o + OBJ_IS_OPEN]) and self.slack > 0
        return is_open or self.may_come(0, self._X[self._o + OBJ_NUM_LEAVES])

    @property
    def num_lacking(self) -> int:
        """Properties that must come beside the missing ones."""
        return max(0, self._X[self._o + OBJ_MIN] - self.count - self.missing.bit_count())

    @property
    def may_close(self) -> bool:
        """Whether the object may end here."""
        is_enough = self._X[self._o + OBJ_WORDS] == 0 or self.count >= self._X[self._o + OBJ_MIN]
        return is_enough and not self.missing

    def with_property(self, name: int | None) -> Register:
        """The register after one more property."""
        seen = self.seen if name is None else self.seen | 1 << name
        if name is not None and self._X[self._o + OBJ_IS_ORDERED]:
            seen |= (1 << name) - 1
        if isinstance(self.register, int):
            return seen
        count = min(self.count + 1, self._X[self._o + OBJ_CAP])
        size = len(self.register) - 1
        return (count, *((seen >> (BITS * i)) & ((1 << BITS) - 1) for i in range(size)))
