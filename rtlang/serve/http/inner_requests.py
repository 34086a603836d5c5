"""Requests that the server makes to its own routes for batches, without a connection.

The handlers of the routes run as for a request over HTTP, so both have the same checks, errors, records and limits. Access was checked when
the batch was made; the principal comes with the request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import Message, Receive, Scope, Send

from rtlang.contract.errors import RtlangError
from rtlang.contract.runs.principal import Principal
from rtlang.serve.batch.batch_lines import LineResult
from rtlang.serve.http.errors import FaultMiddleware, HttpError, response_of
from rtlang.serve.http.middleware.request_middleware import RequestMiddleware
from rtlang.serve.records.request_record import REQUEST_ID, RequestRecords, current_record


class InnerRequests:
    """Calls the routes of an application.

    Args:
        routes: of the application.
    """

    def __init__(self, records: RequestRecords, routes: Sequence[BaseRoute]) -> None:
        plain = [route for route in routes if isinstance(route, Route)]
        self._endpoints = {route.path: route.endpoint for route in plain if "POST" in (route.methods or ())}
        self._app = RequestMiddleware(FaultMiddleware(self._answer), records, plain)

    def has(self, path: str) -> bool:
        """Whether a POST request to a path has a route."""
        return path in self._endpoints

    async def post(self, principal: Principal, url: str, body: bytes, request_id: str) -> LineResult:
        """The response to a POST request with JSON. Cancelling the task cancels the request, as if its client left."""
        parts: list[bytes] = []
        status, retry_after_s, found_id = 500, None, request_id
        is_read = False

        async def receive() -> Message:
            nonlocal is_read
            if not is_read:
                is_read = True
                return {"type": "http.request", "body": body, "more_body": False}
            await asyncio.get_running_loop().create_future()  # the client never leaves
            raise AssertionError

        async def send(message: Message) -> None:
            nonlocal status, retry_after_s, found_id
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = {
                    name.decode("latin-1").lower(): value.decode("latin-1") for name, value in message["headers"]
                }
                found_id = headers.get(REQUEST_ID, found_id)
                retry_after_s = float(headers["retry-after"]) if "retry-after" in headers else None
            else:
                parts.append(message.get("body", b""))

        scope: Scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": url,
            "raw_path": url.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [
                (b"content-type", b"application/json"),
                (b"content-length", str(len(body)).encode()),
                (REQUEST_ID.encode(), request_id.encode()),
            ],
            "client": None,
            "server": None,
            "state": {"principal": principal},
        }
        await self._app(scope, receive, send)
        return LineResult(status, found_id, b"".join(parts), retry_after_s)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (record := current_record.get()) is not None:
            record.identify(scope["state"]["principal"].name)
        endpoint = scope["endpoint"] = self._endpoints[scope["path"]]
        try:
            response = await endpoint(Request(scope, receive))
        except (RtlangError, HttpError) as error:
            response = response_of(error)
        await response(scope, receive, send)
