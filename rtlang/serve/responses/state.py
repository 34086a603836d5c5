"""The state of `/v1/responses` of one server, shared by its HTTP routes and its WebSocket mode."""

from __future__ import annotations

from rtlang.serve.responses.conversations import ConversationStore
from rtlang.serve.responses.sealing import Sealer
from rtlang.serve.responses.store import ResponseStore


class ResponseState:
    """The state of the Responses API.

    Attributes:
        store: the responses that later requests may continue.
        connections: the last responses of connections of WebSocket mode that were not to be stored; only their connection finds them.
        conversations: the conversations that responses belong to.
        sealer: makes the opaque texts of thoughts and compactions.
    """

    def __init__(self) -> None:
        self.store, self.connections = ResponseStore(), ResponseStore()
        self.conversations = ConversationStore()
        self.sealer = Sealer()
