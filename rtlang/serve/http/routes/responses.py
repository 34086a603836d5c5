"""`/v1/responses`: create, stream, read and delete responses; continue one by `previous_response_id`.

A response is stored in bounded memory unless the request says `store: false`. A later request may continue it for as long as it is kept;
after that, and after a restart of the server, its id is unknown and the request is refused.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.contract.errors import ParameterError
from rtlang.contract.runs.principal import Principal
from rtlang.serve.http.access_middleware import principal_of
from rtlang.serve.http.body import read_map, reading_price
from rtlang.serve.http.client_work import run_for
from rtlang.serve.http.errors import HttpError, described_error
from rtlang.serve.http.routes.openai import respond, texts_of_reply
from rtlang.serve.http.sse import sse_event
from rtlang.serve.http.text_models import read_served_chat, served_model
from rtlang.serve.json_parts import json_bytes, json_text
from rtlang.serve.openai.chat import ChatRequest
from rtlang.serve.openai.fields import read_bool
from rtlang.serve.responses.input_items import Message, chat_body
from rtlang.serve.responses.output_events import ResponsesWriter
from rtlang.serve.responses.store import ResponseStore, StoredResponse
from rtlang.serve.service import StreamService
from rtlang.work.prices import READ_S_PER_BYTE, REPLY_S_PER_CHAR

_RESPONSE_BYTES = 2000  # of a response without the texts of the request and the output


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
        self._service, self._store = service, ResponseStore()

    async def create(self, request: Request) -> Response:
        service, body = self._service, await read_map(request, self._service)
        principal, is_stored = principal_of(request), read_bool(_present(body), "store", True)
        previous = body.get("previous_response_id")
        stored = None if previous is None else _stored(self._store, principal.name, previous)
        earlier = () if stored is None else stored.messages
        price = reading_price(request) + (0 if stored is None else stored.num_bytes * READ_S_PER_BYTE)
        read, messages, size = await run_for(
            request,
            service,
            price,
            partial(_read, service, body, earlier, principal, is_stored),
            kind=WorkKind.READ,
            may_wait=True,
        )
        tokens = texts_of_reply(service, read, "top_logprobs", principal)

        def keep(response: dict[str, Any], message: dict[str, Any]) -> None:
            if is_stored:
                num_bytes = size + _RESPONSE_BYTES + 2 * len(json_text(message))
                stored = StoredResponse(response, (*messages, _as_history(message)), num_bytes)
                self._store.put(principal.name, stored)

        heading = _heading(body, served_model(service, read.asked.model), is_stored)
        writer = ResponsesWriter(read, heading, tokens.bytes_of, _new_id, keep)

        def failed(error: BaseException) -> list[bytes]:
            return [sse_event(writer.failure(described_error(error)[1]), event="response.failed")]

        return await respond(request, service, replace(read.asked, prompt_field="input"), writer, tokens, failed)

    async def read(self, request: Request) -> Response:
        found = _stored(self._store, principal_of(request).name, request.path_params["id"], 404)
        write, price = partial(json_bytes, found.response), found.num_bytes * REPLY_S_PER_CHAR
        data = await run_for(request, self._service, price, write, kind=WorkKind.REPLY)
        return Response(data, media_type="application/json")

    async def delete(self, request: Request) -> Response:
        owner, response_id = principal_of(request).name, request.path_params["id"]
        _stored(self._store, owner, response_id, 404)
        self._store.remove(owner, response_id)
        return JSONResponse({"id": response_id, "object": "response", "deleted": True})


def _read(
    service: StreamService, body: dict[str, Any], earlier: Sequence[Message], principal: Principal, is_stored: bool
) -> tuple[ChatRequest, list[Message], int]:
    """The request, its messages, and the bytes of what is stored of it. Called on a thread, as histories may be long."""
    chat, messages = chat_body(body, earlier)
    try:
        read = read_served_chat(service, chat, principal)
    except ParameterError as error:
        raise _renamed(error) from None
    return read, messages, len(json_text([body, messages])) if is_stored else 0


def _stored(store: ResponseStore, owner: str, response_id: Any, status: int = 400) -> StoredResponse:
    if not isinstance(response_id, str):
        raise ParameterError("previous_response_id", response_id, "expected a string")
    found = store.get(owner, response_id)
    if found is None:
        message = f"no response {response_id[:80]!r} is stored: it is unknown, was not stored, or was dropped"
        raise HttpError(status, message, code="previous_response_not_found", param="previous_response_id")
    return found


def _present(body: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if value is not None}


def _new_id(prefix: str) -> str:
    return f"{prefix}_{secrets.token_hex(16)}"


def _as_history(message: Mapping[str, Any]) -> Message:
    """The assistant's message as a later request sends it."""
    return {
        name: message[name]
        for name in ("role", "content", "reasoning_content", "tool_calls")
        if message.get(name) is not None
    }


def _reasoning(given: Mapping[str, Any]) -> dict[str, Any]:
    found = given.get("reasoning") or {}
    return {"effort": found.get("effort", given.get("reasoning_effort")), "summary": found.get("summary")}


_CHAT_NAMES = {
    "max_completion_tokens": "max_output_tokens",
    "response_format.json_schema": "text.format",
    "response_format": "text.format",
    "verbosity": "text.verbosity",
    "messages": "input",
}


def _flat_tool(field: str) -> list[tuple[str, str]]:
    """The name of a function in the field of a tool, and its name here, where a tool has no `function`."""
    tool, _, rest = field.partition(".function.")
    return [(f"{tool}.function.{rest}", f"{tool}.{rest}")] if rest and tool.startswith("tools[") else []


def _renamed(error: ParameterError) -> ParameterError:
    """An error of the chat request with the name that the field has in this route."""
    for name, here in (*_CHAT_NAMES.items(), *_flat_tool(error.field)):
        if error.field == name or error.field.startswith((f"{name}.", f"{name}[")):
            error.message = error.message.replace(name, here, 1)
            error.field = here + error.field.removeprefix(name)
            break
    return error


def _heading(body: Mapping[str, Any], model: str, is_stored: bool) -> dict[str, Any]:
    """The fields of a response that repeat the request, with their defaults."""
    given = _present(body)
    text = given.get("text", {})
    return {
        "id": _new_id("resp"),
        "object": "response",
        "created_at": int(time.time()),
        "model": model,
        "background": False,
        "instructions": given.get("instructions"),
        "max_output_tokens": given.get("max_output_tokens"),
        "max_tool_calls": None,
        "metadata": given.get("metadata", {}),
        "parallel_tool_calls": given.get("parallel_tool_calls", True),
        "previous_response_id": given.get("previous_response_id"),
        "prompt_cache_key": given.get("prompt_cache_key"),
        "reasoning": _reasoning(given),
        "safety_identifier": given.get("safety_identifier"),
        "service_tier": "default",
        "store": is_stored,
        "temperature": given.get("temperature", 1.0),
        "text": {"format": {"type": "text"}, "verbosity": "medium"} | text,
        "tool_choice": given.get("tool_choice", "auto"),
        "tools": given.get("tools", []),
        "top_logprobs": given.get("top_logprobs", 0),
        "top_p": given.get("top_p", 1.0),
        "truncation": "disabled",
        "user": given.get("user"),
    }
