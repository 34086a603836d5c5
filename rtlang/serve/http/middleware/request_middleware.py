"""ASGI middleware around everything else: gives each HTTP request its record, and every answer its id.

The id is that of the header `X-Request-Id`, or made, and goes back in the header of the same name; a trace comes in by `traceparent` and
`tracestate`. The door is the method and the template of the path of the route, so that paths of clients become no labels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rtlang.serve.records.request_record import (
    REQUEST_ID,
    UNMATCHED,
    RequestRecord,
    RequestRecords,
    context_of,
    current_record,
)
from rtlang.work.work_account import request_work

_RECORD = "rtlang_record"
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"))


class RequestMiddleware:
    """Begins and ends the record of each request.

    Args:
        routes: of the application.
    """

    def __init__(self, app: ASGIApp, records: RequestRecords, routes: list[Route]) -> None:
        self.app, self.records = app, records
        self._templates: dict[Callable[..., object], str] = {route.endpoint: route.path for route in routes}
        self._paths = {route.path for route in routes}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        record = self.records.begin(context_of(headers.get, scope["method"][:16]), partial(self._door, scope))
        scope.setdefault("state", {})[_RECORD] = record
        status: int | None = None
        id_header = (REQUEST_ID.encode(), record.context.request_id.encode("ascii"))

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), id_header]
            await send(message)

        tokens = current_record.set(record), request_work.set(record.work)
        try:
            await self.app(scope, receive, send_with_id)
        finally:
            current_record.reset(tokens[0])
            request_work.reset(tokens[1])
            record.answer(status)

    def _door(self, scope: Scope) -> str:
        """The door of a request that was routed."""
        path, endpoint = scope["path"], scope.get("endpoint")
        template = path if path in self._paths else self._templates.get(endpoint) if endpoint else None
        method = scope["method"] if scope["method"] in _METHODS else "OTHER"
        return f"{method} {template or UNMATCHED}"


def record_of(scope: Mapping[str, Any]) -> RequestRecord | None:
    """The record of the HTTP request of a scope; None before the application has it."""
    record: RequestRecord | None = scope.get("state", {}).get(_RECORD)
    return record
