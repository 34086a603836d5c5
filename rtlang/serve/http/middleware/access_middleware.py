"""ASGI middleware that enforces the checks of `serve.access` before any route runs.

`/health` and `/ready` need no key, so that probes can use them, nor do the page at `/`, which asks for the key, and the JavaScript client
at `/rtlang.js`. All other paths need the API key if one is configured, unknown paths included. A server on loopback answers only loopback
host names, and a browser only if its page is the server's own or its origin is allowed: otherwise any web page could make the browser post
requests to a server on loopback. Pages of an allowed origin may read the answers (CORS). Handlers get the principal of the key by
`principal_of`.
"""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rtlang.contract.config import ServeConfig
from rtlang.contract.runs.principal import Principal
from rtlang.serve.http.errors import error_response
from rtlang.serve.network.access import host_is_allowed, is_own_page, origin_is_allowed, request_key
from rtlang.serve.network.key_table import KeyTable
from rtlang.serve.records.request_record import current_record

OPEN_PATHS = frozenset({"/", "/rtlang.js", "/health", "/ready"})
_PREFLIGHT = {
    "access-control-allow-methods": "GET, POST, DELETE",
    "access-control-allow-headers": "authorization, x-api-key, content-type, last-event-id, *",
    "access-control-max-age": "600",
}


def principal_of(request: Request) -> Principal:
    """The principal of the key of a request, on a path that needs a key."""
    principal: Principal = request.state.principal
    return principal


class AccessMiddleware:
    """Answers requests that are not allowed; passes the others on."""

    def __init__(self, app: ASGIApp, config: ServeConfig, keys: KeyTable) -> None:
        self.app, self.config, self.keys = app, config, keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self.app
        if scope["type"] == "http":
            headers, address = Request(scope).headers, (scope.get("client") or ("",))[0]
            key = request_key(headers.get("authorization"), headers.get("x-api-key"))
            principal = self.keys.principal_of(key, client=f"http {address}"[:64])
            scope.setdefault("state", {})["principal"] = principal
            if (record := current_record.get()) is not None:
                record.identify(None if principal is None else principal.name)
            is_own = is_own_page(headers.get("origin"), headers.get("host"))
            if not host_is_allowed(self.config, ", ".join(headers.getlist("host"))):
                app = error_response(403, "this Host header is not allowed", code="host")
            elif not (is_own or origin_is_allowed(self.config, headers.get("origin"))):
                app = error_response(403, "pages of this origin may not use the server", code="origin")
            elif scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
                app = Response(status_code=204, headers=_PREFLIGHT)
            elif scope["path"] not in OPEN_PATHS and principal is None:
                app = error_response(
                    401,
                    "the API key is missing or wrong",
                    code="invalid_api_key",
                    headers={"www-authenticate": "Bearer"},
                )
            if "origin" in headers and not is_own:
                send = _readable(send, headers["origin"])
        await app(scope, receive, send)


def _readable(send: Send, origin: str) -> Send:
    """A `send` that lets pages of the origin read the response."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] != 403:
            headers = MutableHeaders(raw=list(message.get("headers", ())))
            headers["access-control-allow-origin"] = origin
            headers["access-control-expose-headers"] = "x-request-id, request-id"
            headers.add_vary_header("origin")
            message = {**message, "headers": headers.raw}
        await send(message)

    return send_with_headers
