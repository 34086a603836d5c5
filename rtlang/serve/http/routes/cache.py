"""The routes about the prefix cache: `/v1/cache/explain`, `/v1/cache/pins` and `/v1/cache/tree`.

Each answers for the principal of the key: with its own prompts, pins and nodes, and with nothing that depends on other namespaces. A
principal has few calls at a time, since they encode texts and are answered between two steps.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.contract.errors import OverloadError, ParameterError, RtlangError
from rtlang.contract.graph.nodes import Part
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Generate, RequestGraph, Text
from rtlang.contract.runs.principal import Principal
from rtlang.contract.runs.run_options import RunOptions
from rtlang.contract.service.cache_service import (
    DEFAULT_TTL_S,
    CacheService,
    cache_service_of,
    checked_max_nodes,
    checked_ttl_s,
)
from rtlang.contract.service.generation import GENERATE_ID, PROMPT_ID, token_ids_part
from rtlang.protocol.event_codec import error_facts_to_wire
from rtlang.serve.http.body import read_map, reading_price
from rtlang.serve.http.client_work import run_for
from rtlang.serve.http.errors import HttpError, described_error, response_of
from rtlang.serve.http.events.graph_stream import events_of
from rtlang.serve.http.events.sse import unless_disconnected
from rtlang.serve.http.middleware.access_middleware import principal_of
from rtlang.serve.http.routes.tokens import text_service
from rtlang.serve.http.text_models import served_model
from rtlang.serve.json_parts import json_bytes
from rtlang.serve.openai.fields import SALTS, FieldTable, read_bool, read_cache_salt, read_list
from rtlang.serve.openai.messages import read_messages
from rtlang.serve.openai.tools import read_tool_request
from rtlang.serve.records.request_record import CLIENT_CLOSED
from rtlang.serve.service import StreamService
from rtlang.work.prices import CALL_S, ITEM_S, NODE_JSON_S

MAX_EACH = 4
"""Calls of one principal that run or wait."""
DEFAULT_NODES = 1000
_RETRY_S = 1.0
_PROMPT = ("prompt", "messages", "tools", "token_ids")
_EXPLAIN = FieldTable(accepted=frozenset(("model", *_PROMPT, *SALTS)))
_PIN = FieldTable(accepted=frozenset(("model", *_PROMPT, *SALTS, "ttl_s", "computes")))
TABLES = {"POST /v1/cache/explain": _EXPLAIN, "POST /v1/cache/pins": _PIN}
"""The fields of the bodies, by method and path."""
_Handler = Callable[[Request], Awaitable[Response]]
_T = TypeVar("_T")


def routes(service: StreamService) -> list[Route]:
    """The routes of a server."""
    num_calls: Counter[str] = Counter()  # by the name of the principal

    @asynccontextmanager
    async def place(principal: Principal) -> AsyncIterator[None]:
        """One of the calls of a principal."""
        name = principal.name
        if num_calls[name] >= MAX_EACH:
            raise OverloadError(f"{name} has {MAX_EACH} calls about the cache already", _RETRY_S)
        num_calls[name] += 1
        try:
            yield
        finally:
            num_calls[name] -= 1
            if not num_calls[name]:
                del num_calls[name]

    async def ask(request: Request, call: Callable[[CacheService], _T]) -> _T:
        """Call the cache on a thread, when it is the principal's turn."""

        def work() -> _T:
            found = cache_service_of(service.target)
            if found is None:
                raise HttpError(501, "the target of this server has no prefix cache to ask", code="no_cache")
            return call(found)

        return await run_for(request, service, CALL_S, work, kind=WorkKind.CACHE, may_wait=True)

    async def explain(request: Request) -> Response:
        given = _EXPLAIN.given(await read_map(request, service))
        served_model(service, given.get("model"))
        principal = _salted(principal_of(request), given)
        async with place(principal):
            parts = await _parts(service, given, request)
            found = await ask(request, lambda cache: cache.explain(parts, principal))
        return JSONResponse(found.to_plain())

    async def pin(request: Request) -> Response:
        given = _PIN.given(await read_map(request, service))
        served_model(service, given.get("model"))
        principal = _salted(principal_of(request), given)
        ttl_s, computes = checked_ttl_s(given.get("ttl_s", DEFAULT_TTL_S)), read_bool(given, "computes", True)
        async with place(principal):
            parts = await _parts(service, given, request)
            if computes and await unless_disconnected(request, _computed(service, parts, principal)) is None:
                return Response(status_code=CLIENT_CLOSED)
            grant = await ask(request, lambda cache: cache.pin(parts, ttl_s, principal))
        return JSONResponse(grant.to_plain(), status_code=201, headers={"location": f"/v1/cache/pins/{grant.pin_id}"})

    async def pins(request: Request) -> Response:
        principal = principal_of(request)
        async with place(principal):
            found = await ask(request, lambda cache: cache.pins(principal))
        return JSONResponse({"pins": [each.to_plain() for each in found]})

    async def one_pin(request: Request) -> Response:
        principal, pin_id = principal_of(request), request.path_params["pin_id"]
        async with place(principal):
            if request.method == "DELETE":
                if await ask(request, lambda cache: cache.unpin(pin_id, principal)):
                    return Response(status_code=204)
            else:
                for each in await ask(request, lambda cache: cache.pins(principal)):
                    if each.pin_id == pin_id:
                        return JSONResponse(each.to_plain())
        raise HttpError(404, "unknown or expired pin", code="not_found", param="pin_id")

    async def tree(request: Request) -> Response:
        principal = principal_of(request)
        max_nodes = _max_nodes(request.query_params.get("max_nodes"))
        async with place(principal):
            found = await ask(request, lambda cache: cache.tree(max_nodes, principal))
            price = len(found) * NODE_JSON_S
            data = await run_for(request, service, price, lambda: json_bytes({"nodes": found}), kind=WorkKind.REPLY)
            return Response(data, media_type="application/json")

    return [
        Route("/v1/cache/explain", _with_facts(explain), methods=["POST"]),
        Route("/v1/cache/pins", _with_facts(pin), methods=["POST"]),
        Route("/v1/cache/pins", _with_facts(pins)),
        Route("/v1/cache/pins/{pin_id}", _with_facts(one_pin), methods=["GET", "DELETE"]),
        Route("/v1/cache/tree", _with_facts(tree)),
    ]


def _with_facts(handler: _Handler) -> _Handler:
    """A handler whose error responses have the facts of the error, as messages of the WebSocket do: clients raise it again."""

    async def handle(request: Request) -> Response:
        try:
            return await handler(request)
        except RtlangError as error:
            response = response_of(error)
            if response.status_code >= 500:  # its cause is in the log only
                return response
            body = described_error(error)[1]
            body["error"]["facts"] = error_facts_to_wire(error)["facts"]
            headers = {name: value for name, value in response.headers.items() if name == "retry-after"}
            return JSONResponse(body, response.status_code, headers)

    return handle


def _salted(principal: Principal, given: Mapping[str, Any]) -> Principal:
    salt = read_cache_salt(given)
    return principal if salt is None else principal.salted(salt)


async def _parts(service: StreamService, given: Mapping[str, Any], request: Request) -> list[Part]:
    """The prompt of a request: a text, chat messages, or tokens."""
    kinds = [name for name in ("prompt", "messages", "token_ids") if name in given]
    if len(kinds) != 1:
        raise ParameterError("prompt", given.get("prompt"), "expected exactly one of prompt, messages and token_ids")
    kind = kinds[0]
    if "tools" in given and kind != "messages":
        raise ParameterError("tools", given["tools"], "allowed only with messages")
    if kind == "prompt":
        prompt = given["prompt"]
        if not isinstance(prompt, str) or not prompt:
            raise ParameterError("prompt", prompt, "expected a string that is not empty")
        return [prompt]
    if kind == "token_ids":
        ids = read_list(given, "token_ids")
        if not ids:
            raise ParameterError("token_ids", ids, "expected at least one token")
        check, price = partial(token_ids_part, ids), len(ids) * ITEM_S
        return [await run_for(request, service, price, check, kind=WorkKind.READ)]
    texts = await text_service(service, request)

    def read() -> list[Part]:
        tools = read_tool_request({"tools": given["tools"]} if "tools" in given else {}).text
        return list(read_messages(given, tools, service.target.tool_format, texts, end="prompt"))

    return await run_for(request, service, reading_price(request), read, kind=WorkKind.READ, may_wait=True)


async def _computed(service: StreamService, parts: list[Part], principal: Principal) -> bool:
    """Compute a prompt, as a request of the principal. True when it is done.

    Raises:
        RtlangError: it cannot be computed.
    """
    generate = Generate(GENERATE_ID, PROMPT_ID, None, SamplingParams(max_tokens=1))
    graph = RequestGraph((Text(PROMPT_ID, None, tuple(parts)), generate))
    async for event in events_of(service, graph, RunOptions(principal=principal)):
        error = getattr(event, "error", None)
        if isinstance(error, RtlangError):
            raise error
    return True


def _max_nodes(given: str | None) -> int:
    if given is None:
        return DEFAULT_NODES
    return checked_max_nodes(int(given) if re.fullmatch("[0-9]{1,6}", given) else given[:40])
