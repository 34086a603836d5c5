"""Connecting: which addresses are understood, and what is raised where nobody fitting answers."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rtlang.client.connect import connect
from rtlang.contract.errors import ConfigError, ConnectionLostError
from rtlang.serve.server import TokenizerInfo, running_server
from tests.support.programs.scripted_target import ScriptedTarget
from tests.support.servers.free_port import free_port
from tests.support.servers.serving import serving

ROOT = Path(__file__).parents[2]
BAD_ADDRESSES = """
localhost:8420 ftp://localhost ws:// ws://:80 ws://h:port ws://h:99999 ws://h:0 ws://[ ws://user:key@h:1
ws://h:1/?key=secret ws://h:1/#x /v1/stream
"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running_server(ScriptedTarget(), tokenizer_info=TokenizerInfo("m", 300, 512)) as url:
        yield url


@pytest.mark.parametrize(
    "form", ["{}", "{}/", "{}/v1/stream", "{}/v1/stream/"], ids=["bare", "slash", "path", "path and slash"]
)
@pytest.mark.parametrize("scheme", ["ws", "http", "HTTP"])
def test_every_form_of_an_address_is_understood(url: str, form: str, scheme: str) -> None:
    with connect(form.format(url.replace("ws", scheme, 1))) as runtime:
        assert runtime.models == (
            {"model": "m", "vocab_size": 300, "max_model_len": 512, "tool_format": None, "identity": None},
        )
        assert runtime.limits["max_streams"] == 256


@pytest.mark.parametrize(
    "bad",
    BAD_ADDRESSES.split(),
)
def test_an_invalid_url_is_a_config_error(bad: str) -> None:
    with pytest.raises(ConfigError, match="ws://host:port") as caught:
        connect(bad)
    assert caught.value.field == "url"


def test_connecting_to_a_closed_port_is_connection_lost() -> None:
    port = free_port()
    with pytest.raises(ConnectionLostError, match=str(port)):
        connect(f"ws://127.0.0.1:{port}", timeout_s=20)


def test_an_unknown_host_is_connection_lost() -> None:
    with pytest.raises(ConnectionLostError, match=r"no\.such\.host\.invalid"):
        connect("ws://no.such.host.invalid:1", timeout_s=20)


@pytest.mark.parametrize("key", [None, "wrong"])
def test_a_wrong_key_is_reported(key: str | None) -> None:
    with serving(api_key="secret") as server:
        with pytest.raises(ConnectionLostError, match="key") as caught:
            connect(server.url, api_key=key)
        assert "secret" not in str(caught.value)
        with connect(server.url, api_key="secret"):
            pass


def test_a_server_that_has_no_such_path_is_connection_lost(url: str) -> None:
    with pytest.raises(ConnectionLostError, match="404"):
        connect(url + "/elsewhere")


@contextlib.contextmanager
def listener(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that answers one connection as told."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            peer, _ = server.accept()
            with peer:
                answer(peer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"ws://127.0.0.1:{server.getsockname()[1]}"
        thread.join(20)
        assert not thread.is_alive()


def test_connecting_to_a_silent_server_times_out() -> None:
    over = threading.Event()

    def say_nothing(peer: socket.socket) -> None:
        over.wait(20)

    with listener(say_nothing) as url:
        with pytest.raises(ConnectionLostError, match=r"no answer within 0\.1 s"):
            connect(url, timeout_s=0.1)
        over.set()


@pytest.mark.parametrize("answer", [b"", b"SSH-2.0-OpenSSH_9\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"])
def test_a_server_of_another_protocol_is_connection_lost(answer: bytes) -> None:
    def reply(peer: socket.socket) -> None:
        peer.recv(4096)
        peer.sendall(answer)

    with listener(reply) as url, pytest.raises(ConnectionLostError, match=url.partition("//")[2]):
        connect(url, timeout_s=20)


def test_a_refused_connection_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    with serving(api_key="secret") as server, pytest.raises(ConnectionLostError):
        connect(server.url)
    left = {thread.name for thread in set(threading.enumerate()) - before}
    assert left <= {"thread-watch"}  # of the tests: one for the process, begun with the first loop


def test_a_client_loads_neither_torch_nor_a_server() -> None:
    code = "import sys, rtlang.client.connect; print(*sys.modules)"
    path = os.pathsep.join(str(ROOT / part) for part in (".", "kernels", "kernels/benchmarks", "grammars"))
    modules = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True
    ).stdout.split()
    assert "rtlang.client.remote_runtime" in modules
    for heavy in ("torch", "transformers", "uvicorn", "starlette", "prometheus_client", "numba", "rtlang.engine"):
        assert heavy not in modules
