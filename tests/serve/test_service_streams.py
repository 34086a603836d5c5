"""The maximum of unfinished graphs of a principal holds over WebSocket and HTTP together."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import rtlang as rt
from rtlang.contract.config import ServeConfig
from rtlang.serve.network.key_table import entry_of
from rtlang.serve.server import TokenizerInfo, running_server
from tests.support.servers.http_client import HttpClient
from tests.support.servers.wire_client import WireClient
from tests.support.waiting import wait_until

OPEN = {"prompt": "Once", "params": {"max_tokens": 4, "ignore_eos": True}}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    keys = entry_of("ana", "key-ana") + entry_of("bob", "key-bob") + "limits = { max_streams = 1 }\n"
    config = ServeConfig(port=0, keys=keys, max_streams_per_principal=3)
    with (
        rt.Runtime() as runtime,
        running_server(runtime, config, TokenizerInfo("m", 2048, 1024, runtime.tool_format)) as address,
    ):
        yield address


@pytest.mark.parametrize(("name", "limit"), [("ana", 3), ("bob", 1)])
def test_both_doors_share_the_maximum(url: str, name: str, limit: int) -> None:
    headers = {"authorization": f"Bearer key-{name}"}
    http = HttpClient(url, f"key-{name}")

    def ask(path: str, body: dict[str, object]) -> tuple[int, object, bool]:
        answer = http.post(path, body)
        error = answer.json.get("error", {})
        return answer.status, error.get("code"), "retry-after" in answer.headers

    asked = [
        ("/v1/completions", {"prompt": "x", "max_tokens": 1}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}], "max_tokens": 1, "stream": True}),
        (
            "/v1/programs",
            {"graph": {"nodes": [{"id": 0, "parent": None, "kind": "text", "parts": ["x"]}]}, "stream": False},
        ),
        ("/generate", {"text": "x", "sampling_params": {"max_new_tokens": 1}}),
    ]
    with WireClient(url, headers=headers) as client, WireClient(url, headers=headers) as other:
        client.greet()
        other.greet()
        for stream in range(1, limit + 1):  # without credit they stay
            client.send(t="open", s=stream, kind="generate", body=OPEN, credit=0)
            assert client.receive()["t"] == "ack"
        for path, body in asked:
            assert ask(path, body) == (429, "overload", True), path
        other.send(t="open", s=1, kind="generate", body=OPEN)
        refusal = other.receive()
        assert (refusal["code"], refusal["status"]) == ("overload", 429)
        assert f"{name} has {limit} unfinished graphs; at most max_streams = {limit} are allowed" in refusal["message"]
        client.send(t="cancel", s=1)
        assert client.receive_end(1)
        wait_until(lambda: ask(*asked[0])[0] == 200)
        assert ask(*asked[2])[0] == 200
    assert http.get("/v1/models").status == 200
