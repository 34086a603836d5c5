"""Heavy requests of one key, in every queue of a server, hold up no request of another key. Counts, not times, decide."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import rtlang as rt
from rtlang.contract.config import ServeConfig
from rtlang.runtime.texts.text_service import TokenizerTextService
from rtlang.serve import service as serve_service
from rtlang.serve.network.key_table import digest_of
from rtlang.serve.server import running_server
from rtlang.work.fair_executor import FairExecutor, shared_limits
from tests.support.servers.http_client import HttpClient
from tests.support.waiting import wait_until

KEYS = "".join(f'[[keys]]\nname = "{name}"\nsha256 = "{digest_of(name)}"\n' for name in ("ana", "ben"))
NUM_HEAVY = 24
HEAVY = "heavy " * 170_000  # 1 MB


class Encodings:
    """Holds the heavy encodings until `may_end`.

    Attributes:
        begun: the heavy texts that were begun.
        num_ended: heavy encodings that ended.
    """

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.num_ended = 0
        self.may_end = threading.Event()


@pytest.fixture(scope="module")
def runtime() -> Iterator[rt.Runtime]:
    with rt.Runtime(dtype="float32", num_threads=1) as made:
        yield made


@pytest.fixture
def encodings(monkeypatch: pytest.MonkeyPatch) -> Iterator[Encodings]:
    found, encode = Encodings(), TokenizerTextService.encode

    def hold(self: TokenizerTextService, text: str, **options: Any) -> list[int]:
        if not text.startswith("heavy"):
            return encode(self, text, **options)
        found.begun.append(text)
        assert found.may_end.wait(120)
        found.num_ended += 1
        return [1]

    monkeypatch.setattr(TokenizerTextService, "encode", hold)
    yield found
    found.may_end.set()


def post_heavy(url: str, prompt: str = HEAVY) -> socket.socket:
    """Send a tokenization of ana; its answer is not read."""
    host, _, port = url.removeprefix("ws://").rpartition(":")
    body = json.dumps({"prompt": prompt}).encode()
    head = f"POST /tokenize HTTP/1.1\r\nhost: {host}:{port}\r\nauthorization: Bearer ana\r\ncontent-length: {len(body)}\r\n\r\n"
    connection = socket.create_connection((host, int(port)), 30)
    connection.sendall(head.encode() + body)
    return connection


def ask_all(url: str, number: int) -> None:
    """One request of each kind of ben, with a schema that no one has sent."""
    ben = HttpClient(url, "ben")
    assert ben.post("/tokenize", {"prompt": f"small {number}"}).status == 200
    assert ben.post("/detokenize", {"tokens": [5, 6, 7]}).status == 200
    chat: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 8}
    assert ben.post("/v1/chat/completions", chat).status == 200
    schema = {"type": "object", "properties": {f"n{number}": {"enum": [1, 2]}}, "required": [f"n{number}"]}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema | {"additionalProperties": False}}}
    assert ben.post("/v1/chat/completions", chat | {"max_tokens": 60, "response_format": form}).status == 200
    long = {"prompt": "a" * 40_000, "max_tokens": 1}  # read on a thread, and then refused as too long
    assert ben.post("/v1/completions", long).status == 400
    with rt.connect(url, api_key="ben") as client:
        assert client.generate("Hi", params=rt.SamplingParams(max_tokens=4)).result().completions


def test_tokenizations_of_one_key_hold_up_no_request_of_another(
    runtime: rt.Runtime, encodings: Encodings, monkeypatch: pytest.MonkeyPatch
) -> None:
    executors: list[FairExecutor] = []

    def noted(*args: Any, **options: Any) -> FairExecutor:
        executors.append(FairExecutor(*args, **options))
        return executors[-1]

    monkeypatch.setattr(serve_service, "FairExecutor", noted)
    with running_server(runtime, ServeConfig(port=0, keys=KEYS)) as url:
        sent = [post_heavy(url) for _ in range(NUM_HEAVY)]
        wait_until(lambda: bool(encodings.begun))
        ask_all(url, 1)
        assert (len(encodings.begun), encodings.num_ended) == (1, 0)
        wait_until(lambda: executors[0].num_waiting == NUM_HEAVY - 1)
        for connection in sent:
            connection.close()
        wait_until(lambda: executors[0].num_waiting == 0)
        encodings.may_end.set()
        assert HttpClient(url, "ana").post("/tokenize", {"prompt": HEAVY}).json["tokens"] == [1]
        assert len(encodings.begun) == 2, "what waited when its client left is not begun"


def test_a_key_that_fills_its_queue_is_refused_and_another_is_not(
    runtime: rt.Runtime, encodings: Encodings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve_service, "shared_limits", lambda num: shared_limits(num, max_waiting=4))
    with running_server(runtime, ServeConfig(port=0, keys=KEYS)) as url:
        sent = [post_heavy(url) for _ in range(5)]
        wait_until(lambda: bool(encodings.begun))
        refused: list[Any] = []

        def is_refused() -> bool:
            connection = post_heavy(url)
            sent.append(connection)
            connection.settimeout(0.2)
            try:
                refused.append(connection.recv(4000))
            except TimeoutError:
                return False
            connection.settimeout(30)
            while not refused[0].endswith(b"}"):  # head and body may come apart
                refused[0] += connection.recv(4000)
            return True

        wait_until(is_refused)
        head, _, body = refused[0].partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 429")
        assert b"retry-after: " in head.lower()
        assert json.loads(body)["error"]["code"] == "overload"
        ask_all(url, 2)
        assert encodings.num_ended == 0
        encodings.may_end.set()
        for connection in sent:
            connection.close()
