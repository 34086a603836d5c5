"""What a register says of an object's members, against sets of names."""

from __future__ import annotations

import random
from array import array

import pytest

from rtlang_grammars.machine.automaton.layout import (
    BITS,
    IN_ANY_ORDER,
    IN_ORDER,
    OBJ_CAP,
    OBJ_IS_OPEN,
    OBJ_LEAVES,
    OBJ_MAX,
    OBJ_MIN,
    OBJ_NAMES,
    OBJ_NUM_LEAVES,
    OBJ_ORDER,
    OBJ_REQUIRED,
    OBJ_WORDS,
    OTHERS_LAST,
)
from rtlang_grammars.machine.automaton.object_registers import ObjectRegister
from rtlang_grammars.machine.automaton.tables import Register


def described(num_names: int, required: set[int], low: int, high: int | None, *, order: int) -> array[int]:
    """The words of an object whose leaf i is name i, its description at 0."""
    is_packed = num_names <= 2 * BITS and low == 0 and high is None
    num_words = 0 if is_packed else -(-num_names // BITS)
    words = array("i", [0] * 16)
    words[OBJ_NAMES], words[OBJ_WORDS], words[OBJ_IS_OPEN] = num_names, num_words, 0
    words[OBJ_MIN], words[OBJ_MAX], words[OBJ_CAP] = low, -1 if high is None else high, max(low, high or 0)
    words[OBJ_NUM_LEAVES], words[OBJ_ORDER] = num_names, order
    words[OBJ_REQUIRED] = len(words)
    bits = sum(1 << name for name in required)
    words.extend((bits >> (BITS * i)) & ((1 << BITS) - 1) for i in range(num_words or 2))
    words[OBJ_LEAVES] = len(words)
    for name in range(num_names):
        words.extend((name, 0))
    return words


@pytest.mark.parametrize("order", [IN_ANY_ORDER, IN_ORDER, OTHERS_LAST])
@pytest.mark.parametrize("num_names", [3, 30, 60, 61, 200])
def test_registers_say_what_sets_of_names_say(num_names: int, order: int) -> None:
    is_ordered, rng = order != IN_ANY_ORDER, random.Random(num_names)
    for _ in range(30):
        required = {name for name in range(num_names) if rng.random() < 0.2}
        low = rng.choice([0, 0, rng.randrange(num_names)])
        high = rng.choice([None, None, max(low, len(required)) + rng.randrange(4)])
        words = described(num_names, required, low, high, order=order)
        register: Register = 0 if words[OBJ_WORDS] == 0 else (0, *[0] * words[OBJ_WORDS])
        came: set[int] = set()
        passed: set[int] = set()  # in order: that came, or may come no more
        for _ in range(25):
            have = ObjectRegister(words, 0, register)
            assert have.says(0, register)
            assert not have.says(1, register)
            missing = required - came
            assert have.missing == sum(1 << name for name in missing)
            assert have.may_have_other == (
                (high is None or min(len(came), words[OBJ_CAP]) + len(missing) < high)
                and not (order == OTHERS_LAST and missing)
            )
            assert have.may_close == (not missing and len(came) >= low)
            assert have.num_lacking == max(0, low - have.count - len(missing))
            has_room = high is None or min(len(came), words[OBJ_CAP]) + len(missing) < high
            allowed = {
                name
                for name in range(num_names)
                if name not in passed
                and (has_room or name in required)
                and not (is_ordered and any(each < name for each in missing))
                and not (is_ordered and words[OBJ_WORDS] and len(came) + num_names - name < low)
            }
            assert {name for name in range(num_names) if have.may_come(name, name + 1)} == allowed
            assert have.may_go_on == bool(allowed)
            assert have.may_come(0, num_names) == bool(allowed)
            if not allowed:
                break
            name = rng.choice(sorted(allowed))
            came.add(name)
            passed |= set(range(name + 1)) if is_ordered else {name}
            register = have.with_property(name)


def test_a_property_without_a_name_is_counted_where_properties_are() -> None:
    words = described(5, {1}, 0, None, order=IN_ANY_ORDER)
    assert ObjectRegister(words, 0, 4).with_property(None) == 4
    words = described(5, {1}, 3, None, order=IN_ANY_ORDER)
    assert ObjectRegister(words, 0, (1, 4)).with_property(None) == (2, 4)
    assert ObjectRegister(words, 0, (3, 4)).with_property(None) == (3, 4)


@pytest.mark.parametrize("low", [0, 3])
def test_behind_an_undeclared_name_that_comes_last_no_declared_name_may_come(low: int) -> None:
    words = described(5, {1}, low, None, order=OTHERS_LAST)
    register: Register = (1, 2) if low else 2
    assert ObjectRegister(words, 0, register).may_come(2, 5)
    after = ObjectRegister(words, 0, ObjectRegister(words, 0, register).with_property(None))
    assert not after.may_come(0, 5)
    assert after.may_have_other
    assert after.num_lacking == max(0, low - 2)
