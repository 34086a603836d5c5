"""One connection to an engine: its messages open, extend and cancel graphs of a `Runtime`, and the events go back.

Several connections may share a runtime; each knows only its own graphs, and cancels them when it ends.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Hashable, Iterator
from concurrent.futures import Future
from ipaddress import ip_address
from typing import Any

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.contract.errors import EngineDeadError, RtlangError, internal_error
from rtlang.contract.events import Event, GraphFailed, GraphFinished, NodeFinished
from rtlang.contract.request_graph import RequestGraph, nodes_from_plain
from rtlang.contract.runs.principal import Principal
from rtlang.contract.service.snapshot import plain_snapshot
from rtlang.fleet.messages.cache_calls import PREFIX, answer_cache_call
from rtlang.fleet.messages.frames import CONTROL, FrameWriter, Message, call_channel
from rtlang.fleet.messages.graph_ids import graph_id_of, stream_id_of
from rtlang.fleet.messages.large_events import LogprobsPart, divide
from rtlang.fleet.messages.text_calls import answer_text_call
from rtlang.protocol.continuation import continue_from_from_wire, known_from_wire
from rtlang.protocol.event_codec import error_facts_to_wire, event_to_wire
from rtlang.protocol.plain_values import value_from_wire
from rtlang.protocol.run_options import options_from_engine
from rtlang.runtime.graph_run import LocalGraphRun
from rtlang.runtime.process.work_monitor import Stall
from rtlang.runtime.runtime import Runtime
from rtlang.work.fair_queue import owner_of

logger = logging.getLogger(__name__)

REPORT_S = 0.1
_LOAD = {
    "prompt": "num_prompt_tokens_waiting",
    "output": "num_output_tokens_waiting",
    "prompt_ahead": "num_prompt_tokens_ahead",
    "output_ahead": "num_output_tokens_ahead",
    "output_weight": "output_weight_percent",
    "running": "num_requests_running",
    "pages": "num_pages",
    "free": "num_pages_free",
    "asked": "num_tokens_looked_up",
    "hit": "num_tokens_hit",
    "prefill_ns": "prefill_ns_per_token",
    "fetch_ns": "fetch_ns_per_token",
}
"""The fields of a report of load, and the counters that they come from; 0 where a time is unknown."""
_KINDS = {
    "snapshot": WorkKind.SNAPSHOT,
    "metrics": WorkKind.SNAPSHOT,
    "clear_cache": WorkKind.CACHE,
    "cache": WorkKind.CACHE,
    "decode": WorkKind.DETOKENIZE,
    "token_names": WorkKind.DETOKENIZE,
    "token_bytes": WorkKind.DETOKENIZE,
}
"""The kinds of work of calls by the first words of their names; the others tokenize."""
ENGINE_FAILED = 70
"""Exit code of the process: the engine cannot go on."""


class EngineConnection:
    """Carries out the messages of one connection.

    Args:
        runtime: started; its owner closes it.
        connection: the socket on which answers and events are sent.
        number: of the connection to this runtime, from 1.
    """

    def __init__(self, runtime: Runtime, connection: socket.socket, number: int) -> None:
        self._runtime, self._connection, self._number = runtime, connection, number
        self._work = runtime.work
        self._writer = FrameWriter(connection, pack)
        self._runs: dict[int, LocalGraphRun] = {}
        self._client_ids: dict[int, Hashable] = {}  # by graph, until its final event
        self._calls: dict[int, Future[None]] = {}  # that wait or run, by number
        self._beat = time.monotonic()
        self._is_beating = False
        self._num_opened = 0  # graphs that the engine thread has begun, or that were refused; written by that thread

    def serve(self, messages: Iterator[Message]) -> None:
        """Report that the engine is ready, then work until the messages end; graphs that still run are cancelled."""
        service = self._runtime.text_service
        self._writer.put(
            {
                "t": "ready",
                "tool_format": self._runtime.tool_format,
                "vocab_size": service.info.vocab_size,
                "max_model_len": service.info.max_model_len,
                "model_identity": self._runtime.model_identity,
                "pages_at": reachable(self._runtime.cache.address, self._connection),
                "cache_tokens": self._runtime.stats()["num_pages"] * self._runtime.config.page_size,
            }
        )
        is_over = threading.Event()
        self._runtime.stall_listeners.append(self._report_stall)
        threading.Thread(target=self._report_load, args=(is_over,), name="rtlang-load", daemon=True).start()
        for message in messages:
            self._take(message)
        is_over.set()
        self._runtime.stall_listeners.remove(self._report_stall)
        for run in list(self._runs.values()):
            run.cancel()
        for call in list(self._calls.values()):
            call.cancel()
        self._writer.close()

    def _take(self, message: Message) -> None:
        kind, graph_id = message["t"], message.get("s", 0)
        try:
            match kind:
                case "open":
                    principal = Principal.from_plain(message.get("principal") or {})
                    try:
                        self._open(message, principal)
                    finally:  # commands of one client run in order: the graph has begun by then
                        self._runtime.post(self._count_opened, principal.client_id)
                case "ping":
                    self._answer_ping()
                case "peers":
                    self._runtime.cache.set_peers(message["addresses"])
                case "call":
                    self._begin_call(message)
                case "drop":
                    if (call := self._calls.get(message["q"])) is not None:
                        call.cancel()
                case _:
                    run = self._runs.get(graph_id)
                    if run is not None:
                        self._act(run, message)
        except EngineDeadError:  # it ended while no graph was open, or before its graphs were told
            _leave()
        except RtlangError as error:
            self._end(graph_id, error)
        except Exception as error:
            self._end(graph_id, internal_error(logger, f"{kind} of graph {graph_id} failed", error))

    def _open(self, message: Message, principal: Principal) -> None:
        graph_id = message["s"]

        def listen(event: Event) -> None:
            if isinstance(event, (GraphFinished, GraphFailed)):
                self._runs.pop(graph_id, None)
                self._client_ids.pop(graph_id, None)
                if isinstance(event, GraphFailed) and isinstance(event.error, EngineDeadError):
                    _leave()  # the other end opens the graph again
            items = ((graph_id, each) for each in divide(event))
            self._writer.put(*items, channel=graph_id, client=principal.client_id)

        options = options_from_engine(message)
        self._client_ids[graph_id] = principal.client_id
        graph = RequestGraph.from_plain(message["graph"])
        own_id = graph_id_of(self._number, graph_id)
        self._runs[graph_id] = self._runtime.submit(graph, listen, options, graph_id=own_id)
        if graph_id not in self._client_ids:  # it has ended meanwhile
            self._runs.pop(graph_id, None)

    def _act(self, run: LocalGraphRun, message: Message) -> None:
        match message["t"]:
            case "extend":
                run.extend(
                    nodes_from_plain(message["nodes"]),
                    known=known_from_wire(message),
                    continue_from=continue_from_from_wire(message),
                )
            case "close":
                run.close()
            case "cancel":
                run.cancel()
            case "grant":
                run.grant(message["n"])
            case "resolve":
                run.resolve(message["n"], value_from_wire(message["value"], "value"))
            case "reject":
                run.reject(message["n"], message["code"], message["message"], message["facts"])

    def _end(self, graph_id: int, error: RtlangError) -> None:
        """End a graph that cannot go on; one that was never accepted gets its final event here."""
        run = self._runs.pop(graph_id, None)
        client_id = self._client_ids.pop(graph_id, CONTROL)
        if run is not None:
            run.cancel()
        self._writer.put((graph_id, GraphFailed(graph_id, error)), channel=graph_id, client=client_id)

    def _report_stall(self, stall: Stall) -> None:
        """Tell the other end which of its graphs holds the engine thread; called by the monitor of that thread."""
        stream_id = None if stall.graph_id is None else stream_id_of(stall.graph_id, self._number)
        if stream_id is not None:
            message = {"t": "stalled", "s": stream_id, "n": stall.node_id, "seconds": stall.seconds}
            self._writer.put(message | {"function": stall.function, "is_held": stall.is_held})

    def _report_load(self, is_over: threading.Event) -> None:
        """Send the load of the engine every REPORT_S, while it changes. Other connections may cause it as well."""
        last: dict[str, int] = {}
        while not is_over.wait(REPORT_S):
            try:
                num_opened = self._num_opened  # before the counters, which take these graphs into account
                stats = self._runtime.stats()
            except EngineDeadError:
                return
            load = {short: stats.get(name, 0) for short, name in _LOAD.items()} | {"opened": num_opened}
            if load != last:
                self._writer.put({"t": "load"} | load)
                last = load

    def _answer_ping(self) -> None:
        """Answer with the seconds for which the engine thread has done nothing that was asked."""
        now = time.monotonic()
        self._writer.put({"t": "pong", "age": now - self._beat if self._is_beating else 0.0})
        if not self._is_beating:
            self._is_beating, self._beat = True, now
            self._runtime.post(self._note_beat)

    def _note_beat(self) -> None:
        self._is_beating = False

    def _count_opened(self) -> None:
        self._num_opened += 1

    def _begin_call(self, message: Message) -> None:
        """Answer a call on a thread, when it is its principal's turn."""
        number = message["q"]
        principal = Principal.from_plain(message.get("principal") or {})
        channel, client = call_channel(number), principal.client_id

        kind, asked_at = _KINDS.get(message["m"].partition(".")[0], WorkKind.TOKENIZE), time.perf_counter()

        def answer() -> None:
            waited_s, started = time.perf_counter() - asked_at, time.thread_time()
            reply = self._answer(message, principal)
            reply["work"] = kind.value, time.thread_time() - started, waited_s
            self._writer.put(reply, channel=channel, client=client)

        try:
            call = self._work.submit_for(
                owner_of(principal), message.get("price", 0.0), answer, kind=kind, is_bounded=True
            )
        except (RtlangError, RuntimeError) as raised:  # too much of the principal waits, or the runtime was closed
            error = raised if isinstance(raised, RtlangError) else EngineDeadError("the engine has stopped")
            self._writer.put({"t": "reply", "q": number} | error_facts_to_wire(error), channel=channel, client=client)
            return
        self._calls[number] = call
        call.add_done_callback(lambda _: self._calls.pop(number, None))

    def _answer(self, message: Message, principal: Principal) -> Message:
        reply: Message = {"t": "reply", "q": message["q"]}
        try:
            if message["m"] == "snapshot":
                snapshot = self._runtime.snapshot(after_step=message["a"])
                reply["value"] = None if snapshot is None else plain_snapshot(snapshot)
            elif message["m"] == "metrics":
                reply["value"] = self._runtime.metrics.render()
            elif message["m"] == "clear_cache":
                self._runtime.clear_cache()
                reply["value"] = None
            elif message["m"].startswith(PREFIX):
                reply["value"] = answer_cache_call(self._runtime.cache_service, message["m"], message["a"])
            else:
                reply["value"] = answer_text_call(
                    self._runtime.text_service.for_principal(principal), message["m"], message["a"]
                )
        except RtlangError as error:
            reply |= error_facts_to_wire(error)
        except Exception as error:
            reply |= error_facts_to_wire(internal_error(logger, f"{message['m']} failed", error))
        return reply


def reachable(address: tuple[str, int] | None, connection: socket.socket) -> tuple[str, int] | None:
    """An address of this machine as the other end of a connection may use it: the connection's own address if it names all interfaces."""
    if address is None or not ip_address(address[0]).is_unspecified:
        return address
    is_remote = connection.family in (socket.AF_INET, socket.AF_INET6)
    return (connection.getsockname()[0] if is_remote else "127.0.0.1"), address[1]


def pack(item: Any) -> Message:
    """The message of an item of the writer: a message itself, or the number of a graph and its event."""
    if isinstance(item, dict):
        return item
    graph_id, event = item
    if isinstance(event, LogprobsPart):
        return event.to_wire(graph_id)
    message = event_to_wire(graph_id, event)
    if isinstance(event, (NodeFinished, GraphFinished, GraphFailed)) and event.account is not None:
        message["account"] = event.account.to_plain()  # clients do not get it
    return message


def _leave() -> None:
    """End the process of an engine that cannot go on."""
    logging.shutdown()
    os._exit(ENGINE_FAILED)
