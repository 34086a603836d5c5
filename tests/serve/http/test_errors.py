"""Error responses: status, shape, and that faults of the server show no internal text."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from rtlang.contract.errors import (
    AbortedError,
    ContextLengthError,
    DeadlineError,
    EngineDeadError,
    OverloadError,
    ParameterError,
    ProtocolError,
    RtlangError,
)
from rtlang.serve.http.errors import FaultMiddleware, HttpError, described_error, response_of


@pytest.mark.parametrize(
    ("error", "status", "kind", "code", "param"),
    [
        (ParameterError("top_p", 7, "at most 1"), 400, "invalid_request_error", "parameter", "top_p"),
        (ContextLengthError(9, 4, 8), 400, "invalid_request_error", "context_length_exceeded", None),
        (ProtocolError("no", param="n"), 400, "invalid_request_error", "protocol", "n"),
        (OverloadError("full", 1.5), 429, "rate_limit_error", "overload", None),
        (DeadlineError("late"), 504, "timeout_error", "deadline", None),
        (AbortedError("left"), 499, "invalid_request_error", "aborted", None),
        (
            HttpError(404, "no model", code="model_not_found", param="model"),
            404,
            "not_found_error",
            "model_not_found",
            "model",
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_an_error_has_a_status_a_type_and_a_code(
    error: Exception, status: int, kind: str, code: str, param: str | None
) -> None:
    found, body = described_error(error)
    assert found == status
    assert body["error"].items() >= {"type": kind, "code": code, "param": param}.items()
    assert body["error"]["message"]


@pytest.mark.parametrize(
    ("error", "status"),
    [(RtlangError("secret"), 500), (EngineDeadError("secret"), 503), (ZeroDivisionError("secret"), 500)],
)
def test_a_fault_of_the_server_is_logged_under_an_id_and_shows_nothing(
    error: Exception, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        found, body = described_error(error)
    assert (found, body["error"]["type"]) == (status, "server_error")
    assert "secret" not in json.dumps(body)
    assert body["error"]["id"] in body["error"]["message"]
    assert body["error"]["id"] in caplog.text
    assert "secret" in caplog.text


def test_a_refusal_under_load_says_when_to_retry() -> None:
    response = response_of(OverloadError("full", 1.2))
    assert (response.status_code, response.headers["retry-after"]) == (429, "2")


def run_app(app: Any) -> list[Message]:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    asyncio.run(FaultMiddleware(app)({"type": "http"}, receive, send))
    return sent


def test_a_handler_that_raises_is_a_500() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise KeyError("secret")

    start, body = run_app(app)
    assert start["status"] == 500
    assert b"secret" not in body["body"]


def test_a_client_that_leaves_within_its_body_is_no_fault(caplog: pytest.LogCaptureFixture) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await Request({"type": "http", "method": "POST", "headers": []}, receive).body()

    assert run_app(app) == []
    assert caplog.records == []


def test_a_handler_that_raises_after_the_start_ends_the_connection() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise KeyError("late")

    with pytest.raises(KeyError):
        run_app(app)
