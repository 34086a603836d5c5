"""A graph that ended engines is known when it is run again, whoever resumes it from what."""

from __future__ import annotations

from typing import Any

import pytest

from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Arg, Generate, RequestGraph, Text
from rtlang.contract.runs.principal import Principal
from rtlang.contract.runs.run_options import RunOptions
from rtlang.fleet.engines.crash_suspects import FORGET_S
from rtlang.fleet.engines.culprits import MAX_CULPRITS, Culprits
from rtlang.fleet.engines.engine_run import EngineRun
from rtlang.runtime.admission import Admission, Share


def run_of(text: str = "a", principal: str = "ana", max_tokens: int = 5, **options: Any) -> EngineRun:
    nodes = (Text(0, None, (text, Arg("x"))), Generate(1, 0, "y", SamplingParams(max_tokens=max_tokens)))
    graph = RequestGraph(nodes, ("x",))
    share, owner = Share(Admission(9), Principal(principal)), object()
    inputs = options.pop("inputs", {"x": "b"})
    return EngineRun(owner, 1, graph, graph.validate(), lambda event: None, share, RunOptions(inputs=inputs, **options))  # type: ignore[arg-type]


def test_the_same_graph_of_the_same_principal_is_known_for_a_while() -> None:
    culprits = Culprits()
    assert not culprits.has(run_of(), 5.0)
    culprits.note(run_of(seed=1), 5.0)
    assert culprits.has(run_of(seed=2, continue_from={1: [[7]]}), 6.0)
    assert not culprits.has(run_of(), 5.0 + FORGET_S)


@pytest.mark.parametrize(
    "other", [{"text": "b"}, {"principal": "ben"}, {"max_tokens": 6}, {"inputs": {"x": "c"}}], ids=str
)
def test_another_graph_is_not_known(other: dict[str, Any]) -> None:
    culprits = Culprits()
    culprits.note(run_of(), 5.0)
    assert not culprits.has(run_of(**other), 6.0)


def test_only_the_last_culprits_are_kept() -> None:
    culprits = Culprits()
    for number in range(MAX_CULPRITS + 1):
        culprits.note(run_of(str(number)), 5.0)
    assert not culprits.has(run_of("0"), 6.0)
    assert culprits.has(run_of("1"), 6.0)
    assert culprits.has(run_of(str(MAX_CULPRITS)), 6.0)
