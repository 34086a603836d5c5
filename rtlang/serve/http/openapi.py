"""The description of a server's routes as an OpenAPI document, at `/openapi.json`.

The fields of each body come from its `FieldTable`, so the description and the code that reads the bodies are one. `x-rtlang` says of each
field how it is taken: accepted, fixed (only with the values of its `enum`), hint (never changes the text), or refused. A field that is not
listed is refused, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rtlang.contract import version
from rtlang.contract.accounts.request_account import WorkKind
from rtlang.serve.http.client_work import run_for
from rtlang.serve.http.middleware.access_middleware import OPEN_PATHS
from rtlang.serve.openai.fields import FieldTable
from rtlang.serve.service import StreamService

PATH = "/openapi.json"
DESCRIPTION_S = 0.005
"""Price of the description."""
_PARAMETER = re.compile(r"\{(\w+)(?::\w+)?\}")
_NUMBER, _INTEGER, _TEXT, _FLAG, _LIST, _OBJECT = (
    {"type": name} for name in ("number", "integer", "string", "boolean", "array", "object")
)
_TYPES: Mapping[str, Mapping[str, str]] = {
    **dict.fromkeys(("model", "instructions", "cache_salt", "previous_response_id", "chat_template", "ebnf"), _TEXT),
    **dict.fromkeys(
        ("temperature", "top_p", "min_p", "frequency_penalty", "presence_penalty", "repetition_penalty"), _NUMBER
    ),
    **dict.fromkeys(
        ("n", "top_k", "seed", "max_tokens", "max_completion_tokens", "max_output_tokens", "priority"), _INTEGER
    ),
    **dict.fromkeys(("stream", "ignore_eos", "parallel_tool_calls", "store", "background"), _FLAG),
    **dict.fromkeys(("messages", "tools", "include"), _LIST),
    **dict.fromkeys(("stream_options", "response_format", "chat_template_kwargs", "logit_bias", "metadata"), _OBJECT),
}
"""Types of fields that are the same on all routes."""


class FieldEntry(NamedTuple):
    """One field of a body.

    Attributes:
        taken: accepted, fixed, hint or refused.
        note: the allowed values of a fixed field, or the reason of a refusal; else empty.
    """

    name: str
    taken: str
    note: str = ""


def entries(table: FieldTable) -> Iterator[FieldEntry]:
    """The fields of a table, in alphabetical order within each kind."""
    for name in sorted(table.accepted):
        yield FieldEntry(name, "accepted")
    for name, allowed in sorted(table.fixed.items()):
        yield FieldEntry(name, "fixed", " or ".join(json.dumps(value, ensure_ascii=False) for value in allowed))
    for name in sorted(table.hints - table.accepted):
        yield FieldEntry(name, "hint")
    for name, reason in sorted(table.refused.items()):
        yield FieldEntry(name, "refused", reason)


def description(routes: Sequence[Route], tables: Mapping[str, FieldTable]) -> dict[str, Any]:
    """The OpenAPI document.

    Args:
        tables: the fields of the bodies, by method and path as the routes have them.
    """
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        path = _PARAMETER.sub(r"{\1}", route.path)
        for method in sorted(set(route.methods or ()) - {"HEAD"}):
            found = _operation(route, tables.get(f"{method} {route.path}"), method)
            paths.setdefault(path, {})[method.lower()] = found
    return {
        "openapi": "3.1.0",
        "info": {"title": "rtlang", "version": version.VERSION},
        "paths": paths,
        "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    }


def _operation(route: Route, table: FieldTable | None, method: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": f"{method.lower()}{re.sub('[^a-zA-Z0-9]+', '_', route.path)}",
        "responses": {"default": {"description": "the result, or an error"}},
        "security": [] if route.path in OPEN_PATHS else [{"key": []}],
    }
    names = _PARAMETER.findall(route.path)
    if names:
        found["parameters"] = [{"name": name, "in": "path", "required": True, "schema": _TEXT} for name in names]
    if table is not None:
        schema = {
            "type": "object",
            "properties": {entry.name: _property(entry, table) for entry in entries(table)},
            "additionalProperties": False,
        }
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return found


def _property(entry: FieldEntry, table: FieldTable) -> dict[str, Any]:
    found: dict[str, Any] = {"x-rtlang": entry.taken}
    match entry.taken:
        case "accepted":
            found |= _TYPES.get(entry.name, {})
        case "fixed":
            found["enum"] = [*table.fixed[entry.name], None]
        case "hint":
            found["description"] = "never changes the text"
        case _:
            found |= {"description": entry.note, "const": None}
    return found


def _encoded(routes: Sequence[Route], tables: Mapping[str, FieldTable]) -> bytes:
    return json.dumps(description(routes, tables), ensure_ascii=False).encode()


def description_route(service: StreamService, routes: Sequence[Route], tables: Mapping[str, FieldTable]) -> Route:
    """The route of the description, which is made once."""
    made: list[bytes] = []

    async def describe(request: Request) -> Response:
        if not made:  # it takes milliseconds
            write = partial(_encoded, routes, tables)
            made.append(await run_for(request, service, DESCRIPTION_S, write, kind=WorkKind.OTHER, may_wait=True))
        return Response(made[0], media_type="application/json")

    return Route(PATH, describe)
