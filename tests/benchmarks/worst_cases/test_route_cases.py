"""Requests of the cases to the routes of a server."""

from __future__ import annotations

import asyncio
from random import Random

from starlette.routing import Match, Route

from rtlang.contract.config import ServeConfig
from rtlang.contract.service.metrics import Metrics
from rtlang.serve.connection import ServerInfo
from rtlang.serve.http.app import create_app
from rtlang.serve.service import StreamService
from rtlang_bench.worst_cases.draws import Draws
from rtlang_bench.worst_cases.requests import HttpRequest
from rtlang_bench.worst_cases.route_cases import ROUTES, route_requests
from tests.support.programs.scripted_target import ScriptedTarget


async def routes() -> list[Route]:
    loop = asyncio.get_running_loop()
    service = StreamService(ScriptedTarget(), ServeConfig(port=0), ServerInfo("epoch"), Metrics(), loop)
    return [each for each in create_app(service).routes if isinstance(each, Route)]


def reached(request: HttpRequest, route: Route) -> bool:
    scope = {"type": "http", "path": request.path.partition("?")[0], "method": request.method}
    return route.matches(scope)[0] is not Match.NONE


FUZZED_ELSEWHERE = (
    *("/v1/responses", "/v1/conversations"),  # tests/serve/http/routes/test_responses_fuzz.py
    "/v1/messages",  # tests/serve/http/routes/test_anthropic.py
    *("/v1/files", "/v1/batches"),  # tests/serve/http/routes/test_batches.py
    "/api/",  # tests/serve/http/routes/test_ollama.py
    *("/score", "/v1/score", "/rerank", "/v1/rerank", "/classify", "/v1/classify", "/pooling", "/v1/pooling"),
    *("/v1/sessions", "/openapi.json"),  # they take no input
)


def test_every_route_of_a_server_gets_requests() -> None:
    missing = asyncio.run(routes())
    for name in ROUTES:
        for seed in range(60):
            sent = route_requests(Draws(Random(f"{name}/{seed}")), name)[0]
            known, missing = len(missing), [route for route in missing if not reached(sent, route)]
            if len(missing) == known and seed >= 12 and name not in ("operations", "programs", "cache"):
                break
    assert [route.path for route in missing if not route.path.startswith(FUZZED_ELSEWHERE)] == []


def test_requests_are_sent_at_once_and_some_leave_early() -> None:
    feeds = [route_requests(Draws(Random(seed)), "feed") for seed in range(20)]
    assert max(map(len, feeds)) > 50
    assert all(each.leaves_after is not None for group in feeds for each in group)
