"""A server that is wrong fails the checks of its faults."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pytest
from websockets.sync.server import ServerConnection, serve
from websockets.typing import Subprotocol

from rtlang_bench.conformance.__main__ import main
from rtlang_bench.conformance.wire import JSON


def careless(connection: ServerConnection) -> None:
    """Answers every text with welcome, and reads no further than that it is there."""
    for _ in connection:
        connection.send(
            json.dumps({"t": "welcome", "v": 1, "epoch": "e", "limits": {"max_depth": 3}, "models": [], "caps": []})
        )


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serve(careless, "127.0.0.1", 0, subprotocols=[Subprotocol(JSON)]) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        ("welcome has", "limits lacks one of"),
        ("a second hello", "expected an error"),
        ("an unknown type", "expected an error"),
        ("unknown fields of a message", "no pong"),
        ("chosen when both", "chosen: rtlang.v1.json"),
    ],
)
def test_faults_are_found(url: str, claim: str, reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([url, "--only", claim]) == 1
    assert reason in capsys.readouterr().out
