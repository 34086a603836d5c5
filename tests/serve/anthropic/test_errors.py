"""Errors of the server in the envelope of the Messages API, by which its clients choose the exception."""

from __future__ import annotations

from rtlang.contract.errors import ContextLengthError, OverloadError, ParameterError
from rtlang.serve.anthropic.errors import message_error
from rtlang.serve.http.errors import described_error, draining_error


def test_each_status_has_the_type_that_clients_know() -> None:
    types = {
        400: "invalid_request_error",
        401: "authentication_error",
        403: "permission_error",
        404: "not_found_error",
        413: "request_too_large",
        429: "rate_limit_error",
        499: "invalid_request_error",
        500: "api_error",
        502: "api_error",
        504: "timeout_error",
    }
    for status, kind in types.items():
        made = message_error(status, {"error": {"message": "m", "type": "t", "param": None, "code": None}})
        assert made == (status, {"type": "error", "error": {"type": kind, "message": "m"}, "request_id": None})


def test_details_of_errors_are_kept() -> None:
    status, body = message_error(*described_error(ParameterError("top_p", 3, "expected a number from 0 to 1")))
    assert (status, body["error"]["param"], body["error"]["type"]) == (400, "top_p", "invalid_request_error")
    assert body["error"]["message"].startswith("top_p = 3")
    status, body = message_error(*described_error(ParameterError("thread", {"type": "create"}, "not supported")))
    assert (status, body["error"]["details"]) == (400, {"error_code": "thread_unsupported_request"})
    status, body = message_error(*described_error(OverloadError("full", 2.0)))
    assert (status, body["error"]["type"]) == (429, "rate_limit_error")
    status, body = message_error(*described_error(draining_error(3.0)))
    assert (status, body["error"]["type"]) == (529, "overloaded_error")


def test_a_prompt_that_is_too_long_is_told_in_the_words_that_agents_look_for() -> None:
    for error in (ContextLengthError(1366, 0, 1024), ContextLengthError(1366, 10, 1024)):
        status, body = message_error(*described_error(error))
        assert (status, body["error"]["message"]) == (400, "prompt is too long: 1366 tokens > 1024 maximum")
