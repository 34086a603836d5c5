"""The cache for the principals of a server: each with its own prompts, pins and nodes, and within its share."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from rtlang.contract.errors import ContextLengthError, OverloadError, ParameterError
from rtlang.contract.graph.nodes import RoleEnd, RoleStart
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Generate, RequestGraph, Text
from rtlang.contract.runs.principal import LOCAL, Principal
from rtlang.contract.runs.run_options import RunOptions
from rtlang.contract.service.cache_service import MAX_PINS, PinGrant
from rtlang.contract.service.generation import token_ids_part
from rtlang.runtime.principal_cache import PrincipalCache
from rtlang.runtime.runtime import Runtime

PAGE = 4
FIRST = [7 + number % 90 for number in range(41)]
OTHER = [9, 8, *FIRST[2:]]
ANA, BEN = Principal("ana", namespace="ana"), Principal("ben", namespace="ben")


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    with Runtime(page_size=PAGE, num_pages=80, max_rows=4, num_threads=1) as runtime:
        yield runtime


@pytest.fixture(autouse=True)
def _empty(runtime: Runtime) -> Iterator[None]:
    yield
    for principal in (ANA, BEN, LOCAL):
        for pin in runtime.cache_service.pins(principal):
            runtime.cache_service.unpin(pin.pin_id, principal)
    runtime.cache.clear()


def compute(runtime: Runtime, tokens: Sequence[int], principal: Principal = LOCAL) -> None:
    """Let a principal ask for a prompt."""
    done, errors = threading.Event(), []

    def listen(event: Any) -> None:
        errors.extend([event.error] if hasattr(event, "error") else [])
        if hasattr(event, "values") or errors:
            done.set()

    nodes = (Text(0, None, (token_ids_part(tokens),)), Generate(1, 0, None, SamplingParams(max_tokens=1)))
    runtime.submit(RequestGraph(nodes), listen, RunOptions(principal=principal))
    assert done.wait(60)
    assert not errors


def pinned(runtime: Runtime, tokens: Sequence[int], principal: Principal, ttl_s: float = 60.0) -> PinGrant:
    compute(runtime, tokens, principal)
    return runtime.cache_service.pin([token_ids_part(tokens)], ttl_s, principal)


def test_a_prompt_is_explained_for_its_namespace(runtime: Runtime) -> None:
    cache: PrincipalCache = runtime.cache_service
    compute(runtime, FIRST, ANA)
    asked = [token_ids_part([*FIRST[:20], 5, 6])]
    found = cache.explain(asked, ANA)
    assert found.num_cached_tokens == 20
    assert found.divergence is not None
    assert cache.explain(asked, BEN).num_cached_tokens == 0
    assert cache.explain(asked, BEN).divergence is None
    assert cache.explain([RoleStart("user"), "hi", RoleEnd()], LOCAL).num_tokens > 0
    limit = runtime.text_service.info.max_model_len
    assert limit is not None
    with pytest.raises(ContextLengthError, match=str(limit)):
        cache.explain([token_ids_part([5] * (limit + 1))], ANA)
    with pytest.raises(ContextLengthError):
        cache.explain(["word " * 1_000_000], ANA)
    with pytest.raises(ParameterError, match="token_ids"):
        cache.explain([token_ids_part([1 << 30])], ANA)


def test_a_principal_keeps_its_share_and_no_more(runtime: Runtime) -> None:
    """40 of 80 pages may be held; 20 of them by one principal with a namespace."""
    cache = runtime.cache_service
    first = pinned(runtime, FIRST, ANA)
    assert (first.num_tokens, first.num_granted_tokens, first.is_kept) == (41, 41, True)  # 11 pages
    again = pinned(runtime, FIRST, ANA)
    assert again.num_granted_tokens == 41, "its pages count once"
    second = pinned(runtime, OTHER, ANA)
    assert second.num_granted_tokens == 9 * PAGE
    third = pinned(runtime, [3, *FIRST], ANA)
    assert (third.num_granted_tokens, third.is_kept) == (0, False)
    assert pinned(runtime, FIRST, BEN).num_granted_tokens == 41, "the share of another one"
    assert runtime.stats()["num_pages_held"] == 31
    assert cache.unpin(first.pin_id, ANA)
    assert cache.unpin(again.pin_id, ANA)
    assert runtime.stats()["num_pages_held"] == 20
    assert pinned(runtime, [3, *FIRST], ANA).num_granted_tokens == 42


def test_an_operator_may_keep_all_that_can_be_kept(runtime: Runtime) -> None:
    assert [pinned(runtime, [number, *FIRST], LOCAL).num_granted_tokens for number in (3, 4, 5)] == [42, 42, 42]


def test_pins_belong_to_their_principal_and_end(runtime: Runtime) -> None:
    cache = runtime.cache_service
    grant = pinned(runtime, FIRST, ANA)
    assert [each.pin_id for each in cache.pins(ANA)] == [grant.pin_id]
    assert 0 < cache.pins(ANA)[0].ttl_s <= 60
    assert cache.pins(BEN) == []
    assert not cache.unpin(grant.pin_id, BEN)
    assert not cache.unpin("unknown", ANA)
    assert cache.unpin(grant.pin_id, ANA)
    assert not cache.unpin(grant.pin_id, ANA)
    assert cache.pins(ANA) == []
    pinned(runtime, FIRST, ANA, 0.01)
    loop, done = runtime._running_loop(), threading.Event()
    loop.post(lambda: loop.call_at(loop.clock() + 0.02, done.set) and None)
    assert done.wait(30)
    assert cache.pins(ANA) == []
    assert runtime.stats()["num_pages_held"] == 0
    for ttl_s in (0, True, "x", 1e9, float("nan")):
        with pytest.raises(ParameterError, match="ttl_s"):
            cache.pin([token_ids_part(FIRST)], ttl_s, ANA)  # type: ignore[arg-type]


def test_the_number_of_pins_is_bounded_and_ended_ones_make_room(runtime: Runtime) -> None:
    cache = runtime.cache_service
    for number in range(MAX_PINS):
        assert not cache.pin([token_ids_part([number, 5])], 60.0, ANA).is_kept, "nothing of it is cached"
    grant = pinned(runtime, FIRST, ANA)
    assert [each.pin_id for each in cache.pins(ANA)] == [grant.pin_id]
    for _ in range(MAX_PINS - 1):
        assert cache.pin([token_ids_part(FIRST)], 60.0, ANA).is_kept
    with pytest.raises(OverloadError, match=str(MAX_PINS)):
        cache.pin([token_ids_part(FIRST)], 60.0, ANA)
    assert cache.pin([token_ids_part(FIRST)], 60.0, BEN).num_tokens == 41


def test_the_tree_shows_a_principal_its_own_nodes(runtime: Runtime) -> None:
    cache = runtime.cache_service
    compute(runtime, FIRST, ANA)
    compute(runtime, OTHER, BEN)
    compute(runtime, [3, *FIRST])
    own = cache.tree(100, ANA)
    assert (own[0]["parent"], own[0]["num_tokens"]) == (None, 40)
    assert all(node["namespace"] == "ana" for node in own)
    assert sum(node["num_tokens"] for node in own) in (41, 42), "the prompt, and its output if that is stored"
    assert own[0]["text"]
    nodes = cache.tree(100, LOCAL)
    assert {node["namespace"]: bool(node["text"]) for node in nodes} == {"ana": False, "ben": False, "": True}
    for max_nodes in (0, True, 5000):
        with pytest.raises(ParameterError, match="max_nodes"):
            cache.tree(max_nodes, ANA)
