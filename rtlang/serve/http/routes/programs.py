"""`/v1/programs`: request graphs over HTTP, their events as server-sent events.

`POST /v1/programs` starts a graph; the events are the messages `ack`, `delta`, `event` and `end` of `rtlang.v1` without the stream id. The
id of an event is `rid:k`, where k counts the messages behind the `ack` up to this one. With `detach_ms`, a graph whose client has left runs
on for that time, and a request with the header `Last-Event-ID: rid:k` receives what follows the message k.
`POST /v1/programs/RID/ACTION` acts on a running graph: cancel, close, extend, resolve or reject.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.contract.errors import GraphError, RtlangError, SlowConsumerError
from rtlang.contract.events import Event, GraphFailed, GraphFinished
from rtlang.contract.request_graph import RequestGraph, nodes_from_plain
from rtlang.contract.runs.principal import Principal
from rtlang.contract.runs.run_options import RunOptions
from rtlang.contract.service.target import GraphRun
from rtlang.protocol.event_codec import Offsets, event_to_wire, lazy_logprobs, next_offset
from rtlang.protocol.messages import MAX_DETACH_MS, RejectCall, ResolveCall, parse_client_message
from rtlang.protocol.run_options import HTTP_FIELDS, options_from_http
from rtlang.protocol.serialization import Encoding
from rtlang.protocol.sliced_packing import pack_slices
from rtlang.serve.http.body import read_map, reading_price
from rtlang.serve.http.client_work import run_for
from rtlang.serve.http.errors import HttpError, draining_error
from rtlang.serve.http.events.graph_stream import EventBuffer
from rtlang.serve.http.events.sse import SseResponse, sse_event, unless_disconnected
from rtlang.serve.http.middleware.access_middleware import principal_of
from rtlang.serve.http.text_models import served_model
from rtlang.serve.json_parts import json_bytes
from rtlang.serve.openai.fields import FieldTable, read_bool, read_int, read_list
from rtlang.serve.records.request_record import CLIENT_CLOSED
from rtlang.serve.resumable import ResumableStream, cancel
from rtlang.serve.service import StreamService
from rtlang.work.prices import OUTCOME_S_PER_BYTE

_FIELDS = FieldTable(accepted=frozenset(("graph", "inputs", "open", "stream", "detach_ms", "model", *HTTP_FIELDS)))
_EXTEND = FieldTable(accepted=frozenset(("nodes", "close")))
TABLES = {"POST /v1/programs": _FIELDS}
"""The fields of the bodies, by method and path."""
_LEAST_KEPT_S = 1.0  # of streams that cannot be resumed; they are forgotten at the end of their response
_ACTIONS = ("cancel", "close", "extend", "resolve", "reject")


class ProgramStream(EventBuffer):
    """One response that reads a graph, which may go on without it.

    Attributes:
        number: see `StreamReader`.
        principal: the party whose request it is.
        run: the graph; None until it is submitted, and if it had ended before the response began.
    """

    def __init__(self, service: StreamService, principal: Principal) -> None:
        super().__init__(service)
        self.number, self.principal = next(service.numbers), principal
        self.run: GraphRun | None = None

    def lose_stream(self, stream: int, error: RtlangError) -> None:
        """End the response: another one reads the graph now."""
        self.error, self._has_ended = error, True
        self._arrived.set()

    def _overflow(self, error: SlowConsumerError) -> None:
        self.error = error  # the graph goes on if it can be resumed

    def _stop(self, error: RtlangError | HttpError) -> None:
        self.error = self.error or error
        if self.run is not None and not self._has_ended:
            cancel(self.run)
        self._has_ended = True
        self._arrived.set()


def routes(service: StreamService) -> list[Route]:
    """The routes of a server."""

    async def start(request: Request) -> Response:
        last = request.headers.get("last-event-id")
        if last:
            return resume(request, last)
        given = _FIELDS.given(await read_map(request, service))
        served_model(service, given.get("model"))
        detach_ms = read_int(given, "detach_ms", 1, MAX_DETACH_MS)
        is_stream = read_bool(given, "stream", True)
        if service.is_draining:
            raise draining_error(service.config.drain_timeout_s)
        principal = principal_of(request)
        reading = partial(_submission, given, principal)
        graph, options = await run_for(request, service, reading_price(request), reading, kind=WorkKind.READ)
        reader = ProgramStream(service, principal)
        registry = service.resumable_streams
        kept_s = _LEAST_KEPT_S if detach_ms is None else detach_ms / 1000
        stream = registry.begin(reader, 1, kept_s, None, principal)
        try:
            run = await service.submit(graph, service.event_bridge.routed(stream.take), options)
        except BaseException:
            stream.end()
            raise
        stream.begin(run)
        reader.run = run
        groups = _messages(service, stream, reader, may_resume=detach_ms is not None)
        if is_stream:
            return SseResponse(groups)
        encoded = await unless_disconnected(request, _collected(groups))
        if encoded is None:
            return Response(status_code=CLIENT_CLOSED)
        price = sum(map(len, encoded)) * OUTCOME_S_PER_BYTE
        work = partial(_outcome, encoded)
        data = await run_for(request, service, price, work, kind=WorkKind.REPLY, is_bounded=False)
        return Response(data, media_type="application/json")

    def resume(request: Request, last: str) -> Response:
        rid, _, count = last.rpartition(":")
        if not count.isascii() or not count.isdecimal() or len(count) > 15:
            raise HttpError(400, "Last-Event-ID: expected rid:number", code="invalid_value", param="Last-Event-ID")
        stream = _find(request, rid)
        reader = ProgramStream(service, principal_of(request))
        replay = stream.attach(reader, 1, int(count))
        reader.run = stream.run
        reader.deliver([(1, event) for event in replay.events])
        groups = _messages(service, stream, reader, position=int(count), offsets=dict(replay.offsets), may_resume=True)
        return SseResponse(groups)

    async def attach(request: Request) -> Response:
        last = request.headers.get("last-event-id") or f"{request.path_params['rid']}:0"
        return resume(request, last)

    async def act(request: Request) -> Response:
        action = request.path_params["action"]
        if action not in _ACTIONS:
            raise HttpError(404, f"no action {action!r:.80}: expected one of {', '.join(_ACTIONS)}", code="not_found")
        stream = _find(request, request.path_params["rid"])
        body, price = dict[str, Any](), 0.0
        if action not in ("cancel", "close"):
            body = await read_map(request, service)
            price = reading_price(request)
        run = stream.run
        if run is None:
            raise GraphError(None, "rid", "the graph has ended")
        perform = partial(_extend, run, body) if action == "extend" else partial(_perform, run, action, body)
        await run_for(request, service, price, perform, kind=WorkKind.SUBMIT)
        return JSONResponse({"ok": True})

    def _find(request: Request, rid: str) -> ResumableStream:
        return service.resumable_streams.find(rid, service.server_info.epoch, principal_of(request))

    return [
        Route("/v1/programs", start, methods=["POST"]),
        Route("/v1/programs/{rid}", attach, methods=["GET"]),
        Route("/v1/programs/{rid}/{action}", act, methods=["POST"]),
    ]


def _submission(given: Mapping[str, Any], principal: Principal) -> tuple[RequestGraph, RunOptions]:
    plain = given.get("graph")
    if not isinstance(plain, Mapping):
        raise GraphError(None, "graph", f"expected an object, not {type(plain).__name__}")
    inputs = given.get("inputs", {})
    if not isinstance(inputs, Mapping) or not all(isinstance(text, str) for text in inputs.values()):
        raise GraphError(None, "inputs", "expected an object of strings")
    graph, is_open = RequestGraph.from_plain(dict(plain)), read_bool(given, "open")
    read = options_from_http(given, read_int)
    return graph, RunOptions(inputs=dict(inputs), is_open=is_open, principal=principal, **read)


async def _messages(
    service: StreamService,
    stream: ResumableStream,
    reader: ProgramStream,
    *,
    position: int = 0,
    offsets: Offsets | None = None,
    may_resume: bool,
) -> AsyncGenerator[Sequence[bytes], None]:
    offsets = {} if offsets is None else offsets
    has_ended = False
    service.http_streams.add(reader)
    try:
        ack = {"t": "ack", "rid": stream.rid, "epoch": service.server_info.epoch, "from": position}
        yield [sse_event(ack, event="ack", event_id=f"{stream.rid}:{position}")]
        async for events in reader.batches():
            encode = partial(_encoded, stream.rid, position, offsets, events)
            position += len(events)
            encoded = await service.encode(reader.principal, events, encode)
            has_ended = isinstance(events[-1], (GraphFinished, GraphFailed))
            yield encoded
    finally:
        service.http_streams.discard(reader)
        if may_resume and not has_ended:
            stream.detach(reader)
        elif not may_resume:
            stream.leave(reader)
        if service.is_draining:
            service.check_idle()


def _encoded(rid: str, position: int, offsets: Offsets, events: Sequence[Event]) -> list[bytes]:
    """The events behind a position as server-sent events; notes their chunks in `offsets`."""
    encoded = []
    for number, event in enumerate(events, position + 1):
        message = event_to_wire(1, event, next_offset(offsets, event), lazy_logprobs)
        del message["s"]
        data = b"".join(pack_slices(Encoding.JSON, message))
        encoded.append(f"id: {rid}:{number}\nevent: {message['t']}\ndata: ".encode() + data + b"\n\n")
    return encoded


async def _collected(groups: AsyncGenerator[Sequence[bytes], None]) -> list[bytes]:
    return [encoded async for group in groups for encoded in group]


def _outcome(events: Iterable[bytes]) -> bytes:
    """The end of a graph as one map, with the ends of its nodes, as JSON text. `events`: server-sent ones, the last one its end."""
    nodes: list[dict[str, Any]] = []
    for encoded in events:
        data = next(line for line in encoded.decode().splitlines() if line.startswith("data: "))
        message: dict[str, Any] = json.loads(data.removeprefix("data: "))
        kind = message.pop("t")
        if kind == "event":
            nodes.append(message)
        if kind == "end":
            return json_bytes(message | {"nodes": nodes})
    raise RtlangError("the graph has no end")


def _extend(run: GraphRun, body: Mapping[str, Any]) -> None:
    given = _EXTEND.given(body)
    run.extend(tuple(nodes_from_plain(read_list(given, "nodes"))))
    if read_bool(given, "close"):
        run.close()


def _perform(run: GraphRun, action: str, body: Mapping[str, Any]) -> None:
    match action:
        case "cancel":
            run.cancel()
        case "close":
            run.close()
        case _:
            message = parse_client_message({**body, "t": action, "s": 1})
            if isinstance(message, ResolveCall):
                run.resolve(message.node_id, message.value)
            elif isinstance(message, RejectCall):
                run.reject(message.node_id, message.code, message.message, message.facts)
