"""`/v1/batches`: create, read, list and cancel batches of requests in a file; see `rtlang.serve.batch.batches`."""

from __future__ import annotations

import time

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.serve.batch import batch_record
from rtlang.serve.batch.batch_lines import ENDPOINTS
from rtlang.serve.batch.batch_record import Batch, read_batch
from rtlang.serve.batch.batches import Batches
from rtlang.serve.http.body import read_map
from rtlang.serve.http.client_work import run_for
from rtlang.serve.http.errors import HttpError, draining_error
from rtlang.serve.http.inner_requests import InnerRequests
from rtlang.serve.http.middleware.access_middleware import principal_of
from rtlang.serve.http.routes.files import LIST_S, file_store, listed, page_of
from rtlang.serve.openai.fields import FieldTable
from rtlang.serve.service import StreamService

FIELDS = FieldTable(accepted=frozenset(("limit", "after")), hints=frozenset())
"""The query of `GET /v1/batches`."""
_DEFAULT_LIMIT, _MAX_LIMIT = 20, 100

TABLES = {
    "POST /v1/batches": batch_record.FIELDS,
}
"""The fields of the bodies, by method and path."""


def routes(service: StreamService) -> list[Route]:
    """The routes of a server."""
    group = _BatchRoutes(service)
    service.at_start.append(group.begin)
    return [
        Route("/v1/batches", group.create, methods=["POST"]),
        Route("/v1/batches", group.list, methods=["GET"]),
        Route("/v1/batches/{id}", group.read, methods=["GET"]),
        Route("/v1/batches/{id}/cancel", group.cancel, methods=["POST"]),
    ]


class _BatchRoutes:
    def __init__(self, service: StreamService) -> None:
        self._service = service
        self._batches: Batches | None = None

    def begin(self) -> None:
        """Go on with the batches of an earlier process."""
        self._begun().resume()

    def _begun(self) -> Batches:
        if self._batches is None:
            service = self._service
            inner = InnerRequests(service.records, service.routes)
            endpoints = tuple(path for path in ENDPOINTS if inner.has(path))
            store, max_bytes = file_store(service), service.config.max_frame_bytes
            self._batches = Batches(service, store, inner.post, endpoints, max_bytes)
            service.http_streams.add(self._batches)
        return self._batches

    async def create(self, request: Request) -> Response:
        service, principal = self._service, principal_of(request)
        if service.is_draining:
            raise draining_error(service.config.drain_timeout_s)
        batches = self._begun()
        batch = read_batch(await read_map(request, service), principal.name, batches.endpoints, time.time())
        return JSONResponse((await batches.create(principal, batch)).to_object())

    async def list(self, request: Request) -> Response:
        query = FIELDS.given(request.query_params)
        found = self._begun().batches_of(principal_of(request).name)

        def write() -> Response:  # on a thread: a hundred batches may have a hundred errors each
            page, has_more = page_of(found, [each.batch_id for each in found], query, _DEFAULT_LIMIT, _MAX_LIMIT)
            return JSONResponse(listed([each.to_object() for each in page], has_more))

        return await run_for(request, self._service, LIST_S, write, kind=WorkKind.REPLY, may_wait=True)

    async def read(self, request: Request) -> Response:
        return JSONResponse(self._found(request).to_object())

    async def cancel(self, request: Request) -> Response:
        batch = self._found(request)
        await self._begun().cancel(batch)
        return JSONResponse(batch.to_object())

    def _found(self, request: Request) -> Batch:
        batch_id = request.path_params["id"]
        found = self._begun().get(principal_of(request).name, batch_id)
        if found is None:
            raise HttpError(404, f"there is no batch {batch_id[:80]!r}", code="not_found", param="id")
        return found
