"""Comparing digit by digit against comparing fractions."""

from __future__ import annotations

import random
from fractions import Fraction

from rtlang_grammars.regular.decimal_order import Comparator, alike_between, order_of


def test_digits_compare_as_the_numbers_do() -> None:
    rng = random.Random(4)
    for _ in range(400):
        constant = Fraction(rng.randint(0, 3000), rng.choice([1, 4, 10, 1000]))
        whole, fraction = str(rng.randint(0, 3000)), "".join(rng.choices("0123456789", k=rng.randint(0, 4)))
        comparator = Comparator(constant)
        state = comparator.start
        for at, digit in enumerate(whole + fraction):
            alike = alike_between(frozenset(comparator.next_digits(state)))
            following = [comparator.digit(state, each, at >= len(whole)) for each in range(10)]
            assert following == [following[each] for each in alike]
            state = following[int(digit)]
        value = Fraction(int(whole + fraction), 10 ** len(fraction))
        assert comparator.order(state) == order_of(value > constant, value < constant)


def test_digits_are_alike_between_those_compared_with() -> None:
    assert alike_between(frozenset()) == (0, 1, 1, 1, 1, 1, 1, 1, 1, 1)
    assert alike_between(frozenset("3")) == (0, 1, 1, 3, 4, 4, 4, 4, 4, 4)
    assert alike_between(frozenset("19")) == (0, 1, 2, 2, 2, 2, 2, 2, 2, 9)
