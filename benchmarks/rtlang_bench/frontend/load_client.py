"""Many streams at once, from one process on one thread: what each stream has received, and when.

    python -m rtlang_bench.frontend.load_client < load.json > report.json

The client reads with epoll and decodes what it must to count tokens, so that it costs less than the server. It is a process of its own, so
that the server does not wait for it.
"""

from __future__ import annotations

import json
import random
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol
from urllib.parse import urlsplit

from rtlang.bench.server_process import cpu_s

_RECEIVE_BYTES = 1 << 16
_TIMEOUT_S = 300.0
_TOKEN_IDS = (300, 2000)  # of random prompts: ordinary tokens of the embedded tokenizer


@dataclass(frozen=True, slots=True)
class Load:
    """The streams of one run.

    Attributes:
        url: of the server, with "http" or "ws".
        body: of every request; for a WebSocket the body of "open".
        num_streams: streams at the same time.
        num_rounds: requests of each stream, one after the other.
        num_tokens: that each request gives.
        path: of the HTTP route.
        streams_a_socket: on one WebSocket.
        counts_ids: whether chunks list their token ids; else a chunk with text is one token.
        num_prompt_tokens: length of random prompts, other ones for each request; 0 for the prompt of the body.
        pid: the process whose processor time is measured.
    """

    url: str
    body: dict[str, Any]
    num_streams: int
    num_tokens: int
    num_rounds: int = 1
    path: str = "/v1/completions"
    streams_a_socket: int = 100
    counts_ids: bool = True
    num_prompt_tokens: int = 0
    pid: int | None = None


@dataclass(slots=True)
class Report:
    """What the streams received.

    Attributes:
        first_s: seconds from each request to its first token.
        tokens_at_half, rates_at_half: tokens of each stream when half of all had come, and a second since its last request.
        num_tokens: of all streams.
        failures: reasons.
        seconds: from the first request to the last token.
        cpu_s: processor time of the server in this time.
        steady_cpu_s, num_steady_tokens: the same from the moment when each stream had a token until the first one ended.
    """

    first_s: list[float] = field(default_factory=list)
    tokens_at_half: list[int] = field(default_factory=list)
    rates_at_half: list[float] = field(default_factory=list)
    num_tokens: int = 0
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0
    cpu_s: float = 0.0
    steady_cpu_s: float = 0.0
    num_steady_tokens: int = 0


def run_load(load: Load) -> Report:
    """Run a load in a process of its own."""
    command = [sys.executable, "-m", "rtlang_bench.frontend.load_client"]
    done = subprocess.run(
        command, input=json.dumps(asdict(load)), capture_output=True, text=True, timeout=_TIMEOUT_S + 30, check=False
    )
    if done.returncode:
        raise ValueError(f"the client failed: {done.stderr[-2000:]}")
    return Report(**json.loads(done.stdout))


class Tally:
    """Counts the tokens of all streams."""

    def __init__(self, load: Load) -> None:
        self._load, self.report = load, Report()
        self._tokens = [0] * load.num_streams
        self._asked_at = [0.0] * load.num_streams
        self._ended_at: list[float | None] = [None] * load.num_streams
        self._is_waiting = [False] * load.num_streams
        self._num_started = self.num_done = 0
        self._begun_at, self._begun_cpu_s = time.perf_counter(), self._cpu_s()
        self._steady: tuple[float, int] | None = None

    def ask(self, stream: int) -> None:
        """A request is sent."""
        self._asked_at[stream], self._is_waiting[stream] = time.perf_counter(), True

    def take(self, stream: int, num_tokens: int) -> None:
        """Tokens have come."""
        if not num_tokens:
            return
        report = self.report
        if self._is_waiting[stream]:
            self._is_waiting[stream] = False
            report.first_s.append(time.perf_counter() - self._asked_at[stream])
            if not self._tokens[stream]:
                self._num_started += 1
        self._tokens[stream] += num_tokens
        report.num_tokens += num_tokens
        load = self._load
        if self._num_started == load.num_streams and self._steady is None:
            self._steady = self._cpu_s(), report.num_tokens
        if not report.tokens_at_half and 2 * report.num_tokens >= load.num_streams * load.num_rounds * load.num_tokens:
            report.tokens_at_half, now = list(self._tokens), time.perf_counter()
            report.rates_at_half = [
                tokens / ((ended or now) - asked)
                for tokens, asked, ended in zip(self._tokens, self._asked_at, self._ended_at, strict=True)
            ]

    def end(self, stream: int) -> None:
        """A stream has ended."""
        report, self._ended_at[stream] = self.report, time.perf_counter()
        if self._steady is not None and not report.num_steady_tokens:
            report.steady_cpu_s = self._cpu_s() - self._steady[0]
            report.num_steady_tokens = report.num_tokens - self._steady[1]
        self.num_done += 1
        report.seconds, report.cpu_s = time.perf_counter() - self._begun_at, self._cpu_s() - self._begun_cpu_s

    def fail(self, stream: int, reason: str) -> None:
        """A stream has failed."""
        self.report.failures.append(reason)
        self.end(stream)

    def _cpu_s(self) -> float:
        return 0.0 if self._load.pid is None else cpu_s(self._load.pid)


class Channel(Protocol):
    """One connection."""

    def begin(self) -> bytes:
        """The first bytes to send."""

    def take(self, data: bytes) -> bytes | None:
        """Take received bytes, b"" at the end of the connection; returns bytes to send, or None if the connection is done."""


class SseChannel:
    """One stream: its requests, one after the other."""

    def __init__(self, load: Load, stream: int, tally: Tally) -> None:
        self._dice = random.Random(stream)
        self._load, self._stream, self._tally = load, stream, tally
        self._received = bytearray()
        self._events = bytearray()
        self._has_head = False
        self._num_left, self._num_taken, self._error = load.num_rounds, 0, b""

    def begin(self) -> bytes:
        """See `Channel.begin`."""
        load, prompt = self._load, dict[str, Any]()
        if load.num_prompt_tokens:
            prompt["prompt"] = [self._dice.randrange(*_TOKEN_IDS) for _ in range(load.num_prompt_tokens)]
        body = json.dumps(load.body | prompt).encode()
        head = f"POST {load.path} HTTP/1.1\r\nHost: {urlsplit(load.url).netloc}\r\nContent-Type: application/json\r\n"
        self._tally.ask(self._stream)
        return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body

    def take(self, data: bytes) -> bytes | None:
        """See `Channel.take`."""
        if not data:
            self._tally.fail(self._stream, "the connection ended")
            return None
        self._received += data
        if not self._has_head:
            head, mark, rest = self._received.partition(b"\r\n\r\n")
            if not mark:
                return b""
            if b" 200 " not in head.partition(b"\r\n")[0]:
                self._tally.fail(self._stream, bytes(self._received[:300]).decode(errors="replace"))
                return None
            self._has_head, self._received = True, rest
        is_over = False
        for chunk in self._chunks():
            is_over = not chunk
            self._events += chunk
        *events, self._events = self._events.split(b"\n\n")
        for event in events:
            num_tokens = self._num_tokens(bytes(event))
            self._num_taken += num_tokens
            if not num_tokens and b'"error"' in event:
                self._error = bytes(event)
            self._tally.take(self._stream, num_tokens)
        if not is_over:
            return b""
        if self._load.counts_ids and self._num_taken != self._load.num_tokens:  # an error may be an event of the stream
            reason = self._error[:200].decode(errors="replace")
            self._tally.fail(self._stream, f"{self._num_taken} tokens of {self._load.num_tokens}: {reason}")
            return None
        self._has_head, self._num_taken = False, 0
        self._num_left -= 1
        if not self._num_left:
            self._tally.end(self._stream)
            return None
        return self.begin()

    def _chunks(self) -> Iterator[bytes]:
        start = 0
        while (mark := self._received.find(b"\r\n", start)) >= 0:
            end = mark + 2 + int(self._received[start:mark], 16)
            if len(self._received) < end + 2:
                break
            yield bytes(self._received[mark + 2 : end])
            start = end + 2
        del self._received[:start]

    def _num_tokens(self, event: bytes) -> int:
        start = event.find(b"data: ")
        if start < 0 or event.endswith(b"[DONE]"):
            return 0
        choices = json.loads(event[start + 6 :]).get("choices") or ()
        if self._load.counts_ids:
            return sum(len(each.get("token_ids") or ()) for each in choices)
        return sum(bool(each.get("text") or (each.get("delta") or {}).get("content")) for each in choices)


class SocketChannel:
    """Several streams on one WebSocket, in JSON."""

    def __init__(self, load: Load, streams: range, tally: Tally) -> None:
        self._load, self._streams, self._tally = load, streams, tally
        self._received = bytearray()
        self._has_head = False
        self._num_open = len(streams)

    def begin(self) -> bytes:
        """See `Channel.begin`."""
        head = f"GET /v1/stream HTTP/1.1\r\nHost: {urlsplit(self._load.url).netloc}\r\nUpgrade: websocket\r\n"
        key = "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
        return f"{head}{key}Sec-WebSocket-Protocol: rtlang.v1.json\r\n\r\n".encode()

    def take(self, data: bytes) -> bytes | None:
        """See `Channel.take`."""
        if not data:
            for stream in self._streams[: self._num_open]:
                self._tally.fail(stream, "the connection ended")
            return None
        self._received += data
        if not self._has_head:
            head, mark, rest = self._received.partition(b"\r\n\r\n")
            if not mark:
                return b""
            if b" 101 " not in head.partition(b"\r\n")[0]:
                raise ValueError(bytes(head).decode(errors="replace"))
            self._has_head, self._received = True, rest
            return b"".join(self._opening())
        for payload in self._payloads():
            messages = json.loads(payload)
            for message in messages if isinstance(messages, list) else (messages,):
                self._take_message(message)
        return b"" if self._num_open else None

    def _opening(self) -> Iterator[bytes]:
        yield _frame({"t": "hello", "v": 1})
        for number, stream in enumerate(self._streams, 1):
            self._tally.ask(stream)
            yield _frame({"t": "open", "s": number, "kind": "generate", "body": self._load.body})

    def _take_message(self, message: dict[str, Any]) -> None:
        kind = message["t"]
        if kind == "delta":
            self._tally.take(self._streams[message["s"] - 1], len(message.get("ids") or ()))
        elif kind == "error":
            self._num_open -= 1
            self._tally.fail(self._streams[message.get("s", 1) - 1], str(message))
        elif kind == "end":
            self._num_open -= 1
            self._tally.end(self._streams[message["s"] - 1])

    def _payloads(self) -> Iterator[bytes]:
        received, start, parts = self._received, 0, b""
        while len(received) >= start + 2:
            size, begin = received[start + 1], start + 2
            if size >= 126:
                width = 2 if size == 126 else 8
                size, begin = int.from_bytes(received[begin : begin + width], "big"), begin + width
            if len(received) < begin + size:
                break
            opcode, start = received[start], begin + size
            if opcode & 0x0F in (0, 1):
                parts += received[begin:start]
                if opcode & 0x80:
                    yield parts
                    parts = b""
        del received[:start]


def _frame(message: dict[str, Any]) -> bytes:
    payload = json.dumps(message).encode()
    size = bytes([0x80 | len(payload)]) if len(payload) < 126 else b"\xfe" + len(payload).to_bytes(2, "big")
    return b"\x81" + size + bytes(4) + payload  # a mask of zeros


def channels_of(load: Load, tally: Tally) -> list[Channel]:
    """The connections of a load."""
    if load.url.startswith("http"):
        return [SseChannel(load, stream, tally) for stream in range(load.num_streams)]
    starts = range(0, load.num_streams, load.streams_a_socket)
    return [
        SocketChannel(load, range(start, min(start + load.streams_a_socket, load.num_streams)), tally)
        for start in starts
    ]


def drive(url: str, channels: Sequence[Channel]) -> int:
    """Connect to a server and carry out what the channels say; returns how many were not done in time."""
    parts = urlsplit(url)
    poll, open_sockets = select.epoll(), dict[int, tuple[socket.socket, Channel]]()
    for channel in channels:
        connection = socket.create_connection((parts.hostname, parts.port), timeout=30.0)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        open_sockets[connection.fileno()] = connection, channel
        poll.register(connection, select.EPOLLIN)
        connection.sendall(channel.begin())
    deadline = time.monotonic() + _TIMEOUT_S
    while open_sockets and time.monotonic() < deadline:
        for number, _ in poll.poll(1.0):
            connection, channel = open_sockets[number]
            answer = channel.take(connection.recv(_RECEIVE_BYTES))
            if answer is None:
                del open_sockets[number]
                poll.unregister(connection)
                connection.close()
            elif answer:
                connection.sendall(answer)
    return len(open_sockets)


def run_here(load: Load) -> Report:
    """Run a load in this process."""
    tally = Tally(load)
    num_late = drive(load.url, channels_of(load, tally))
    tally.report.failures += ["no end in time"] * num_late
    return tally.report


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asdict(run_here(Load(**json.load(sys.stdin))))))
