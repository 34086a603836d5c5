"""Inputs that once held up everybody, on a server of two keys: each ends in its value or a typed error, and the other key is served.

Here every request of the bystander ends with its answer, and no engine is restarted. With RTLANG_TEST_LONG=1, on a quiet machine, none
takes half a second more than without the input. Elsewhere: `test_fair_turns.py` has the tokenizations by their order,
`fleet/engines/test_engine_faults.py` graphs that end or hold an engine, `serve/http/routes/test_openai_structured.py` what `strict` means,
`serve/http/routes/test_cache_salt.py` salts, `serve/test_server.py` drains, `serve/network/test_http_connection_answers.py` answers to
bodies that are too long.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest

from rtlang.contract.config import RuntimeConfig, ServeConfig
from rtlang.fleet.engines.engine_process import EngineProcess
from rtlang.serve.network.key_table import digest_of
from rtlang.serve.server import running_server
from rtlang_bench.worst_cases.cases import ISSUE
from rtlang_bench.worst_cases.requests import Case, HttpRequest
from rtlang_bench.worst_cases.sender import send_case
from tests.support.long_tests import is_long
from tests.support.servers.http_client import HttpClient

KEYS = "".join(f'[[keys]]\nname = "{name}"\nsha256 = "{digest_of(name)}"\n' for name in ("ana", "ben"))
LONGER_S = 0.5
USUAL = ("list-1000", "format", "splits", "too-long")
"""The others take long on a busy machine."""

ENDS: dict[str, set[str]] = {
    "list-200": {"apply"},
    "list-1000": {"apply"},
    "format": {"apply"},
    "splits": {"value_memory", "dependency", "deadline"},
    "tokenizations": {"value"},
    "readers": {"left"},
    "too-long": {"error body_too_large (413)"},
    "votes": {"value", "error deadline"},
    "graphs": {"value", "error deadline", "error overload"},
}
"""The ways in which the requests of each input may end; for a graph over HTTP the codes of its nodes and of the whole."""


@dataclass
class World:
    url: str
    target: EngineProcess

    @property
    def num_restarts(self) -> int:
        (link,) = self.target._links.values()
        return link.num_restarts


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    config = RuntimeConfig(dtype="float32", num_pages=1024, num_threads=1)
    with EngineProcess(config) as target, running_server(target, ServeConfig(port=0, keys=KEYS)) as url:
        next(asked(url))
        yield World(url, target)


def asked(url: str) -> Iterator[float]:
    """The seconds that requests of ben take, each of a tokenization, a chat of eight tokens and one with a new schema."""
    ben = HttpClient(url, "ben")
    chat: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 8}
    for number in count(time.monotonic_ns()):
        properties = {f"n{number}": {"enum": [1, 2]}}
        schema = {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
        form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
        for path, body in (
            ("/tokenize", {"prompt": f"small {number}"}),
            ("/v1/chat/completions", chat),
            ("/v1/chat/completions", chat | {"max_tokens": 60, "response_format": form}),
        ):
            begun = time.monotonic()
            answer = ben.post(path, body)
            assert answer.status == 200, answer.body
            yield time.monotonic() - begun


def ends_of(url: str, case: Case) -> set[str]:
    """How the requests of a case ended."""
    (first, *others) = case.requests
    if isinstance(first, HttpRequest) and first.path == "/v1/programs" and first.body is not None:
        assert not others
        answer = HttpClient(url, "ana").post(first.path, json.loads(first.body) | {"stream": False})
        assert answer.status == 200, answer.body
        return {each["code"] for each in (*answer.json["nodes"], answer.json) if "code" in each}
    endings = send_case(url, "ana", case)
    assert not [each.text for each in endings if each.is_wrong]
    return {each.text for each in endings}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in USUAL else pytest.mark.long) for name in ISSUE]
)
def test_an_input_that_is_much_work_harms_nobody(world: World, name: str) -> None:
    num_restarts = world.num_restarts
    probes = asked(world.url)
    alone = max(next(probes) for _ in range(15 if is_long() else 3))
    with ThreadPoolExecutor(1) as pool:
        attack = pool.submit(ends_of, world.url, Case(0, "issue", name, ISSUE[name]()))
        beside = [next(probes)]
        while not attack.done():
            beside.append(next(probes))
        ends = attack.result()
    assert ends
    assert ends <= ENDS[name]
    assert world.num_restarts == num_restarts
    if is_long():
        assert max(beside) - alone <= LONGER_S


def test_all_inputs_are_tried() -> None:
    assert ISSUE.keys() == ENDS.keys()
    assert set(USUAL) <= ISSUE.keys()
