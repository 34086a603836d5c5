"""ASGI middleware that enforces the checks of `serve.access` before any route runs.

`/health` and `/ready` need no key, so that probes can use them, nor do the page at `/`, which asks for the key, and the JavaScript client
at `/rtlang.js`. All other paths need the API key if one is configured, unknown paths included. A server on loopback answers only loopback
host names, and a browser only if its page's origin is allowed: otherwise any web page could make the browser post requests to a server on
loopback. Handlers find the principal of the key in `request.state.principal`.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from rtlang.contract.config import ServeConfig
from rtlang.serve.access import bearer_key, host_is_allowed, origin_is_allowed
from rtlang.serve.http.errors import error_response
from rtlang.serve.key_table import KeyTable

OPEN_PATHS = frozenset({"/", "/rtlang.js", "/health", "/ready"})


class AccessMiddleware:
    """Answers requests that are not allowed; passes the others on."""

    def __init__(self, app: ASGIApp, config: ServeConfig, keys: KeyTable) -> None:
        self.app, self.config, self.keys = app, config, keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self.app
        if scope["type"] == "http":
            headers, address = Request(scope).headers, (scope.get("client") or ("",))[0]
            principal = self.keys.principal_of(bearer_key(headers.get("authorization")), client=f"http {address}"[:64])
            scope.setdefault("state", {})["principal"] = principal
            if not host_is_allowed(self.config, ", ".join(headers.getlist("host"))):
                app = PlainTextResponse("This Host header is not allowed.\n", status_code=403)
            elif not origin_is_allowed(self.config, headers.get("origin")):
                app = error_response(403, "pages of this origin may not use the server", code="origin")
            elif scope["path"] not in OPEN_PATHS and principal is None:
                app = error_response(
                    401,
                    "the API key is missing or wrong",
                    code="invalid_api_key",
                    headers={"www-authenticate": "Bearer"},
                )
        await app(scope, receive, send)
