"""Sends the requests of a case on connections of their own, and says how each one ended.

An end is a value, an error with a code, or wrong: no answer in time, a connection that breaks off, an error without a code, or one that
blames the server. Answers are read as they come and are not kept.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import msgpack
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from rtlang_bench.worst_cases.requests import Case, Frames, HttpRequest

LIMIT_S = 120.0
"""A request without an answer for so long hangs."""

MAX_MESSAGE_BYTES = 256 << 20
_TAIL = 100_000
_RUN_MESSAGE_BYTES = 8 << 20  # of larger ones, only the beginning is read
_BLAMES_SERVER = {"internal", "fault", "engine_dead", "connection", "model_load", "numerics", "request"}
_BLAMING = re.compile(rb'"e":"error"[^{}]*"code":"(internal|fault|engine_dead|numerics)"')
_CLOSES = {1000, 1001, 1002, 1003, 1007, 1009, 4400, 4401, 4406, 4408, 4409, 4429, 4503}


@dataclass(frozen=True, slots=True)
class Ending:
    """How a request ended.

    Attributes:
        text: "value", "left", "error CODE", "closed CODE", or what is wrong.
        is_wrong: whether an honest server would not have ended it so.
    """

    text: str
    is_wrong: bool = False


def send_case(url: str, key: str, case: Case) -> list[Ending]:
    """Send all requests of a case at once and wait for their ends."""
    if len(case.requests) == 1:
        return [_send(url, key, case.requests[0])]
    with ThreadPoolExecutor(len(case.requests)) as pool:
        return list(pool.map(lambda each: _send(url, key, each), case.requests))


def _send(url: str, key: str, request: HttpRequest | Frames) -> Ending:
    try:
        if isinstance(request, Frames):
            return _Conversation(url, key, request).held()
        return _HttpExchange(url, key).exchange(request)
    except TimeoutError:
        return Ending(f"no answer for {LIMIT_S:.0f} s", True)
    except (ConnectionError, EOFError) as error:
        return Ending(f"the connection broke off: {type(error).__name__} {error}", True)


class _HttpExchange:
    """One request over HTTP, and the actions on the graph that it starts."""

    def __init__(self, url: str, key: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self._address, self._key, self._url = (parts.hostname, parts.port), key, url

    def exchange(self, request: HttpRequest) -> Ending:
        until = time.monotonic() + LIMIT_S
        with socket.create_connection(self._address, LIMIT_S) as peer:
            body = request.body
            length = request.declared if request.declared is not None else len(body or b"")
            head = (
                f"{request.method} {request.path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self._key}\r\n"
            )
            head += f"Content-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
            is_cut = request.declared is not None and request.declared != len(body or b"")
            try:
                peer.sendall(head.encode() + (body or b""))
                if is_cut:
                    peer.shutdown(socket.SHUT_WR)
            except (BrokenPipeError, ConnectionResetError):
                pass  # the answer may have come before
            try:
                return self._answer(peer, request, until)
            except ConnectionError:
                if is_cut:
                    return Ending("left")
                raise

    def _answer(self, peer: socket.socket, request: HttpRequest, until: float) -> Ending:
        head, tail, size, has_acted, blamed = b"", b"", 0, not request.actions, None
        while True:
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            peer.settimeout(left)
            chunk = peer.recv(1 << 20)
            if not chunk:
                break
            size += len(chunk)
            head = head if len(head) > 10_000 else head + chunk
            blamed = blamed or _BLAMING.search(chunk)
            tail = (tail + chunk)[-_TAIL:]
            if not has_acted and (found := re.search(rb'"rid": ?"([0-9a-f]{32})"', head)):
                has_acted = True
                self._act(found[1].decode(), request)
            if request.leaves_after is not None and size >= request.leaves_after:
                return Ending("left")
        if blamed is not None:
            return Ending(f"error {blamed[1].decode()} of a node", True)
        if not head:
            is_cut = request.declared is not None
            return Ending("closed without an answer", not is_cut)
        return ending_of(head, tail)

    def _act(self, rid: str, request: HttpRequest) -> None:
        for action, body in request.actions:
            with contextlib.suppress(OSError):
                _HttpExchange(self._url, self._key).exchange(HttpRequest("POST", f"/v1/programs/{rid}/{action}", body))


def ending_of(head: bytes, tail: bytes) -> Ending:
    """The ending that an answer over HTTP tells.

    Args:
        head: the beginning of the answer, with its header.
        tail: its end; it may overlap.
    """
    line, _, rest = head.partition(b"\r\n")
    status = int(line.split()[1]) if line.startswith(b"HTTP/1.1 ") else 0
    if not status:
        return Ending(f"not HTTP: {line[:60]!r}", True)
    is_stream = b"text/event-stream" in rest.partition(b"\r\n\r\n")[0].lower()
    if status < 400:
        return _end_of_stream(tail) if is_stream else Ending("value")
    found = re.search(rb'"code": ?"([a-z_]+)"', tail)
    if found is None:
        return Ending(f"status {status} without a code", True)
    code = found[1].decode()
    is_wrong = status in (500, 502) or code in _BLAMES_SERVER
    return Ending(f"error {code} ({status})", is_wrong)


def _end_of_stream(tail: bytes) -> Ending:
    if b"0\r\n\r\n" not in tail[-8:] and not tail.endswith(b"\n\n"):
        return Ending("the stream broke off", True)
    last = tail.rpartition(b"event: end\ndata: ")[2] if b"event: end\ndata: " in tail else tail[-4_000:]
    found = re.search(rb'"code": ?"([a-z_]+)", ?"message"|"error": ?\{[^{}]*"code": ?"([a-z_]+)"', last)
    if found is None:
        return Ending("value")
    code = (found[1] or found[2]).decode()
    return Ending(f"error {code}", code in _BLAMES_SERVER)


class _Conversation:
    """One WebSocket: sends messages while it reads the answers, and answers calls."""

    def __init__(self, url: str, key: str, frames: Frames) -> None:
        self._url, self._key, self._frames = url, key, frames
        self._is_text = frames.subprotocol.endswith("json")
        self._open = {m["s"] for m in frames.messages if isinstance(m, dict) and m.get("t") in ("open", "attach")}
        self._codes: list[str] = []
        self._has_pong = False
        self._sending = threading.Lock()

    def held(self) -> Ending:
        """Hold the conversation until all streams have ended."""
        headers = {"Authorization": f"Bearer {self._key}"}
        try:
            with connect(
                self._url + "/v1/stream",
                subprotocols=[Subprotocol(self._frames.subprotocol)],
                additional_headers=headers,
                max_size=MAX_MESSAGE_BYTES,
                max_queue=None,  # it is read while a message is sent
                compression=None,
                open_timeout=LIMIT_S,
                close_timeout=1.0,
                ping_interval=None,
            ) as peer:
                return self._talk(peer)
        except InvalidHandshake as error:
            return Ending(f"no WebSocket: {error}", True)

    def _talk(self, peer: ClientConnection) -> Ending:
        watchdog = threading.Timer(LIMIT_S, self._cut, (peer,))
        watchdog.start()
        sender = threading.Thread(target=self._send, args=(peer,), daemon=True)
        sender.start()
        try:
            return self._read(peer)
        finally:
            watchdog.cancel()
            if sender.is_alive():  # it waits for a server that reads nothing
                self._cut(peer)
            sender.join()

    def _cut(self, peer: ClientConnection) -> None:
        self._codes.append("hang")
        with contextlib.suppress(OSError):
            peer.socket.shutdown(socket.SHUT_RDWR)

    def _pack(self, message: Any) -> str | bytes:
        if isinstance(message, bytes):
            return message.decode("latin-1") if self._is_text else message
        return json.dumps(message, ensure_ascii=False) if self._is_text else bytes(msgpack.packb(message, default=str))

    def _send(self, peer: ClientConnection) -> None:
        messages = [{"t": "hello", "v": 1}, *self._frames.messages]
        if not self._frames.leaves:
            messages.append({"t": "ping", "n": 4711})
        with contextlib.suppress(ConnectionClosed, OSError, OverflowError, UnicodeEncodeError):
            for message in messages:
                packed = self._pack(message)
                with self._sending:
                    peer.send(packed)
        if self._frames.leaves:
            with contextlib.suppress(OSError):
                peer.socket.shutdown(socket.SHUT_RDWR)

    def _read(self, peer: ClientConnection) -> Ending:
        try:
            while self._open or not self._has_pong:
                self._take(peer, peer.recv(decode=False))
        except ConnectionClosed as closed:
            if "hang" in self._codes:
                raise TimeoutError from None
            if self._frames.leaves:
                return Ending("left")
            code = closed.rcvd.code if closed.rcvd is not None else None
            if closed.sent is not None and closed.sent.code == 1009 and not closed.rcvd_then_sent:
                return Ending("a message above 256 MiB", True)
            return Ending(f"closed {code}", code not in _CLOSES)
        blamed = [code for code in self._codes if code in _BLAMES_SERVER]
        if blamed:
            return Ending(f"error {blamed[0]}", True)
        return Ending(f"error {self._codes[0]}" if self._codes else "value")

    def _take(self, peer: ClientConnection, data: bytes | str) -> None:
        packed = data.encode() if isinstance(data, str) else data
        if len(packed) > _RUN_MESSAGE_BYTES:
            beginning = bytes(packed[:60])
            if b'"t":"end"' in beginning or b"\xa1t\xa3end" in beginning:
                self._open.clear()  # only few streams have such results
            return
        found = json.loads(packed) if self._is_text else msgpack.unpackb(packed)
        for message in found if isinstance(found, list) else [found]:
            self._hear(peer, message)

    def _hear(self, peer: ClientConnection, message: dict[str, Any]) -> None:
        match message["t"]:
            case "end" | "error":
                if "code" in message:
                    self._codes.append(message["code"])
                if "q" not in message:
                    self._open.discard(message.get("s"))
            case "pong" if message.get("n") == 4711:
                self._has_pong = True
            case "event" if message.get("e") == "error":
                self._codes.append(message["code"])
            case "event" if message.get("e") == "call":
                answer = {"s": message["s"], "n": message["n"]}
                given = (
                    {"t": "reject", "code": "call", "message": "no"}
                    if self._frames.rejects
                    else {
                        "t": "resolve",
                        "value": self._frames.reply,
                    }
                )
                with contextlib.suppress(ConnectionClosed, OSError, OverflowError, UnicodeEncodeError), self._sending:
                    peer.send(self._pack(answer | given))
