"""Attacks beside a canary: each gets an answer that blames the request, and the canary's text stays what it is alone.

Times are bounds of `python -m rtlang_bench.serve`, not of these tests.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import rtlang as rt
from rtlang.client.remote_runtime import RemoteRuntime
from rtlang.contract.config import ServeConfig
from rtlang.contract.params import Constraint
from rtlang.serve.server import running_server
from rtlang_bench.serve import hostile
from rtlang_bench.serve.streams import Recorder, generation
from tests.support.servers.fuzz import lost_pages
from tests.support.servers.http_client import HttpClient

CANARY = "The canary sings: "
BLAMELESS = {"internal", "fault", "engine_dead", "connection_lost"}
"""Codes of errors that a request must not be able to cause."""


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[str, rt.Runtime]]:
    with (
        rt.Runtime(dtype="float32", grammar_timeout_s=3.0) as runtime,
        running_server(runtime, ServeConfig(port=0)) as url,
    ):
        yield url, runtime
        assert lost_pages(runtime) == 0


@pytest.fixture(scope="module")
def remotes(served: tuple[str, rt.Runtime]) -> Iterator[tuple[RemoteRuntime, RemoteRuntime]]:
    """The attacker's connection and the canary's."""
    with rt.connect(served[0]) as attacker, rt.connect(served[0]) as other:
        yield attacker, other


def canary(remote: RemoteRuntime) -> Recorder:
    return Recorder().submit(remote, generation(CANARY, max_tokens=40, temperature=1.0, ignore_eos=True), seed=5)


@pytest.fixture(scope="module")
def song(remotes: tuple[RemoteRuntime, RemoteRuntime]) -> str:
    recorder = canary(remotes[1])
    assert recorder.wait(60)
    assert recorder.text
    return recorder.text


def attack(remotes: tuple[RemoteRuntime, RemoteRuntime], song: str, graphs: list[rt.RequestGraph]) -> list[Recorder]:
    """Submit graphs beside the canary, and wait for all."""
    attacker, other = remotes
    attacks = [Recorder().submit(attacker, graph, deadline_s=30.0) for graph in graphs]
    beside = canary(other)
    for each in (beside, *attacks):
        assert each.wait(120), "no answer"
    assert beside.text == song
    for each in attacks:
        assert each.error is None or each.error.code not in BLAMELESS, each.error
    return attacks


CHOSEN = hostile.constraints()[::4]


def shown(constraint: Constraint) -> str:
    return f"{constraint.kind}-{constraint.source[:20]!r}"


@pytest.mark.slow
def test_hostile_constraints(remotes: tuple[RemoteRuntime, RemoteRuntime], song: str) -> None:
    graphs = [generation("Bomb: ", constraint=each, max_tokens=6) for each in CHOSEN]
    found = attack(remotes, song, graphs)
    assert any(each.error is not None for each in found)


def test_stop_patterns_that_backtrack(remotes: tuple[RemoteRuntime, RemoteRuntime], song: str) -> None:
    graphs = [generation("aaaa xxxx " * 9, stop_regex=[each], max_tokens=10) for each in hostile.stop_patterns()]
    attack(remotes, song, graphs)


def test_many_completions_with_log_probabilities(remotes: tuple[RemoteRuntime, RemoteRuntime], song: str) -> None:
    attack(remotes, song, [generation("Wide: ", n=100, logprobs=100, max_tokens=2, temperature=1.0) for _ in range(3)])


def test_long_texts_and_special_tokens(remotes: tuple[RemoteRuntime, RemoteRuntime], song: str) -> None:
    texts = ["a" * 200_000, "<|endoftext|>" * 2000, "é😀" * 40_000, " " * 100_000]
    found = attack(remotes, song, [generation(text, max_tokens=2) for text in texts])
    assert all(each.error is not None for each in found), "they are longer than the model's context"


def test_odd_numbers(remotes: tuple[RemoteRuntime, RemoteRuntime], song: str) -> None:
    params: list[dict[str, Any]] = [
        {"temperature": 1e-30},
        {"temperature": 1e30},
        {"top_p": 1e-300, "temperature": 1.0},
        {"logit_bias": {5: 1e30}},
        {"logit_bias": {5: -1e30}, "temperature": 1.0},
        {"repetition_penalty": 1e-30},
        {"frequency_penalty": 1e30},
        {"min_p": 1.0, "temperature": 1.0},
    ]
    graphs = []
    for each in params:
        try:
            graphs.append(generation("Odd: ", max_tokens=3, **each))
        except rt.ParameterError:
            continue  # refused before it leaves the client
    assert graphs
    attack(remotes, song, graphs)


def test_a_cancel_at_any_moment(remotes: tuple[RemoteRuntime, RemoteRuntime], song: str) -> None:
    attacker, other = remotes
    beside = canary(other)
    for number in range(30):
        recorder = Recorder().submit(attacker, generation(f"{number}: ", max_tokens=200, ignore_eos=True))
        if number % 3:
            recorder.wait(number / 1000)
        recorder.cancel()
        recorder.cancel()
        assert recorder.wait(60)
    assert beside.wait(60)
    assert beside.text == song


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "localhost.evil.example"},
        {"origin": "https://evil.example"},
        {"origin": "null"},
    ],
)
def test_pages_of_other_sites_reach_no_route(served: tuple[str, rt.Runtime], headers: dict[str, str]) -> None:
    client = HttpClient(served[0])
    for path in ("/v1/models", "/metrics", "/version", "/v1/engine/snapshot", "/"):
        assert client.get(path, **headers).status == 403, path
    assert client.post("/v1/completions", {"prompt": "x"}, **headers).status == 403


def test_errors_tell_nothing_of_the_server(served: tuple[str, rt.Runtime]) -> None:
    client = HttpClient(served[0])
    bodies = [b"\xff\xfe", b"[" * 5000, b'{"a":' * 500, json.dumps({"prompt": {"a": 1}, "max_tokens": "NaN"}).encode()]
    for path in ("/v1/completions", "/v1/chat/completions", "/v1/responses", "/v1/programs", "/generate", "/tokenize"):
        for body in bodies:
            answer = client.post(path, body)
            assert 400 <= answer.status < 500, (path, body[:20], answer.status)
            assert b"Traceback" not in answer.body
            assert b'File "' not in answer.body
