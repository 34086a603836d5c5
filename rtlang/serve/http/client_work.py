"""Work for the client of an HTTP request, in fair turns with others; it is dropped when the client leaves."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TypeVar

from starlette.requests import ClientDisconnect, Request

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.serve.http.events.sse import disconnected
from rtlang.serve.http.middleware.access_middleware import principal_of
from rtlang.serve.service import StreamService
from rtlang.work.loop_work import INLINE_S

_T = TypeVar("_T")


async def run_for(
    request: Request,
    service: StreamService,
    price: float,
    fn: Callable[[], _T],
    *,
    kind: WorkKind,
    may_wait: bool = False,
    is_bounded: bool = True,
) -> _T:
    """The result of `fn`; see `LoopWork.run`. Only after the body of the request has been read.

    Raises:
        OverloadError: too much work of the client waits.
        ClientDisconnect: the client left before. Work that waits does not begin, and work that runs can find out (`is_unwanted`).
    """
    principal = principal_of(request)
    work = service.run(principal, price, fn, kind=kind, may_wait=may_wait, is_bounded=is_bounded)
    if price <= INLINE_S:
        return await work
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(disconnected(request.receive))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        leaving.cancel()
        if not working.done():
            working.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await working
