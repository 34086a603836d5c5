"""`/score` and `/v1/score`, and the routes of the same family that need models of another kind."""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable
from functools import partial

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.serve.http.body import read_map, reading_price
from rtlang.serve.http.client_work import run_for
from rtlang.serve.http.errors import HttpError
from rtlang.serve.http.middleware.access_middleware import principal_of
from rtlang.serve.http.routes.openai import respond
from rtlang.serve.http.text_models import TokenTexts, served_model
from rtlang.serve.openai import scores
from rtlang.serve.openai.scores import ScoreWriter, read_score
from rtlang.serve.openai.shapes import Heading
from rtlang.serve.records.request_record import request_id
from rtlang.serve.service import StreamService

_OTHERS = {
    "rerank": "reranking needs a cross-encoder; the likelihood of texts after a prompt is at /v1/score",
    "classify": "classification needs a model with labels; the likelihood of labels after a prompt is at /v1/score",
    "pooling": "this server computes no embeddings: its models are trained to generate text",
}

TABLES = {
    "POST /score": scores.FIELDS,
    "POST /v1/score": scores.FIELDS,
}
"""The fields of the bodies, by method and path."""


def routes(service: StreamService) -> list[Route]:
    """The routes of a server."""

    async def score(request: Request) -> Response:
        body = await read_map(request, service)
        reading = partial(read_score, body)
        read = await run_for(request, service, reading_price(request), reading, kind=WorkKind.READ)
        name = served_model(service, read.asked.model)
        heading = Heading(f"score-{request_id() or secrets.token_hex(12)}", int(time.time()), name)
        tokens = TokenTexts(service, principal_of(request), None)
        return await respond(request, service, read.asked, ScoreWriter(read, heading), tokens)

    found = [Route(f"{prefix}/score", score, methods=["POST"]) for prefix in ("", "/v1")]
    for name, reason in _OTHERS.items():
        found += [Route(f"{prefix}/{name}", _refusing(reason), methods=["POST"]) for prefix in ("", "/v1")]
    return found


def _refusing(reason: str) -> Callable[[Request], Awaitable[Response]]:
    async def refuse(request: Request) -> Response:
        raise HttpError(404, reason, code="not_supported", param="model")

    return refuse
