"""Starting, ending in good order, and an address that cannot be had."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import InvalidStatus

from rtlang.contract.config import ServeConfig
from rtlang.contract.errors import ConfigError
from rtlang.serve.server import Server, TokenizerInfo, running_server
from tests.support.programs.scripted_target import ScriptedTarget
from tests.support.servers.http_client import HttpClient
from tests.support.servers.serving import serving
from tests.support.servers.wire_client import WireClient
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]


def test_welcome_describes_the_server() -> None:
    config = ServeConfig(port=0, max_streams=7, max_frame_bytes=4096)
    with running_server(ScriptedTarget(), config, TokenizerInfo("m", 300, 512)) as url, WireClient(url) as client:
        welcome = client.greet()
        info = {"model": "m", "vocab_size": 300, "max_model_len": 512, "tool_format": None, "identity": None}
        assert welcome["models"] == [info]
    assert welcome["caps"] == ["program", "generate", "chat", "attach", "credit", "progress", "continue"]
    assert (
        welcome["limits"].items()
        >= {
            "max_frame_bytes": 4096,
            "max_streams": 7,
            "max_depth": 64,
            "max_array_entries": 100_000,
            "max_map_entries": 10_000,
            "max_values": 200_000,
            "max_detach_ms": 600_000,
            "default_credit": 256,
            "hello_timeout_ms": 5000,
        }.items()
    )


def test_the_epoch_is_new_at_every_start() -> None:
    epochs = []
    for _ in range(2):
        with running_server(ScriptedTarget()) as url, WireClient(url) as client:
            epochs.append(client.greet()["epoch"])
    assert epochs[0] != epochs[1]


def test_thousands_of_clients_may_connect_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that finds no place in the queue of the kernel tries again seconds later."""
    lengths: list[int] = []
    listen = socket.socket.listen

    def noting(listener: socket.socket, backlog: int) -> None:
        lengths.append(backlog)
        listen(listener, backlog)

    monkeypatch.setattr(socket.socket, "listen", noting)
    with serving():
        pass
    assert lengths[-1] >= 4096


def test_a_port_in_use_is_a_config_error_that_names_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(ConfigError, match="in use") as caught,
            running_server(ScriptedTarget(), ServeConfig(port=port)),
        ):
            pass
        assert caught.value.field == "port"
        assert caught.value.value == str(port)
        with pytest.raises(ConfigError, match=str(port)):
            Server(ScriptedTarget(), None, ServeConfig(port=port)).run()


def test_an_address_that_is_not_ours_is_a_config_error() -> None:
    config = ServeConfig(host="192.0.2.1", port=0, allow_public=True)
    with pytest.raises(ConfigError) as caught, running_server(ScriptedTarget(), config):
        pass
    assert caught.value.field == "host"


def test_ending_waits_for_running_graphs_and_refuses_new_ones() -> None:
    target = ScriptedTarget()
    server = Server(target, None, ServeConfig(port=0, drain_timeout_s=60))
    listening = threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(on_listening=listening.set)))
    thread.start()
    assert listening.wait(20)
    with WireClient(server.url) as client:
        client.greet()
        client.send(t="open", s=1, kind="generate", body={"prompt": "x", "params": {"max_tokens": 2}})
        assert client.receive()["t"] == "ack"
        server.stop()
        assert client.receive() == {"t": "drain", "deadline_ms": 60_000}
        client.send(t="open", s=2, kind="generate", body={"prompt": "x"})
        refusal = client.receive()
        assert (refusal["s"], refusal["code"], refusal["status"]) == (2, "overload", 503)
        plain = HttpClient(server.url)
        graph = {"nodes": [{"id": 0, "parent": None, "kind": "text", "parts": ["x"]}]}
        answers = [plain.get("/ready")] + [
            plain.post(path, body)
            for path, body in (
                ("/v1/completions", {"prompt": "x"}),
                ("/v1/completions", {"prompt": "x", "stream": True}),
                ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]}),
                ("/v1/responses", {"input": "x"}),
                ("/generate", {"text": "x"}),
                ("/v1/programs", {"graph": graph}),
                ("/v1/programs", {"graph": graph, "stream": False}),
            )
        ]
        assert [(each.status, each.headers.get("retry-after")) for each in answers] == [(503, "60")] * len(answers)
        assert {each.json["error"]["code"] for each in answers[1:]} == {"overload"}
        with pytest.raises(InvalidStatus) as caught, WireClient(server.url):
            pass
        assert (caught.value.response.status_code, caught.value.response.headers["retry-after"]) == (503, "60")
        target.finish()
        assert [message["t"] for message in client.receive_end(1)] == ["delta", "delta", "event", "end"]
        assert client.close_code() == (1001, [])
    thread.join(20)
    assert not thread.is_alive()
    assert not target.was_closed, "the target belongs to whoever made it"


def test_graphs_that_outlast_the_drain_are_cancelled() -> None:
    target = ScriptedTarget()
    with running_server(target, ServeConfig(port=0, drain_timeout_s=0.05)) as url:
        client = WireClient(url).__enter__()
        client.greet()
        client.send(t="open", s=1, kind="generate", body={"prompt": "x"})
        assert client.receive()["t"] == "ack"
    code, messages = client.close_code()
    client.__exit__(None, None, None)
    assert (code, [message["t"] for message in messages]) == (1001, ["drain"])
    assert target.runs[0].was_cancelled


@pytest.mark.parametrize("is_stream", [False, True])
def test_requests_that_outlast_the_drain_are_told_to_come_again(is_stream: bool) -> None:
    target = ScriptedTarget()
    answers: list[Any] = []

    def ask(url: str) -> None:
        body = {"prompt": "x", "max_tokens": 9, "stream": is_stream}
        answers.append(HttpClient(url).post("/v1/completions", body))

    with running_server(target, ServeConfig(port=0, drain_timeout_s=0.05)) as url:
        asking = threading.Thread(target=ask, args=(url,))
        asking.start()
        wait_until(lambda: len(target.runs) == 1)
    asking.join(20)
    (answer,) = answers
    assert target.runs[0].was_cancelled
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    error = answer.json["error"]
    assert (error["type"], error["code"], error["retry_after"]) == ("server_error", "overload", 0.05)


def test_a_server_leaves_no_task_and_no_thread_behind() -> None:
    before = set(threading.enumerate())

    async def body() -> None:
        target = ScriptedTarget()
        server = Server(target, None, ServeConfig(port=0))
        listening = asyncio.Event()
        serving = asyncio.create_task(server.serve(on_listening=listening.set))
        await listening.wait()
        idle = asyncio.all_tasks()

        def talk() -> None:
            with WireClient(server.url) as client:
                client.greet()
                client.send(t="open", s=1, kind="generate", body={"prompt": "x", "params": {"max_tokens": 3}})
                client.receive()
                target.finish()
                client.receive_end(1)

        for _ in range(3):
            await asyncio.to_thread(talk)
        assert asyncio.all_tasks() == idle, "a connection owns no task"
        server.stop()
        await serving
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(body())
    wait_until(lambda: set(threading.enumerate()) <= before)


@pytest.mark.parametrize(
    "beginning", [b"", b"GET /health HTTP/1.1\r\nHost: localhost\r\n"], ids=["silent", "half a request"]
)
def test_a_connection_without_a_timely_request_is_closed(beginning: bytes) -> None:
    with running_server(ScriptedTarget(), ServeConfig(port=0, hello_timeout_s=0.1)) as url, WireClient(url) as client:
        client.greet()
        parts = urlsplit(url)
        with socket.create_connection((parts.hostname, parts.port), timeout=20) as slow:
            slow.sendall(beginning)
            answer = b"".join(iter(lambda: slow.recv(4096), b""))
            assert answer.startswith(b"HTTP/1.1 408 ") if beginning else answer == b""
        client.send(t="ping", n=1)
        assert client.receive()["t"] == "pong", "an upgraded connection is no HTTP connection any more"


SCRIPT = """
from rtlang.contract.config import ServeConfig
from rtlang.serve.server import Server
from tests.support.programs.scripted_target import ScriptedTarget
import logging, sys
logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")
Server(ScriptedTarget(), None, ServeConfig(port=0, drain_timeout_s=60)).run()
print("ended", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_process_in_good_order_and_a_second_one_does_not_wait(number: signal.Signals) -> None:
    path = os.pathsep.join(str(ROOT / part) for part in (".", "kernels", "kernels/benchmarks", "grammars"))
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT], env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            url = next(line.split()[2] for line in process.stdout if line.startswith("serving at"))
            with WireClient(url) as client:
                client.greet()
                client.send(t="open", s=1, kind="generate", body={"prompt": "x"})
                assert client.receive()["t"] == "ack"
                process.send_signal(number)
                assert client.receive()["t"] == "drain"
                process.send_signal(number)
                assert client.close_code() == (1001, [])
            output = process.stdout.read()
            assert process.wait(20) == 0
            assert output.rstrip().endswith("ended")
        finally:
            process.kill()
