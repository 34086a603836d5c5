"""The routes of the Messages API: `/v1/messages` and `/v1/messages/count_tokens`. `/v1/models` stands in openai.py."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.contract.errors import ParameterError
from rtlang.contract.runs.principal import Principal
from rtlang.contract.runs.session_options import MAX_KEY_LENGTH
from rtlang.serve.anthropic import request
from rtlang.serve.anthropic.errors import message_error
from rtlang.serve.anthropic.reply import PING, MessageWriter
from rtlang.serve.anthropic.request import MessagesRequest, read_messages_request, renamed_error
from rtlang.serve.http.body import read_map, reading_price
from rtlang.serve.http.client_work import run_for
from rtlang.serve.http.errors import described_error
from rtlang.serve.http.events.sse import StreamForm, sse_event
from rtlang.serve.http.middleware.access_middleware import principal_of
from rtlang.serve.http.middleware.anthropic_middleware import MESSAGES
from rtlang.serve.http.routes.openai import respond
from rtlang.serve.http.routes.tokens import text_service
from rtlang.serve.http.text_models import read_served_chat, served_model, texts_of_reply
from rtlang.serve.openai.chat import ChatRequest
from rtlang.serve.service import StreamService
from rtlang.work.prices import TOKENIZE_S_PER_CHAR

_SESSION = "x-claude-code-session-id"
"""The header in which Claude Code names the session of a request."""
_ANY_LENGTH = 1
"""A value of `truncate_prompt_tokens`, with which a prompt of any length is made; the graph, which would be cut, is not run."""

_FORM = StreamForm(end=b"", heartbeat=PING)

TABLES = {
    "POST /v1/messages": request.FIELDS,
    "POST /v1/messages/count_tokens": request.FIELDS,
}
"""The fields of the bodies, by method and path."""


def routes(service: StreamService) -> list[Route]:
    """The routes of a server."""
    group = _MessageRoutes(service)
    return [
        Route(MESSAGES, group.create, methods=["POST"]),
        Route(f"{MESSAGES}/count_tokens", group.count_tokens, methods=["POST"]),
    ]


class _MessageRoutes:
    def __init__(self, service: StreamService) -> None:
        self._service = service

    async def create(self, request: Request) -> Response:
        service, body = self._service, await read_map(request, self._service)
        principal = principal_of(request)
        reading = partial(_read, service, body, principal, request.headers.get(_SESSION))
        price = reading_price(request)
        asked, read, num_cleared = await run_for(request, service, price, reading, kind=WorkKind.READ, may_wait=True)
        tokens = texts_of_reply(service, read, "thinking", principal)
        model = served_model(service, read.asked.model)
        new_call_id = partial(_new_id, "toolu")
        writer = MessageWriter(read, asked, _new_id("msg"), model, tokens.bytes_of, new_call_id, num_cleared)
        return await respond(request, service, read.asked, writer, tokens, _error_events, _FORM)

    async def count_tokens(self, request: Request) -> Response:
        service, body = self._service, await read_map(request, self._service)
        principal = principal_of(request)
        await text_service(service, request)  # without a tokenizer there is nothing to count
        price = request.state.num_body_bytes * TOKENIZE_S_PER_CHAR
        counting = partial(_counted, service, body, principal)
        return JSONResponse(await run_for(request, service, price, counting, kind=WorkKind.TOKENIZE, may_wait=True))


def _read(
    service: StreamService, body: Mapping[str, Any], principal: Principal, session: str | None
) -> tuple[MessagesRequest, ChatRequest, int]:
    """The body, the chat request that it becomes, and by how many tokens its edits make the prompt shorter. Called on a thread."""
    asked = read_messages_request(body, key=(session or "")[:MAX_KEY_LENGTH] or None)
    read = _read_chat(service, asked.chat, principal)
    options = read.asked.session
    if options is not None and asked.keep_s is not None:
        options = replace(options, keep_s=asked.keep_s)
    num_cleared = 0
    if asked.unedited is not None:
        num_cleared = max(
            0,
            _num_tokens(service, asked.chat | {"messages": asked.unedited}, principal) - (read.num_prompt_tokens or 0),
        )
    read = replace(read, asked=replace(read.asked, session=options, reports_prompt=read.asked.is_stream))
    return asked, read, num_cleared


def _read_chat(service: StreamService, chat: dict[str, Any], principal: Principal) -> ChatRequest:
    """The chat request of a body of the chat route.

    Raises:
        ParameterError: as `read_chat` raises it, with the names of this route.
    """
    try:
        return read_served_chat(service, chat, principal)
    except ParameterError as error:
        raise renamed_error(error) from None


def _num_tokens(service: StreamService, chat: dict[str, Any], principal: Principal) -> int:
    """The length of the prompt of a body of the chat route, however long; 0 where it is not known here."""
    return _read_chat(service, {**chat, "truncate_prompt_tokens": _ANY_LENGTH}, principal).num_prompt_tokens or 0


def _counted(service: StreamService, body: Mapping[str, Any], principal: Principal) -> dict[str, Any]:
    asked = read_messages_request(body, counts=True)
    served_model(service, asked.chat.get("model"))
    found: dict[str, Any] = {"input_tokens": _num_tokens(service, asked.chat, principal)}
    if asked.edits_context:
        given = asked.chat | {"messages": asked.unedited or asked.chat["messages"]}
        found["context_management"] = {"original_input_tokens": _num_tokens(service, given, principal)}
    return found


def _error_events(error: BaseException) -> list[bytes]:
    """The last event of a stream that fails."""
    return [sse_event(message_error(*described_error(error))[1], event="error")]


def _new_id(prefix: str) -> str:
    return f"{prefix}_{secrets.token_hex(12)}"
