"""Error responses in the shape of the OpenAI API: {"error": {"message", "type", "param", "code"}}, or of another API (`error_shape`).

`code` is the stable code of the error, `type` follows from the status. A fault of the server (500, 503) is logged under a random id; the
response carries the id, as `id` and in the message, and no internal text.
"""

from __future__ import annotations

import logging
import math
import secrets
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rtlang.contract.errors import InternalError, OverloadError, RtlangError
from rtlang.protocol.event_codec import error_facts_to_wire
from rtlang.serve.records.request_record import note_code, request_id

logger = logging.getLogger(__name__)

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    429: "rate_limit_error",
    504: "timeout_error",
}
_CODES = {"context_length": "context_length_exceeded"}  # clients look for this one of the OpenAI API
_FAULTS = {
    500: "the server failed to process the request",
    502: "the server lost a connection that the request needs",
    503: "the engine is not available; try again later",
}


ErrorShape = Callable[[int, dict[str, Any]], tuple[int, dict[str, Any]]]
error_shape: ContextVar[ErrorShape | None] = ContextVar("error_shape", default=None)
"""Makes the status and the body of an error for the API of the current request, from those of the OpenAI API; None keeps them."""


class HttpError(Exception):
    """A request is refused with a status that no error of rtlang has, such as 404 for an unknown model.

    `retry_after` is in seconds.
    """

    def __init__(
        self, status: int, message: str, *, code: str, param: str | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.code, self.param = status, message, code, param
        self.retry_after = retry_after


def draining_error(retry_after: float) -> HttpError:
    """The error of a request for a graph while the server shuts down."""
    return HttpError(503, "the server is shutting down", code=OverloadError.code, retry_after=retry_after)


def error_body(
    status: int, message: str, *, code: str | None = None, param: str | None = None, **extra: Any
) -> dict[str, Any]:
    """The body of an error response, with the id of the present request."""
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    note_code(code)
    if (found := request_id()) is not None:
        extra["request_id"] = found
    return {"error": {"message": message, "type": kind, "param": param, "code": code} | extra}


def error_response(
    status: int,
    message: str,
    *,
    code: str | None = None,
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """An error response with this status."""
    return _shaped(status, error_body(status, message, code=code, param=param), headers)


def _shaped(status: int, body: dict[str, Any], headers: Mapping[str, str] | None) -> Response:
    shape = error_shape.get()
    status, body = (status, body) if shape is None else shape(status, body)
    return JSONResponse(body, status, headers)


def described_error(error: BaseException, param: str | None = None) -> tuple[int, dict[str, Any]]:
    """Status and body for an error. Server faults are logged.

    Args:
        param: the field of the request that the error is about, if the error does not name it itself.
    """
    if isinstance(error, HttpError):
        more = {} if error.retry_after is None else {"retry_after": error.retry_after}
        return error.status, error_body(error.status, error.message, code=error.code, param=error.param, **more)
    if not isinstance(error, RtlangError):
        return fault(500, error)
    facts = error_facts_to_wire(error)
    status, code = facts["status"], facts["code"]
    if status in _FAULTS and code != "overload":
        return fault(status, error)
    extra = {"retry_after": facts["retry_after"]} if "retry_after" in facts else {}
    return status, error_body(
        status, facts["message"], code=_CODES.get(code, code), param=param or facts.get("param"), **extra
    )


def fault(status: int, error: BaseException) -> tuple[int, dict[str, Any]]:
    """Status and body for a fault of the server, which is logged under the id in the body."""
    fault_id = error.id if isinstance(error, InternalError) else secrets.token_hex(8)
    logger.error(
        "fault %s: %s: %s", fault_id, type(error).__name__, error, exc_info=error, extra={"request_id": request_id()}
    )
    code = error.code if isinstance(error, RtlangError) else RtlangError.code
    return status, error_body(status, f"{_FAULTS[status]} (id {fault_id})", code=code, id=fault_id)


def response_of(error: BaseException, param: str | None = None) -> Response:
    """The response to a request that failed with `error`."""
    status, body = described_error(error, param)
    headers = retry_header(body["error"].get("retry_after"))
    if status == 413:
        headers["connection"] = "close"  # the rest of the body is not waited for
    return _shaped(status, body, headers)


def retry_header(retry_after: float | None) -> dict[str, str]:
    """The header `Retry-After`, in whole seconds; none without a time."""
    return {} if retry_after is None else {"retry-after": str(max(1, math.ceil(retry_after)))}


async def raised_error_response(request: Request, error: Exception) -> Response:
    """Exception handler for RtlangError and HttpError."""
    return response_of(error)


async def http_exception_response(request: Request, error: Exception) -> Response:
    """Exception handler for HTTPException, such as an unknown path or a method that is not allowed."""
    assert isinstance(error, HTTPException)
    message, code = error.detail, {404: "not_found", 405: "method_not_allowed"}.get(error.status_code)
    if error.status_code == 404:
        message = f"no route {request.method} {request.url.path[:200]}"
    return error_response(error.status_code, message, code=code, headers=error.headers)


class FaultMiddleware:
    """Answers a request whose handler raised with a 500. After the start of a response, the connection is closed instead."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_started = False

        async def noting_send(message: Message) -> None:
            nonlocal has_started
            has_started = True
            await send(message)

        try:
            await self.app(scope, receive, noting_send)
        except ClientDisconnect:
            return  # nobody waits for an answer
        except Exception as error:
            if has_started:
                raise
            await response_of(error)(scope, receive, send)
