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
from rtlang.contract.errors import ContextLengthError, ParameterError
from rtlang.contract.events import Event, NodeFinished
from rtlang.contract.runs.principal import Principal
from rtlang.contract.service.text_service import text_service_of
from rtlang.serve.http.errors import HttpError, described_error
from rtlang.serve.http.events.asked_events import asked_events
from rtlang.serve.http.text_models import TokenTexts, read_served_chat, served_model, texts_of_reply
from rtlang.serve.json_parts import json_text
from rtlang.serve.openai.chat import ChatRequest
from rtlang.serve.openai.fields import FieldTable, check_inner, read_bool
from rtlang.serve.openai.shapes import Asked
from rtlang.serve.responses.compacting import (
    asks_for_compaction,
    compacted_items,
    summary_body,
    summary_request,
)
from rtlang.serve.responses.conversations import Conversation
from rtlang.serve.responses.input_items import COMPACTED, THOUGHT, Item, read_items
from rtlang.serve.responses.output_events import Chunk, CompactionWriter, ResponsesWriter
from rtlang.serve.responses.request_body import FIELDS, ReadBody, field_here, read_body, renamed_error
from rtlang.serve.responses.store import StoredResponse
from rtlang.serve.service import StreamService
from rtlang.work.prices import READ_S_PER_BYTE

_T = TypeVar("_T")
Lookup = Callable[[str], StoredResponse | None]
"""Finds an earlier response by its id."""
_RESPONSE_BYTES = 2000  # of a response without the texts of the request and the output
_UNLIMITED = 1 << 40  # tokens of a prompt
_HEADING_S_PER_CHAR = 3e-8
"""Price of request fields that the first and the last events repeat: they are written as JSON up to three times."""
_RESERVED = 8
"""With `truncation: auto`, an eighth of the context is kept for the output if the request gives no `max_output_tokens`."""


class WorkRunner(Protocol):
    """Runs work of one client in its turn: `run_for` of an HTTP request, or `StreamService.run` of a connection."""

    def __call__(
        self, price: float, fn: Callable[[], _T], *, kind: WorkKind, may_wait: bool = False
    ) -> Awaitable[_T]: ...


@dataclass(frozen=True, slots=True)
class TurnInput:
    """A request that was read.

    Attributes:
        read: the request as a chat.
        body: the fields of the request.
        items: the items of the conversation and of the input.
        num_before: the number of items of the conversation before the input.
        num_bytes: their size with that of the request, as JSON text; 0 if nothing keeps them.
        num_new_bytes: size of the items of the input, as JSON text; 0 if nothing keeps them.
        heading_s: price of writing the fields of the request that the response repeats.
        is_compaction: the response is a compaction of the items.
    """

    read: ChatRequest
    body: ReadBody
    items: tuple[Item, ...]
    num_before: int
    num_bytes: int
    num_new_bytes: int
    heading_s: float
    is_compaction: bool

    @property
    def num_tokens(self) -> int | None:
        """The tokens of the prompt; None if the server cannot count them."""
        return self.read.num_prompt_tokens


@dataclass(frozen=True, slots=True)
class ResponseTurn:
    """A response that is ready to run.

    Attributes:
        asked: its graph; run by `chunks`, or by a door that sends the response in another way.
        writer: turns the events of the graph into the response, or into the events of its stream.
        tokens: the texts of tokens; `tokens.load(events)` comes before the writer gets these events.
        is_stored: whether the request asked to store the response.
        is_background: whether the response runs without its client.
        given: what was read.
        keep: stores the response, as the request asks; the writer calls it unless the turn is a round of a longer response.
    """

    asked: Asked
    writer: ResponsesWriter
    tokens: TokenTexts
    is_stored: bool
    is_background: bool
    given: TurnInput
    keep: Callable[[dict[str, Any]], None]

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
                encode = partial(self._chunks, events)
                group = await service.encode(principal, events, encode, more_s=self.heading_s(events))
                if group:
                    yield group
        finally:
            await batches.aclose()

    def heading_s(self, events: Sequence[Event]) -> float:
        """Price of the fields of the request that the events of the stream for these events repeat."""
        repeats = not self.writer.has_begun or any(isinstance(event, NodeFinished) for event in events)
        return self.given.heading_s if repeats else 0.0

    def failure(self, error: BaseException) -> Chunk:
        """The last event of a response that fails."""
        return self.writer.failure(described_error(error)[1])

    def record(self, response: dict[str, Any]) -> StoredResponse:
        """A response of this turn with its conversation, as it is stored."""
        return _record(self.given, response)

    def _chunks(self, events: Sequence[Event]) -> list[Chunk]:
        return [chunk for event in events for chunk in self.writer.chunks(event)]


async def read_turn(
    service: StreamService,
    body: Mapping[str, Any],
    principal: Principal,
    run: WorkRunner,
    num_body_bytes: int,
    *,
    fields: FieldTable = FIELDS,
    lookup: Lookup | None = None,
    is_kept: bool = False,
    more_input: Sequence[Item] = (),
) -> TurnInput:
    """Read the body of a request; arguments and errors as for `open_turn`.

    Args:
        fields: the fields of the route.
        is_kept: whether the items are kept, so that their size counts.
        more_input: items after those of the body.
    """
    before, num_bytes = _items_before(service, body, principal, lookup)
    price = (num_body_bytes + num_bytes) * READ_S_PER_BYTE
    read = partial(_read, service, body, before, num_bytes, principal, fields, more_input, is_kept=is_kept)
    return await run(price, read, kind=WorkKind.READ, may_wait=True)


async def open_turn(
    service: StreamService,
    body: Mapping[str, Any],
    principal: Principal,
    run: WorkRunner,
    num_body_bytes: int,
    *,
    lookup: Lookup | None = None,
    on_done: Callable[[StoredResponse], None] | None = None,
    more_input: Sequence[Item] = (),
    is_round: bool = False,
) -> ResponseTurn:
    """Read the body of a request.

    Args:
        run: runs the work that is proportional to the body and to the history.
        num_body_bytes: length of the body as it arrived, for the price of this work.
        lookup: finds an earlier response before the store of the server is asked, such as the last one of a connection.
        on_done: called with every response that ended, whether or not it is stored.
        more_input: items after those of the body.
        is_round: the turn is a part of a response, which is kept as a whole.
    Raises:
        ParameterError: a field is not supported, missing or invalid; names it.
        HttpError: the earlier response, the conversation or the model is unknown.
    """
    state, given = service.responses, _present(body)
    is_stored, is_background = read_bool(given, "store", True), read_bool(given, "background")
    if is_background and not is_stored:
        raise ParameterError("background", True, "allowed only with store = true")
    conversation = _conversation_id(given)
    is_kept = is_stored or on_done is not None or conversation is not None
    turn = await read_turn(
        service, given, principal, run, num_body_bytes, lookup=lookup, is_kept=is_kept, more_input=more_input
    )
    tokens = texts_of_reply(service, turn.read, "top_logprobs", principal)

    def keep(response: dict[str, Any]) -> None:
        if conversation is not None and not turn.is_compaction:
            new = turn.items[turn.num_before :]
            num_output_bytes = len(json_text(response["output"]))
            made, size = (*new, *response["output"]), turn.num_new_bytes + num_output_bytes
            state.conversations.append(principal.name, conversation, made, size)
        if not (is_stored or on_done is not None):
            return
        whole = _record(turn, response)
        if is_stored:
            state.store.put(principal.name, whole)
        if on_done is not None:
            on_done(whole)

    heading = _heading(given, served_model(service, turn.read.asked.model), is_stored)
    seal = partial(state.sealer.seal, principal.name, THOUGHT) if turn.body.seals_thoughts else None
    on_end = _ignored if is_round else keep
    writer = ResponsesWriter(turn.read, heading, tokens.bytes_of, new_id, on_end, turn.body.tools, seal)
    if turn.is_compaction:

        def compacted(summary: str) -> str:
            return state.sealer.seal(principal.name, COMPACTED, compacted_items(turn.items, summary))

        writer = CompactionWriter(turn.read, heading, tokens.bytes_of, new_id, keep, compacted)
    asked = replace(
        turn.read.asked,
        prompt_field="input",
        constraint_field=field_here(turn.read.asked.constraint_field),
        budget_field="max_output_tokens",
    )
    return ResponseTurn(asked, writer, tokens, is_stored, is_background, turn, keep)


def _ignored(response: dict[str, Any]) -> None:
    """A round of a longer response is not kept."""


def stored_response(
    service: StreamService, principal: Principal, response_id: Any, status: int = 400
) -> StoredResponse:
    """A stored response of a principal.

    Raises:
        HttpError: the response is unknown, was not stored, or was dropped; has this `status`.
        ParameterError: the id is no text.
    """
    return _earlier(service, principal, response_id, None, status)


def stored_conversation(
    service: StreamService, principal: Principal, conversation_id: str, status: int = 404
) -> Conversation:
    """A conversation of a principal.

    Raises:
        HttpError: the conversation is unknown or was dropped; has this `status`.
    """
    found = service.responses.conversations.get(principal.name, conversation_id)
    if found is None:
        message = f"unknown conversation {conversation_id[:80]!r}: it may have been deleted or dropped"
        raise HttpError(status, message, code="conversation_not_found", param="conversation")
    return found


def new_id(prefix: str) -> str:
    """A random id with a prefix."""
    return f"{prefix}_{secrets.token_hex(16)}"


def _record(turn: TurnInput, response: dict[str, Any]) -> StoredResponse:
    output = response["output"]
    num_bytes = turn.num_bytes + _RESPONSE_BYTES + 2 * len(json_text(output))
    before = () if turn.is_compaction else turn.items  # a compaction stands for them
    return StoredResponse(response, (*before, *output), len(before), num_bytes)


def _conversation_id(given: Mapping[str, Any]) -> str | None:
    value = given.get("conversation")
    if value is None:
        return None
    if isinstance(value, Mapping):
        value = check_inner("conversation", value, ("id",)).get("id")
    if not isinstance(value, str):
        raise ParameterError("conversation", given["conversation"], "expected an id, or an object with an id")
    if given.get("previous_response_id") is not None:
        raise ParameterError("conversation", value, "not together with previous_response_id")
    return value


def _items_before(
    service: StreamService, given: Mapping[str, Any], principal: Principal, lookup: Lookup | None
) -> tuple[Sequence[Item], int]:
    """The items of the conversation so far, and their size in bytes."""
    conversation, previous = _conversation_id(given), given.get("previous_response_id")
    if conversation is not None:
        found = stored_conversation(service, principal, conversation)
        return found.items, found.num_bytes
    if previous is None:
        return (), 0
    stored = _earlier(service, principal, previous, lookup)
    if stored.response["status"] in ("queued", "in_progress"):
        message = f"the response {previous[:80]!r} has not ended; it can be continued when it has"
        raise HttpError(400, message, code="previous_response_not_completed", param="previous_response_id")
    return stored.items, stored.num_bytes


def _earlier(
    service: StreamService,
    principal: Principal,
    response_id: Any,
    lookup: Lookup | None,
    status: int = 400,
) -> StoredResponse:
    if not isinstance(response_id, str):
        raise ParameterError("previous_response_id", response_id, "expected a string")
    found = None if lookup is None else lookup(response_id)
    found = found or service.responses.store.get(principal.name, response_id)
    if found is None:
        message = f"unknown response {response_id[:80]!r}: it may have been dropped, or was created with store = false"
        raise HttpError(status, message, code="previous_response_not_found", param="previous_response_id")
    return found


def _read(
    service: StreamService,
    body: Mapping[str, Any],
    before: Sequence[Item],
    num_before_bytes: int,
    principal: Principal,
    fields: FieldTable,
    more_input: Sequence[Item],
    *,
    is_kept: bool,
) -> TurnInput:
    """Called on a thread, as histories may be long."""
    new = [*read_items(body.get("input") or [], new_id, _Finder(service, principal, before)), *more_input]
    opened = partial(service.responses.sealer.open, principal.name)
    is_compaction = asks_for_compaction(new)
    asked, asking = new, body
    if is_compaction:
        new = new[:-1]
        if not before and not new:
            raise ParameterError("input", body.get("input"), "expected items before the compaction_trigger")
        asked, asking = [*new, summary_request()], summary_body(body)
        read_body(body, before, asked, opened, fields)  # also the fields that only an answer has
    given = read_body(asking, before, asked, opened, fields)
    read = _fitting(service, given, principal)
    items = (*before, *new)
    rest = {name: value for name, value in body.items() if name != "input"}
    num_rest, num_new = len(json_text(rest)), len(json_text(new)) if is_kept or is_compaction else 0
    num_bytes = num_rest + num_new + num_before_bytes if is_kept else 0
    num_repeated = num_rest + (num_new + num_before_bytes if is_compaction else 0)
    return TurnInput(
        read, given, items, len(before), num_bytes, num_new, num_repeated * _HEADING_S_PER_CHAR, is_compaction
    )


class _Finder:
    """Finds stored items by their ids."""

    def __init__(self, service: StreamService, principal: Principal, before: Sequence[Item]) -> None:
        self._service, self._principal, self._before = service, principal, before
        self._found: dict[str, Item] | None = None

    def __call__(self, item_id: str) -> Item | None:
        if self._found is None:
            stored = self._service.responses.store.of(self._principal.name)
            self._found = {item["id"]: item for response in stored for item in response.items}
            self._found |= {item["id"]: item for item in self._before}
        return self._found.get(item_id)


def _fitting(service: StreamService, given: ReadBody, principal: Principal) -> ChatRequest:
    """The chat request; with `truncation: auto`, without the oldest messages that do not fit."""

    def attempt(first: int) -> ChatRequest:
        messages = given.chat["messages"]
        kept = [*messages[: given.num_pinned], *messages[first:]] if first else messages
        return read_served_chat(service, given.chat | {"messages": kept}, principal)

    def fits(first: int) -> bool:
        try:
            count = attempt(first).num_prompt_tokens
        except (ContextLengthError, ParameterError):
            return False
        return count is None or count <= limit

    limit = _prompt_limit(service, given.chat, principal) if given.truncates else _UNLIMITED
    try:
        read = attempt(0)
        count = read.num_prompt_tokens
        if count is None or count <= limit:
            return read
    except ParameterError as error:
        raise renamed_error(error, given) from None
    except ContextLengthError:
        if not given.truncates:
            raise
    messages = given.chat["messages"]
    cuts = _cuts(messages, given.num_pinned)
    # Some templates refuse a conversation that begins with an answer; it may begin with the user's messages then.
    for places in (cuts, [at for at in cuts if messages[at]["role"] == "user"]):
        found = _first_place(places, fits)
        if found is not None:
            return attempt(found)
    return attempt(0)  # even the last message does not fit: the error says so, or the engine does


def _first_place(places: Sequence[int], fits: Callable[[int], bool]) -> int | None:
    """The first of some places that fits, if all after it fit as well."""
    low, high = 0, len(places)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(places[middle]) else (middle + 1, high)
    return places[low] if low < len(places) and fits(places[low]) else None


def _prompt_limit(service: StreamService, chat: Mapping[str, Any], principal: Principal) -> int:
    """The tokens that a prompt may have with `truncation: auto`, so that there is room for the output."""
    texts = text_service_of(service.target, principal)
    longest = (None if texts is None else texts.info.max_model_len) or _UNLIMITED
    asked = chat.get("max_completion_tokens")
    reserved = asked if isinstance(asked, int) and not isinstance(asked, bool) else longest // _RESERVED
    return max(1, longest - max(1, min(reserved, longest // 2)))


def _cuts(messages: Sequence[Mapping[str, Any]], num_pinned: int) -> list[int]:
    """The messages with which a conversation may begin: no results of calls without the calls."""
    places = range(num_pinned + 1, len(messages))
    return [at for at in places if messages[at]["role"] != "tool"]


def _present(body: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if value is not None}


def _flat(tool: Any) -> Any:
    """A tool in the shape of this route, also if it came in the shape of the chat route."""
    inner = tool.get(tool["type"]) if isinstance(tool, Mapping) and tool.get("type") in ("function", "custom") else None
    return {"type": tool["type"], **inner} if isinstance(inner, Mapping) else tool


def _reasoning(given: Mapping[str, Any]) -> dict[str, Any]:
    found = given.get("reasoning") or {}
    return {"effort": found.get("effort", given.get("reasoning_effort")), "summary": found.get("summary")}


def _heading(given: Mapping[str, Any], model: str, is_stored: bool) -> dict[str, Any]:
    """The fields of a response that repeat the request, with their defaults."""
    text, conversation, tier = given.get("text", {}), _conversation_id(given), given.get("service_tier", "auto")
    return {
        "id": new_id("resp"),
        "object": "response",
        "created_at": int(time.time()),
        "model": model,
        "background": given.get("background", False),
        "conversation": None if conversation is None else {"id": conversation},
        "instructions": given.get("instructions"),
        "max_output_tokens": given.get("max_output_tokens"),
        "max_tool_calls": given.get("max_tool_calls"),
        "metadata": given.get("metadata", {}),
        "parallel_tool_calls": given.get("parallel_tool_calls", True),
        "previous_response_id": given.get("previous_response_id"),
        "prompt_cache_key": given.get("prompt_cache_key"),
        "prompt_cache_retention": given.get("prompt_cache_retention"),
        "reasoning": _reasoning(given),
        "safety_identifier": given.get("safety_identifier"),
        "service_tier": "default" if tier == "auto" else tier,
        "store": is_stored,
        "temperature": given.get("temperature", 1.0),
        "text": {"format": {"type": "text"}, "verbosity": "medium"} | text,
        "tool_choice": given.get("tool_choice", "auto"),
        "tools": [_flat(tool) for tool in given.get("tools", [])],
        "top_logprobs": given.get("top_logprobs", 0),
        "top_p": given.get("top_p", 1.0),
        "truncation": given.get("truncation", "disabled"),
        "user": given.get("user"),
    }
