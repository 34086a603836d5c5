"""What a register says of an object's members, against sets of names."""

from __future__ import annotations

import random
from array import array
from dataclasses import dataclass, field

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
    OBJ_ORDERED,
    OBJ_REQUIRED,
    OBJ_WORDS,
    OTHERS_LAST,
)
from rtlang_grammars.machine.automaton.object_registers import ObjectRegister
from rtlang_grammars.machine.automaton.tables import Register
from tests.support.long_tests import sized


def described(
    num_names: int,
    required: set[int],
    low: int,
    high: int | None,
    *,
    order: int,
    num_ordered: int | None = None,
    is_open: bool = False,
) -> array[int]:
    """The words of an object whose leaf i is name i, its description at 0. By default all names have the order, if there is one."""
    is_packed = num_names <= 2 * BITS and low == 0 and high is None
    num_words = 0 if is_packed else -(-num_names // BITS)
    words = array("i", [0] * 16)
    words[OBJ_NAMES], words[OBJ_WORDS], words[OBJ_IS_OPEN] = num_names, num_words, is_open
    words[OBJ_MIN], words[OBJ_MAX], words[OBJ_CAP] = low, -1 if high is None else high, max(low, high or 0)
    words[OBJ_NUM_LEAVES], words[OBJ_ORDER] = num_names, order
    words[OBJ_ORDERED] = 0 if order == IN_ANY_ORDER else num_names if num_ordered is None else num_ordered
    words[OBJ_REQUIRED] = len(words)
    bits = sum(1 << name for name in required)
    words.extend((bits >> (BITS * i)) & ((1 << BITS) - 1) for i in range(num_words or 2))
    words[OBJ_LEAVES] = len(words)
    for name in range(num_names):
        words.extend((name, 0))
    return words


@dataclass
class Written:
    """What an object has so far, and what the order of names says about it, told from the sequence of its names alone."""

    num_names: int
    num_ordered: int
    order: int
    required: set[int]
    names: list[int | None] = field(default_factory=list)

    def may_still_come(self, name: int) -> bool:
        """Whether the order allows a name, if required ones are left aside."""
        if name in self.names:
            return False
        if self.order == IN_ANY_ORDER or name >= self.num_ordered:
            return True
        if self.order == OTHERS_LAST and any(each is None or each >= self.num_ordered for each in self.names):
            return False
        return all(each is None or each >= self.num_ordered or each < name for each in self.names)

    def skips(self, name: int | None) -> bool:
        """Whether a required name could not come any more behind this one."""
        after = Written(self.num_names, self.num_ordered, self.order, self.required, [*self.names, name])
        return not all(each in after.names or after.may_still_come(each) for each in self.required)

    def num_possible(self, name: int) -> int:
        """How many declared names there can be with this one."""
        after = Written(self.num_names, self.num_ordered, self.order, self.required, [*self.names, name])
        return len(after.names) + sum(map(after.may_still_come, range(self.num_names)))


@pytest.mark.parametrize("order", [IN_ANY_ORDER, IN_ORDER, OTHERS_LAST])
@pytest.mark.parametrize("num_names", [3, 30, 60, 61, 130])
def test_registers_say_what_sequences_of_names_say(num_names: int, order: int) -> None:
    rng = random.Random(num_names)
    for _ in range(sized(30)):
        num_ordered = rng.choice([num_names, rng.randrange(1, num_names)])
        required = {name for name in range(num_ordered) if rng.random() < 0.2}
        low, is_open = rng.choice([0, 0, rng.randrange(num_names)]), rng.random() < 0.5
        high = rng.choice([None, None, max(low, len(required)) + rng.randrange(4)])
        words = described(num_names, required, low, high, order=order, num_ordered=num_ordered, is_open=is_open)
        register: Register = 0 if words[OBJ_WORDS] == 0 else (0, *[0] * words[OBJ_WORDS])
        written = Written(num_names, num_ordered, order, required)
        for _ in range(25):
            have = ObjectRegister(words, 0, register)
            assert have.says(0, register)
            assert not have.says(1, register)
            num, missing = len(written.names), required - set(written.names)
            assert have.missing == sum(1 << name for name in missing)
            has_room = high is None or min(num, words[OBJ_CAP]) + len(missing) < high
            assert have.may_have_other == (has_room and not written.skips(None))
            assert have.may_close == (not missing and num >= low)
            assert have.num_lacking == max(0, low - have.count - len(missing))
            allowed = {
                name
                for name in range(num_names)
                if written.may_still_come(name)
                and (has_room or name in required)
                and not written.skips(name)
                and (order == IN_ANY_ORDER or is_open or not words[OBJ_WORDS] or written.num_possible(name) >= low)
            }
            assert {name for name in range(num_names) if have.may_come(name, name + 1)} == allowed
            assert have.may_go_on == (bool(allowed) or (is_open and has_room))
            assert have.may_come(0, num_names) == bool(allowed)
            choices: list[int | None] = [*sorted(allowed)]
            if is_open and have.may_have_other and rng.random() < 0.3:
                choices = [None]
            if not choices:
                break
            name = rng.choice(choices)
            written.names.append(name)
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
