"""Both ends of the comparison on Ray Serve: what a request carries, what a replica returns, and how a target gives its events."""

from __future__ import annotations

import asyncio
import logging
import pickle
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from rtlang.bench.measure import run_on_target
from rtlang.bench.workloads.workload import fixed_generation
from rtlang.contract.errors import EngineDeadError, InternalError
from rtlang.contract.events import GraphFinished, NodeFinished
from rtlang.contract.request_graph import RequestGraph, Text, TokenIds
from tests.support.servers.ray_cluster import set_environment

SETTINGS = {"model": "rtlang:tiny", "dtype": "float32", "num_pages": 64, "num_threads": 1}
GRAPH = RequestGraph((Text(0, None, ("Hello ", TokenIds((7, 12)))), Text(1, 0, (" you",)), fixed_generation(2, 1, 3)))


@pytest.fixture(scope="module", autouse=True)
def root_logger() -> Iterator[None]:
    """Importing Ray's own router for prefixes gives the root logger another level and a handler."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    yield
    root.setLevel(level)
    for handler in root.handlers[:]:
        if handler not in handlers:
            root.removeHandler(handler)


@pytest.fixture(scope="module")
def replicas() -> Any:
    set_environment()
    pytest.importorskip("ray.serve")
    from rtlang_bench.ray_serve import replicas as serve_replicas

    return serve_replicas


@pytest.fixture(scope="module")
def engine(replicas: Any) -> Iterator[Any]:
    engine = replicas.MeasuredEngine(SETTINGS)
    yield engine
    engine._runtime.close()


class Handle:
    """A deployment of one replica in this process; `error` fails each request."""

    def __init__(self, engine: Any, error: Exception | None = None) -> None:
        self._engine, self._error = engine, error
        self.calls: list[str] = []
        self.measure = SimpleNamespace(remote=self._measure)

    async def _measure(self, request: Any) -> Any:
        if self._error is not None:
            raise self._error
        return await self._engine.measure(request)

    def broadcast(self, method: str, *args: Any) -> Any:
        self.calls.append(method)
        if method == "measure":
            asyncio.run(self._engine.measure(*args))
        else:
            getattr(self._engine, method)(*args)
        return SimpleNamespace(results=lambda timeout_s: [None])


def test_a_request_is_the_graph_with_its_texts_for_the_router(replicas: Any) -> None:
    request = pickle.loads(pickle.dumps(replicas.GraphRequest(GRAPH)))
    assert RequestGraph.from_plain(dict(request)) == GRAPH
    assert request.prompt == "Hello 7 12 you"


def test_prefix_affinity_reads_the_prompt(replicas: Any) -> None:
    from importlib import import_module

    from rtlang_bench.ray_serve.__main__ import PREFIX_AFFINITY, ROUTERS

    path = ROUTERS[PREFIX_AFFINITY]["request_router_config"]["request_router_class"]
    module, _, name = path.rpartition(".")
    router = getattr(import_module(module), name)
    router = router.__new__(router)
    assert router._extract_text_from_request(SimpleNamespace(args=(replicas.GraphRequest(GRAPH),))) == "Hello 7 12 you"


def test_a_replica_returns_the_ends_of_nodes_and_can_forget(replicas: Any, engine: Any) -> None:
    def measured() -> Any:
        node, end = asyncio.run(engine.measure(replicas.GraphRequest(GRAPH)))
        assert isinstance(node, NodeFinished)
        assert isinstance(end, GraphFinished)
        assert len(node.completions[0].token_ids) == 3
        return end.usage

    long = RequestGraph((Text(0, None, ("one more word " * 40,)), fixed_generation(1, 0, 1)))
    cached = []
    for _ in range(2):
        *_, end = asyncio.run(engine.measure(replicas.GraphRequest(long)))
        cached.append(end.usage.cached_tokens)
    assert cached[1] > cached[0]
    engine.clear_cache()
    *_, end = asyncio.run(engine.measure(replicas.GraphRequest(long)))
    assert end.usage.cached_tokens == cached[0]
    assert measured().completion_tokens == 3


def test_a_target_measures_graphs_and_warms_every_replica_up(replicas: Any, engine: Any) -> None:
    handle = Handle(engine)
    with replicas.ServeTarget(handle) as target:
        target.warm_up([GRAPH, GRAPH])
        assert handle.calls == ["measure", "measure", "clear_cache"]
        measured = run_on_target(target, [GRAPH, GRAPH])
    assert measured.outputs[0, 2] == measured.outputs[1, 2]
    assert len(measured.outputs[0, 2]) == 3


@pytest.mark.parametrize(
    ("error", "raised"), [(EngineDeadError("no"), EngineDeadError), (RuntimeError("a replica died"), InternalError)]
)
def test_a_failed_request_fails_its_graph(replicas: Any, error: Exception, raised: type[Exception]) -> None:
    with replicas.ServeTarget(Handle(None, error)) as target, pytest.raises(raised):
        run_on_target(target, [GRAPH])
