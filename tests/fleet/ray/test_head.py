"""A wrong or dead address of a Ray cluster is told from a living one within seconds, in one line."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

pytest.importorskip("ray")

from rtlang.contract.errors import ConfigError, ConnectionLostError
from rtlang.fleet.ray import head
from tests.support.servers.free_port import free_port


@pytest.fixture
def silent() -> Iterator[str]:
    """A server that accepts connections and says nothing, as a head that was stopped."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def full() -> Iterator[str]:
    """An address that answers no attempt to connect: its queue is full, which looks like a black hole."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        address = server.getsockname()
        waiting = []
        for _ in range(4):
            each = socket.socket()
            each.setblocking(False)
            each.connect_ex(address)
            waiting.append(each)
        yield f"127.0.0.1:{address[1]}"
        for each in waiting:
            each.close()


@pytest.fixture
def web_server() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def other_grpc() -> Iterator[str]:
    """A gRPC server that is not the head of a Ray cluster."""
    from concurrent.futures import ThreadPoolExecutor

    import grpc

    server = grpc.server(ThreadPoolExecutor(1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(None).wait()


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("silent", "no answer within"),
        ("full", "no answer within"),
        ("web_server", ""),
        ("other_grpc", "not the head of a Ray cluster"),
    ],
)
def test_what_is_no_head_is_refused_in_one_line(kind: str, reason: str, request: pytest.FixtureRequest) -> None:
    address = request.getfixturevalue(kind)
    with pytest.raises(ConnectionLostError, match=f"no Ray cluster at {address}: .*{reason}") as raised:
        head.check_head(address, timeout_s=0.3)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("address", ["nobody.invalid:6379", "127.0.0.1:1"])
def test_an_address_that_nobody_has_is_refused(address: str) -> None:
    with pytest.raises(ConnectionLostError, match=f"no Ray cluster at {address}: "):
        head.check_head(address)


@pytest.mark.parametrize(
    "address", ["", "host", "host:", ":1", "host:0", "host:65536", "host:x", "ray://host:10001", "ws://h:1"]
)
def test_other_forms_are_refused_before_anything_is_asked(address: str) -> None:
    with pytest.raises(ConfigError, match="HOST:PORT"):
        head.check_cluster(address)


@pytest.mark.parametrize("given", ["127.0.0.1:1", "ray://127.0.0.1:1"])
def test_auto_takes_the_address_of_the_environment(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", given)
    with pytest.raises((ConnectionLostError, ConfigError), match=r"127\.0\.0\.1:1"):
        head.check_cluster("auto")


def test_auto_without_a_cluster_says_what_to_give(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr("ray._private.services.canonicalize_bootstrap_address", lambda address: None)
    with pytest.raises(ConnectionLostError, match="HOST:PORT"):
        head.head_address("auto")


def test_the_state_of_an_actor_is_left_out() -> None:
    died = "The actor died unexpectedly.\n\tclass_name: FleetDirectory\n\tactor_id: 1\nThe actor is dead because it was killed."
    assert head.one_line(died) == "The actor died unexpectedly. The actor is dead because it was killed."
    assert len(head.one_line("x" * 5000)) == 300


@pytest.mark.parametrize("command", [["fleet", "stop"], ["serve", "--replicas", "1"]], ids=" ".join)
def test_a_command_with_a_dead_address_ends_with_one_line(command: list[str]) -> None:
    """Ray is not imported, so that the time is that of the command line's own imports."""
    address = f"127.0.0.1:{free_port()}"
    code = (
        "import sys\nfrom rtlang.__main__ import app\n"
        f"try:\n    app({[*command, '--ray', address]})\nfinally:\n    assert 'ray' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (1, f"error: no Ray cluster at {address}: Connection refused\n")
