"""Programs run call by call give the texts of whole programs, one request for each call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rtlang.bench.measure import run_on_target
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import EngineDeadError
from rtlang.contract.events import GraphFailed
from rtlang.contract.request_graph import Generate, RequestGraph
from rtlang.model.loader import model_directory
from rtlang.model.text.tokenizer import Tokenizer
from rtlang.runtime.runtime import Runtime
from rtlang_bench.fleet.fleet_programs import ProgramSizes, chats, trees
from rtlang_bench.fleet.single_calls import run_call_by_call

ENCODER = Tokenizer.from_pretrained(model_directory("rtlang:tiny"))
SIZES = ProgramSizes(3, 2, 24, 6, 4, 2, 2, 3)


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    with Runtime(config=RuntimeConfig(num_threads=1, dtype="float32", speculation="off")) as runtime:
        yield runtime


class Watched:
    """Hands graphs on, and keeps them."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime, self.graphs = runtime, list[RequestGraph]()

    def submit(self, graph: RequestGraph, listener: Any) -> Any:
        self.graphs.append(graph)
        return self._runtime.submit(graph, listener)


@pytest.mark.parametrize("make", [trees, chats])
def test_texts_are_those_of_whole_programs(runtime: Runtime, make: Any) -> None:
    workload = make(ENCODER, SIZES, 0)
    whole = run_on_target(runtime, workload.graphs)
    watched = Watched(runtime)
    single = run_call_by_call(watched, workload.graphs)  # type: ignore[arg-type]
    assert single.outputs == whole.outputs
    assert single.prompt_tokens == whole.prompt_tokens
    assert len(watched.graphs) == len(single.outputs)
    assert all(sum(isinstance(node, Generate) for node in graph.nodes) == 1 for graph in watched.graphs)
    assert len(single.latencies_s) == len(workload.graphs)
    assert 0 < min(single.latencies_s) <= max(single.latencies_s) <= single.total_s


def test_programs_arrive_in_their_order(runtime: Runtime) -> None:
    workload = chats(ENCODER, SIZES, 1)
    watched = Watched(runtime)
    run_call_by_call(watched, workload.graphs, arrivals_s=[0.02, 0.0, 0.01])  # type: ignore[arg-type]
    texts = [graph.nodes[1] for graph in workload.graphs]
    first = [next(at for at, graph in enumerate(watched.graphs) if graph.nodes[1] == text) for text in texts]
    assert first[1] < first[2] < first[0]


def test_failed_call_ends_the_run() -> None:
    class Failing:
        def submit(self, graph: RequestGraph, listener: Any) -> None:
            listener(GraphFailed(1, EngineDeadError("gone")))

    with pytest.raises(EngineDeadError, match="gone"):
        run_call_by_call(Failing(), chats(ENCODER, SIZES, 0).graphs)  # type: ignore[arg-type]


def test_silent_target_ends_the_run() -> None:
    class Silent:
        def submit(self, graph: RequestGraph, listener: Any) -> None:
            pass

    with pytest.raises(EngineDeadError, match="no event"):
        run_call_by_call(Silent(), chats(ENCODER, SIZES, 0).graphs, timeout_s=0.01)  # type: ignore[arg-type]
