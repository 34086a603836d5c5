"""The state behind `/v1/responses` of one server, shared by its HTTP routes and its WebSocket mode."""

from __future__ import annotations

from rtlang.serve.responses.store import ResponseStore


class ResponseState:
    """The state of the Responses API.

    Attributes:
        store: the responses that later requests may continue.
    """

    def __init__(self) -> None:
        self.store = ResponseStore()
