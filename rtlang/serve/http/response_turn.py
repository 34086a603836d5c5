"""One response of the Responses API, without a transport: the body is read, and the events of its graph become its events.

The HTTP routes send the events as server-sent events, the WebSocket mode as frames.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.contract.errors import ParameterError
from rtlang.contract.events import Event
from rtlang.contract.runs.principal import Principal
from rtlang.serve.http.asked_events import asked_events
from rtlang.serve.http.errors import HttpError, described_error
from rtlang.serve.http.text_models import TokenTexts, read_served_chat, served_model, texts_of_reply
from rtlang.serve.json_parts import json_text
from rtlang.serve.openai.chat import ChatRequest
from rtlang.serve.openai.fields import read_bool
from rtlang.serve.openai.shapes import Asked
from rtlang.serve.responses.input_items import Message, chat_body
from rtlang.serve.responses.output_events import Chunk, ResponsesWriter
from rtlang.serve.responses.store import StoredResponse
from rtlang.serve.service import StreamService
from rtlang.work.prices import READ_S_PER_BYTE

_T = TypeVar("_T")
_RESPONSE_BYTES = 2000  # of a response without the texts of the request and the output


class WorkRunner(Protocol):
    """Runs work of one client in its turn: `run_for` of an HTTP request, or `StreamService.run` of a connection."""

    def __call__(
        self, price: float, fn: Callable[[], _T], *, kind: WorkKind, may_wait: bool = False
    ) -> Awaitable[_T]: ...


@dataclass(frozen=True, slots=True)
class ResponseTurn:
    """A response that is ready to run.

    Attributes:
        asked: its graph; run by `events`, or by a door that sends the response in another way.
        writer: turns the events of the graph into the response, or into the events of its stream.
        tokens: the texts of tokens; `tokens.load(events)` comes before the writer gets these events.
        is_stored: whether the request asked to store the response.
    """

    asked: Asked
    writer: ResponsesWriter
    tokens: TokenTexts
    is_stored: bool

    async def chunks(self, service: StreamService, principal: Principal) -> AsyncGenerator[list[Chunk], None]:
        """The events of the response in groups, the last of which is `response.completed` or `response.incomplete`.

        Closing the generator cancels the graph.

        Raises:
            HttpError, RtlangError: the graph failed, or the server ended it; `failure` has the event for it.
        """
        batches = asked_events(service, self.asked, principal)
        try:
            async for events in batches:
                await self.tokens.load(events)
                group = await service.encode(principal, events, partial(self._chunks, events))
                if group:
                    yield group
        finally:
            await batches.aclose()

    def failure(self, error: BaseException) -> Chunk:
        """The last event of a response that fails."""
        return self.writer.failure(described_error(error)[1])

    def _chunks(self, events: Sequence[Event]) -> list[Chunk]:
        return [chunk for event in events for chunk in self.writer.chunks(event)]


async def open_turn(
    service: StreamService,
    body: Mapping[str, Any],
    principal: Principal,
    run: WorkRunner,
    num_body_bytes: int,
    *,
    lookup: Callable[[str], StoredResponse | None] | None = None,
    on_done: Callable[[StoredResponse], None] | None = None,
) -> ResponseTurn:
    """Read the body of a request.

    Args:
        run: runs the work that is proportional to the body and to the history.
        num_body_bytes: length of the body as it arrived, for the price of this work.
        lookup: finds an earlier response before the store of the server is asked, such as the last one of a connection.
        on_done: called with every response that ended, whether or not it is stored.
    Raises:
        ParameterError: a field is not supported, missing or invalid; names it.
        HttpError: the earlier response or the model is unknown.
    """
    store, given = service.responses.store, _present(body)
    is_stored, previous = read_bool(given, "store", True), given.get("previous_response_id")
    stored = None if previous is None else _earlier(service, principal, previous, lookup)
    earlier = () if stored is None else stored.messages
    price = (num_body_bytes + (0 if stored is None else stored.num_bytes)) * READ_S_PER_BYTE
    is_kept = is_stored or on_done is not None
    read, messages, size = await run(
        price, partial(_read, service, given, earlier, principal, is_kept), kind=WorkKind.READ, may_wait=True
    )
    tokens = texts_of_reply(service, read, "top_logprobs", principal)

    def keep(response: dict[str, Any], message: dict[str, Any]) -> None:
        if not is_kept:
            return
        num_bytes = size + _RESPONSE_BYTES + 2 * len(json_text(message))
        whole = StoredResponse(response, (*messages, _as_history(message)), num_bytes)
        if is_stored:
            store.put(principal.name, whole)
        if on_done is not None:
            on_done(whole)

    heading = _heading(given, served_model(service, read.asked.model), is_stored)
    writer = ResponsesWriter(read, heading, tokens.bytes_of, new_id, keep)
    return ResponseTurn(replace(read.asked, prompt_field="input"), writer, tokens, is_stored)


def stored_response(
    service: StreamService, principal: Principal, response_id: Any, status: int = 400
) -> StoredResponse:
    """A stored response of a principal.

    Raises:
        HttpError: it is unknown, was not stored, or was dropped; `status` is that of the error.
        ParameterError: the id is no text.
    """
    return _earlier(service, principal, response_id, None, status)


def new_id(prefix: str) -> str:
    """A random id with a prefix."""
    return f"{prefix}_{secrets.token_hex(16)}"


def _earlier(
    service: StreamService,
    principal: Principal,
    response_id: Any,
    lookup: Callable[[str], StoredResponse | None] | None,
    status: int = 400,
) -> StoredResponse:
    if not isinstance(response_id, str):
        raise ParameterError("previous_response_id", response_id, "expected a string")
    found = None if lookup is None else lookup(response_id)
    found = found or service.responses.store.get(principal.name, response_id)
    if found is None:
        message = f"no response {response_id[:80]!r} is stored: it is unknown, was not stored, or was dropped"
        raise HttpError(status, message, code="previous_response_not_found", param="previous_response_id")
    return found


def _read(
    service: StreamService, body: dict[str, Any], earlier: Sequence[Message], principal: Principal, is_kept: bool
) -> tuple[ChatRequest, list[Message], int]:
    """The request, its messages, and the bytes of what is stored of it. Called on a thread, as histories may be long."""
    chat, messages = chat_body(body, earlier)
    try:
        read = read_served_chat(service, chat, principal)
    except ParameterError as error:
        raise _renamed(error) from None
    return read, messages, len(json_text([body, messages])) if is_kept else 0


def _present(body: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if value is not None}


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
        "id": new_id("resp"),
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
