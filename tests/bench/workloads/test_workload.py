"""The nodes of workloads."""

from __future__ import annotations

import pytest

from rtlang.bench.workloads.workload import (
    ArrivesBeside,
    PoissonArrivals,
    Workload,
    fixed_generation,
    generations,
    tool_call,
    tool_of,
)
from rtlang.contract.params import Constraint, ConstraintKind
from rtlang.contract.request_graph import Call, Const, Ref, RequestGraph, Text


def test_a_tool_is_a_host_call_that_is_read_again() -> None:
    call = tool_call(3, 2, 0.25, "found")
    RequestGraph((Text(0, None, ("a",)), fixed_generation(2, 0, 4), call, Text(4, 2, (Ref(3),)))).validate()
    assert tool_of(call) == (2, 0.25, "found")
    with pytest.raises(ValueError, match="node 5"):
        tool_of(Call(5, "other", (Const(1),)))


def test_generations_have_a_fixed_length_unless_a_constraint_ends_them() -> None:
    free = fixed_generation(1, 0, 7)
    bound = fixed_generation(2, 1, 7, constraint=Constraint(ConstraintKind.JSON_SCHEMA, "{}"))
    assert (free.params.min_tokens, free.params.max_tokens, free.params.ignore_eos) == (7, 7, True)
    assert (bound.params.min_tokens, bound.params.max_tokens, bound.params.ignore_eos) == (0, 7, False)
    assert list(generations(RequestGraph((Text(0, None, ("a",)), free, bound)))) == [free, bound]


def test_gaps_are_watched_beside_the_graph_that_arrives() -> None:
    assert Workload("w", "", (), arrival=ArrivesBeside(8, 16)).watched == 8
    assert Workload("w", "", (), arrival=PoissonArrivals(0.5)).watched is None
    assert Workload("w", "", ()).watched is None
