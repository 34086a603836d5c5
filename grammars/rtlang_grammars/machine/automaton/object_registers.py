"""The register of an object, decoded for searches in Python; `native.registers` reads the same layout.

Objects may have thousands of properties, and a search queries them at every place: every query takes at most time linear in the words of
the register, and most take constant time.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from functools import cached_property

from rtlang_grammars.machine.automaton.layout import (
    BITS,
    IN_ANY_ORDER,
    OBJ_CAP,
    OBJ_IS_OPEN,
    OBJ_LEAVES,
    OBJ_MAX,
    OBJ_MIN,
    OBJ_NAMES,
    OBJ_NUM_LEAVES,
    OBJ_ORDER,
    OBJ_ORDERED,
    OBJ_REQUIRED,
    OBJ_WORDS,
    OTHERS_LAST,
)
from rtlang_grammars.machine.automaton.tables import Register

_FULL = (1 << BITS) - 1


class ObjectRegister:
    """A decoded object register. Immutable.

    Attributes:
        register: the register itself.
        count: number of properties so far, if they are counted.
        seen, required: the names seen and the required names, as bits.
        missing: the required names that were not seen.
    """

    def __init__(self, words: array[int], description: int, register: Register) -> None:
        self._X, self._o = words, description
        self.register = register
        self.count = 0 if isinstance(register, int) else register[0]

    def says(self, description: int, register: Register) -> bool:
        """Whether this was decoded from the same description and the very same register."""
        return self.register is register and self._o == description

    @cached_property
    def seen(self) -> int:
        return self.register if isinstance(self.register, int) else _bits(self.register[1:])

    @cached_property
    def required(self) -> int:
        begin, size = self._X[self._o + OBJ_REQUIRED], self._X[self._o + OBJ_WORDS] or 2
        return _bits(self._X[begin : begin + size])

    @cached_property
    def missing(self) -> int:
        return self.required & ~self.seen

    @cached_property
    def slack(self) -> int:
        """Number of properties allowed in addition to the missing ones."""
        most = self._X[self._o + OBJ_MAX]
        return 1 << 30 if most < 0 else most - self.count - self.missing.bit_count()

    def may_come(self, low: int, high: int) -> bool:
        """Whether a name of these leaves is still allowed."""
        X, leaves, free = self._X, self._X[self._o + OBJ_LEAVES], self.slack > 0
        names = (X[leaves + 2 * leaf] for leaf in range(low, high))
        return any(
            not self._has_come(name) and (free or self.required >> name & 1) and self._is_in_order(name)
            for name in names
        )

    def _has_come(self, name: int) -> int:
        if isinstance(self.register, int):
            return self.register >> name & 1
        return self.register[1 + name // BITS] >> name % BITS & 1

    def _num_passed(self, name: int | None) -> int:
        """The names below this number cannot follow `name` (None: an undeclared one)."""
        ordered = self._X[self._o + OBJ_ORDERED]
        if name is not None and name < ordered:
            return name
        return ordered if self._X[self._o + OBJ_ORDER] == OTHERS_LAST else 0

    def _is_in_order(self, name: int) -> bool:
        """Whether a name skips no required one and leaves as many names after it as a closed object needs."""
        X, o = self._X, self._o
        if X[o + OBJ_ORDER] == IN_ANY_ORDER:
            return True
        passed = self._num_passed(name)
        if passed > self._first_missing:
            return False
        if X[o + OBJ_WORDS] == 0 or X[o + OBJ_IS_OPEN]:
            return True
        everything = (1 << X[o + OBJ_NAMES]) - 1
        return bool(self.count + ((everything & ~self.seen) >> passed).bit_count() >= X[o + OBJ_MIN])

    @cached_property
    def _first_missing(self) -> int:
        """The first required name that was not seen; the number of names if there is none."""
        missing = self.missing
        return (missing & -missing).bit_length() - 1 if missing else self._X[self._o + OBJ_NAMES]

    @property
    def may_go_on(self) -> bool:
        """Whether one more property is allowed."""
        is_open = bool(self._X[self._o + OBJ_IS_OPEN]) and self.slack > 0
        return is_open or self.may_come(0, self._X[self._o + OBJ_NUM_LEAVES])

    @property
    def num_lacking(self) -> int:
        """Number of properties needed in addition to the missing ones."""
        return max(0, self._X[self._o + OBJ_MIN] - self.count - self.missing.bit_count())

    @property
    def may_have_other(self) -> bool:
        """Whether one more undeclared property is allowed."""
        return self.slack > 0 and not (self._X[self._o + OBJ_ORDER] == OTHERS_LAST and self.missing)

    @property
    def may_close(self) -> bool:
        """Whether the object may end here."""
        is_enough = self._X[self._o + OBJ_WORDS] == 0 or self.count >= self._X[self._o + OBJ_MIN]
        return is_enough and not self.missing

    def with_property(self, name: int | None) -> Register:
        """The register after one more property."""
        passed = self._num_passed(name)
        if isinstance(self.register, int):
            return self.register | (0 if name is None else 1 << name) | ((1 << passed) - 1)
        words = [min(self.count + 1, self._X[self._o + OBJ_CAP]), *self.register[1:]]
        full, rest = divmod(passed, BITS)
        words[1 : 1 + full] = [_FULL] * full
        if rest:
            words[1 + full] |= (1 << rest) - 1
        if name is not None:
            words[1 + name // BITS] |= 1 << name % BITS
        return tuple(words)


def _bits(words: Iterable[int]) -> int:
    """The words as one number, the first word lowest."""
    return int("".join([f"{word:0{BITS}b}" for word in words][::-1]), 2)
