"""The routes of the OpenAI API: `/v1/models`, `/v1/completions` and `/v1/chat/completions`.

Each request becomes one graph. A request that fails before its first token gets an error response, also if it asked for a stream.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Protocol

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.contract.events import Event, GraphFinished, NodeFinished, TextDelta
from rtlang.contract.runs.principal import Principal
from rtlang.serve.anthropic.models import ANTHROPIC_VERSION, described_model, listed_models
from rtlang.serve.http.body import read_map, reading_price
from rtlang.serve.http.client_work import run_for
from rtlang.serve.http.errors import HttpError
from rtlang.serve.http.events.asked_events import asked_events
from rtlang.serve.http.events.direct_events import DirectEvents, DirectWriter
from rtlang.serve.http.events.sse import SSE, SseResponse, StreamForm, unless_disconnected
from rtlang.serve.http.middleware.access_middleware import principal_of
from rtlang.serve.http.text_models import (
    TokenTexts,
    model_names,
    needed_text_service,
    read_served_chat,
    served_model,
    texts_of_reply,
)
from rtlang.serve.json_parts import json_bytes
from rtlang.serve.openai import chat, completions
from rtlang.serve.openai.chat import ChatWriter
from rtlang.serve.openai.completions import CompletionRequest, CompletionWriter, echo_texts, read_completion
from rtlang.serve.openai.shapes import Asked, Heading
from rtlang.serve.records.request_record import CLIENT_CLOSED, request_id
from rtlang.serve.service import StreamService
from rtlang.work.prices import TOKENIZE_S_PER_CHAR

TABLES = {"POST /v1/chat/completions": chat.FIELDS, "POST /v1/completions": completions.FIELDS}
"""The fields of the bodies, by method and path."""
_NO_EMBEDDINGS = (
    "this server computes no embeddings: its models are trained to generate text, and vectors of their hidden states would not be "
    "comparable; use a server of an embedding model, such as text-embeddings-inference, under a base URL of its own"
)


class Writer(Protocol):
    """Turns the events of a graph into a response, or into the chunks of a stream."""

    def response(self, events: Iterable[Event]) -> dict[str, Any]: ...

    def chunks(self, event: Event) -> Iterator[dict[str, Any]]: ...

    def text_event(self, event: TextDelta) -> str | None: ...

    def last_chunks(self) -> Iterator[dict[str, Any]]: ...


def routes(service: StreamService) -> list[Route]:
    """The routes of a server."""
    group = _OpenAiRoutes(service)
    return [
        Route("/v1/embeddings", group.embeddings, methods=["POST"]),
        Route("/v1/chat/completions", group.chat, methods=["POST"]),
        Route("/v1/models", group.models),
        Route("/v1/models/{model:path}", group.model),
        Route("/v1/completions", group.completions, methods=["POST"]),
    ]


class _OpenAiRoutes:
    def __init__(self, service: StreamService) -> None:
        self._service, self._started = service, int(time.time())

    async def models(self, request: Request) -> Response:
        names = model_names(self._service)
        if ANTHROPIC_VERSION in request.headers:
            return JSONResponse(listed_models(names, self._longest, self._started, request.query_params))
        data = [self._described(name) for name in names]
        return JSONResponse({"object": "list", "data": data})

    async def model(self, request: Request) -> Response:
        asked = request.path_params["model"]
        if asked not in model_names(self._service):
            raise HttpError(404, f"there is no model {asked[:200]!r}", code="model_not_found", param="model")
        if ANTHROPIC_VERSION in request.headers:
            return JSONResponse(described_model(asked, self._longest, self._started))
        return JSONResponse(self._described(asked))

    async def completions(self, request: Request) -> Response:
        service = self._service
        body, principal = await read_map(request, service), principal_of(request)
        read = await run_for(
            request, service, reading_price(request), partial(read_completion, body), kind=WorkKind.READ
        )
        text_service = None
        if read.num_logprobs is not None:
            text_service = needed_text_service(service, "logprobs", principal)
        elif read.echo and any(not isinstance(prompt, str) for prompt in read.prompts):
            text_service = needed_text_service(service, "echo", principal)
        tokens = TokenTexts(service, principal, text_service)
        texts: list[str] = [prompt for prompt in read.prompts if isinstance(prompt, str)] if read.echo else []
        first_ids: list[int] = []
        if read.echo and text_service is not None:
            echo = partial(echo_texts, read, text_service.decode, text_service.encode)
            price = request.state.num_body_bytes * TOKENIZE_S_PER_CHAR
            texts, first_ids = await run_for(request, service, price, echo, kind=WorkKind.TOKENIZE, may_wait=True)
            await tokens.load_ids(first_ids)
        prompt_ids: Sequence[Sequence[int]] = ()
        if read.returns_ids and not any(isinstance(prompt, str) for prompt in read.prompts):
            prompt_ids = [prompt for prompt in read.prompts if not isinstance(prompt, str)]
        elif read.returns_ids:
            encode, price = (
                partial(_prompt_ids, service, read, principal),
                request.state.num_body_bytes * TOKENIZE_S_PER_CHAR,
            )
            prompt_ids = await run_for(request, service, price, encode, kind=WorkKind.TOKENIZE, may_wait=True)
        heading = self._heading("cmpl", read.asked)
        writer = CompletionWriter(read, heading, tokens.bytes_of, texts, first_ids, prompt_ids)
        return await respond(request, service, read.asked, writer, tokens)

    async def chat(self, request: Request) -> Response:
        service = self._service
        body = await read_map(request, service)
        principal = principal_of(request)
        reading = partial(read_served_chat, service, body, principal)
        read = await run_for(request, service, reading_price(request), reading, kind=WorkKind.READ, may_wait=True)
        tokens = texts_of_reply(service, read, "logprobs", principal)
        heading = self._heading("chatcmpl", read.asked)
        writer = ChatWriter(read, heading, tokens.bytes_of, lambda: f"call_{secrets.token_hex(12)}")
        return await respond(request, service, read.asked, writer, tokens)

    async def embeddings(self, request: Request) -> Response:
        raise HttpError(404, _NO_EMBEDDINGS, code="not_supported", param="model")

    def _heading(self, prefix: str, asked: Asked) -> Heading:
        name = served_model(self._service, asked.model)
        return Heading(f"{prefix}-{request_id() or secrets.token_hex(12)}", int(time.time()), name)

    def _described(self, name: str) -> dict[str, Any]:
        names = model_names(self._service)
        return {
            "id": name,
            "object": "model",
            "created": self._started,
            "owned_by": "rtlang",
            "root": names[0],
            "parent": None,
            "max_model_len": self._longest,
        }

    @property
    def _longest(self) -> int | None:
        """The longest sequence of the served model in tokens; None if unknown."""
        models = self._service.server_info.models
        return models[0].get("max_model_len") if models else None


def _prompt_ids(service: StreamService, read: CompletionRequest, principal: Principal) -> list[Sequence[int]]:
    """The tokens of each prompt; those of texts are encoded, which may take long.

    Raises:
        ParameterError: the target has no text service.
    """
    return [
        needed_text_service(service, "return_token_ids", principal).encode(prompt)
        if isinstance(prompt, str)
        else prompt
        for prompt in read.prompts
    ]


async def respond(
    request: Request,
    service: StreamService,
    asked: Asked,
    writer: Writer,
    tokens: TokenTexts,
    on_error: Callable[[BaseException], Sequence[bytes]] | None = None,
    form: StreamForm = SSE,
    *,
    heading_s: float = 0.0,
) -> Response:
    """Run the graph of a request and respond with its events, as `writer` shapes them.

    Args:
        on_error: the events that report an error after the start of a stream; see `SseResponse`.
        form: how the parts of a stream are written.
        heading_s: price of the fields of the request that the response, and the first and last events of a stream repeat.
    """
    principal = principal_of(request)
    if asked.is_stream:
        direct = DirectWriter()
        batches = asked_events(service, asked, principal, DirectEvents(direct, partial(encoded_chunks, writer, form)))
        groups = _chunk_groups(service, principal, batches, writer, tokens, form, heading_s)
        return SseResponse(groups, on_error=on_error, direct=direct, form=form)
    batches = asked_events(service, asked, principal)
    data = await unless_disconnected(request, _collected(service, principal, batches, writer, tokens, heading_s))
    if data is None:
        return Response(status_code=CLIENT_CLOSED)
    return Response(data, media_type="application/json")


async def _collected(
    service: StreamService,
    principal: Principal,
    batches: AsyncGenerator[list[Event], None],
    writer: Writer,
    tokens: TokenTexts,
    heading_s: float,
) -> bytes:
    """The JSON text of the response, made on a thread if it has long texts or log-probabilities."""
    found: list[Event] = []
    async with contextlib.aclosing(batches):
        async for events in batches:
            kept = [event for event in events if not isinstance(event, TextDelta)]
            await tokens.load(kept)
            found += kept
    return await service.encode(principal, found, lambda: json_bytes(writer.response(found)), more_s=heading_s)


async def _chunk_groups(
    service: StreamService,
    principal: Principal,
    batches: AsyncGenerator[list[Event], None],
    writer: Writer,
    tokens: TokenTexts,
    form: StreamForm,
    heading_s: float,
) -> AsyncGenerator[Sequence[bytes], None]:
    more_s = heading_s
    async with contextlib.aclosing(batches):
        async for events in batches:
            await tokens.load(events)
            encode = partial(encoded_chunks, writer, form, events)
            if any(isinstance(event, NodeFinished) for event in events):
                more_s = heading_s
            group = await service.encode(principal, events, encode, more_s=more_s)
            more_s = 0.0 if group else more_s
            if isinstance(events[-1], GraphFinished):
                last = [
                    form.encode(chunk, chunk.get("type")).encode(errors="replace") for chunk in writer.last_chunks()
                ]
                yield [group, *last, form.end]  # at once: each group takes a task
            elif group:
                yield (group,)


def encoded_chunks(writer: Writer, form: StreamForm, events: Sequence[Event]) -> bytes:
    """The parts of a stream for some events of its graph."""
    found: list[str] = []
    for event in events:
        text = writer.text_event(event) if isinstance(event, TextDelta) else None
        found += [form.encode(chunk, chunk.get("type")) for chunk in writer.chunks(event)] if text is None else [text]
    return "".join(found).encode(errors="replace")
