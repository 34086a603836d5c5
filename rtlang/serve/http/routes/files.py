"""`/v1/files`: upload, list, read and delete files, for batches.

Files lie in the folder `files_dir` of the server, or in a temporary one; see `rtlang.serve.batch.file_store`.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Mapping
from functools import partial
from typing import Any, BinaryIO

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.contract.errors import ParameterError
from rtlang.contract.runs.principal import Principal
from rtlang.serve.batch.batch_record import read_expiry
from rtlang.serve.batch.file_store import MAX_FILE_BYTES, FileStore, FileWriter, StoredFile
from rtlang.serve.http.client_work import run_for
from rtlang.serve.http.errors import HttpError
from rtlang.serve.http.form_upload import FormUpload
from rtlang.serve.http.middleware.access_middleware import principal_of
from rtlang.serve.openai.fields import FieldTable
from rtlang.serve.service import StreamService

DISK_S = 0.01
"""Price of a job that waits for the disk."""
LIST_S = 0.05
"""Price of a page of a list, an estimate for the largest one."""
MAX_LIMIT = 10_000
"""Files of one page of a list."""
_FORM = FieldTable(
    accepted=frozenset(("purpose", "expires_after[anchor]", "expires_after[seconds]")),
    hints=frozenset(("user",)),
)
"""The fields of the form of an upload, besides `file`."""
FIELDS = FieldTable(accepted=frozenset(("limit", "after", "order", "purpose")), hints=frozenset())
"""The query of `GET /v1/files`."""
_PURPOSES = "'batch'; files for other purposes are of no use here"
_DEFAULT_EXPIRY_S = 30 * 86_400  # of a file for batches, as in the OpenAI API
_READ_BYTES = 256 << 10


def routes(service: StreamService) -> list[Route]:
    """The routes of a server."""
    group = _FileRoutes(service)
    return [
        Route("/v1/files", group.upload, methods=["POST"]),
        Route("/v1/files", group.list, methods=["GET"]),
        Route("/v1/files/{id}", group.read, methods=["GET"]),
        Route("/v1/files/{id}", group.delete, methods=["DELETE"]),
        Route("/v1/files/{id}/content", group.content, methods=["GET"]),
    ]


class _FileRoutes:
    def __init__(self, service: StreamService) -> None:
        self._service = service

    async def upload(self, request: Request) -> Response:
        service, principal, store = self._service, principal_of(request), file_store(self._service)
        writer = await _on_disk(service, principal, partial(store.begin, principal.name))
        form = FormUpload()
        try:
            limit = min(MAX_FILE_BYTES, service.config.files_bytes)
            await form.read(request, limit, writer.write, partial(_on_disk, service, principal))
            publish = partial(_published, store, principal.name, writer, form)
            stored = await _on_disk(service, principal, publish)
        except BaseException:
            with contextlib.suppress(RuntimeError):  # the server has stopped
                await _on_disk(service, principal, writer.drop)
            raise
        return JSONResponse(stored.to_object())

    async def list(self, request: Request) -> Response:
        query = FIELDS.given(request.query_params)
        owner, store = principal_of(request).name, file_store(self._service)
        order = query.get("order", "desc")
        if order not in ("asc", "desc"):
            raise ParameterError("order", order[:80], "expected asc or desc")

        def write() -> Response:
            found = [each for each in store.files(owner) if query.get("purpose", each.purpose) == each.purpose]
            if order == "desc":
                found.reverse()
            page, has_more = page_of(found, [each.file_id for each in found], query, MAX_LIMIT, MAX_LIMIT)
            return JSONResponse(listed([each.to_object() for each in page], has_more))

        return await run_for(request, self._service, LIST_S, write, kind=WorkKind.OTHER, may_wait=True)

    async def read(self, request: Request) -> Response:
        return JSONResponse((await self._found(request)).to_object())

    async def delete(self, request: Request) -> Response:
        found, owner, store = await self._found(request), principal_of(request).name, file_store(self._service)
        remove = partial(store.delete, owner, found.file_id)
        await run_for(request, self._service, DISK_S, remove, kind=WorkKind.OTHER, may_wait=True)
        return JSONResponse({"id": found.file_id, "object": "file", "deleted": True})

    async def content(self, request: Request) -> Response:
        found, principal, store = await self._found(request), principal_of(request), file_store(self._service)
        file = await _on_disk(self._service, principal, partial(store.read, principal.name, found.file_id))
        if file is None:
            raise _unknown(found.file_id)
        headers = {"content-length": str(found.num_bytes)}
        pieces = _pieces(self._service, principal, file)
        return StreamingResponse(pieces, headers=headers, media_type="application/octet-stream")

    async def _found(self, request: Request) -> StoredFile:
        owner, file_id, store = principal_of(request).name, request.path_params["id"], file_store(self._service)
        get = partial(store.get, owner, file_id)
        found = await run_for(request, self._service, DISK_S, get, kind=WorkKind.OTHER, may_wait=True)
        if found is None:
            raise _unknown(file_id)
        return found


def file_store(service: StreamService) -> FileStore:
    """The files of a server, opened at the first call."""
    if service.files is None:
        service.files = FileStore(service.config.files_dir, service.config.files_bytes)
        service.at_end.append(service.files.close)
    return service.files


def page_of(
    found: list[Any], ids: list[str], query: Mapping[str, str], default: int, most: int
) -> tuple[list[Any], bool]:
    """The page of a list that a query asks for by `limit` and `after`, and whether more follow.

    Raises:
        ParameterError: `limit` is invalid, or `after` is not in the list; names it.
    """
    text = query.get("limit", str(default))
    limit = int(text) if text.isascii() and text.isdecimal() and len(text) < 9 else 0
    if not 1 <= limit <= most:
        raise ParameterError("limit", text[:80], f"expected an integer from 1 to {most}")
    start = 0
    if "after" in query:
        if query["after"] not in ids:
            raise ParameterError("after", query["after"][:80], "expected an id of the list")
        start = ids.index(query["after"]) + 1
    return found[start : start + limit], start + limit < len(found)


def listed(data: list[dict[str, Any]], has_more: bool) -> dict[str, Any]:
    """A page as clients of the OpenAI API see it."""
    first, last = (data[0]["id"], data[-1]["id"]) if data else (None, None)
    return {"object": "list", "data": data, "first_id": first, "last_id": last, "has_more": has_more}


def _published(store: FileStore, owner: str, writer: FileWriter, form: FormUpload) -> StoredFile:
    """The file of a form that was read.

    Raises:
        ParameterError: a field is missing or invalid; names it.
    """
    given = _FORM.given(form.fields)
    if form.filename is None:
        raise ParameterError("file", None, "expected a file")
    if given.get("purpose") != "batch":
        raise ParameterError("purpose", given.get("purpose"), f"expected {_PURPOSES}")
    after_s = _DEFAULT_EXPIRY_S
    expiry = {name.removeprefix("expires_after[")[:-1]: value for name, value in given.items() if name != "purpose"}
    if expiry:
        after_s = read_expiry(expiry, "expires_after")
    return store.publish(owner, writer, form.filename, "batch", after_s)


async def _pieces(service: StreamService, principal: Principal, file: BinaryIO) -> AsyncGenerator[bytes, None]:
    try:
        while data := await _on_disk(service, principal, partial(file.read, _READ_BYTES)):
            yield data
    finally:
        file.close()


async def _on_disk(service: StreamService, principal: Principal, fn: Any) -> Any:
    """Work of an accepted request that waits for the disk."""
    return await service.run(principal, DISK_S, fn, kind=WorkKind.OTHER, may_wait=True, is_bounded=False)


def _unknown(file_id: str) -> HttpError:
    return HttpError(404, f"there is no file {file_id[:80]!r}", code="not_found", param="id")
