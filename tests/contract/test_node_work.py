"""The estimated work of nodes."""

from __future__ import annotations

import pytest

from rtlang.contract.node_work import OUTPUT_WEIGHT, REF_TOKENS, NodeWork, expected_output, node_work
from rtlang.contract.params import Constraint, ConstraintKind, SamplingParams
from rtlang.contract.request_graph import (
    Apply,
    Arg,
    Block,
    Const,
    Generate,
    Node,
    Ref,
    Repeat,
    RoleEnd,
    RoleStart,
    Select,
    Switch,
    Text,
    TokenIds,
)


def test_texts_count_by_their_characters() -> None:
    parts = ("a" * 40, Arg("x"), Ref(9), TokenIds((1, 2, 3)), RoleStart("user", "t" * 8), RoleEnd())
    assert node_work(Text(0, None, parts), {"x": "b" * 20}) == (10 + 5 + REF_TOKENS + 3 + 1 + 2 + 1, 0)
    assert node_work(Text(0, None, ("a" * 40,)), chars_per_token=2.0) == (20, 0)


def test_generations_count_by_what_they_may_give() -> None:
    free = SamplingParams(max_tokens=40)
    assert node_work(Generate(0, None, None, free)) == (0, 20)
    assert node_work(Generate(0, None, None, SamplingParams(max_tokens=40, n=3))) == (0, 60)
    assert expected_output(free, num_given=30) == 5
    assert expected_output(free, num_given=50) == 0
    assert expected_output(SamplingParams(max_tokens=40, min_tokens=30)) == 30
    assert expected_output(SamplingParams(max_tokens=40, min_tokens=30), num_given=28) == 6
    fixed = SamplingParams(max_tokens=40, ignore_eos=True)
    assert expected_output(fixed) == 40
    assert expected_output(fixed, num_given=30) == 10
    assert expected_output(fixed, Constraint(ConstraintKind.REGEX, "a*")) == 20
    assert expected_output(SamplingParams(max_tokens=40, ignore_eos=True, stop=("x",))) == 20


def test_selections_count_all_choices_and_applications_nothing() -> None:
    assert node_work(Select(0, None, None, ("a" * 12, "b" * 4))) == (4, 0)
    assert node_work(Apply(0, "upper", (Ref(1),))) == NodeWork()


def test_controls_count_their_longest_block() -> None:
    def block(max_tokens: int) -> Block:
        nodes: tuple[Node, ...] = (
            Text(1, None, ("a" * 8,)),
            Generate(2, 1, None, SamplingParams(max_tokens=max_tokens)),
        )
        return Block(nodes)

    assert node_work(Switch(0, None, Const("a"), (("a", block(10)), ("b", block(40))), block(4))) == (2, 20)
    assert node_work(Repeat(0, None, block(10), Const(False), 6, 2)) == (6, 15)


def test_weights() -> None:
    assert NodeWork(10, 5).weighted() == 10 + 5 * OUTPUT_WEIGHT
    assert NodeWork(10, 5).weighted(2.0) == 20
    assert NodeWork(10, 5).plus(NodeWork(1, 2), -2.0) == pytest.approx((8, 1))
