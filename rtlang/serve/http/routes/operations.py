"""The routes for operators: `/health`, `/ready`, `/metrics`, `/version` and `/v1/fleet`."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rtlang.contract import version
from rtlang.contract.accounts.request_account import WorkKind
from rtlang.contract.service.fleet_report import ReportsFleet, plain_fleet_report
from rtlang.contract.service.metrics import CONTENT_TYPE
from rtlang.protocol.messages import VERSION
from rtlang.serve.http.client_work import run_for
from rtlang.serve.http.errors import HttpError, retry_header
from rtlang.serve.http.middleware.access_middleware import principal_of
from rtlang.serve.service import StreamService
from rtlang.work.prices import CALL_S

READY = "ready"


def routes(service: StreamService) -> list[Route]:
    """The routes of a server."""

    async def health(request: Request) -> Response:
        if not service.target.is_alive:
            return JSONResponse({"status": "the engine has stopped"}, status_code=503)
        return JSONResponse({"status": "alive"})

    async def ready(request: Request) -> Response:
        if service.is_draining:
            return JSONResponse({"status": "draining"}, 503, retry_header(service.config.drain_timeout_s))
        if not service.target.is_alive:
            return JSONResponse({"status": "the engine has stopped"}, status_code=503)
        state = str(getattr(service.target, "state", READY))
        return JSONResponse({"status": state}, status_code=200 if state == READY else 503)

    async def metrics(request: Request) -> Response:
        refresh = getattr(service.target, "refresh_metrics", None)
        if refresh is not None:  # the engine is in another process
            await run_for(request, service, CALL_S, refresh, kind=WorkKind.SNAPSHOT, may_wait=True)
        return Response(service.metrics.render_for(principal_of(request)), headers={"content-type": CONTENT_TYPE})

    async def version_route(request: Request) -> Response:
        models = [dict(model) for model in service.server_info.models]
        return JSONResponse(
            {"version": version.VERSION, "protocol": VERSION, "epoch": service.server_info.epoch, "models": models}
        )

    async def fleet(request: Request) -> Response:
        if not isinstance(service.target, ReportsFleet):
            raise HttpError(404, "this server runs one engine and no fleet", code="no_fleet")
        return JSONResponse(plain_fleet_report(service.target.fleet_report()))

    return [
        Route("/v1/fleet", fleet),
        Route("/health", health),
        Route("/ready", ready),
        Route("/metrics", metrics),
        Route("/version", version_route),
    ]
