"""The engine without a model: the tokens of a graph, and that they add up."""

from __future__ import annotations

from rtlang.contract.events import GraphFinished, NodeFinished, TextDelta
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Generate
from rtlang_bench.frontend.null_engine import PIECES, NullGraph


def test_a_graph_gives_its_tokens_and_ends() -> None:
    graph = NullGraph(7, "client", Generate(1, 0, "out", SamplingParams(max_tokens=10)))
    events = []
    while not graph.has_ended:
        events += graph.step()
    deltas = [each for each in events if isinstance(each, TextDelta)]
    *_, finished, end = events
    assert isinstance(finished, NodeFinished)
    assert isinstance(end, GraphFinished)
    (completion,) = finished.completions
    assert [token_id for each in deltas for token_id in each.token_ids] == list(completion.token_ids)
    assert "".join(each.text for each in deltas) == completion.text == "".join((PIECES * 2)[:10])
    assert finished.usage.completion_tokens == 10
