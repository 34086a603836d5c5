"""Keeps the output of a running graph, so that another run of the graph can go on where this one was lost.

After the loss, `known` and `continue_from` are given to the next run, and `take` drops the events that the listener has received already:
the outcome of an ended node, a host call that was requested, text that the next run cannot leave out.
"""

from __future__ import annotations

from collections.abc import Iterable

from rtlang.contract.errors import DependencyError
from rtlang.contract.events import (
    CallRequested,
    Event,
    NodeFailed,
    NodeFinished,
    NodeStarted,
    PromptComputed,
    TextDelta,
    ValueKnown,
)
from rtlang.contract.graph.nodes import Generate, Node, Repeat, all_nodes
from rtlang.contract.runs.known import ContinueFrom, Known, KnownOutcome


class RunLedger:
    """The output of one graph so far. Used by one thread at a time.

    Attributes:
        known: the outcomes of ended nodes.
    """

    def __init__(self) -> None:
        self.known: dict[int, KnownOutcome] = {}
        self._ended: set[int] = set()
        self._noted: set[tuple[str, int, int]] = set()  # other events that come once
        self._tokens: dict[int, dict[int, list[int]]] = {}  # of running nodes, by choice
        self._tails: dict[tuple[int, int], str] = {}  # text behind the last token, which ends a choice
        self._num_repeated: dict[tuple[int, int], int] = {}  # tokens that the next run sends again
        self._given: dict[int, list[list[int]]] = {}  # tokens that the first run was given

    def give(self, known: Known, continue_from: ContinueFrom) -> None:
        """Note what the first run is given with its nodes. Its events have not been sent yet."""
        self.known.update(known)
        self._given.update((node_id, [list(ids) for ids in choices]) for node_id, choices in continue_from.items())

    @property
    def is_empty(self) -> bool:
        """Whether the graph has sent nothing yet."""
        return not (self._ended or self._tokens or self._noted)

    @property
    def num_repeated(self) -> int:
        """Tokens that the run after the last `continue_from` sends again, and for which it needs credit again."""
        return sum(self._num_repeated.values())

    def take(self, event: Event) -> bool:
        """Note an event; returns False if an earlier run has sent it already."""
        match event:
            case TextDelta():
                return self._take_text(event)
            case NodeFinished() | NodeFailed():
                node_id = event.node_id
                if node_id in self._ended:
                    return False
                self._ended.add(node_id)
                for choice in self._tokens.pop(node_id, ()):
                    self._tails.pop((node_id, choice), None)
                    self._num_repeated.pop((node_id, choice), None)
                if isinstance(event, NodeFinished):
                    self.known[node_id] = KnownOutcome(event, is_replayed=event.is_replayed)
                elif not isinstance(event.error, DependencyError):
                    self.known[node_id] = KnownOutcome(event.error)
            case CallRequested() | NodeStarted() | PromptComputed() | ValueKnown():
                key = type(event).__name__, event.node_id, getattr(event, "choice", 0)
                if key in self._noted:
                    return False
                self._noted.add(key)
        return True

    def continue_from(self, nodes: Iterable[Node]) -> dict[int, list[list[int]]]:
        """The tokens of running generations, for the next run of the graph with these nodes. Call it once for each run."""
        kinds = list(all_nodes(list(nodes)))
        given = {node_id: [list(ids) for ids in each] for node_id, each in self._given.items()}
        self._num_repeated.clear()
        for node_id, choices in self._tokens.items():
            node = node_with(node_id, kinds)
            if isinstance(node, Generate) and node.params.best_of == 1:
                before = [*given.get(node_id, ()), *([] for _ in range(node.params.n))]
                given[node_id] = [before[choice] + choices.get(choice, []) for choice in range(node.params.n)]
            else:
                self._num_repeated.update({(node_id, choice): len(ids) for choice, ids in choices.items()})
        return {node_id: each for node_id, each in given.items() if node_id not in self.known}

    def _take_text(self, event: TextDelta) -> bool:
        key = event.node_id, event.choice
        if event.node_id in self._ended:
            return False
        num_repeated = self._num_repeated.get(key, 0)
        if num_repeated:
            self._num_repeated[key] = max(0, num_repeated - len(event.token_ids))
            return False
        if event.token_ids:
            self._tokens.setdefault(event.node_id, {}).setdefault(event.choice, []).extend(event.token_ids)
        elif self._tails.get(key) == event.text:
            return False
        else:
            self._tokens.setdefault(event.node_id, {}).setdefault(event.choice, [])
            self._tails[key] = event.text
        return True


def node_with(node_id: int, nodes: list[Node]) -> Node | None:
    """The node with this id, which may be that of a later iteration of a repeated block; None if there is none."""
    for node in nodes:
        if node.node_id == node_id:
            return node
    loops = [node for node in nodes if isinstance(node, Repeat)]
    strides = {inner.node_id: loop.stride for loop in loops for inner in all_nodes(loop.body.nodes)}
    for node in nodes:
        stride = strides.get(node.node_id)
        if stride and node_id > node.node_id and (node_id - node.node_id) % stride == 0:
            return node
    return None
