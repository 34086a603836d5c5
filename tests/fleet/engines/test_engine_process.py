"""An engine in a process of its own: its death in the middle of texts changes none of them, and one graph cannot end the others."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import (
    AbortedError,
    ContextLengthError,
    GraphError,
    InternalError,
    ModelLoadError,
    OverloadError,
    RtlangError,
)
from rtlang.contract.events import CallRequested, GraphFailed, GraphFinished, NodeFinished, TextDelta
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Call, Const, Generate, RequestGraph, Text
from rtlang.contract.runs.principal import Principal, PrincipalLimits
from rtlang.contract.runs.run_options import RunOptions
from rtlang.fleet.engines.engine_link import EngineState
from rtlang.fleet.engines.engine_process import EngineProcess
from rtlang.fleet.engines.engine_run import EngineRun
from rtlang.runtime.runtime import Runtime
from tests.support.programs.graph_ear import Ear
from tests.support.waiting import wait_until

TIMEOUT_S = 120.0
GRAPH = RequestGraph((Text(0, None, ("a",)), Generate(1, 0, "x", SamplingParams(max_tokens=2))))


def graph(index: int, fault: str | None = None) -> RequestGraph:
    params = SamplingParams(max_tokens=24, temperature=1.0, ignore_eos=True, x_fault=fault)
    both = SamplingParams(max_tokens=24, temperature=1.0, n=2, stop=("the end",))
    return RequestGraph(
        (
            Text(0, None, (f"Story {index}:",)),
            Generate(1, 0, "x", params),
            Text(2, 1, (" And then",)),
            Generate(3, 2, "y", both),
        )
    )


@pytest.fixture(scope="module")
def target() -> Iterator[EngineProcess]:
    with EngineProcess(RuntimeConfig(dtype="float32", num_pages=400, fault_injection=True)) as target:
        yield target


def submit(
    target: EngineProcess, count: int, faults: dict[int, str] | None = None, credits: Sequence[int] | None = None
) -> tuple[list[Ear], list[EngineRun]]:
    ears = [Ear() for _ in range(count)]
    runs = [
        target.submit(
            graph(index, (faults or {}).get(index)),
            ear,
            RunOptions(seed=index, principal=Principal("someone"), credit=credits[index] if credits else None),
        )
        for index, ear in enumerate(ears)
    ]
    return ears, runs


def test_texts_are_identical_when_the_process_is_killed_in_their_middle(target: EngineProcess) -> None:
    undisturbed, _ = submit(target, 8)
    expected = [ear.values() for ear in undisturbed]
    states: list[EngineState] = []
    target.watch(states.append)
    credits = [1 + 7 * index for index in range(8)]  # of 72 tokens: the middle of the first generation or of the second
    ears, runs = submit(target, 8, credits=credits)
    wait_until(lambda: all(ear.num_tokens >= credit for ear, credit in zip(ears, credits, strict=True)))
    assert target.pid is not None
    os.kill(target.pid, signal.SIGKILL)
    for run in runs:
        run.grant(100)
    assert [ear.values() for ear in ears] == expected
    assert [ear.text for ear in ears] == [ear.text for ear in undisturbed]
    assert all(sum(isinstance(event, NodeFinished) for event in ear.events) == 2 for ear in ears)
    assert states == [EngineState.RESTARTING, EngineState.READY]
    target.refresh_metrics()
    rendered = target.metrics.render()
    assert b"rtlang_engine_restarts_total 1.0" in rendered
    assert b"rtlang_moved_programs_total %.1f" % len(runs) in rendered
    assert b'rtlang_replicas{state="ready"} 1.0' in rendered
    assert b"rtlang_engine_steps_total 0.0" not in rendered
    assert b'rtlang_engine_principal_tokens_total{kind="output",principal="someone"}' in rendered
    for ear in undisturbed:  # the account goes with the final event
        end, account = ear.end(), ear.end().account
        assert isinstance(end, GraphFinished)
        assert account is not None
        assert account.tokens["output"] == end.usage.completion_tokens
        assert account.tokens["prompt"] >= end.usage.prompt_tokens
        assert sum(account.finish_reasons.values()) == 3
        assert account.work["steps"] > 0
        assert account.first_token_s is not None
        assert account.moves == []
    for ear, credit in zip(ears, credits, strict=True):
        end, account = ear.end(), ear.end().account
        assert isinstance(end, GraphFinished)
        assert account is not None
        assert [reason for _, reason in account.moves] == ["engine has ended"]
        assert account.waits["engine"] > 0.1
        assert account.tokens["output"] == end.usage.completion_tokens, "before the end and after it, each token once"
        assert account.tokens["prompt"] > end.usage.prompt_tokens or credit > 24, "what was lost is computed again"
        assert sum(account.finish_reasons.values()) == 3
        assert account.work["steps"] > 0
        assert account.first_token_s is not None
        assert account.first_token_s < account.waits["engine"] + 1.0


@pytest.mark.long  # `test_engine_target.py` has the same with pretended processes
def test_a_graph_that_ends_the_process_again_and_again_fails_alone(target: EngineProcess) -> None:
    undisturbed, _ = submit(target, 4)
    expected = [ear.values() for ear in undisturbed]
    ears, _ = submit(target, 4, {2: "exit:3"})
    end = ears[2].end()
    assert isinstance(end, GraphFailed)
    assert isinstance(end.error, InternalError)
    assert [ear.values() for ear in (*ears[:2], ears[3])] == [*expected[:2], expected[3]]


def test_a_graph_may_be_extended_answered_and_ended_while_a_silent_process_is_replaced(target: EngineProcess) -> None:
    ear, cancelled = Ear(), Ear()
    run = target.submit(RequestGraph((Call(0, "f", (Const(1),)),)), ear, RunOptions(is_open=True))
    other = target.submit(graph(0), cancelled, RunOptions(is_open=True))
    wait_until(lambda: any(isinstance(event, CallRequested) for event in ear.events))
    assert target.pid is not None
    os.kill(target.pid, signal.SIGSTOP)  # it gives no sign of life any more
    limit_s, target.stall_timeout_s = target.stall_timeout_s, 0.1
    wait_until(lambda: target.state is EngineState.RESTARTING)
    target.stall_timeout_s = limit_s
    assert "was suspended" in target._last_end.event
    assert not target._last_end.has_crashed, "no graph is to blame"
    other.cancel()
    end = cancelled.end()
    assert isinstance(end, GraphFailed)
    assert isinstance(end.error, AbortedError)
    run.resolve(0, "answer")
    run.extend((Call(1, "f", (Const(2),)),))
    run.close()
    wait_until(lambda: sum(isinstance(event, CallRequested) for event in ear.events) == 2)
    run.reject(1, "call", "no")
    final = ear.end()
    assert isinstance(final, GraphFinished)
    assert final.failed_node_ids == (1,)
    assert [event.value for event in ear.events if isinstance(event, NodeFinished)] == ["answer"]


def test_an_extension_goes_on_behind_the_tokens_that_its_client_has(target: EngineProcess) -> None:
    params = SamplingParams(max_tokens=12, temperature=1.0, ignore_eos=True)
    nodes = (Text(0, None, ("Story:",)), Generate(1, 0, "x", params))
    whole, rest = Ear(), Ear()
    target.submit(RequestGraph(nodes), whole, RunOptions(seed=7))
    expected = whole.values()["x"]
    ids = [token for event in whole.events if isinstance(event, TextDelta) for token in event.token_ids]
    run = target.submit(RequestGraph(nodes[:1]), rest, RunOptions(is_open=True, seed=7))
    run.extend(nodes[1:], continue_from={1: [ids[:5]]})
    run.close()
    assert rest.values()["x"] == expected
    assert [token for event in rest.events if isinstance(event, TextDelta) for token in event.token_ids] == ids[5:]


def test_the_cache_of_the_other_process_explains_and_keeps_prompts_of_a_principal(target: EngineProcess) -> None:
    ana, ben = Principal("ana", namespace="ana"), Principal("ben", namespace="ben")
    text = "A story about a fox and a dog who lived in the woods, and about what they ate."
    ear = Ear()
    nodes = (Text(0, None, (text,)), Generate(1, 0, "x", SamplingParams(max_tokens=1)))
    target.submit(RequestGraph(nodes), ear, RunOptions(principal=ana))
    ear.values()
    cache = target.cache_service
    found = cache.explain([text], ana)
    assert found.num_cached_tokens == found.num_tokens > 16
    assert cache.explain([text], ben).num_cached_tokens == 0
    grant = cache.pin([text], 60.0, ana)
    assert grant.num_granted_tokens == found.num_tokens
    assert [each.pin_id for each in cache.pins(ana)] == [grant.pin_id]
    assert not cache.unpin(grant.pin_id, ben)
    assert cache.unpin(grant.pin_id, ana)
    assert {node["namespace"] for node in cache.tree(100, ana)} == {"ana"}
    with pytest.raises(ContextLengthError) as error:
        cache.explain(["word " * 100_000], ana)
    assert error.value.max_model_len == target.max_model_len


def test_texts_become_tokens_and_back_in_the_other_process(target: EngineProcess) -> None:
    service = target.text_service
    tokens = service.encode("Hello there")
    assert service.decode(tokens) == "Hello there"
    assert b"".join(service.token_bytes(tokens)).decode().endswith("there")
    assert service.encode_parts(("Hello", " there"))[-1] == tokens[-1]
    assert service.info.vocab_size == target.vocab_size
    assert len(service.token_names(tokens)) == len(tokens)
    snapshot = target.snapshot()
    assert snapshot is not None
    assert snapshot.num_pages == 400


MANY = RequestGraph(tuple(Generate(index, None, "x", SamplingParams(n=128, temperature=1.0)) for index in range(200)))
LARGE = SamplingParams(n=64, max_tokens=1000, temperature=1.0, logprobs=20)
LIMITED = Principal("a", limits=PrincipalLimits(max_places=3, max_output_tokens=100))
REFUSED: list[tuple[RequestGraph, dict[str, Any]]] = [
    (RequestGraph((Text(0, None, ("a",)),), ("x",)), {}),
    (RequestGraph((Text(0, None, ("a",)),), ("x",)), {"inputs": {"x": 3}}),
    (GRAPH, {"inputs": {"y": "b"}}),
    (MANY, {}),
    (RequestGraph((Generate(0, None, "x", LARGE),)), {}),
    (RequestGraph((Text(3, None, ("a",)), Text(3, None, ("b",)))), {}),
    (GRAPH, {"priority": 1 << 40}),
    (GRAPH, {"deadline_s": -1.0}),
    (GRAPH, {"seed": -1}),
    (GRAPH, {"credit": -1}),
    (
        RequestGraph((Generate(0, None, "x", SamplingParams(n=4, max_tokens=1, temperature=1.0)),)),
        {"principal": LIMITED},
    ),
    (RequestGraph((Generate(0, None, "x", SamplingParams(max_tokens=101)),)), {"principal": LIMITED}),
]


def refusal_of(act: Callable[[], object]) -> tuple[type[RtlangError], str, dict[str, Any]]:
    with pytest.raises(RtlangError) as raised:
        act()
    return type(raised.value), raised.value.message, vars(raised.value)


@pytest.fixture(scope="module")
def inside() -> Iterator[Runtime]:
    """The same engine in this process."""
    with Runtime(dtype="float32", num_pages=400, fault_injection=True) as runtime:
        yield runtime


@pytest.mark.parametrize(("graph", "options"), REFUSED)
def test_a_refusal_is_that_of_an_engine_in_this_process(
    target: EngineProcess, inside: Runtime, graph: RequestGraph, options: dict[str, Any]
) -> None:
    found = refusal_of(lambda: target.submit(graph, Ear(), RunOptions(**options)))
    assert found == refusal_of(lambda: inside.submit(graph, Ear(), RunOptions(**options)))


def test_a_full_queue_and_a_large_extension_are_refused_as_in_this_process(
    target: EngineProcess, inside: Runtime
) -> None:
    def fill(filled: Any) -> list[tuple[type[RtlangError], str, dict[str, Any]]]:
        one = Principal("b", limits=PrincipalLimits(max_places=1))
        nodes = (Text(0, None, ("a",)), Generate(1, 0, "x", SamplingParams(max_tokens=8)))
        run = filled.submit(
            RequestGraph(nodes), Ear(), RunOptions(is_open=True, principal=one, credit=0)
        )  # waits for credit
        found = [refusal_of(lambda: filled.submit(GRAPH, Ear(), RunOptions(principal=one)))]
        found.append(refusal_of(lambda: run.extend((Generate(2, None, "y", LARGE),))))
        run.cancel()
        return found

    refusals = fill(target)
    assert refusals == fill(inside)
    assert [kind for kind, _, _ in refusals] == [OverloadError, GraphError]


def test_a_model_that_cannot_be_loaded_is_reported_by_start_alone(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ModelLoadError):
        EngineProcess(RuntimeConfig(model="/nowhere")).start()
    assert not caplog.messages, "no other engine is started, and `start` says why"
