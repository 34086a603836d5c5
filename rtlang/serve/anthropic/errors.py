"""Errors in the envelope of the Messages API: {"type": "error", "error": {"type", "message"}, "request_id"}."""

from __future__ import annotations

import re
from typing import Any

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_OVERLOADED = 529
"""The status by which clients know that the server, not the request, is the reason, and that they may try again later."""
THREAD = "thread"
"""The field for a conversation that the server holds. The loops of tools in the official clients ask for it first, and send whole
conversations when the error has the code for it."""
_DETAILS = ("param", "code", "id")


def message_error(status: int, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """The status and the body of an error, from the status and the body in the OpenAI API."""
    status = _OVERLOADED if status == 503 else status
    given = body["error"]
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "api_error")
    message = given["message"]
    if given.get("code") == "context_length_exceeded":
        num_tokens, *_, limit = re.findall("[0-9]+", message)
        message = f"prompt is too long: {num_tokens} tokens > {limit} maximum"  # agents look for it, and compact
    details: dict[str, Any] = {name: given[name] for name in _DETAILS if given.get(name) is not None}
    if given.get("param") == THREAD:
        details["details"] = {"error_code": "thread_unsupported_request"}
    found = {"type": "error", "error": {"type": kind, "message": message, **details}}
    return status, found | {"request_id": given.get("request_id")}
