"""A bare client of `rtlang.v1` over a real socket: maps out, maps in. Knows nothing of the runtime's own client."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import msgpack
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from websockets.typing import Subprotocol

MSGPACK, JSON = "rtlang.v1.msgpack", "rtlang.v1.json"
TIMEOUT_S = 20.0


class WireClient:
    """One connection. Use it as a context manager; `headers` go into the handshake."""

    def __init__(
        self,
        url: str,
        subprotocol: str | None = MSGPACK,
        *,
        headers: Mapping[str, str] | None = None,
        path: str = "/v1/stream",
    ) -> None:
        self.is_text = subprotocol == JSON
        self._pending: list[dict[str, Any]] = []
        self._connecting = connect(
            url + path,
            subprotocols=None if subprotocol is None else [Subprotocol(subprotocol)],
            additional_headers=dict(headers or {}),
            compression=None,
            proxy=None,
            max_size=None,
            max_queue=4,
            open_timeout=TIMEOUT_S,
            close_timeout=1,
        )

    def __enter__(self) -> Self:
        self.websocket = self._connecting.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connecting.__exit__(kind, error, trace)

    def send(self, **message: Any) -> None:
        """Send one map."""
        self.send_raw(json.dumps(message) if self.is_text else msgpack.packb(message))

    def send_raw(self, data: str | bytes) -> None:
        """Send a whole message as it is."""
        self.websocket.send(data)

    def receive(self) -> dict[str, Any]:
        """The next map."""
        while not self._pending:
            data = self.websocket.recv(TIMEOUT_S)
            value = json.loads(data) if self.is_text else msgpack.unpackb(data)
            self._pending = value if isinstance(value, list) else [value]
        return self._pending.pop(0)

    def greet(self, **fields: Any) -> dict[str, Any]:
        """Say hello; the answer."""
        self.send(t="hello", v=1, **fields)
        return self.receive()

    def receive_end(self, stream: int) -> list[dict[str, Any]]:
        """Everything up to the end of a stream."""
        messages = []
        while not messages or messages[-1]["t"] != "end" or messages[-1]["s"] != stream:
            messages.append(self.receive())
        return messages

    def close_code(self) -> tuple[int, list[dict[str, Any]]]:
        """Read until the server closes; its code, and what it said before."""
        messages: list[dict[str, Any]] = []
        with contextlib.suppress(ConnectionClosed):
            while True:
                messages.append(self.receive())
        code = self.websocket.close_code
        assert code not in (None, 1006), "the connection broke without a close frame"
        return code, messages
