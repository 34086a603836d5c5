"""A bare client of WebSocket mode: maps out, frames in, each read by the types of the official `openai` package."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from openai.types.responses.responses_server_event import ResponsesServerEvent
from pydantic import TypeAdapter
from websockets.sync.client import connect

TIMEOUT_S = 20.0
LAST = ("response.completed", "response.incomplete", "response.failed", "error")
_EVENTS: TypeAdapter[Any] = TypeAdapter(ResponsesServerEvent)


class ModeClient:
    """One connection. Use it as a context manager; `headers` go into the handshake."""

    def __init__(self, url: str, headers: Mapping[str, str] | None = None) -> None:
        self._connecting = connect(
            url + "/v1/responses",
            additional_headers=dict(headers or {}),
            proxy=None,
            max_size=None,
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

    def create(self, **body: Any) -> None:
        """Ask for a response."""
        self.send({"type": "response.create", "model": "default"} | body)

    def send(self, message: Any) -> None:
        """Send one message."""
        self.websocket.send(json.dumps(message))

    def receive(self) -> dict[str, Any]:
        """The next frame."""
        data = self.websocket.recv(TIMEOUT_S)
        assert isinstance(data, str)
        frame: dict[str, Any] = json.loads(data)
        _EVENTS.validate_python(frame)
        return frame

    def receive_end(self) -> list[dict[str, Any]]:
        """The frames up to the end of the next response, of which one only may run."""
        frames = [self.receive()]
        while frames[-1]["type"] not in LAST:
            frames.append(self.receive())
        return frames


def output_text(frame: Mapping[str, Any]) -> str:
    """The text of the response in a frame."""
    return "".join(part["text"] for item in frame["response"]["output"] for part in item.get("content", ()))
