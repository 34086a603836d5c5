"""The caches of several replicas as one, with replicas that answer as the test says."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from rtlang.contract.errors import EngineDeadError, ParameterError
from rtlang.contract.graph.nodes import Part
from rtlang.contract.runs.principal import Principal
from rtlang.contract.service.cache_report import CacheExplanation
from rtlang.contract.service.cache_service import PinGrant
from rtlang.fleet.replicas import fleet_cache
from rtlang.fleet.replicas.fleet_cache import FleetCacheService
from tests.support.waiting import LIMIT_S, wait_until

ANA = Principal("ana")


class Replica:
    """A cache that holds so many tokens of every prompt. It answers once it `may_answer`."""

    def __init__(self, num_cached: int, *, is_dead: bool = False, may_answer: threading.Event | None = None) -> None:
        self.num_cached, self._is_dead, self._may_answer = num_cached, is_dead, may_answer
        self.kept: dict[str, PinGrant] = {}

    def explain(self, parts: Sequence[Part], principal: Principal) -> CacheExplanation:
        if self._is_dead:
            raise EngineDeadError("it has ended")
        self._wait()
        return CacheExplanation(10, self.num_cached, None, ())

    def pin(self, parts: Sequence[Part], ttl_s: float, principal: Principal) -> PinGrant:
        grant = PinGrant(f"pin of {self.num_cached}", 10, self.num_cached, ttl_s, True)
        self.kept[grant.pin_id] = grant
        return grant

    def pins(self, principal: Principal) -> list[PinGrant]:
        self._wait()
        return list(self.kept.values())

    def _wait(self) -> None:
        assert self._may_answer is None or self._may_answer.wait(LIMIT_S)

    def unpin(self, pin_id: str, principal: Principal) -> bool:
        self._wait()
        return self.kept.pop(pin_id, None) is not None

    def tree(self, max_nodes: int, principal: Principal) -> list[dict[str, Any]]:
        return [{"id": 1, "parent": None}, {"id": 2, "parent": 1}, {"id": 3, "parent": 2}][:max_nodes]


def test_the_replica_that_holds_most_of_a_prompt_explains_and_pins_it() -> None:
    replicas = {"a": Replica(3), "b": Replica(9, is_dead=True), "c": Replica(7)}
    cache = FleetCacheService(lambda: replicas)
    assert cache.explain(["text"], ANA).num_cached_tokens == 7
    grant = cache.pin(["text"], 5.0, ANA)
    assert (list(replicas["c"].kept), cache.pins(ANA)) == ([grant.pin_id], [grant])
    assert not cache.unpin("pin of 3", ANA)
    assert cache.unpin(grant.pin_id, ANA)
    assert cache.pins(ANA) == []


def test_a_replica_that_is_silent_holds_up_no_explanation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_cache, "PATIENCE_S", 0.0)
    may_answer = threading.Event()
    replicas = {"a": Replica(9, may_answer=may_answer), "b": Replica(3)}
    cache = FleetCacheService(lambda: replicas)
    assert cache.explain(["text"], ANA).num_cached_tokens == 3
    grant = cache.pin(["text"], 5.0, ANA)
    with pytest.raises(EngineDeadError, match="a replica does not answer"):
        cache.pins(ANA)
    assert cache.unpin(grant.pin_id, ANA)
    with pytest.raises(EngineDeadError, match="a replica does not answer"):
        cache.unpin(grant.pin_id, ANA)
    may_answer.set()
    wait_until(lambda: not any(cache._num_unanswered.values()))
    monkeypatch.setattr(fleet_cache, "PATIENCE_S", LIMIT_S)
    assert cache.pins(ANA) == []
    assert not cache.unpin(grant.pin_id, ANA)


def test_a_replica_that_stays_silent_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_cache, "PATIENCE_S", 0.0)
    may_answer, num_asked = threading.Event(), itertools.count()

    def explain(*_: object) -> CacheExplanation:
        next(num_asked)
        assert may_answer.wait(LIMIT_S)
        return CacheExplanation(10, 9, None, ())

    silent = Replica(9)
    silent.explain = explain  # type: ignore[method-assign]
    cache = FleetCacheService(lambda: {"a": silent, "b": Replica(3)})
    for _ in range(fleet_cache.MAX_UNANSWERED + 3):
        assert cache.explain(["text"], ANA).num_cached_tokens == 3
    assert next(num_asked) == fleet_cache.MAX_UNANSWERED
    may_answer.set()
    wait_until(lambda: not any(cache._num_unanswered.values()))
    assert list(cache._of_all(lambda each: each.tree(1, ANA))) == ["a", "b"]


def test_an_error_of_a_replica_is_raised() -> None:
    def refuse(*_: object) -> CacheExplanation:
        raise ParameterError("text", "x", "expected something else")

    replica = Replica(1)
    replica.explain = refuse  # type: ignore[method-assign]
    with pytest.raises(ParameterError, match="expected something else"):
        FleetCacheService(lambda: {"a": replica}).explain(["x"], ANA)


def test_the_tree_holds_nodes_of_all_replicas_under_ids_of_their_own() -> None:
    cache = FleetCacheService(lambda: {"a": Replica(1), "b": Replica(2)})
    nodes = cache.tree(4, ANA)
    assert [node["replica"] for node in nodes] == ["a", "a", "b", "b"]
    assert len({node["id"] for node in nodes}) == 4
    for parent, child in (nodes[:2], nodes[2:]):
        assert (parent["parent"], child["parent"]) == (None, parent["id"])


def test_without_a_ready_replica_calls_fail() -> None:
    for replicas in ({}, {"a": Replica(1, is_dead=True)}):
        with pytest.raises(EngineDeadError):
            FleetCacheService(lambda found=replicas: found).explain(["text"], ANA)  # type: ignore[misc]
