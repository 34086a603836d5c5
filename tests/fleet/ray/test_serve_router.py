"""The router of Ray Serve ranks replicas by the rule of whole programs; Ray Serve itself is a script here."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Generate, RequestGraph, Text
from tests.support.servers.ray_cluster import ray_cluster

pytest.importorskip("ray.serve")


class ReplicaId(NamedTuple):
    unique_id: str


def replica(name: str) -> Any:
    return SimpleNamespace(replica_id=ReplicaId(name))


REPLICAS = [replica(name) for name in "abcdefgh"]


def request(number: int, document: str, max_tokens: int = 10) -> Any:
    generate = Generate(1, 0, "x", SamplingParams(max_tokens=max_tokens))
    graph = RequestGraph((Text(0, None, (document * 600,)), generate))
    metadata = SimpleNamespace(internal_request_id=str(number))
    return SimpleNamespace(args=(graph.to_plain(),), metadata=metadata)


@pytest.fixture
def router(monkeypatch: pytest.MonkeyPatch) -> Any:
    from rtlang.fleet.ray.serve_router import ProgramRouter

    monkeypatch.setattr(ProgramRouter, "curr_replicas", {each.replica_id: each for each in REPLICAS})
    router = ProgramRouter.__new__(ProgramRouter)
    router.initialize_state(seed=1)
    return router


def ranking(router: Any, pending: Any, candidates: list[Any] = REPLICAS) -> list[str]:
    ranks = asyncio.run(router.choose_replicas(candidates, pending))
    assert all(len(rank) == 1 for rank in ranks)
    return [rank[0].replica_id.unique_id for rank in ranks]


def end(router: Any, pending: Any, name: str) -> None:
    router.on_request_completed(ReplicaId(name), pending.metadata.internal_request_id)


def test_programs_of_one_document_stay_together_and_others_go_elsewhere(router: Any) -> None:
    first = request(1, "one document ")
    (home, *others) = ranking(router, first)
    assert sorted([home, *others]) == list("abcdefgh")
    end(router, first, home)
    for number in range(2, 8):
        again = request(number, "one document ")
        assert ranking(router, again)[0] == home
        end(router, again, home)
    assert ranking(router, request(9, "another one "))[0] != home or ranking(router, request(10, "a third "))[0] != home


def test_waiting_work_sends_programs_elsewhere(router: Any) -> None:
    homes = {ranking(router, request(number, "one document ", max_tokens=20_000))[0] for number in range(8)}
    assert len(homes) > 4


def test_a_request_that_is_asked_about_again_counts_once(router: Any) -> None:
    pending = request(1, "one document ")
    for _ in range(5):
        name = ranking(router, pending)[0]
    end(router, pending, name)
    assert {router._programs.waiting(each) for each in "abcdefgh"} == {0.0}


def test_the_replica_that_really_took_a_request_counts(router: Any) -> None:
    pending = request(1, "one document ")
    first, second, *_ = ranking(router, pending)
    router.on_request_routed(pending, ReplicaId(second), None)
    assert router._programs.waiting(first) == 0.0
    assert router._programs.waiting(second) > 0.0
    end(router, pending, second)
    assert router._programs.waiting(second) == 0.0


def test_replicas_that_have_gone_are_not_chosen(router: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    home = ranking(router, request(1, "one document "))[0]
    left = [each for each in REPLICAS if each.replica_id.unique_id != home]
    monkeypatch.setattr(type(router), "curr_replicas", {each.replica_id: each for each in left})
    assert home not in ranking(router, request(2, "one document "), left)


@pytest.mark.parametrize("args", [(), ("text",), ({"nodes": 3},)])
def test_requests_without_a_program_are_routed_as_well(router: Any, args: tuple[Any, ...]) -> None:
    pending = SimpleNamespace(args=args, metadata=SimpleNamespace(internal_request_id="1"))
    assert len(ranking(router, pending)) == len(REPLICAS)


@pytest.mark.long
def test_ray_serve_runs_programs_with_it() -> None:
    import ray
    from ray import serve

    from rtlang.contract.config import RuntimeConfig
    from rtlang.contract.errors import GraphError
    from rtlang.fleet.ray.serve_router import program_deployment

    config = RuntimeConfig(dtype="float32", num_pages=400, num_threads=1)
    with ray_cluster(1, cpus_per_node=4) as address:
        ray.init(address, log_to_driver=False)
        serve.start(proxy_location="Disabled")
        handle = serve.run(program_deployment(config, num_replicas=2), route_prefix=None)
        answers = [handle.run.remote(*request(number, "one document ").args) for number in range(6)]
        values = [answer.result(timeout_s=60) for answer in answers]
        assert all(each == values[0] for each in values)
        assert values[0]["x"]
        with pytest.raises(GraphError):
            handle.run.remote({"nodes": 3}).result(timeout_s=60)
        serve.shutdown()
