"""`/v1/responses`: create, stream, read, cancel and delete responses, list their input, count tokens, and compact conversations.

A response is stored in bounded memory unless the request says `store: false`. A later request may continue it for as long as it is kept;
after that, and after a restart of the server, its id is unknown and the request is refused.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.contract.errors import ParameterError
from rtlang.contract.runs.principal import Principal
from rtlang.serve.http.background_responses import BackgroundRun, BackgroundRuns
from rtlang.serve.http.body import read_map, reading_price
from rtlang.serve.http.client_work import run_for
from rtlang.serve.http.errors import HttpError
from rtlang.serve.http.events.sse import DONE, SseResponse, sse_event, unless_disconnected
from rtlang.serve.http.mcp_rounds import McpRounds, open_rounds
from rtlang.serve.http.middleware.access_middleware import principal_of
from rtlang.serve.http.response_turn import ResponseTurn, WorkRunner, open_turn, read_turn, stored_response
from rtlang.serve.http.routes.openai import respond
from rtlang.serve.http.text_models import needed_text_service
from rtlang.serve.json_parts import json_bytes
from rtlang.serve.records.request_record import CLIENT_CLOSED
from rtlang.serve.responses import request_body
from rtlang.serve.responses.conversations import item_page
from rtlang.serve.responses.input_items import TRIGGER
from rtlang.serve.responses.mcp_tools import has_mcp_tools
from rtlang.serve.responses.output_events import Chunk
from rtlang.serve.responses.request_body import COMPACT_FIELDS, COUNT_FIELDS, without_metadata
from rtlang.serve.responses.store import StoredResponse
from rtlang.serve.service import StreamService
from rtlang.work.prices import REPLY_S_PER_CHAR

_T = TypeVar("_T")

TABLES = {
    "POST /v1/responses": request_body.FIELDS,
    "POST /v1/responses/input_tokens": request_body.COUNT_FIELDS,
    "POST /v1/responses/compact": request_body.COMPACT_FIELDS,
}
"""The fields of the bodies, by method and path."""


def routes(service: StreamService) -> list[Route]:
    """The routes of a server."""
    group = _ResponseRoutes(service)
    return [
        Route("/v1/responses", group.create, methods=["POST"]),
        Route("/v1/responses/input_tokens", group.count, methods=["POST"]),
        Route("/v1/responses/compact", group.compact, methods=["POST"]),
        Route("/v1/responses/{id}", group.read, methods=["GET"]),
        Route("/v1/responses/{id}", group.delete, methods=["DELETE"]),
        Route("/v1/responses/{id}/cancel", group.cancel, methods=["POST"]),
        Route("/v1/responses/{id}/input_items", group.input_items, methods=["GET"]),
    ]


class _ResponseRoutes:
    def __init__(self, service: StreamService) -> None:
        self._service, self._store = service, service.responses.store
        self._runs = BackgroundRuns(service)

    async def create(self, request: Request) -> Response:
        service, principal = self._service, principal_of(request)
        body = await read_map(request, service)
        asks = partial(has_mcp_tools, body)
        if await run_for(request, service, reading_price(request), asks, kind=WorkKind.READ, may_wait=True):
            return await self._in_rounds(request, body, principal)
        turn = await open_turn(service, body, principal, work_of(request, service), request.state.num_body_bytes)
        if turn.is_background:
            run, queued = await self._runs.start(turn, principal)
            if turn.asked.is_stream:
                return _streamed(run, -1)
            return await self._sent(request, queued, turn.given.num_bytes)

        def failed(error: BaseException) -> list[bytes]:
            return [sse_event(turn.failure(error), event="response.failed")]

        heading_s = turn.given.heading_s
        return await respond(request, service, turn.asked, turn.writer, turn.tokens, failed, heading_s=heading_s)

    async def read(self, request: Request) -> Response:
        principal, response_id = principal_of(request), request.path_params["id"]
        run, query = self._runs.get(principal, response_id), request.query_params
        if _flag(query.get("stream", "false"), "stream"):
            after = query.get("starting_after", "-1")
            if not after.removeprefix("-").isdecimal() or len(after) > 12 or int(after) < -1:
                raise ParameterError("starting_after", after, "expected the number of an event")
            if run is None:
                stored_response(self._service, principal, response_id, 404)
                message = "only a response that was created with background = true can be streamed again"
                raise HttpError(400, message, code="not_streamable", param="stream")
            return _streamed(run, int(after))
        if run is not None and run.is_running:
            return await self._sent(request, run.response(), run.response_bytes)
        found = stored_response(self._service, principal, response_id, 404)
        return await self._sent(request, found.response, found.num_bytes)

    async def delete(self, request: Request) -> Response:
        principal, response_id = principal_of(request), request.path_params["id"]
        stored_response(self._service, principal, response_id, 404)
        run = self._runs.get(principal, response_id)
        if run is not None:
            await run.cancel()
            self._runs.forget(principal, response_id)
        self._store.remove(principal.name, response_id)
        return JSONResponse({"id": response_id, "object": "response", "deleted": True})

    async def cancel(self, request: Request) -> Response:
        principal, response_id = principal_of(request), request.path_params["id"]
        run = self._runs.get(principal, response_id)
        if run is not None:
            await run.cancel()
        found = stored_response(self._service, principal, response_id, 404)
        if run is None and not found.response["background"]:
            message = "only a response that was created with background = true can be cancelled"
            raise HttpError(400, message, code="not_cancellable", param="id")
        return await self._sent(request, found.response, found.num_bytes)

    async def input_items(self, request: Request) -> Response:
        found = stored_response(self._service, principal_of(request), request.path_params["id"], 404)
        query = dict(request.query_params)
        write = partial(_page_bytes, found, query)
        data = await run_for(request, self._service, found.num_bytes * REPLY_S_PER_CHAR, write, kind=WorkKind.REPLY)
        return Response(data, media_type="application/json")

    async def count(self, request: Request) -> Response:
        service, principal = self._service, principal_of(request)
        body = await read_map(request, service)
        needed_text_service(service, "input", principal)
        turn = await read_turn(
            service, body, principal, work_of(request, service), request.state.num_body_bytes, fields=COUNT_FIELDS
        )
        return JSONResponse({"object": "response.input_tokens", "input_tokens": turn.num_tokens})

    async def compact(self, request: Request) -> Response:
        service, principal = self._service, principal_of(request)
        body = await read_map(request, service)
        given = COMPACT_FIELDS.given(without_metadata(body)) | {"store": False}
        work, num_bytes = work_of(request, service), request.state.num_body_bytes
        turn = await open_turn(service, given, principal, work, num_bytes, more_input=[{"type": TRIGGER}])
        response = await unless_disconnected(request, self._whole(turn, principal))
        if response is None:
            return Response(status_code=CLIENT_CLOSED)
        made = {name: response[name] for name in ("id", "created_at", "output", "usage")}
        size = sum(len(item["encrypted_content"]) for item in response["output"])
        return await self._sent(request, made | {"object": "response.compaction"}, size)

    async def _in_rounds(self, request: Request, body: dict[str, Any], principal: Principal) -> Response:
        service = self._service
        if body.get("background"):
            raise ParameterError("background", True, "not together with tools of type mcp")
        work, num_bytes = work_of(request, service), request.state.num_body_bytes
        rounds = await open_rounds(service, body, principal, work, num_bytes)

        def failed(error: BaseException) -> list[bytes]:
            return [sse_event(rounds.failure(error), event="response.failed")]

        if rounds.first.asked.is_stream:
            return SseResponse(_encoded_rounds(service, principal, rounds), on_error=failed)
        response = await unless_disconnected(request, _last_response(rounds.chunks()))
        if response is None:
            return Response(status_code=CLIENT_CLOSED)
        return await self._sent(request, response, rounds.num_bytes)

    async def _whole(self, turn: ResponseTurn, principal: Principal) -> dict[str, Any]:
        """The response of a turn when it has ended."""
        return await _last_response(turn.chunks(self._service, principal))

    async def _sent(self, request: Request, response: dict[str, Any], num_bytes: int) -> Response:
        write, price = partial(json_bytes, response), num_bytes * REPLY_S_PER_CHAR
        data = await run_for(request, self._service, price, write, kind=WorkKind.REPLY)
        return Response(data, media_type="application/json")


def work_of(request: Request, service: StreamService) -> WorkRunner:
    """Runs work for the client of a request."""

    def run(price: float, fn: Callable[[], _T], *, kind: WorkKind, may_wait: bool = False) -> Awaitable[_T]:
        return run_for(request, service, price, fn, kind=kind, may_wait=may_wait)

    return run


async def _last_response(chunks: AsyncGenerator[list[Chunk], None]) -> dict[str, Any]:
    """The response in the last event of a stream."""
    found: dict[str, Any] = {}
    async with contextlib.aclosing(chunks) as groups:
        async for group in groups:
            found = group[-1].get("response", found)
    return found


async def _encoded_rounds(
    service: StreamService, principal: Principal, rounds: McpRounds
) -> AsyncGenerator[Sequence[bytes], None]:
    async with contextlib.aclosing(rounds.chunks()) as groups:
        async for group in groups:
            write = partial(_encoded, group)
            yield await service.encode(principal, (), write, more_s=rounds.price_of(group))
    yield (DONE,)


def _encoded(group: Sequence[Chunk]) -> list[bytes]:
    return [sse_event(chunk, event=chunk["type"]) for chunk in group]


def _streamed(run: BackgroundRun, after: int) -> Response:
    return SseResponse(run.stream(after))


def _flag(value: str, name: str) -> bool:
    if value not in ("true", "false", "1", "0"):
        raise ParameterError(name, value, "expected true or false")
    return value in ("true", "1")


def _page_bytes(found: StoredResponse, query: dict[str, str]) -> bytes:
    return json_bytes(item_page(found.items[: found.num_input], query))
