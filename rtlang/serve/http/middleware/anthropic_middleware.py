"""ASGI middleware for requests of the Messages API: errors in its envelope, and the id of the request in the header `request-id`.

A request is one of that API by its path, or by the header `anthropic-version`. Everything that may refuse it stands below this middleware,
access control included, so that clients always get the errors that they know.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rtlang.serve.anthropic.errors import message_error
from rtlang.serve.anthropic.models import ANTHROPIC_VERSION
from rtlang.serve.http.errors import error_shape
from rtlang.serve.records.request_record import request_id

MESSAGES = "/v1/messages"
"""The path of the API, and the beginning of its other paths."""
_VERSION = ANTHROPIC_VERSION.encode()


class AnthropicMiddleware:
    """Passes each request on, with errors and headers as its API has them."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _is_anthropic(scope):
            await self.app(scope, receive, send)
            return

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start" and (found := request_id()) is not None:
                message["headers"] = [*message.get("headers", ()), (b"request-id", found.encode("ascii"))]
            await send(message)

        token = error_shape.set(message_error)
        try:
            await self.app(scope, receive, send_with_id)
        finally:
            error_shape.reset(token)


def _is_anthropic(scope: Scope) -> bool:
    path: str = scope["path"]
    return path == MESSAGES or path.startswith(f"{MESSAGES}/") or any(name == _VERSION for name, _ in scope["headers"])
