"""The routes that clients of SGLang's runtime use: `/generate`, `/get_model_info`, `/server_info`, `/flush_cache`, `/health_generate`.

They are behind the key, and `sglang_routes = False` leaves them out.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Callable, Sequence
from functools import partial

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rtlang.contract import version
from rtlang.contract.accounts.request_account import WorkKind
from rtlang.contract.errors import RtlangError
from rtlang.contract.events import Event, TextDelta
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Generate, RequestGraph, Text
from rtlang.contract.runs.run_options import RunOptions
from rtlang.serve.http.body import read_map, reading_price
from rtlang.serve.http.client_work import run_for
from rtlang.serve.http.errors import HttpError
from rtlang.serve.http.events.graph_stream import GraphStream, events_of
from rtlang.serve.http.events.sse import DONE, SseResponse, sse_data, unless_disconnected
from rtlang.serve.http.middleware.access_middleware import principal_of
from rtlang.serve.http.routes.tokens import text_service
from rtlang.serve.records.request_record import CLIENT_CLOSED, request_id
from rtlang.serve.service import StreamService
from rtlang.serve.sglang.generate_replies import GenerateReply
from rtlang.serve.sglang.generate_requests import FIELDS, GenerateRequest, generate_graph, read_generate
from rtlang.work.prices import CALL_S, TOKENIZE_S_PER_CHAR, events_price

_HEALTH_DEADLINE_S = 20.0
TABLES = {"POST /generate": FIELDS}
"""The fields of the bodies, by method and path."""


def routes(service: StreamService) -> list[Route]:
    """The routes of a server."""

    async def generate(request: Request) -> Response:
        body, principal = await read_map(request, service), principal_of(request)
        reading = partial(read_generate, body, parses_special=service.config.parse_special)
        asked = await run_for(request, service, reading_price(request), reading, kind=WorkKind.READ)
        texts = None
        if asked.needs_ids or asked.has_text:
            texts = await text_service(service, request)
        ids: dict[int, list[int]] = {}
        if texts is not None and asked.needs_ids:
            special = asked.parses_special
            prompts = [(i, asked.items[i].prompt) for i in asked.needs_ids]
            encode = texts.encode
            ids = await run_for(
                request,
                service,
                request.state.num_body_bytes * TOKENIZE_S_PER_CHAR,
                lambda: {i: encode(text, allow_special=special) for i, text in prompts if isinstance(text, str)},
                kind=WorkKind.TOKENIZE,
                may_wait=True,
            )

        def token_texts(token_ids: Sequence[int]) -> list[str]:
            assert texts is not None
            return [each.decode(errors="replace") for each in texts.token_bytes(token_ids)]

        reply = GenerateReply(asked, ids, token_texts, request_id() or secrets.token_hex(16))
        options = RunOptions(priority=asked.priority, principal=principal, cache_salt=asked.cache_salt)
        making = partial(generate_graph, asked, ids)
        graph = await run_for(request, service, reading_price(request), making, kind=WorkKind.READ)
        if asked.is_stream:
            groups = _chunks(service, graph, reply, asked, options)
            return SseResponse(groups)
        events = await unless_disconnected(request, _all_events(service, graph, options))
        if events is None:
            return Response(status_code=CLIENT_CLOSED)

        def respond() -> bytes:
            for event in events:
                reply.take(event)
            return reply.response

        price = events_price(events)
        data = await run_for(
            request, service, price, respond, kind=WorkKind.REPLY, may_wait=asked.has_text, is_bounded=False
        )
        return Response(data, media_type="application/json")

    async def model_info(request: Request) -> Response:
        name = service.server_info.models[0].get("model") if service.server_info.models else "unknown"
        return JSONResponse(
            {
                "model_path": name,
                "tokenizer_path": name,
                "is_generation": True,
                "preferred_sampling_params": None,
                "has_image_understanding": False,
                "has_audio_understanding": False,
            }
        )

    async def server_info(request: Request) -> Response:
        return JSONResponse(
            {
                "version": version.VERSION,
                "epoch": service.server_info.epoch,
                "models": [dict(model) for model in service.server_info.models],
                "limits": dict(service.server_info.limits),
            }
        )

    async def flush_cache(request: Request) -> Response:
        if service.keys.is_shared:
            raise HttpError(403, "the cache of several principals is not cleared for one of them", code="shared_cache")
        clear: Callable[[], None] | None = getattr(service.target, "clear_cache", None)
        if clear is None:
            raise HttpError(501, "the target of this server has no cache to clear", code="no_cache")
        await run_for(request, service, CALL_S, clear, kind=WorkKind.CACHE, may_wait=True)
        return Response("The cache was cleared.\n", media_type="text/plain")

    async def health_generate(request: Request) -> Response:
        nodes = (Text(0, None, ("0",)), Generate(1, 0, None, SamplingParams(max_tokens=1, ignore_eos=True)))
        options = RunOptions(deadline_s=_HEALTH_DEADLINE_S, principal=principal_of(request))
        for event in await _all_events(service, RequestGraph(nodes), options):
            error = getattr(event, "error", None)
            if isinstance(error, RtlangError):
                raise error
        return Response()

    if not service.config.sglang_routes:
        return []
    return [
        Route("/generate", generate, methods=["POST", "PUT"]),
        Route("/get_model_info", model_info),
        Route("/model_info", model_info),
        Route("/server_info", server_info),
        Route("/get_server_info", server_info),
        Route("/flush_cache", flush_cache, methods=["GET", "POST"]),
        Route("/health_generate", health_generate),
    ]


async def _all_events(service: StreamService, graph: RequestGraph, options: RunOptions) -> list[Event]:
    """The events of a graph, but for its text as it grows."""
    return [event async for event in events_of(service, graph, options) if not isinstance(event, TextDelta)]


async def _chunks(
    service: StreamService,
    graph: RequestGraph,
    reply: GenerateReply,
    asked: GenerateRequest,
    options: RunOptions,
) -> AsyncGenerator[Sequence[bytes], None]:
    may_wait = any(item.has_logprobs for item in asked.items)  # for the texts of their tokens
    async with GraphStream(service, graph, options) as stream:
        async for events in stream.batches():

            def encode(events: list[Event] = events) -> list[bytes]:
                changed = dict.fromkeys(number for event in events for number in reply.take(event))
                return [sse_data(reply.chunk(number)) for number in changed]

            if may_wait:
                price = events_price(events)
                yield await service.run(
                    stream.principal, price, encode, kind=WorkKind.REPLY, may_wait=True, is_bounded=False
                )
            else:
                yield await service.encode(stream.principal, events, encode)
    yield [DONE]
