"""The graphs of one connection: what its client asks for, carried out."""

from __future__ import annotations

import logging
import secrets

from rtlang.errors import GraphError, RtlangError
from rtlang.lang.target import GraphRun
from rtlang.serve.connection import Action, Attach, Cancel, Close, Connection, Extend, Submit
from rtlang.serve.lasting import Holder, LastingRun, cancel
from rtlang.serve.service import StreamService

logger = logging.getLogger(__name__)


class Streams:
    """Graphs by stream, for as long as they run and are this connection's. On the server's event loop.

    Args:
        holder: the connection's socket, which gets their events.
    """

    def __init__(self, service: StreamService, holder: Holder) -> None:
        self._service, self._holder = service, holder
        self._runs: dict[int, GraphRun] = {}
        self._lasting: dict[int, LastingRun] = {}  # those of them that outlive the connection

    @property
    def num_running(self) -> int:
        """Graphs that have not ended."""
        return len(self._runs)

    def drop(self, stream: int) -> None:
        """A stream has ended, or is another connection's now."""
        self._runs.pop(stream, None)
        self._lasting.pop(stream, None)

    def end(self, *, may_last: bool) -> None:
        """The connection is over: cancel its graphs; with `may_last`, those that were opened to outlive it go on for their time."""
        runs, self._runs = self._runs, {}
        lasting, self._lasting = self._lasting, {}
        for stream, run in runs.items():
            if stream not in lasting:
                cancel(run)
            elif may_last:
                lasting[stream].detach(self._holder)
            else:
                lasting[stream].end()

    def perform(self, connection: Connection, action: Action) -> None:
        """Do what the connection's client asked for, and tell the connection how it went."""
        try:
            match action:
                case Submit():
                    self._submit(connection, action)
                case Attach(stream=stream):
                    self._attach(connection, action)
                case Extend(stream=stream):
                    run = self._runs.get(stream)
                    if run is None:
                        raise GraphError(None, "s", f"the graph of stream {stream} has ended")
                    run.extend(action.nodes)
                    if action.closes:
                        run.close()
                    if stream in self._lasting:
                        self._lasting[stream].answered(action.request)
                    connection.extended(stream, action.request)
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
        lasting = None if action.lasts_s is None else service.lasting.begin(self._holder, stream, action.lasts_s)
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

    def _attach(self, connection: Connection, action: Attach) -> None:
        lasting, stream = self._service.lasting.find(action.rid, action.epoch), action.stream
        replay = lasting.attach(self._holder, stream, action.position)
        if lasting.run is not None and not lasting.has_ended:
            self._runs[stream], self._lasting[stream] = lasting.run, lasting
        connection.attached(action, replay.offsets, lasting.last_request, lasting.refusals)
        connection.deliver([(stream, event) for event in replay.events])

    def _refuse(self, connection: Connection, action: Action, error: RtlangError) -> None:
        match action:
            case Submit() | Attach():
                connection.refused(action.stream, error)
            case Extend():
                if action.stream in self._lasting:
                    self._lasting[action.stream].answered(action.request, error)
                connection.extend_refused(action.stream, action.request, error)
            case Close() | Cancel():
                logger.warning("stream %d: %s", action.stream, error)
