"""The HTTP routes: `/health`, `/ready`, `/metrics` and `/version`.

`/health` and `/ready` need no key, so that probes can use them; the other routes need the API key if one is configured. A server on
loopback answers only loopback host names (access.py).
"""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from rtlang.contract import version
from rtlang.contract.config import ServeConfig
from rtlang.contract.metrics import CONTENT_TYPE
from rtlang.protocol.messages import VERSION
from rtlang.serve.access import bearer_key, host_is_allowed, key_is_valid
from rtlang.serve.service import StreamService

OPEN_PATHS = frozenset({"/health", "/ready"})


def create_app(service: StreamService) -> Starlette:
    """The ASGI application of a server."""

    async def health(request: Request) -> Response:
        return JSONResponse({"status": "alive"})

    async def ready(request: Request) -> Response:
        if service.is_draining:
            return JSONResponse({"status": "draining"}, status_code=503)
        if not service.target.is_alive:
            return JSONResponse({"status": "the engine has stopped"}, status_code=503)
        return JSONResponse({"status": "ready"})

    async def metrics(request: Request) -> Response:
        return Response(service.metrics.render(), headers={"content-type": CONTENT_TYPE})

    async def version_route(request: Request) -> Response:
        models = [dict(model) for model in service.server_info.models]
        return JSONResponse(
            {"version": version.VERSION, "protocol": VERSION, "epoch": service.server_info.epoch, "models": models}
        )

    routes = [
        Route("/health", health),
        Route("/ready", ready),
        Route("/metrics", metrics),
        Route("/version", version_route),
    ]
    return Starlette(routes=routes, middleware=[Middleware(AccessMiddleware, config=service.config)])


class AccessMiddleware:
    """ASGI middleware that enforces the checks of access.py before any route runs."""

    def __init__(self, app: ASGIApp, config: ServeConfig) -> None:
        self.app, self.config = app, config

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self.app
        if scope["type"] == "http":
            headers = Request(scope).headers
            if not host_is_allowed(self.config, ", ".join(headers.getlist("host"))):
                app = PlainTextResponse("This Host header is not allowed.\n", status_code=403)
            elif scope["path"] not in OPEN_PATHS and not key_is_valid(
                self.config, bearer_key(headers.get("authorization"))
            ):
                body = {"error": {"message": "the API key is missing or wrong", "code": "key"}}
                app = JSONResponse(body, status_code=401, headers={"www-authenticate": "Bearer"})
        await app(scope, receive, send)
