"""`/v1/responses`: create, stream, read and delete responses; continue one by `previous_response_id`.

A response is stored in bounded memory unless the request says `store: false`. A later request may continue it for as long as it is kept;
after that, and after a restart of the server, its id is unknown and the request is refused.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.serve.http.access_middleware import principal_of
from rtlang.serve.http.body import read_map
from rtlang.serve.http.client_work import run_for
from rtlang.serve.http.response_turn import WorkRunner, open_turn, stored_response
from rtlang.serve.http.routes.openai import respond
from rtlang.serve.http.sse import sse_event
from rtlang.serve.json_parts import json_bytes
from rtlang.serve.service import StreamService
from rtlang.work.prices import REPLY_S_PER_CHAR

_T = TypeVar("_T")


def routes(service: StreamService) -> list[Route]:
    """The routes of a server."""
    group = _ResponseRoutes(service)
    return [
        Route("/v1/responses", group.create, methods=["POST"]),
        Route("/v1/responses/{id}", group.read, methods=["GET"]),
        Route("/v1/responses/{id}", group.delete, methods=["DELETE"]),
    ]


class _ResponseRoutes:
    def __init__(self, service: StreamService) -> None:
        self._service, self._store = service, service.responses.store

    async def create(self, request: Request) -> Response:
        service, principal = self._service, principal_of(request)
        body = await read_map(request, service)
        turn = await open_turn(service, body, principal, _work_of(request, service), request.state.num_body_bytes)

        def failed(error: BaseException) -> list[bytes]:
            return [sse_event(turn.failure(error), event="response.failed")]

        return await respond(request, service, turn.asked, turn.writer, turn.tokens, failed)

    async def read(self, request: Request) -> Response:
        found = stored_response(self._service, principal_of(request), request.path_params["id"], 404)
        write, price = partial(json_bytes, found.response), found.num_bytes * REPLY_S_PER_CHAR
        data = await run_for(request, self._service, price, write, kind=WorkKind.REPLY)
        return Response(data, media_type="application/json")

    async def delete(self, request: Request) -> Response:
        principal, response_id = principal_of(request), request.path_params["id"]
        stored_response(self._service, principal, response_id, 404)
        self._store.remove(principal.name, response_id)
        return JSONResponse({"id": response_id, "object": "response", "deleted": True})


def _work_of(request: Request, service: StreamService) -> WorkRunner:
    """Runs work for the client of a request."""

    def run(price: float, fn: Callable[[], _T], *, kind: WorkKind, may_wait: bool = False) -> Awaitable[_T]:
        return run_for(request, service, price, fn, kind=kind, may_wait=may_wait)

    return run
