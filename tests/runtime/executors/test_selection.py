"""Scores of choices, by hand."""

from __future__ import annotations

import math

import pytest

from rtlang.contract.params import SelectMethod
from rtlang.runtime.executors.selection import select_scores, softmax


def test_greedy_token_selection_follows_the_likelier_token() -> None:
    method = SelectMethod.GREEDY_TOKEN_SELECTION
    tokens = [(1, 2), (1, 3), (4,)]
    assert select_scores(method, tokens, [[-1.0, -3.0], [-1.0, -2.0], [-1.5]], []) == [0.0, 1.0, 0.0]
    assert select_scores(method, tokens, [[-2.0, -0.1], [-2.0, -0.1], [-1.5]], []) == [0.0, 0.0, 1.0]
    assert select_scores(method, [(1,), (1, 2)], [[-1.0], [-1.0, -2.0]], []) == [1.0, 0.0]
    assert select_scores(method, [(1,), (1, 2)], [[-1.0], [-1.0, -0.1]], []) == [0.0, 1.0]


def test_the_other_methods_sum_average_or_subtract() -> None:
    tokens, conditional, prior = [(1, 2), (3,)], [[-1.0, -3.0], [-2.5]], [[-2.0, -2.0], [-0.5]]
    assert select_scores(SelectMethod.FULL_LIKELIHOOD, tokens, conditional, []) == [-4.0, -2.5]
    assert select_scores(SelectMethod.TOKEN_LENGTH_NORMALIZED, tokens, conditional, []) == [-2.0, -2.5]
    assert select_scores(SelectMethod.UNCONDITIONAL_LIKELIHOOD_NORMALIZED, tokens, conditional, prior) == [0.0, -2.0]


def test_softmax_is_stable() -> None:
    assert softmax([-1000.0, -1000.0 + math.log(3)]) == pytest.approx((0.25, 0.75))
