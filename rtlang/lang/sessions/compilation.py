"""Compiles the recorded nodes part by part, and copies the events of merged nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from rtlang.compiler.context import Context, Savings, ShareOf
from rtlang.compiler.merge import Known
from rtlang.compiler.pipeline import compile_graph
from rtlang.compiler.rewriting import renamed
from rtlang.contract.events import CallRequested, Event, GraphFailed, GraphFinished, NodeFailed, NodeFinished, TextDelta
from rtlang.contract.graph.node_paths import is_named_by
from rtlang.contract.params import Usage
from rtlang.contract.request_graph import Node, RequestGraph, all_nodes, name_of, path_of
from rtlang.lang.recordings.recording import Recording


class RunCompilation:
    """The compiled graph of one run. Owned by its session, whose flush lock guards it.

    Attributes:
        submitted: the nodes that were submitted, in order.
        savings: the effect of the passes on them.
    """

    def __init__(
        self,
        recording: Recording,
        passes: Collection[str],
        outputs: Collection[str] | None = None,
        share_of: ShareOf | None = None,
        alone: Collection[str] = (),
    ) -> None:
        self.submitted: list[Node] = []
        self.savings = Savings()
        self._recording, self._passes, self._outputs, self._share_of = recording, passes, outputs, share_of
        self._unsent: list[Node] = []
        self._alone = alone
        self._known: Known | None = {} if "merge" in passes else None
        self._aliases = self.savings.aliases

    def next_part(
        self,
        *,
        is_last: bool,
        awaited: Sequence[int] = (),
        needed: Collection[int] | None = None,
        asked: Collection[int] = (),
    ) -> tuple[RequestGraph, Savings]:
        """Compile the nodes recorded since the last part. May be repeated until `commit`.

        Args:
            awaited: the nodes that the program waits for.
            needed: at the end, the nodes that are read; None if all are.
            asked: at the end, the nodes that no decision may end.
        """
        recording, aliases = self._recording, self._aliases
        self._unsent.extend(recording.nodes.take(is_last=is_last))
        nodes = self._unsent
        if aliases:
            nodes = [renamed(node, aliases) for node in nodes]
            awaited = [aliases.get(node_id, node_id) for node_id in awaited]
            needed = None if needed is None else {aliases.get(node_id, node_id) for node_id in needed}
        if not is_last and self._outputs is not None:
            needed = {node.node_id for node in nodes if any(is_output(node, each) for each in self._outputs)}
        context = Context(
            keep={*recording.branch_points, *recording.open_starts}
            if recording.open_starts
            else recording.branch_points,
            ended=recording.ended if is_last else recording.nodes.before_unsent_text(recording.ended),
            is_open=not is_last,
            needed=needed,
            awaited=awaited,
            free=recording.free_texts,
            share_of=self._share_of,
            known=self._known,
            alone=self._alone,
            failed={aliases.get(node_id, node_id) for node_id in recording.outcomes.seen},
        )
        graph, savings = compile_graph(RequestGraph(tuple(nodes), recording.inputs), self._passes, context)
        if recording.has_decisions:
            asked = {aliases.get(node_id, node_id) for node_id in asked}.union(awaited)
            names = self._outputs or ()
            outputs = tuple(
                node.node_id
                for node in graph.nodes
                if node.node_id in asked or any(is_output(node, name) for name in names)
            )
            graph = RequestGraph(graph.nodes, graph.inputs, outputs)
        return graph, savings

    def release(self) -> None:
        """Keep only what was submitted and its savings: no part follows."""
        self._unsent, self._known, self._share_of = [], None, None
        self._passes, self._outputs = (), None

    def commit(self, graph: RequestGraph, savings: Savings, *, is_last: bool) -> None:
        """Account for a part that was submitted."""
        self.submitted.extend(graph.nodes)
        self.savings.add(savings)
        recording = self._recording
        for node_id, parts in savings.orders.items():
            recording.settle_order(node_id, parts)
        if recording.free_texts:
            for node in self._unsent:
                if node.node_id not in savings.left_out:
                    recording.free_texts.pop(node.node_id, None)
        if is_last:
            recording.outcomes.dropped.update(savings.left_out)
            self._unsent.clear()
        elif savings.left_out:
            self._unsent = [node for node in self._unsent if node.node_id in savings.left_out]
        else:
            self._unsent.clear()


def is_output(node: Node, asked: str) -> bool:
    """Whether an item of `outputs` names a node, or one of its blocks: by its name, its path, or a place in which it is."""
    return any(name_of(each) == asked or is_named_by(path_of(each) or "", asked) for each in all_nodes([node]))


class EventCopies:
    """Events for merged nodes, made from the events of the nodes that they equal. Guarded by the lock of the session."""

    def __init__(self, *, keeps_text: bool) -> None:
        self._copies: dict[int, list[tuple[int, str | None]]] = {}
        self._ids: set[int] = set()
        self._texts: dict[int, list[TextDelta]] | None = {} if keeps_text else None

    def note(self, event: Event) -> None:
        """Keep text that a node merged later would have seen."""
        if self._texts is not None and isinstance(event, TextDelta):
            self._texts.setdefault(event.node_id, []).append(event)

    def of(self, event: Event) -> Iterable[Event]:
        """The events of all nodes that are merged with the node of this event."""
        if not self._copies or isinstance(event, (CallRequested, GraphFinished, GraphFailed)):
            return ()
        return [copied(event, *copy) for copy in self._copies.get(event.node_id, ())]

    def has(self, copy_id: int) -> bool:
        """Whether a node is merged already, by an attempt to submit that is repeated."""
        return copy_id in self._ids

    def add(
        self, node_id: int, copy_id: int, name: str | None, outcome: NodeFinished | NodeFailed | None
    ) -> list[Event]:
        """Merge a node into another; returns the events that it has missed."""
        self._ids.add(copy_id)
        self._copies.setdefault(node_id, []).append((copy_id, name))
        missed: list[Event] = list((self._texts or {}).get(node_id, ()))
        if outcome is not None:
            missed.append(outcome)
        return [copied(event, copy_id, name) for event in missed]


def copied(event: Event, node_id: int, name: str | None) -> Event:
    """The event of a node, for another node that equals it. Its usage is zero, because nothing was computed for it."""
    match event:
        case NodeFinished():
            return NodeFinished(
                event.graph_id,
                node_id,
                name,
                event.completions,
                Usage(),
                event.timing,
                event.scores,
                event.probabilities,
                event.prompt_logprobs,
                event.is_replayed,
                event.max_tokens,
                event.value,
                event.choice_logprobs,
                event.unconditional_logprobs,
            )
        case NodeFailed():
            return NodeFailed(event.graph_id, node_id, name, event.error)
        case TextDelta():
            return TextDelta(event.graph_id, node_id, event.choice, event.text, event.token_ids, event.logprobs)
        case _:
            raise AssertionError(f"{type(event).__name__} belongs to no node")
