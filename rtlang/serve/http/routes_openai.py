"""The routes of the OpenAI API: `/v1/models`, `/v1/completions` and `/v1/chat/completions`.

Each request becomes one graph. A request that fails before its first token gets an error response, also if it asked for a stream.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rtlang.contract.errors import BudgetError, ConstraintError, GraphError, RtlangError
from rtlang.contract.events import Event, GraphFailed, NodeFailed, NodeFinished, TextDelta
from rtlang.contract.graph import RequestGraph
from rtlang.serve.http.access_middleware import principal_of
from rtlang.serve.http.body import read_map
from rtlang.serve.http.errors import HttpError
from rtlang.serve.http.graph_stream import GraphStream
from rtlang.serve.http.sse import CLIENT_CLOSED, DONE, SseResponse, sse_event, unless_disconnected
from rtlang.serve.http.text_models import (
    TokenTexts,
    model_names,
    needed_text_service,
    read_served_chat,
    served_model,
)
from rtlang.serve.json_parts import json_bytes
from rtlang.serve.openai.chat import ChatWriter
from rtlang.serve.openai.completions import CompletionWriter, echo_texts, read_completion
from rtlang.serve.openai.shapes import Heading
from rtlang.serve.service import StreamService

_INLINE_EVENTS = 32  # more are encoded on a thread


class Writer(Protocol):
    """Turns the events of a graph into a response, or into the chunks of a stream."""

    def response(self, events: Iterable[Event]) -> dict[str, Any]: ...

    def chunks(self, event: Event) -> Iterator[dict[str, Any]]: ...

    def last_chunks(self) -> Iterator[dict[str, Any]]: ...


def routes(service: StreamService) -> list[Route]:
    """The routes of a server."""
    started = int(time.time())

    def described(name: str) -> dict[str, Any]:
        model = next(each for each in service.server_info.models if each["model"] == name)
        return {
            "id": name,
            "object": "model",
            "created": started,
            "owned_by": "rtlang",
            "root": name,
            "parent": None,
            "max_model_len": model.get("max_model_len"),
        }

    async def models(request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [described(name) for name in model_names(service)]})

    async def model(request: Request) -> Response:
        asked = request.path_params["model"]
        if asked not in model_names(service):
            raise HttpError(404, f"there is no model {asked[:200]!r}", code="model_not_found", param="model")
        return JSONResponse(described(asked))

    async def completions(request: Request) -> Response:
        asked = read_completion(await read_map(request, service))
        name = served_model(service, asked.model)
        text_service = None
        if asked.num_logprobs is not None:
            text_service = needed_text_service(service, "logprobs")
        elif asked.echo and any(not isinstance(prompt, str) for prompt in asked.prompts):
            text_service = needed_text_service(service, "echo")
        tokens = TokenTexts(text_service)
        texts: list[str] = [prompt for prompt in asked.prompts if isinstance(prompt, str)] if asked.echo else []
        first_ids: list[int] = []
        if asked.echo and text_service is not None:
            texts, first_ids = await asyncio.to_thread(echo_texts, asked, text_service.decode, text_service.encode)
            await tokens.load_ids(first_ids)
        heading = Heading(f"cmpl-{secrets.token_hex(12)}", int(time.time()), name)
        writer = CompletionWriter(asked, heading, tokens.bytes_of, texts, first_ids)
        return await respond(
            request,
            service,
            asked.graph,
            writer,
            tokens,
            asked.is_stream,
            asked.priority,
            asked.constraint_field,
            prompt_field="prompt",
        )

    async def chat(request: Request) -> Response:
        body = await read_map(request, service)
        asked = await asyncio.to_thread(read_served_chat, service, body, principal_of(request))
        name = served_model(service, asked.model)
        tokens = TokenTexts(needed_text_service(service, "logprobs") if asked.num_top is not None else None)
        heading = Heading(f"chatcmpl-{secrets.token_hex(12)}", int(time.time()), name)
        writer = ChatWriter(asked, heading, tokens.bytes_of, lambda: f"call_{secrets.token_hex(12)}")
        return await respond(
            request,
            service,
            asked.graph,
            writer,
            tokens,
            asked.is_stream,
            asked.priority,
            asked.plan.field,
            prompt_field="messages",
        )

    async def embeddings(request: Request) -> Response:
        raise HttpError(404, "the served model generates text; it computes no embeddings", code="not_supported")

    return [
        Route("/v1/embeddings", embeddings, methods=["POST"]),
        Route("/v1/chat/completions", chat, methods=["POST"]),
        Route("/v1/models", models),
        Route("/v1/models/{model:path}", model),
        Route("/v1/completions", completions, methods=["POST"]),
    ]


async def respond(
    request: Request,
    service: StreamService,
    graph: RequestGraph,
    writer: Writer,
    tokens: TokenTexts,
    is_stream: bool,
    priority: int,
    constraint_field: str | None,
    on_error: Callable[[BaseException], Sequence[bytes]] | None = None,
    *,
    prompt_field: str = "input",
) -> Response:
    """Run a graph and respond with its events, as `writer` shapes them.

    Args:
        constraint_field, prompt_field: the fields that errors of the constraint and of the prompt are about.
        on_error: the events that report an error after the start of a stream; see `SseResponse`.
    """
    options = {"priority": priority, "principal": principal_of(request)}
    batches = _batches(service, graph, options, constraint_field, prompt_field)
    if is_stream:
        groups = _chunk_groups(batches, writer, tokens)
        return SseResponse(groups, on_error=on_error)
    data = await unless_disconnected(request, _collected(batches, writer, tokens))
    if data is None:
        return Response(status_code=CLIENT_CLOSED)
    return Response(data, media_type="application/json")


async def _batches(
    service: StreamService,
    graph: RequestGraph,
    options: dict[str, Any],
    constraint_field: str | None,
    prompt_field: str,
) -> AsyncGenerator[list[Event], None]:
    """Groups of events. A node that fails fails the request."""
    try:
        opened = GraphStream(service, graph, **options)
    except GraphError as error:  # the fields are checked, so this is about a text or token ids of the prompt
        raise HttpError(400, error.reason, code=error.code, param=prompt_field) from error
    with opened as stream:
        async for events in stream.batches():
            for event in events:
                if isinstance(event, (NodeFailed, GraphFailed)):
                    raise _failure(event.error, constraint_field)
            yield events


def _failure(error: RtlangError, constraint_field: str | None) -> Exception:
    if not isinstance(error, ConstraintError):
        return error
    param = "max_tokens" if isinstance(error, BudgetError) else constraint_field
    return HttpError(400, error.message, code=error.code, param=param)


async def _collected(batches: AsyncGenerator[list[Event], None], writer: Writer, tokens: TokenTexts) -> bytes:
    """The JSON text of the response, made on a thread, since long texts and log-probabilities take a while to write."""
    found: list[Event] = []
    async with contextlib.aclosing(batches):
        async for events in batches:
            kept = [event for event in events if not isinstance(event, TextDelta)]
            await tokens.load(kept)
            found += kept
    return await asyncio.to_thread(lambda: json_bytes(writer.response(found)))


async def _chunk_groups(
    batches: AsyncGenerator[list[Event], None], writer: Writer, tokens: TokenTexts
) -> AsyncGenerator[Sequence[bytes], None]:
    async with contextlib.aclosing(batches):
        async for events in batches:
            await tokens.load(events)

            def encode(events: list[Event] = events) -> list[bytes]:
                return [_encoded(chunk) for event in events for chunk in writer.chunks(event)]

            is_large = len(events) > _INLINE_EVENTS or any(isinstance(each, NodeFinished) for each in events)
            if group := await asyncio.to_thread(encode) if is_large else encode():
                yield group
    yield [*map(_encoded, writer.last_chunks()), DONE]


def _encoded(chunk: dict[str, Any]) -> bytes:
    """An event of a stream, named by its type if it has one."""
    return sse_event(chunk, event=chunk.get("type"))
