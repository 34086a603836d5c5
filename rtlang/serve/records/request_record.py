"""The record of one request, from its door to its end: one log line, its metrics and its span.

A request ends when its response has been sent and the graphs that it started have ended, so that the line has the whole cost, also of work
whose client has left. The line has no text of the request, no output and no key. Engines give their part with the final event of a graph.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from rtlang.contract.accounts.request_account import RequestAccount, Tokens, Wait
from rtlang.contract.accounts.request_context import RequestContext
from rtlang.contract.errors import DependencyError, RtlangError
from rtlang.contract.events import Event, GraphFailed, GraphFinished, NodeFailed, TextDelta
from rtlang.contract.process.logs import REQUEST_LOGGER
from rtlang.contract.runs.run_options import RunOptions
from rtlang.contract.service.metrics import Metrics
from rtlang.contract.service.principal_metrics import NOBODY
from rtlang.contract.service.target import Listener
from rtlang.protocol.event_codec import error_facts_to_wire
from rtlang.serve.records.door_spans import DoorSpan, DoorSpans
from rtlang.work.work_account import RequestWork

logger = logging.getLogger(REQUEST_LOGGER)

OPEN = "open"
"""The door of streams of WebSockets."""
REQUEST_ID = "x-request-id"
"""The header of the id of a request."""
UNMATCHED = "unmatched"
"""In place of the template of a path that no route has."""
UNREAD = "unread"
"""The door of HTTP requests that were refused before their header was read: they are not valid HTTP, too long or late."""
CLIENT_CLOSED = 499
"""The status of requests whose client has left, as nginx logs it; never sent."""
_OK = 200
_PROBES = frozenset(("GET /health", "GET /ready"))  # come every few seconds: no line unless they fail
_DIGITS = 6

current_record: ContextVar[RequestRecord | None] = ContextVar("rtlang_record", default=None)
"""The record of the request that the present task serves."""


def context_of(header: Callable[[str], str | None], door: str) -> RequestContext:
    """The context of a request whose headers are looked up by their names in lower case."""
    return RequestContext.of(header(REQUEST_ID), door, header("traceparent"), header("tracestate"))


class RequestRecords:
    """Begins and ends the records of one server. Used on its event loop.

    Args:
        writes: whether each request has a line in the log.
        model: the name of the model that the server serves, if it is known.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, metrics: Metrics, *, writes: bool = True, model: str | None = None
    ) -> None:
        self.loop, self.metrics, self.writes, self.model = loop, metrics, writes, model
        self.spans = DoorSpans.of_process()

    def open(self, context: RequestContext | None, principal: str) -> RequestRecord:
        """A stream of a WebSocket is opened, with the context that its client gives."""
        given = RequestContext.of(None) if context is None else context
        record = self.begin(replace(given, door=OPEN))
        record.identify(principal)
        return record

    def refuse(self, given: Mapping[str, Any], principal: str, error: RtlangError, status: int) -> str:
        """A stream is refused before anything is asked of a target; returns the id of the request.

        Args:
            given: the message that opens it, unchecked.
        """
        context = given.get("context")
        record = self.open(RequestContext.from_plain(context) if isinstance(context, Mapping) else None, principal)
        record.fail(error, status)
        return record.context.request_id

    def refuse_unread(
        self, record: RequestRecord | None, status: int, code: str, context: RequestContext | None = None
    ) -> str:
        """A request is refused before it was read; returns the id of the request.

        Args:
            record: of the request, if its header was read; its response still holds it open.
            context: of a request without a record; by default unknown.
        """
        given = record is not None
        record = record or self.begin(context or RequestContext.of(None, UNREAD))
        record.status, record.code = status, code
        if not given:
            record.release()
        return record.context.request_id

    def begin(self, context: RequestContext, door_of: Callable[[], str] | None = None) -> RequestRecord:
        """A request has come in. Its response holds the record open until `release`.

        Args:
            door_of: tells the door once it is known, which is before anything is submitted.
        """
        return RequestRecord(self, context, door_of)


class RequestRecord:
    """One request. Used on the event loop; listeners of its graphs may be called on any thread.

    Attributes:
        context: its identity; the spans of engines become children of the door's.
        account: what it has cost, as far as that is known.
        work: of this server's threads.
        principal: the name of the party; NOBODY until `identify`.
        status: of the response, or of the end of the stream.
        code: of the error that it ended with, or of the first node that failed.
    """

    def __init__(
        self, records: RequestRecords, context: RequestContext, door_of: Callable[[], str] | None = None
    ) -> None:
        self._records, self._started = records, time.monotonic()
        self._span: DoorSpan | None = None
        if records.spans is not None:
            self._span = records.spans.begin(context)
            context = self._span.context
        self.context, self.account, self.work = context, RequestAccount(context), RequestWork()
        self.principal, self.status = NOBODY, _OK
        self.code: str | None = None
        self._door_of = door_of
        self._is_identified = self._has_graph = False
        self._num_holds = 1

    def answer(self, status: int | None) -> None:
        """The response has ended.

        Args:
            status: None if none had begun: the client has left, unless the request was refused.
        """
        if status is not None:
            self.status = status
        elif self.status == _OK:
            self.status = CLIENT_CLOSED
        self.release()

    def identify(self, principal: str | None) -> None:
        """The party is known; None if the request has no valid key."""
        if not self._is_identified:
            self._is_identified = True
            self.principal = NOBODY if principal is None else principal
            self._records.metrics.principals.begin(self.principal)

    def of_run(self, options: RunOptions, listener: Listener) -> tuple[RunOptions, Listener]:
        """The options and the listener of a graph of this request; the record stays open until the graph has ended.

        Call `release` if the graph is refused.
        """
        self._num_holds += 1
        self._has_graph = True
        self._enter()
        post = self._records.loop.call_soon_threadsafe

        def listen(event: Event) -> None:
            if not isinstance(event, TextDelta):
                if isinstance(event, NodeFailed):
                    if self.code is None and not isinstance(event.error, DependencyError):
                        self.code = event.error.code
                elif isinstance(event, (GraphFinished, GraphFailed)):
                    with suppress(RuntimeError):  # the loop is closed: the server has stopped
                        post(self._take, event)
            listener(event)

        return replace(options, context=self.context), listen

    def fail(self, error: BaseException, status: int | None = None) -> None:
        """The request ends with an error that no response tells, and the door lets go of it.

        Args:
            status: of the error, if it is not the usual one.
        """
        self._note_error(error)
        self.status = self.status if status is None else status
        self.release()

    def release(self) -> None:
        """The door, or a graph, lets go of the record. The last one ends it."""
        self._num_holds -= 1
        if self._num_holds == 0:
            self._end()

    def _take(self, event: GraphFinished | GraphFailed) -> None:
        if event.account is not None:
            self.account.add(event.account)
        elif isinstance(event, GraphFinished):
            self.account.add_tokens(Tokens.PROMPT, event.usage.prompt_tokens)
            self.account.add_tokens(Tokens.CACHED, event.usage.cached_tokens)
            self.account.add_tokens(Tokens.OUTPUT, event.usage.completion_tokens)
        if isinstance(event, GraphFailed):
            self.code = event.error.code
            if self.context.door == OPEN:
                self._note_error(event.error)
        self.release()

    def _enter(self) -> None:
        """Note the door, which is known by now."""
        if self._door_of is not None:
            self.context = self.account.context = replace(self.context, door=self._door_of())
            self._door_of = None

    def _note_error(self, error: BaseException) -> None:
        known = error if isinstance(error, RtlangError) else RtlangError("")
        self.code, self.status = known.code, error_facts_to_wire(known)["status"]

    def _end(self) -> None:
        self.identify(None)
        self._enter()
        seconds, account, principals = time.monotonic() - self._started, self.account, self._records.metrics.principals
        for kind, worked_s in self.work.seconds.items():
            account.add_work(kind, worked_s)
        account.add_wait(Wait.THREAD, self.work.waited_s)
        principals.end(self.principal, self.context.door, self.status, seconds)
        for cause in (Wait.THREAD, Wait.ENGINE):
            if cause in account.waits:
                principals.count_server_wait(self.principal, cause, account.waits[cause])
        if self._span is not None:
            self._span.end(self.principal, self.context.door, self.status, self.code, account.moves)
        is_probe = self.context.door in _PROBES and self.status == _OK
        if self._records.writes and not is_probe and logger.isEnabledFor(logging.INFO):
            logger.info("request", extra=self._line(seconds))

    def _line(self, seconds: float) -> dict[str, Any]:
        """The fields of the line, without what is empty."""
        account, context = self.account, self.context
        line: dict[str, Any] = {
            "request_id": context.request_id,
            "principal": self.principal,
            "door": context.door,
            "model": self._records.model if self._has_graph else None,
            "status": self.status,
            "code": self.code,
            "duration_s": round(seconds, _DIGITS),
            "first_token_s": None if account.first_token_s is None else round(account.first_token_s, _DIGITS),
            "tokens": account.tokens,
            "waits_s": _rounded(account.waits),
            "work_s": _rounded(account.work),
            "finish_reasons": account.finish_reasons,
            "moves": [reason for _, reason in account.moves],
            "trace_id": context.trace_id,
        }
        return {name: value for name, value in line.items() if value or name == "status"}


def _rounded(seconds: Mapping[str, float]) -> dict[str, float]:
    """Milliseconds are enough: shorter waits come from the turns of the threads."""
    return {str(name): found for name, value in seconds.items() if (found := round(value, 3))}


def request_id() -> str | None:
    """The id of the request that the present task serves."""
    record = current_record.get()
    return None if record is None else record.context.request_id


def note_code(code: str | None) -> None:
    """Note the code of the error with which the present request ends."""
    record = current_record.get()
    if record is not None and code is not None:
        record.code = code
