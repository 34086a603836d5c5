"""The nodes of a recording, and the blocks of branches and loops among them.

A block is recorded before it is known whether, or how often, it runs. Its nodes have ids behind that of their control node; iterations of
a loop run under further ids that the loop reserves.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rtlang.contract.errors import TraceError
from rtlang.contract.events import NodeFinished
from rtlang.contract.graph import Node, Part, Ref, Repeat, Switch, Text, blocks_of, last_id
from rtlang.contract.host_calls import HostFunction
from rtlang.lang.control_paths import path_parts
from rtlang.lang.values import user_location

INSIDE = "the value was made inside a branch or loop of the graph; return it from the branch, and use what rt.switch or rt.repeat returns"


@dataclass(slots=True)
class Control:
    """A control node that is being recorded; see `RecordedBlocks.control`."""

    recording: RecordedBlocks
    node_id: int
    node: Switch | Repeat | None = None

    @property
    def span(self) -> int:
        """Number of ids that the blocks so far occupy."""
        return self.recording._free_id - self.node_id - 1


@dataclass(frozen=True, slots=True)
class Computed:
    """A value that a node computes from those of generations; see `Recording.operand`."""

    needs: tuple[int, ...]
    read: Callable[[], Any]
    what: str


class RecordedBlocks(ABC):
    """The nodes of a recording.

    Attributes:
        nodes: every node outside of blocks by id, as recorded (not folded); of a block only while it is recorded.
        inner: the nodes of blocks, by the ids that they have in the graph.
        functions: the functions of host calls, by node id.
    """

    def __init__(self) -> None:
        self.nodes: dict[int, Node] = {}
        self.inner: dict[int, Node] = {}
        self.functions: dict[int, HostFunction] = {}
        self._pending: list[Node] = []
        self._locations: dict[int, str] = {}  # file:line of the calls that recorded nodes
        self._computed: dict[int, Computed] = {}  # by the id of the node that computes the value
        self._applied: dict[tuple[str, str], int] = {}
        self._free_id = 0
        self.block_depth = 0
        self._lock = threading.RLock()

    @abstractmethod
    def has(self, node_ids: Sequence[int]) -> bool:
        """Whether all these nodes have outcomes."""

    @abstractmethod
    def finished(self, node_id: int) -> NodeFinished:
        """The final event of a node; raises its error if it failed."""

    @abstractmethod
    def _next_id(self) -> int: ...

    @abstractmethod
    def _add(self, node: Node) -> int: ...

    @abstractmethod
    def _outcome(self, node_id: int) -> object: ...

    def add_value(self, make: Callable[[int], Node]) -> int:
        """Record a node that computes a value; `make` gets its id. Returns the id."""
        with self._lock:
            node_id = self._add(make(self._next_id()))
        self._locations[node_id] = user_location()
        return node_id

    def host_function(self, node_id: int) -> HostFunction | None:
        """The function of a host call, by the id under which the call runs; None if there is none."""
        return self.functions.get(self._written(node_id))

    @property
    def is_in_block(self) -> bool:
        """Whether a branch or the body of a loop is being recorded."""
        return self.block_depth > 0

    @contextmanager
    def control(self, parent: int | None, location: str) -> Iterator[Control]:
        """Record a control node: its blocks are recorded one after the other within the context, which sets `node`."""
        with self._lock:
            node_id = self._next_id()
            self.nodes[node_id] = Text(node_id, parent, ())  # what the blocks continue
            self._free_id = node_id + 1
            control = Control(self, node_id)
            self._locations[node_id] = location
            try:
                yield control
                node = control.node
                assert node is not None
            except BaseException:
                del self.nodes[node_id]
                raise
            self._add(node)

    @contextmanager
    def in_block(self) -> Iterator[list[Node]]:
        """Record a block; the list has its nodes when the context ends."""
        nodes: list[Node] = []
        self._pending, before = [], self._pending
        applied, computed = dict(self._applied), dict(self._computed)
        self.block_depth += 1
        try:
            yield nodes
            nodes.extend(self._pending)
        finally:
            self.block_depth -= 1
            for node in self._pending:
                self.inner[node.node_id] = self.nodes.pop(node.node_id)
            self._pending, self._applied, self._computed = before, applied, computed

    def node(self, node_id: int) -> Node:
        """A node by the id under which it runs."""
        found = self.nodes.get(node_id)
        return self.inner[self._written(node_id)] if found is None else found

    def parts_behind(self, node: Node) -> tuple[Part, ...]:
        """The parts that a non-text node adds to its sequence; the node itself for an unfinished branch or loop."""
        if isinstance(node, (Switch, Repeat)) and self.has((node.node_id,)):
            outcome = self._outcome(node.node_id)
            if isinstance(outcome, NodeFinished) and not outcome.is_cancelled:
                return tuple(path_parts(node, self.nodes, self))
        return (Ref(node.node_id),)

    def is_control(self, part: Part) -> bool:
        """Whether a part stands for a branch or loop that has not finished."""
        return isinstance(part, Ref) and isinstance(self.nodes.get(part.node_id), (Switch, Repeat))

    def is_repeated(self, node_id: int) -> bool:
        """Whether an inner node runs once per iteration of a loop."""
        return any(
            isinstance(node, Repeat) and node.node_id < node_id <= last_id(node)
            for node in (*self.nodes.values(), *self.inner.values())
        )

    def _written(self, node_id: int) -> int:
        """The id that a node has in the graph, for the id under which it runs: iterations of loops have ids of their own."""
        if not self.inner or node_id in self.nodes:
            return node_id
        nodes: Sequence[Node] = tuple(self.nodes.values())
        while not any(node.node_id == node_id for node in nodes):
            control = next((node for node in nodes if node.node_id < node_id <= last_id(node)), None)
            if control is None:
                break
            if isinstance(control, Repeat):
                node_id = control.node_id + 1 + (node_id - control.node_id - 1) % control.stride
            nodes = tuple(inner for block in blocks_of(control) for inner in block.nodes)
        return node_id

    def _check_outside(self, node_ids: Sequence[int], location: str) -> None:
        if self.block_depth:
            raise TraceError(
                "nothing can be waited for inside a branch or loop of the graph; read the value before it, use operations that the "
                "graph computes, or call functions and tools with rt.call",
                location,
            )
        if not self.inner.keys().isdisjoint(node_ids):
            raise TraceError(INSIDE, location)
