"""The graphs of one connection: submits, extends, attaches and cancels them as its client asks."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Callable, Generator
from dataclasses import replace
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.contract.errors import GraphError, OverloadError, ProtocolError, RtlangError, internal_error
from rtlang.contract.params import MAX_CREDIT
from rtlang.contract.runs.principal import Principal
from rtlang.contract.service.target import GraphRun
from rtlang.protocol.messages import AttachStream, CloseCode, ExtendNodes, GrantCredit, RejectCall, ResolveCall
from rtlang.serve.client_messages import SubmitMessage, extend_content
from rtlang.serve.connection import Action, Cancel, Close, Connection
from rtlang.serve.event_bridge import HeldEvents
from rtlang.serve.idempotent_extends import answer_of
from rtlang.serve.records.request_record import RequestRecord
from rtlang.serve.resumable import ResumableStream, StreamReader, StreamReplay, cancel
from rtlang.serve.service import StreamService
from rtlang.work.fair_queue import owner_of

logger = logging.getLogger(__name__)

Steps = Generator[Callable[[], Any] | asyncio.Future[None], Any, None]

_MAX_REPLAYED = 400_000  # events; the logs of a server hold fewer by default
_REPLAYED_A_SECOND = 100_000


class Streams:
    """The graphs of one connection by stream id. Used on the server's event loop.

    Args:
        reader: the connection's socket, which receives the events.
    """

    def __init__(self, service: StreamService, reader: StreamReader) -> None:
        self._service, self._reader = service, reader
        self._runs: dict[int, GraphRun] = {}
        # Resumable streams, including ended ones, for as long as the registry knows them.
        self._resumable: WeakValueDictionary[int, ResumableStream] = WeakValueDictionary()
        self._num_replayed = self._replayed_at = 0.0

    @property
    def num_running(self) -> int:
        """Number of graphs that have not ended."""
        return len(self._runs)

    def note_end(self, stream: int) -> None:
        """Forget a stream whose graph has ended."""
        self._runs.pop(stream, None)

    def release(self, stream: int) -> None:
        """Forget a stream that another connection has attached to."""
        self._runs.pop(stream, None)
        self._resumable.pop(stream, None)

    def end(self, *, may_resume: bool) -> None:
        """End all streams with the connection; with `may_resume`, resumable ones are detached instead of cancelled."""
        runs, self._runs = self._runs, {}
        for stream, resumable in tuple(self._resumable.items()):
            runs.pop(stream, None)
            if may_resume:
                resumable.detach(self._reader)
            else:
                resumable.leave(self._reader)
        self._resumable.clear()
        for run in runs.values():
            cancel(run)

    def perform(self, connection: Connection, action: Action) -> None:
        """Carry out an action and report its outcome to the connection."""
        steps = self._steps(connection, action, is_beside=False)
        with contextlib.suppress(StopIteration):
            work = next(steps)
            while True:
                assert not isinstance(work, asyncio.Future), "only `perform_beside` waits"
                try:
                    result = work()
                except Exception as error:
                    work = steps.throw(error)
                else:
                    work = steps.send(result)

    def perform_beside(self, connection: Connection, action: Action, price: float, then: Callable[[], None]) -> None:
        """`perform` for a large action: what takes long runs on a thread. Perform no other action before `then` is called, on the loop.

        Args:
            price: of what runs on the thread.
        """
        steps = self._steps(connection, action, is_beside=True)
        work_of_requests, owner = self._service.work, owner_of(connection.principal)

        def go_on(done: asyncio.Future[Any] | None) -> None:
            try:
                if done is None:
                    work = next(steps)
                elif done.cancelled():  # the server has stopped
                    steps.close()
                    return
                elif (error := done.exception()) is not None:
                    work = steps.throw(error)
                else:
                    work = steps.send(done.result())
            except StopIteration:
                then()
            else:
                if not isinstance(work, asyncio.Future):
                    work = work_of_requests.start(owner, price, work, kind=WorkKind.SUBMIT)
                work.add_done_callback(go_on)

        go_on(None)

    def _steps(self, connection: Connection, action: Action, *, is_beside: bool) -> Steps:
        """Carry out an action. Yields what may run on a thread, or a future to wait for, and is sent the result."""
        try:
            match action:
                case SubmitMessage():
                    yield from self._submit(connection, action, is_beside=is_beside)
                case AttachStream():
                    self._attach(connection, action)
                case ExtendNodes():
                    yield from self._extend(connection, action)
                case Close(stream=stream):
                    if (run := self._runs.get(stream)) is not None:
                        run.close()
                case Cancel(stream=stream):
                    if (run := self._runs.get(stream)) is not None:
                        run.cancel()
                case GrantCredit():
                    self._grant(action)
                case ResolveCall():
                    if (run := self._runs.get(action.stream)) is not None:
                        run.resolve(action.node_id, action.value)
                case RejectCall():
                    if (run := self._runs.get(action.stream)) is not None:
                        run.reject(action.node_id, action.code, action.message, action.facts)
        except RtlangError as error:
            self._refuse(connection, action, error)
        except Exception as error:
            # A bug in one stream must not end the other streams of this connection.
            subject = f"stream {action.stream}: {type(action).__name__.lower()} failed"
            self._refuse(connection, action, internal_error(logger, subject, error))

    def _submit(self, connection: Connection, action: SubmitMessage, *, is_beside: bool) -> Steps:
        service, stream = self._service, action.stream
        principal = self._principal(connection)
        known = self._opened_as(action, principal)
        while known is not None and known.is_pending:
            if not is_beside:  # the messages differ in length only
                raise OverloadError("this stream is being opened on another connection", 1.0)
            yield known.decision
            known = self._opened_as(action, principal)  # None if it was refused
        if known is not None:
            replay = self._take_over(stream, known, 0)
            connection.opened(stream, known.rid, known.num_granted, request_id=known.request_id)
            self._reader.deliver([(stream, event) for event in replay.events])
            return
        record = service.records.open(action.options.context, principal.name)
        try:
            yield from self._start(connection, action, record, principal, is_beside=is_beside)
        except Exception as error:
            if not isinstance(error, RtlangError):
                error = internal_error(logger, f"stream {stream}: its graph was not submitted", error)
            record.fail(error)
            self._refuse(connection, action, error, record.context.request_id)
        except GeneratorExit as error:  # the server has stopped
            record.fail(error)
            raise
        else:
            record.release()

    def _start(
        self,
        connection: Connection,
        action: SubmitMessage,
        record: RequestRecord,
        principal: Principal,
        *,
        is_beside: bool,
    ) -> Steps:
        """Submit a graph, and tell the client that it is accepted."""
        service, stream = self._service, action.stream
        options = replace(service.accepted(action.options), principal=principal)
        resumable = None
        if action.resume_timeout_s is not None:
            resumable = service.resumable_streams.begin(
                self._reader, stream, action.resume_timeout_s, action.key, principal
            )
            resumable.num_granted = options.credit or 0
            resumable.request_id = record.context.request_id
        event_bridge = service.event_bridge
        listener = (
            event_bridge.listener(self._reader, stream) if resumable is None else event_bridge.routed(resumable.take)
        )
        options, listener = record.of_run(options, listener)
        held = HeldEvents(listener) if is_beside else None
        try:
            run: GraphRun = yield partial(
                service.target.submit,
                action.graph,
                listener if held is None else held,
                options=options,
            )
        except BaseException:
            record.release()
            if resumable is not None:
                resumable.end()
            raise
        if resumable is None:
            self._runs[stream] = run
            connection.opened(stream, secrets.token_hex(8), request_id=record.context.request_id)
        else:
            resumable.begin(run)
            if resumable.is_read_by(self._reader):  # no other connection has attached meanwhile
                self._runs[stream] = run
                self._resumable[stream] = resumable
                connection.opened(stream, resumable.rid, resumable.num_granted, request_id=record.context.request_id)
        if held is not None:
            held.release()

    def _opened_as(self, action: SubmitMessage, principal: Principal) -> ResumableStream | None:
        return None if action.key is None else self._service.resumable_streams.opened_as(action.key, principal)

    def _grant(self, action: GrantCredit) -> None:
        run, resumable = self._runs.get(action.stream), self._resumable.get(action.stream)
        if resumable is not None:
            resumable.num_granted = min(resumable.num_granted + action.num_tokens, MAX_CREDIT)
        if run is not None:
            run.grant(action.num_tokens)

    def _principal(self, connection: Connection) -> Principal:
        """The principal of the connection with its present settings."""
        principal = self._service.keys.current(connection.principal)
        if principal is None:
            connection.fail(CloseCode.KEY, "the API key was removed")
            raise ProtocolError("the API key was removed", close_code=CloseCode.KEY)
        return principal

    def _attach(self, connection: Connection, action: AttachStream) -> None:
        principal, stream = self._principal(connection), action.stream
        resumable = self._service.resumable_streams.find(action.rid, action.epoch, principal)
        missed = resumable.extends.refused_after(action.request)
        replay = self._take_over(stream, resumable, action.position)
        connection.attached(action, replay.offsets, resumable.extends.last_acknowledged, missed, resumable.num_granted)
        self._reader.deliver([(stream, event) for event in replay.events])

    def _take_over(self, stream: int, resumable: ResumableStream, position: int) -> StreamReplay:
        self._count_replay(resumable.num_logged)
        replay = resumable.attach(self._reader, stream, position)
        self._resumable[stream] = resumable
        if resumable.run is not None:
            self._runs[stream] = resumable.run
        return replay

    def _count_replay(self, num_events: int) -> None:
        """Refuse to read one log again and again: a short message makes the server go through thousands of events.

        Raises:
            OverloadError: the connection has gone through more events than all logs hold.
        """
        now = self._service.loop.time()
        left = max(0.0, self._num_replayed - (now - self._replayed_at) * _REPLAYED_A_SECOND)
        self._num_replayed, self._replayed_at = left, now
        if left > _MAX_REPLAYED:
            wait_s = (left - _MAX_REPLAYED) / _REPLAYED_A_SECOND
            raise OverloadError("this connection attaches to its streams too often", wait_s)
        self._num_replayed += num_events

    def _extend(self, connection: Connection, message: ExtendNodes) -> Steps:
        stream, request, resumable = message.stream, message.request, self._resumable.get(message.stream)
        if resumable is None or request is None:
            yield partial(self._add, message)
        else:
            answer = resumable.extends.answer_to(message)
            if answer is None:
                answer = yield partial(answer_of, partial(self._add, message))
                resumable.extends.note(message, answer)
            if answer.refusal is not None:
                connection.extend_refused(stream, request, answer.refusal)
                return
        connection.extended(stream, request)

    def _add(self, message: ExtendNodes) -> None:
        content, run = extend_content(message), self._runs.get(message.stream)
        if run is None:
            raise GraphError(None, "s", f"s = {message.stream}: the graph of this stream has ended")
        given = {"known": content.known, "continue_from": content.continue_from}
        options: dict[str, Any] = {name: value for name, value in given.items() if value}
        run.extend(content.nodes, **options)
        if message.closes:
            run.close()

    def _refuse(
        self, connection: Connection, action: Action, error: RtlangError, request_id: str | None = None
    ) -> None:
        match action:
            case SubmitMessage() | AttachStream():
                resumable = self._resumable.pop(action.stream, None)
                if resumable is not None:
                    resumable.detach(self._reader)
                self._runs.pop(action.stream, None)
                connection.refused(action.stream, error, request_id=request_id)
            case ExtendNodes():
                connection.extend_refused(action.stream, action.request, error)
            case Close() | Cancel() | GrantCredit() | ResolveCall() | RejectCall():
                logger.warning("stream %d: %s", action.stream, error)
