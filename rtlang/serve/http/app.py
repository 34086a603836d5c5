"""The ASGI application of a server: the routes of all groups behind access control."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Route

from rtlang.contract.errors import RtlangError
from rtlang.serve.http.errors import FaultMiddleware, HttpError, http_exception_response, raised_error_response
from rtlang.serve.http.middleware.access_middleware import AccessMiddleware
from rtlang.serve.http.middleware.anthropic_middleware import AnthropicMiddleware
from rtlang.serve.http.middleware.request_middleware import RequestMiddleware
from rtlang.serve.http.openapi import description_route
from rtlang.serve.http.routes import anthropic as routes_anthropic
from rtlang.serve.http.routes import batches as routes_batches
from rtlang.serve.http.routes import cache as routes_cache
from rtlang.serve.http.routes import conversations as routes_conversations
from rtlang.serve.http.routes import files as routes_files
from rtlang.serve.http.routes import live_view as routes_live_view
from rtlang.serve.http.routes import ollama as routes_ollama
from rtlang.serve.http.routes import openai as routes_openai
from rtlang.serve.http.routes import operations as routes_operations
from rtlang.serve.http.routes import programs as routes_programs
from rtlang.serve.http.routes import responses as routes_responses
from rtlang.serve.http.routes import scores as routes_scores
from rtlang.serve.http.routes import sglang as routes_sglang
from rtlang.serve.http.routes import tokens as routes_tokens
from rtlang.serve.openai.fields import FieldTable
from rtlang.serve.service import StreamService

GROUPS: tuple[Callable[[StreamService], list[Route]], ...] = (
    routes_operations.routes,
    routes_openai.routes,
    routes_responses.routes,
    routes_conversations.routes,
    routes_anthropic.routes,
    routes_files.routes,
    routes_batches.routes,
    routes_ollama.routes,
    routes_scores.routes,
    routes_tokens.routes,
    routes_cache.routes,
    routes_sglang.routes,
    routes_programs.routes,
    routes_live_view.routes,
)
"""The route groups; each module makes its routes for a service."""
TABLES: Mapping[str, FieldTable] = {
    name: table
    for tables in (
        routes_openai.TABLES,
        routes_responses.TABLES,
        routes_conversations.TABLES,
        routes_anthropic.TABLES,
        routes_batches.TABLES,
        routes_scores.TABLES,
        routes_ollama.TABLES,
        routes_tokens.TABLES,
        routes_cache.TABLES,
        routes_sglang.TABLES,
        routes_programs.TABLES,
    )
    for name, table in tables.items()
}
"""The fields of the bodies, by method and path, such as `POST /v1/completions`."""


def create_app(service: StreamService) -> Starlette:
    """The ASGI application of a server."""
    all_routes = [route for group in GROUPS for route in group(service)]
    service.routes = all_routes
    all_routes.append(description_route(service, all_routes, TABLES))
    return Starlette(
        routes=all_routes,
        middleware=[
            Middleware(RequestMiddleware, records=service.records, routes=all_routes),
            Middleware(AnthropicMiddleware),
            Middleware(AccessMiddleware, config=service.config, keys=service.keys),
            Middleware(FaultMiddleware),
        ],
        exception_handlers={
            RtlangError: raised_error_response,
            HttpError: raised_error_response,
            HTTPException: http_exception_response,
        },
    )
