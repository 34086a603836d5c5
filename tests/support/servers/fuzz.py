"""Fuzzed frames, HTTP bodies and graphs against a server, and the state that must hold behind them.

    python -m tests.support.servers.fuzz --frames 1000000 --bodies 100000 --graphs 100000 [--seed 1] [--model]
    python -m tests.support.servers.fuzz --atheris [libFuzzer options]

Messages are valid ones of every type, changed in structure (fields dropped, repeated, replaced by unusual values) or in their bytes. They
go over real sockets. Behind each round the server must answer a ping, its health and a known request as before; at the end no page of the
KV pool is lost and memory has not grown. Without `--model`, the server runs graphs without a model, which is faster and tests the edge
alone.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import gc
import http.client
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit

import msgpack
from websockets.frames import Frame, Opcode

from rtlang.contract.config import ServeConfig
from rtlang.contract.service.target import Target
from rtlang.protocol.serialization import Encoding
from rtlang.serve.server import running_server
from rtlang.testing import ScriptedRuntime
from tests.support.programs.random_graphs import GraphMaker
from tests.support.servers.serving import RawSocket

ROUND = 100  # most messages of one connection
_NODES = [
    {"id": 0, "parent": None, "kind": "text", "parts": ["a"]},
    {"id": 1, "parent": 0, "kind": "generate", "name": "x", "params": {"max_tokens": 2}},
]
_GRAPH = {"nodes": _NODES, "inputs": []}
_HELD = {"kind": "regex", "source": "[ab]{2}"}
_USER = [{"role": "user", "content": "hi"}]
_TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
_FORMAT = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "integer"}, "strict": True}}
MESSAGES: list[dict[str, Any]] = [
    {"t": "open", "s": 1, "kind": "generate", "body": {"prompt": "hello", "params": {"max_tokens": 2}}},
    {
        "t": "open",
        "s": 1,
        "kind": "chat",
        "body": {"messages": _USER, "params": {"stop": ["x"]}},
    },
    {"t": "open", "s": 1, "kind": "program", "body": {"graph": _GRAPH, "open": True, "priority": 1, "seed": 2}},
    {
        "t": "open",
        "s": 1,
        "kind": "generate",
        "body": {
            "prompt": "a",
            "constraint": _HELD,
            "params": {"n": 2, "logprobs": 2, "temperature": 0.5},
        },
        "detach_ms": 1000,
        "idem": "0123456789abcdef",
    },
    {"t": "extend", "s": 1, "q": 1, "nodes": [{"id": 2, "parent": 1, "kind": "select", "choices": ["a", "b"]}]},
    {"t": "close", "s": 1},
    {"t": "cancel", "s": 1},
    {"t": "credit", "s": 1, "n": 5},
    {"t": "input", "s": 1, "n": 1, "value": "x"},
    {"t": "resolve", "s": 1, "n": 1, "value": {"a": [1, None]}},
    {"t": "reject", "s": 1, "n": 1, "code": "call", "message": "no"},
    {"t": "attach", "s": 1, "rid": "0" * 32, "epoch": "x", "from": 0},
    {"t": "ping", "n": 1},
    {"t": "hello", "v": 1},
    {"t": "bye"},
]
BODIES: list[tuple[str, dict[str, Any]]] = [
    (
        "/v1/chat/completions",
        {
            "model": "m",
            "messages": _USER,
            "max_tokens": 2,
            "stream": True,
            "tools": _TOOLS,
        },
    ),
    (
        "/v1/chat/completions",
        {
            "model": "m",
            "messages": _USER,
            "max_tokens": 2,
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "x", "schema": {"type": "integer"}, "strict": True},
            },
        },
    ),
    ("/v1/completions", {"model": "m", "prompt": ["a", "b"], "max_tokens": 2, "logprobs": 2, "echo": True, "n": 2}),
    ("/v1/responses", {"model": "m", "input": "hi", "max_output_tokens": 2}),
    ("/v1/batches", {"input_file_id": "file-0", "endpoint": "/v1/completions", "completion_window": "24h"}),
    ("/api/chat", {"model": "m", "messages": _USER, "tools": _TOOLS, "options": {"num_predict": 2}}),
    ("/api/generate", {"model": "m", "prompt": "a", "raw": True, "options": {"num_predict": 2}}),
    ("/v1/score", {"model": "m", "text_1": "a", "text_2": ["b", "c"], "method": "full_likelihood"}),
    ("/v1/embeddings", {"model": "m", "input": "hi"}),
    ("/v1/programs", {"graph": _GRAPH, "inputs": {}}),
    ("/generate", {"text": "a", "sampling_params": {"max_new_tokens": 2, "regex": "a*"}}),
    ("/tokenize", {"prompt": "hi"}),
    ("/detokenize", {"tokens": [1, 2]}),
    ("/flush_cache", {}),
]
ODD: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    255,
    65536,
    2**31,
    2**53,
    2**63,
    2**64 - 1,
    -(2**63),
    0.0,
    -0.0,
    0.5,
    1e308,
    1e-320,
    "",
    "a",
    "é",
    "😀",
    "\x00",
    "\u2028",
    "a" * 300,
    "<|endoftext|>",
    "{{7*7}}",
    "../../etc/passwd",
    "http://127.0.0.1:1/",
    "__class__",
    "$int",
    [],
    {},
    [[]],
    [None],
    {"": 0},
    {"$int": "9" * 40},
    {"ref": 1},
    {"arg": "x"},
    [1] * 50,
    list("abc"),
    {"kind": "regex", "source": "(a|a)*b"},
    {"kind": "json_schema", "source": '{"$ref": "#"}'},
]


def odd(rng: Random) -> Any:
    """An unusual value, not shared with other places."""
    return copy.deepcopy(rng.choice(ODD))


def mutated(value: Any, rng: Random, num_changes: int) -> Any:
    """A changed copy of plain data."""
    value = json.loads(json.dumps(value))
    for _ in range(num_changes):
        places = list(_places(value))
        if not places:
            return odd(rng)
        holder, key = rng.choice(places)
        action = rng.random()
        if action < 0.5:
            holder[key] = odd(rng)
        elif action < 0.65:
            del holder[key]
        elif action < 0.8:
            holder[key] = [copy.deepcopy(holder[key]) for _ in range(rng.choice((1, 2, 40)))]
        elif isinstance(holder, dict):
            holder[rng.choice(("t", "s", "n", "q", "id", "parent", "kind", "params", "x", "max_tokens", ""))] = odd(rng)
        else:
            holder.insert(rng.randint(0, len(holder)), odd(rng))
    return value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield value, key
        yield from _places(inner)


def shuffled_bytes(data: bytes, rng: Random) -> bytes:
    """The bytes with a few of them changed, repeated or cut off."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        place = rng.randint(0, len(changed))
        action = rng.randrange(4)
        if action == 0 and place < len(changed):
            changed[place] = rng.randrange(256)
        elif action == 1:
            changed[place:place] = rng.randbytes(rng.randint(1, 8))
        elif action == 2:
            del changed[place : place + rng.randint(1, 8)]
        else:
            changed[place:place] = changed[: rng.randint(0, 40)]
    return bytes(changed)


def frame(rng: Random, encoding: Encoding, stream: int) -> bytes:
    """One message of a client, most often a changed one."""
    message = dict(rng.choice(MESSAGES))
    if "s" in message and rng.random() < 0.9:
        message["s"] = stream if message["t"] in ("open", "attach") else rng.randint(max(1, stream - 3), stream)
    message = mutated(message, rng, rng.choice((0, 1, 1, 2, 4)))
    return _changed(_packed(message, encoding), rng)


def graph_frame(rng: Random, encoding: Encoding, stream: int) -> bytes:
    """An `open` with a random graph, most often a changed one."""
    from rtlang.contract.request_graph import RequestGraph

    maker = GraphMaker(rng, most_tokens=2)
    plain = RequestGraph(tuple(maker.nodes(rng.randint(1, 6))), ("question",)).to_plain()
    body = {"graph": mutated(plain, rng, rng.choice((0, 1, 1, 2, 3))), "inputs": {"question": "x"}}
    return _packed({"t": "open", "s": stream, "kind": "program", "body": body, "deadline_ms": 2000}, encoding)


def body(rng: Random) -> tuple[str, bytes]:
    """A path and the body of a request."""
    path, plain = rng.choice(BODIES)
    return path, _changed(json.dumps(mutated(plain, rng, rng.choice((0, 1, 1, 2, 4)))).encode(), rng)


def _packed(message: Any, encoding: Encoding) -> bytes:
    return json.dumps(message).encode() if encoding.is_text else msgpack.packb(message)


def _changed(data: bytes, rng: Random) -> bytes:
    return shuffled_bytes(data, rng) if rng.random() < 0.03 else data


class Fuzzer:
    """Sends fuzzed input to one server.

    Attributes:
        num_sent, num_connections, num_answers: messages and bodies sent, connections made, messages and responses that came back.
        statuses: how often each HTTP status came.
    """

    def __init__(self, url: str, seed: int) -> None:
        self.url, self.rng = url, Random(seed)
        self.num_sent = self.num_connections = self.num_answers = 0
        self.statuses: dict[int, int] = {}
        self._probe = self.ask()

    def ask(self) -> str:
        """The text of a known request, over HTTP-free means: a fresh connection."""
        with RawSocket(self.url) as peer:
            peer.greet()
            request = {
                "t": "open",
                "s": 1,
                "kind": "generate",
                "body": {"prompt": "known", "params": {"max_tokens": 4}},
            }
            peer.send(Opcode.TEXT, json.dumps(request).encode())
            text = ""
            while True:
                opcode, data = peer.receive()
                if opcode != Opcode.TEXT:
                    continue
                found = json.loads(data)
                for message in found if isinstance(found, list) else [found]:
                    text += message.get("d", "") if message["t"] == "delta" else ""
                    if message["t"] == "end":
                        return text

    def check(self) -> None:
        """The server is healthy and answers the known request as before."""
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=30)
        connection.request("GET", "/health")
        status = connection.getresponse().status
        connection.close()
        assert status == 200, f"/health answers {status} after {self.num_sent} inputs"
        assert self.ask() == self._probe

    def round(self, make: Callable[[Random, Encoding, int], bytes], count: int) -> None:
        """Send messages on one connection until it is closed; then on the next."""
        left = count
        while left > 0:
            encoding = self.rng.choice((Encoding.JSON, Encoding.MSGPACK))
            self.num_connections += 1
            with RawSocket(self.url) as peer:
                peer.upgrade(subprotocol=encoding.value)
                assert peer.status() == 101
                opcode = Opcode.TEXT if encoding.is_text else Opcode.BINARY
                peer.send(opcode, _packed({"t": "hello", "v": 1}, encoding))
                data = bytearray()
                batch = min(left, self.rng.choice((4, 20, ROUND)))
                for number in range(batch):
                    data += Frame(opcode, make(self.rng, encoding, number + 1), True).serialize(mask=True)
                data += Frame(opcode, _packed({"t": "ping", "n": 4711}, encoding), True).serialize(mask=True)
                self._send(peer, bytes(data))
                self.num_sent += batch
                left -= batch
                self._read(peer, encoding)

    def _send(self, peer: RawSocket, data: bytes) -> None:
        with contextlib.suppress(ConnectionError):  # the server has closed
            peer.socket.sendall(data)

    def _read(self, peer: RawSocket, encoding: Encoding) -> None:
        """Read until the pong or the end of the connection; a server that says nothing for 20 s hangs."""
        with contextlib.suppress(ConnectionError):  # it was closed with input unread
            while peer.file.peek(1):
                opcode, data = peer.receive()
                self.num_answers += 1
                if opcode == Opcode.CLOSE:
                    return
                if opcode in (Opcode.TEXT, Opcode.BINARY):
                    found = json.loads(data) if encoding.is_text else msgpack.unpackb(data)
                    for message in found if isinstance(found, list) else [found]:
                        assert isinstance(message["t"], str)
                        if message["t"] == "pong" and message.get("n") == 4711:
                            return

    def bodies(self, count: int) -> None:
        """Post bodies; every answer is a status below 500, or 503."""
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=300)  # some ask for 65,536 tokens
        for _ in range(count):
            path, data = body(self.rng)
            self.num_sent += 1
            try:
                connection.request("POST", path, data, {"content-type": "application/json"})
                response = connection.getresponse()
                response.read()
            except (http.client.HTTPException, ConnectionError):
                connection.close()  # the server may close behind an error
                continue
            self.num_answers += 1
            self.statuses[response.status] = self.statuses.get(response.status, 0) + 1
            assert response.status < 500 or response.status in (501, 503), (path, data, response.status)
        connection.close()


@contextmanager
def served(with_model: bool) -> Iterator[tuple[str, Target]]:
    """A server in this process, around a runtime with or without a model."""
    import rtlang

    with ExitStack() as stack:
        target: Any = stack.enter_context(
            rtlang.Runtime() if with_model else ScriptedRuntime(default="ab", checks=False)
        )
        url = stack.enter_context(running_server(target, ServeConfig(port=0, drain_timeout_s=2.0)))
        yield url, target


def lost_pages(target: Any, timeout_s: float = 30.0) -> int:
    """Pages that are neither free nor cached once nothing runs; 0 for a target without pages."""
    stats = getattr(target, "stats", None)
    if stats is None:
        return 0
    end = time.monotonic() + timeout_s
    while True:
        now = stats()
        lost = now["num_pages"] - now["num_pages_free"] - now["num_pages_cached"]
        if not lost or time.monotonic() > end:
            return int(lost)
        time.sleep(0.05)


def resident_bytes() -> int:
    """Resident memory of this process (Linux); 0 elsewhere."""
    path = Path("/proc/self/statm")
    return int(path.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if path.exists() else 0


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.servers.fuzz")
    parser.add_argument("--frames", type=int, default=0)
    parser.add_argument("--bodies", type=int, default=0)
    parser.add_argument("--graphs", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--model", action="store_true")
    parser.add_argument("--atheris", action="store_true")
    options, rest = parser.parse_known_args()
    if options.atheris:
        return guided(rest)
    with served(options.model) as (url, target):
        fuzzer = Fuzzer(url, options.seed)
        work: list[tuple[str, int, Callable[[int], None]]] = [
            ("frames", options.frames, lambda count: fuzzer.round(frame, count)),
            ("bodies", options.bodies, fuzzer.bodies),
            ("graphs", options.graphs, lambda count: fuzzer.round(graph_frame, count)),
        ]
        for name, total, run in work:
            done, started, settled = 0, time.monotonic(), 0
            while done < total:
                count = min(2000, total - done)
                run(count)
                fuzzer.check()
                done += count
                if not settled and done >= total // 4:  # caches are full by then
                    gc.collect()
                    settled = resident_bytes()
                seconds = time.monotonic() - started
                sys.stdout.write(
                    f"{name} {done}/{total}, {done / seconds:.0f}/s, {fuzzer.num_connections} connections, "
                    f"{resident_bytes() >> 20} MiB {fuzzer.statuses or ''}\n"
                )
                sys.stdout.flush()
            gc.collect()
            grown = (resident_bytes() - settled) / (1 << 20)
            sys.stdout.write(
                f"{name}: {total} sent, grown {grown:.1f} MiB since a quarter, {lost_pages(target)} pages lost\n"
            )
        return 1 if lost_pages(target) else 0


def guided(arguments: list[str]) -> int:
    """Run atheris on the state machine of a connection; it chooses bytes by the coverage that they reach."""
    import atheris

    from tests.support.servers.fuzz_connection import one_input

    atheris.instrument_all()
    atheris.Setup([sys.argv[0], *arguments], one_input)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
