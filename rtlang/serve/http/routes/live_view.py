"""The live page at `/`, the snapshots of the engine that it shows (`/v1/engine/snapshot`, `/v1/engine/snapshot/stream`), the sessions
among them (`/v1/sessions`), and the JavaScript client at `/rtlang.js`.

The page loads nothing but that client. Its Content-Security-Policy allows the scripts and the style in it by their hashes, and scripts
of and connections to this server; nothing else is loaded or run, and no other site may frame it. It is served without a key, because it
holds nothing but itself; everything that it shows comes from routes behind the key.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from functools import cache, partial
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.contract.errors import EngineDeadError
from rtlang.contract.runs.principal import Principal
from rtlang.contract.service.fleet_report import ReplicaReport, ReportsFleet
from rtlang.contract.service.snapshot import Watchable
from rtlang.serve.http.errors import HttpError
from rtlang.serve.http.events.direct_events import DirectWriter
from rtlang.serve.http.events.snapshot_feed import Sample, SnapshotFeed
from rtlang.serve.http.events.sse import SseResponse
from rtlang.serve.http.middleware.access_middleware import principal_of
from rtlang.serve.service import StreamService
from rtlang.work.fair_queue import owner_of
from rtlang.work.prices import CALL_S

MAX_WATCHERS = 512
"""Snapshot streams at one time."""
MAX_WATCHERS_EACH = 256
"""Snapshot streams of one principal, which share their snapshots."""
MAX_FEEDS = 64
"""Views of the engine that are kept, by principal and replica; one in use stays with its readers."""
DEFAULT_INTERVAL_MS, MIN_INTERVAL_MS, MAX_INTERVAL_MS = 250, 100, 10_000
_INLINE = re.compile(r"<(script|style)>(.*?)</\1>", re.DOTALL)


@cache
def live_page() -> tuple[str, dict[str, str]]:
    """The page and its response headers."""
    page = (files("rtlang.serve.http") / "live_page.html").read_text(encoding="utf-8")
    hashes: dict[str, list[str]] = {"script": [], "style": []}
    for kind, text in _INLINE.findall(page):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        hashes[kind].append(f"'sha256-{digest}'")
    policy = (
        "default-src 'none'",
        f"script-src 'self' {' '.join(hashes['script'])}",
        f"style-src {' '.join(hashes['style'])}",
        "connect-src 'self'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    )
    return page, {
        "content-security-policy": "; ".join(policy),
        "cache-control": "no-cache",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "cross-origin-opener-policy": "same-origin",
    }


def routes(service: StreamService) -> list[Route]:
    """The routes of a server."""
    # By the names of the principal and the replica.
    feeds: OrderedDict[tuple[str, str | None], SnapshotFeed] = OrderedDict()
    watchers: Counter[str] = Counter()  # by the name of the principal

    def start(principal: Principal, take: Callable[[], Sample | None]) -> asyncio.Future[Sample | None]:
        return service.work.start(owner_of(principal), CALL_S, take, kind=WorkKind.SNAPSHOT)

    def feed_of(request: Request) -> SnapshotFeed:
        principal, replica = replace(principal_of(request), client=""), _replica(request, service)
        key = principal.name, replica
        feed = feeds.get(key)
        if feed is None or feed.principal != principal:  # its settings may have changed
            watched, ending = partial(start, principal), partial(is_ending, principal)
            feed = feeds[key] = SnapshotFeed(service.target, watched, principal, replica, ending)
        feeds.move_to_end(key)
        if len(feeds) > MAX_FEEDS:
            feeds.popitem(last=False)
        return feed

    def is_ending(principal: Principal) -> bool:
        return service.is_draining or service.keys.current(principal) is None

    async def first_sample(feed: SnapshotFeed) -> Sample:
        sample = None
        with suppress(EngineDeadError):
            sample = await feed.sample()
        if sample is None:
            raise _nothing_to_watch(service)
        return sample

    async def page(request: Request) -> Response:
        text, headers = live_page()
        return Response(text, media_type="text/html; charset=utf-8", headers=headers)

    async def client(request: Request) -> Response:
        source = (files("rtlang") / "client" / "js" / "rtlang.js").read_bytes()
        headers = {"cache-control": "no-cache", "x-content-type-options": "nosniff"}
        return Response(source, media_type="text/javascript; charset=utf-8", headers=headers)

    async def snapshot(request: Request) -> Response:
        sample = await first_sample(feed_of(request))
        return Response(sample.json_after(0), media_type="application/json", headers={"cache-control": "no-store"})

    async def sessions(request: Request) -> Response:
        sample = await first_sample(feed_of(request))
        return Response(sample.sessions, media_type="application/json", headers={"cache-control": "no-store"})

    async def stream(request: Request) -> Response:
        interval_s = _interval_ms(request.query_params.get("interval_ms")) / 1000
        feed = feed_of(request)
        for number, limit in ((watchers[feed.principal.name], MAX_WATCHERS_EACH), (watchers.total(), MAX_WATCHERS)):
            if number >= limit:
                raise HttpError(429, f"{limit} streams of snapshots are open already", code="overload")
        direct = DirectWriter()
        return SseResponse(events(feed, interval_s, direct), direct=direct)

    async def events(
        feed: SnapshotFeed, interval_s: float, direct: DirectWriter
    ) -> AsyncGenerator[Sequence[bytes], None]:
        name = feed.principal.name
        watchers[name] += 1
        try:
            await first_sample(feed)
            async with aclosing(feed.changes(interval_s, direct)) as changes:
                async for group in changes:  # its end: the client asks again, and is told why there is nothing
                    yield group
        finally:
            watchers[name] -= 1
            if not watchers[name]:
                del watchers[name]

    return [
        Route("/", page),
        Route("/rtlang.js", client),
        Route("/v1/sessions", sessions),
        Route("/v1/engine/snapshot", snapshot),
        Route("/v1/engine/snapshot/stream", stream),
    ]


def _nothing_to_watch(service: StreamService) -> HttpError:
    if isinstance(service.target, Watchable):
        return HttpError(503, "no engine is running at present; try again later", code=EngineDeadError.code)
    return HttpError(404, "this server has no engine to watch", code="not_found")


def _replica(request: Request, service: StreamService) -> str | None:
    """The replica that the request names, else the first of a fleet that is ready; None if there is none."""
    name = request.query_params.get("replica")
    if name is None:
        return next((each.name for each in _replicas(service) if each.state == "ready"), None)
    names = [each.name for each in _replicas(service)]
    if name not in names:
        known = f"expected one of {', '.join(names[:20])}" if names else "this server runs no fleet"
        raise HttpError(404, f"replica = {name[:40]!r}: {known}", code="not_found", param="replica")
    return name


def _replicas(service: StreamService) -> tuple[ReplicaReport, ...]:
    return service.target.fleet_report().replicas if isinstance(service.target, ReportsFleet) else ()


def _interval_ms(given: str | None) -> int:
    if given is None:
        return DEFAULT_INTERVAL_MS
    if not re.fullmatch("[0-9]{1,6}", given) or not MIN_INTERVAL_MS <= int(given) <= MAX_INTERVAL_MS:
        allowed = f"expected an integer from {MIN_INTERVAL_MS} to {MAX_INTERVAL_MS}"
        raise HttpError(400, f"interval_ms = {given[:40]!r}: {allowed}", code="parameter", param="interval_ms")
    return int(given)
