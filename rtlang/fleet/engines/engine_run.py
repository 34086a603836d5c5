"""A graph that runs in the engine's process: the messages that open it there, and open it again after that process has died."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from rtlang.contract.errors import GraphError
from rtlang.contract.events import (
    CallRequested,
    Event,
    GraphFailed,
    GraphFinished,
    NodeFailed,
    NodeFinished,
    TextDelta,
)
from rtlang.contract.graph.checks import NodeChecks
from rtlang.contract.graph.host_calls import checked_answer
from rtlang.contract.params import check_credit
from rtlang.contract.request_graph import Node, RequestGraph, nodes_to_plain
from rtlang.contract.runs.known import ContinueFrom, Known, check_continue_from
from rtlang.contract.runs.run_ledger import RunLedger
from rtlang.contract.runs.run_options import RunOptions
from rtlang.contract.service.target import Listener
from rtlang.fleet.engines.run_account import RunAccount
from rtlang.fleet.messages.frames import Message
from rtlang.fleet.messages.large_events import Joiner
from rtlang.protocol.continuation import continuation_to_wire
from rtlang.protocol.plain_values import value_to_wire
from rtlang.protocol.run_options import options_to_engine
from rtlang.runtime.admission import Share, admit_extension

logger = logging.getLogger(__name__)


class RunOwner(Protocol):
    """The part of the target that a run calls."""

    def send(
        self, run: EngineRun, message: Message | Callable[[], Message], note: Callable[[], None] | None = None
    ) -> None:
        """Change a run with `note`, and send a message about it if an engine has its graph. Nothing is opened in between."""

    def cancel(self, run: EngineRun) -> None:
        """End a run."""


class EngineRun:
    """A submitted graph; see `rtlang.contract.service.target.ResumableRun`.

    Attributes:
        graph: as it was submitted; `nodes` are those added since as well.
        options: the options with which it was submitted, with the time at which it began.
        share: its share of admitted requests.
        ledger: its output so far, after the tokens that it was given. Guarded by the owner's lock, as `joiner`.
        joiner: joins the parts of its large events.
    """

    def __init__(
        self,
        owner: RunOwner,
        graph_id: int,
        graph: RequestGraph,
        checks: NodeChecks,
        listener: Listener,
        share: Share,
        options: RunOptions,
        *,
        max_model_len: int | None = None,
    ) -> None:
        self._owner, self._graph_id, self.graph, self._listener = owner, graph_id, graph, listener
        self.options = options = options.begun(time.monotonic())
        self.share, self._checks = share, checks
        self.nodes = {node.node_id: node for node in graph.nodes}
        self.ledger, self.joiner = RunLedger(), Joiner()
        self.ledger.give(options.known, options.continue_from)
        self._outbox: deque[Event] = deque()
        self._outbox_lock, self._is_delivering = threading.Lock(), False
        self._begun_at, self._was_opened = time.monotonic(), False
        self._account = RunAccount(self._begun_at)
        self._is_open, self._credit, self._num_delivered = options.is_open, options.credit, 0
        self._answers: dict[int, Message] = {}
        self._max_model_len = max_model_len
        self._extend_lock = threading.Lock()  # extensions may come from several threads

    @property
    def graph_id(self) -> int:
        return self._graph_id

    @property
    def num_delivered(self) -> int:
        """Tokens that it has given."""
        return self._num_delivered

    @property
    def client_id(self) -> Hashable:
        """The client that the graph belongs to."""
        return self.share.principal.client_id

    def opening(self) -> Callable[[], Message]:
        """A function that makes the message which opens the graph as it is now, after the output that it has given.

        Another thread calls it: a large graph takes a tenth of a second.
        """
        self.joiner = Joiner()  # parts of an earlier process are lost with it
        nodes, is_open, credit = tuple(self.nodes.values()), self._is_open, self._credit
        known, continue_from = dict(self.ledger.known), self.ledger.continue_from(nodes)
        if credit is not None:
            credit = max(0, credit - self._num_delivered + self.ledger.num_repeated)
        was_opened, self._was_opened = self._was_opened, True
        self._account.note_opened()

        def message() -> Message:
            graph = RequestGraph(nodes, self.graph.inputs, self.graph.outputs)
            made: Message = {"t": "open", "graph": graph.to_plain(), "open": is_open}
            made |= options_to_engine(self.options)
            now, deadline = time.monotonic(), self.options.deadline
            if deadline is not None:
                made["deadline_s"] = max(0.001, deadline - now)
            if was_opened and "seconds" in (made["budget"] or ()):
                made["budget"]["seconds"] = max(0.001, self._begun_at + made["budget"]["seconds"] - now)
            if credit is not None:
                made["credit"] = credit
            return made | continuation_to_wire(known, continue_from)

        return message

    def take(self, event: Event, account: Mapping[str, Any] | None = None) -> bool:
        """Note an event of the engine; returns whether the listener gets it.

        Args:
            account: the engine's part of the account so far, in plain form, which comes with the end of a node.
        """
        if not (isinstance(event, TextDelta) and event.node_id in self.ledger.known):  # else the text is only repeated
            self._account.note(event, account)
        if isinstance(event, (NodeFinished, NodeFailed)):
            self.share.end_node(event.node_id)
            self._answers.pop(event.node_id, None)
        if self.ledger.take(event):
            self.share.note(event)
            if isinstance(event, TextDelta):
                self._num_delivered += len(event.token_ids)
            return True
        if isinstance(event, CallRequested) and event.node_id in self._answers:
            self._owner.send(self, self._answers[event.node_id])
        return False

    def note_move(self, reason: str) -> None:
        """The graph has left its engine."""
        self._account.note_left(reason)

    def closed(self, event: GraphFinished | GraphFailed, account: Mapping[str, Any] | None = None) -> Event:
        """The final event, with the account of the graph over all engines.

        Args:
            account: of its last engine, in plain form; None if that does not tell.
        """
        return replace(event, account=self._account.closed(account))

    def post(self, event: Event) -> None:
        """Note an event for the listener. Under the owner's lock, so that events stay in order; `deliver` follows without it."""
        self._outbox.append(event)

    def deliver(self) -> None:
        """Give the noted events to the listener, in order, unless another thread does."""
        with self._outbox_lock:
            if self._is_delivering:
                return
            self._is_delivering = True
        while True:
            with self._outbox_lock:
                if not self._outbox:
                    self._is_delivering = False
                    return
                event = self._outbox.popleft()
            try:
                self._listener(event)
            except Exception:
                logger.exception("the listener of graph %d raised an exception; the graph is cancelled", self._graph_id)
                self.cancel()

    def extend(
        self, nodes: Sequence[Node], *, known: Known | None = None, continue_from: ContinueFrom | None = None
    ) -> None:
        """See `ResumableRun.extend`."""
        if not self._is_open:
            raise GraphError(None, "nodes", "the graph is closed")
        check_continue_from(continue_from or {}, nodes)
        with self._extend_lock:
            admit_extension(nodes, self._checks, self.share, self._max_model_len)

            def note() -> None:
                self.nodes.update((node.node_id, node) for node in nodes)
                self.ledger.give(known or {}, continue_from or {})

            message = partial(_extension, tuple(nodes), known or {}, continue_from or {})
            self._owner.send(self, message, note)

    def resolve(self, node_id: int, value: Any) -> None:
        self._answer(node_id, {"t": "resolve", "n": node_id, "value": value_to_wire(checked_answer(value))})

    def reject(self, node_id: int, code: str, message: str, facts: Mapping[str, Any] | None = None) -> None:
        self._answer(
            node_id, {"t": "reject", "n": node_id, "code": code, "message": message, "facts": dict(facts or {})}
        )

    def grant(self, num_tokens: int) -> None:
        check_credit(num_tokens)
        if self._credit is not None:
            self._owner.send(self, {"t": "grant", "n": num_tokens}, partial(self._add_credit, num_tokens))

    def _add_credit(self, num_tokens: int) -> None:
        assert self._credit is not None
        self._credit += num_tokens

    def close(self) -> None:
        self._owner.send(self, {"t": "close"}, self._note_closed)

    def _note_closed(self) -> None:
        self._is_open = False

    def cancel(self) -> None:
        self._owner.cancel(self)

    def _answer(self, node_id: int, message: Message) -> None:
        if node_id not in self._answers:
            self._owner.send(self, message, partial(self._note_answer, node_id, message))

    def _note_answer(self, node_id: int, message: Message) -> None:
        self._answers[node_id] = message


def deliver_all(runs: Iterable[EngineRun]) -> None:
    """Deliver the events of several graphs."""
    for run in runs:
        run.deliver()


def _extension(nodes: Sequence[Node], known: Known, continue_from: ContinueFrom) -> Message:
    return {"t": "extend", "nodes": nodes_to_plain(nodes)} | continuation_to_wire(known, continue_from)
