"""The graphs of one connection: what its client asks for, carried out."""

from __future__ import annotations

import logging
import secrets
from weakref import WeakValueDictionary

from rtlang.contract.errors import GraphError, RtlangError
from rtlang.contract.graph import nodes_from_plain
from rtlang.contract.target import GraphRun
from rtlang.protocol.messages import AttachStream, ExtendNodes
from rtlang.serve.connection import Action, Cancel, Close, Connection, Submit
from rtlang.serve.resumable import Replay, ResumableStream, StreamReader, cancel
from rtlang.serve.service import StreamService

logger = logging.getLogger(__name__)


class Streams:
    """Graphs by stream, for as long as they run and are this connection's. On the server's event loop.

    Args:
        holder: the connection's socket, which gets their events.
    """

    def __init__(self, service: StreamService, holder: StreamReader) -> None:
        self._service, self._holder = service, holder
        self._runs: dict[int, GraphRun] = {}
        # Those that outlive the connection, ended ones too, for as long as they are known.
        self._lasting: WeakValueDictionary[int, ResumableStream] = WeakValueDictionary()

    @property
    def num_running(self) -> int:
        """Graphs that have not ended."""
        return len(self._runs)

    def note_end(self, stream: int) -> None:
        """The graph of a stream has ended."""
        self._runs.pop(stream, None)

    def release(self, stream: int) -> None:
        """A stream is another connection's now."""
        self._runs.pop(stream, None)
        self._lasting.pop(stream, None)

    def end(self, *, may_last: bool) -> None:
        """The connection is over: cancel its graphs; with `may_last`, those that were opened to outlive it go on for their time."""
        runs, self._runs = self._runs, {}
        for stream, lasting in tuple(self._lasting.items()):
            runs.pop(stream, None)
            if may_last:
                lasting.detach(self._holder)
            else:
                lasting.leave(self._holder)
        self._lasting.clear()
        for run in runs.values():
            cancel(run)

    def perform(self, connection: Connection, action: Action) -> None:
        """Do what the connection's client asked for, and tell the connection how it went."""
        try:
            match action:
                case Submit():
                    self._submit(connection, action)
                case AttachStream():
                    self._attach(connection, action)
                case ExtendNodes():
                    self._extend(connection, action)
                case Close(stream=stream):
                    if stream in self._runs:
                        self._runs[stream].close()
                case Cancel(stream=stream):
                    if stream in self._runs:
                        self._runs[stream].cancel()
        except RtlangError as error:
            self._refuse(connection, action, error)
        except Exception:
            # A bug below must not take the other streams of this connection with it.
            logger.exception("stream %d: %s failed", action.stream, type(action).__name__.lower())
            self._refuse(connection, action, RtlangError("internal error"))

    def _submit(self, connection: Connection, action: Submit) -> None:
        service, stream = self._service, action.stream
        known = None if action.key is None else service.lasting.opened_as(action.key)
        if known is not None:
            replay = self._take_over(stream, known, 0)
            connection.opened(stream, known.rid)
            connection.deliver([(stream, event) for event in replay.events])
            return
        lasting = None
        if action.resume_timeout_s is not None:
            lasting = service.lasting.begin(self._holder, stream, action.resume_timeout_s, action.key)
        handover = service.handover
        try:
            run = service.target.submit(
                action.graph,
                handover.listener(self._holder, stream) if lasting is None else handover.routed(lasting.take),
                inputs=action.inputs,
                is_open=action.is_open,
                priority=action.priority,
                deadline_s=action.deadline_s,
            )
        except BaseException:
            if lasting is not None:
                lasting.end()
            raise
        self._runs[stream] = run
        if lasting is not None:
            lasting.run = run
            self._lasting[stream] = lasting
        connection.opened(stream, secrets.token_hex(8) if lasting is None else lasting.rid)

    def _attach(self, connection: Connection, action: AttachStream) -> None:
        lasting, stream = self._service.lasting.find(action.rid, action.epoch), action.stream
        missed = lasting.extensions.refused_after(action.request)
        replay = self._take_over(stream, lasting, action.position)
        connection.attached(action, replay.offsets, lasting.extensions.last_answered, missed)
        connection.deliver([(stream, event) for event in replay.events])

    def _take_over(self, stream: int, lasting: ResumableStream, position: int) -> Replay:
        replay = lasting.attach(self._holder, stream, position)
        self._lasting[stream] = lasting
        if lasting.run is not None:
            self._runs[stream] = lasting.run
        return replay

    def _extend(self, connection: Connection, said: ExtendNodes) -> None:
        stream, request, lasting = said.stream, said.request, self._lasting.get(said.stream)
        if lasting is None or request is None:
            self._add(said)
        elif refusal := lasting.extensions.once(said, lambda: self._add(said)):
            connection.extend_refused(stream, request, refusal)
            return
        connection.extended(stream, request)

    def _add(self, said: ExtendNodes) -> None:
        nodes, run = tuple(nodes_from_plain(said.nodes)), self._runs.get(said.stream)
        if run is None:
            raise GraphError(None, "s", f"the graph of stream {said.stream} has ended")
        run.extend(nodes)
        if said.closes:
            run.close()

    def _refuse(self, connection: Connection, action: Action, error: RtlangError) -> None:
        match action:
            case Submit() | AttachStream():
                lasting = self._lasting.pop(action.stream, None)
                if lasting is not None:
                    lasting.detach(self._holder)
                self._runs.pop(action.stream, None)
                connection.refused(action.stream, error)
            case ExtendNodes():
                connection.extend_refused(action.stream, action.request, error)
            case Close() | Cancel():
                logger.warning("stream %d: %s", action.stream, error)
