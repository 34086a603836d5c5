"""Compiled actions on the register of an object, against the same register decoded in Python."""

from __future__ import annotations

import random
from array import array

import numpy as np
import pytest

from rtlang_grammars.machine.automaton.layout import (
    BITS,
    CLOSE,
    IN_ANY_ORDER,
    IN_ORDER,
    KEY_BRANCH,
    KEY_END,
    KEY_OTHER,
    OBJ_LEAVES,
    OBJ_WORDS,
    OTHERS_LAST,
)
from rtlang_grammars.machine.automaton.object_registers import ObjectRegister
from rtlang_grammars.machine.automaton.tables import Register
from rtlang_grammars.machine.native.registers import act_alone
from tests.grammars.machine.automaton.test_object_registers import described

TARGET = 77


class Native:
    """The register of the object that `words` describe, as compiled code keeps it."""

    def __init__(self, words: array[int]) -> None:
        self._words = words
        self._arena = np.zeros(4096, dtype=np.int64)
        self._num_words = words[OBJ_WORDS]
        self._register, self._top = (8, 9 + self._num_words) if self._num_words else (0, 8)

    def act(self, *action: int) -> bool:
        """Run an action; returns whether it is allowed. The register changes only then."""
        X = np.array([*self._words, *action], dtype=np.int32)
        target, register, top = act_alone(X, self._arena, len(self._words), self._register, self._top)
        if target < 0:
            return False
        self._register, self._top = int(register), int(top)
        return True

    def may_close(self) -> bool:
        """Whether the object may end here."""
        before = self._register
        allowed = self.act(CLOSE, 0, TARGET)
        self._register = before
        return allowed

    @property
    def register(self) -> Register:
        """The register as Python code holds it."""
        if not self._num_words:
            return self._register
        return tuple(map(int, self._arena[self._register : self._register + 1 + self._num_words]))


@pytest.mark.parametrize("order", [IN_ANY_ORDER, IN_ORDER, OTHERS_LAST])
@pytest.mark.parametrize("num_names", [3, 30, 31, 60, 61, 130])
def test_compiled_actions_say_what_the_decoded_register_says(num_names: int, order: int) -> None:
    rng = random.Random(num_names)
    for _ in range(20):
        num_ordered = rng.choice([num_names, rng.randrange(1, num_names)])
        required = {name for name in range(num_ordered) if rng.random() < 0.2}
        low, is_open = rng.choice([0, 0, rng.randrange(num_names)]), rng.random() < 0.5
        high = rng.choice([None, None, max(low, len(required)) + rng.randrange(4)])
        words = described(num_names, required, low, high, order=order, num_ordered=num_ordered, is_open=is_open)
        assert words[OBJ_LEAVES] > 0
        native = Native(words)
        for _ in range(25):
            have = ObjectRegister(words, 0, native.register)
            for _ in range(10):
                begin = rng.randrange(num_names)
                end = rng.randrange(begin, num_names) + 1
                assert native.act(KEY_BRANCH, 0, TARGET, begin, end) == have.may_come(begin, end)
            assert native.may_close() == have.may_close
            name = rng.randrange(num_names)
            if rng.random() < 0.2:
                expected = have.with_property(None)
                assert native.act(KEY_OTHER, 0, TARGET) == have.may_have_other
                assert native.register == (expected if have.may_have_other else have.register)
                continue
            # The state after the name is the second word of its leaf, here 0: allowed.
            assert native.act(KEY_END, 0, name) == have.may_come(name, name + 1)
            expected = have.with_property(name) if have.may_come(name, name + 1) else have.register
            assert native.register == expected


def test_names_of_a_second_word_are_kept_beside_those_of_the_first() -> None:
    words = described(BITS + 2, {BITS + 1}, 1, None, order=OTHERS_LAST)
    native = Native(words)
    assert not native.act(KEY_OTHER, 0, TARGET)
    assert native.act(KEY_END, 0, BITS)
    assert native.act(KEY_END, 0, BITS + 1)
    assert not native.act(KEY_END, 0, 3)
    assert native.act(KEY_OTHER, 0, TARGET)
