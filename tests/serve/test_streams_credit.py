"""Credit, progress and continuation over a socket, with a real engine behind it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import rtlang as rt
from rtlang.contract.config import ServeConfig
from rtlang.contract.params import MAX_CREDIT
from rtlang.contract.runs.run_options import Ability
from rtlang.serve.server import running_server
from tests.support.servers.wire_client import WireClient

BODY = {"prompt": "Once upon a time", "params": {"max_tokens": 12, "ignore_eos": True, "temperature": 0.8}, "seed": 5}


@pytest.fixture(scope="module")
def runtime() -> Iterator[rt.Runtime]:
    with rt.Runtime() as runtime:
        yield runtime


@pytest.fixture(scope="module")
def url(runtime: rt.Runtime) -> Iterator[str]:
    with running_server(runtime, ServeConfig(port=0)) as address:
        yield address


def ids_of(messages: list[dict[str, Any]]) -> list[int]:
    return [token for each in messages if each["t"] == "delta" for token in each.get("ids", ())]


class Wrapper:
    """A target of others' code around a runtime."""

    tool_format = None
    is_alive = True

    def __init__(self, runtime: rt.Runtime) -> None:
        self._runtime = runtime

    def submit(self, graph: Any, listener: Any, **options: Any) -> Any:
        return self._runtime.submit(graph, listener, **options)

    def close(self) -> None: ...


class AbleWrapper(Wrapper):
    @property
    def abilities(self) -> frozenset[Ability]:
        return self._runtime.abilities

    def submit(self, graph: Any, listener: Any, options: rt.RunOptions) -> Any:  # type: ignore[override]
        return self._runtime.submit(graph, listener, options)


class TransparentWrapper(Wrapper):
    def __getattr__(self, name: str) -> Any:
        return getattr(self._runtime, name)


def receive_until_waiting(client: WireClient) -> list[dict[str, Any]]:
    messages = [client.receive()]
    while messages[-1].get("e") != "waiting":
        messages.append(client.receive())
    return messages


def whole(url: str, *, params: dict[str, Any] | None = None, **fields: Any) -> list[dict[str, Any]]:
    body = BODY if params is None else BODY | {"params": params}
    with WireClient(url) as client:
        client.greet()
        client.send(t="open", s=1, kind="generate", body=body, **fields)
        return client.receive_end(1)


def test_a_stream_delivers_no_more_tokens_than_it_was_granted(url: str) -> None:
    expected = whole(url)
    with WireClient(url) as client:
        assert "credit" in client.greet()["caps"]
        client.send(t="open", s=1, kind="generate", body=BODY, credit=3)
        assert client.receive()["t"] == "ack"
        first = receive_until_waiting(client)
        assert len(ids_of(first)) == 3
        client.send(t="open", s=2, kind="generate", body=BODY | {"seed": 6})  # others go on meanwhile
        assert not ids_of([each for each in client.receive_end(2) if each["s"] == 1])
        client.send(t="credit", s=1, n=4)
        second = receive_until_waiting(client)
        assert len(ids_of(second)) == 4
        client.send(t="credit", s=1, n=100)
        third = client.receive_end(1)
    assert ids_of(first + second + third) == ids_of(expected)
    assert third[-1]["values"] == expected[-1]["values"]


def test_without_credit_the_prompt_is_computed_and_nothing_comes(url: str) -> None:
    prompt = {"prompt": "A prompt that nobody else sends, long enough for some pages of the cache to be filled by it."}
    with WireClient(url) as client:
        client.greet()
        client.send(t="open", s=1, kind="generate", body=BODY | prompt, credit=0)
        assert client.receive()["t"] == "ack"
        client.send(t="open", s=2, kind="generate", body=BODY | prompt, progress=True)
        messages = client.receive_end(2)
        assert {each["s"] for each in messages} == {2}
        start, cached = (each for each in messages if each.get("e") in ("start", "cached"))
        assert start["name"] == "text"
        assert 0 < cached["cached_tokens"] < cached["prompt_tokens"]
        client.send(t="cancel", s=1)
        assert client.receive()["reason"] == "cancelled"


def test_a_detached_stream_waits_with_what_it_has_and_goes_on_when_attached(url: str) -> None:
    expected = ids_of(whole(url))
    with WireClient(url) as client:
        client.greet()
        client.send(t="open", s=1, kind="generate", body=BODY, credit=5, detach_ms=60000)
        ack = client.receive()
        assert ack["granted"] == 5
    with WireClient(url) as client:
        client.greet()
        client.send(t="attach", s=1, rid=ack["rid"], epoch=ack["epoch"], **{"from": 0})
        assert client.receive()["granted"] == 5
        first = receive_until_waiting(client)
        client.send(t="credit", s=1, n=50)
        assert ids_of(first + client.receive_end(1)) == expected


def test_a_generation_goes_on_from_delivered_tokens_with_the_same_text(url: str) -> None:
    expected = whole(url)
    ids = ids_of(expected)
    rest = whole(url, continue_from=[{"n": 1, "ids": [ids[:5]]}])
    assert ids_of(rest) == ids[5:]
    assert rest[-1]["values"] == expected[-1]["values"]


def test_deltas_carry_the_logprobs_of_their_tokens(url: str) -> None:
    messages = whole(url, params=BODY["params"] | {"logprobs": 1})  # type: ignore[operator]
    (end,) = (each for each in messages if each.get("e") == "end")
    deltas = [each for each in messages if each["t"] == "delta"]
    assert [item for each in deltas for item in each["lp"]] == end["completions"][0]["logprobs"]
    assert [[item[0] for item in each["lp"]] for each in deltas] == [each["ids"] for each in deltas]


@pytest.mark.parametrize("wrapper", [AbleWrapper, TransparentWrapper])
def test_a_wrapped_target_stops_after_the_tokens_that_it_was_granted(
    wrapper: type[Wrapper], runtime: rt.Runtime
) -> None:
    with running_server(wrapper(runtime), ServeConfig(port=0)) as address, WireClient(address) as client:  # type: ignore[arg-type]
        assert "credit" in client.greet()["caps"]
        client.send(t="open", s=1, kind="generate", body=BODY, credit=3)
        assert client.receive()["t"] == "ack"
        assert len(ids_of(receive_until_waiting(client))) == 3
        client.send(t="cancel", s=1)
        assert not ids_of(client.receive_end(1))


def test_a_target_that_declares_no_abilities_refuses_the_options_that_need_one(runtime: rt.Runtime) -> None:
    lacking = {"credit": {"credit": 3}, "reports_progress": {"progress": True}}
    with running_server(Wrapper(runtime), ServeConfig(port=0)) as address, WireClient(address) as client:  # type: ignore[arg-type]
        assert not {"credit", "progress", "continue", "budget"} & set(client.greet()["caps"])
        for stream, (name, given) in enumerate(lacking.items(), 1):
            client.send(t="open", s=stream, kind="generate", body=BODY, **given)
            refused = client.receive()
            assert (refused["t"], refused["code"]) == ("error", "graph")
            assert refused["message"] == f"graph, {name}: this server does not offer {name}"
        client.send(t="open", s=3, kind="generate", body=BODY | {"budget": {"tokens": 2}})
        assert client.receive()["message"] == "graph, budget: this server does not offer budget"
        client.send(t="open", s=4, kind="generate", body=BODY, credit=MAX_CREDIT)  # a client without a limit
        assert len(ids_of(client.receive_end(4))) == 12
