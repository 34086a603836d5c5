"""The nodes of one program run, and the blocks of branches and loops among them.

A block is recorded before it is known whether, or how often, it runs. The ids of its nodes follow the id of their control node; iterations
of a loop run under further ids that the loop reserves. `written_id` converts an id under which a node runs into its id in the graph.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from rtlang.contract.errors import TraceError
from rtlang.contract.graph.host_calls import HostFunction
from rtlang.contract.graph.node_paths import at_turn, joined
from rtlang.contract.request_graph import (
    MAX_NODES,
    Apply,
    Arg,
    Generate,
    Node,
    Operand,
    Part,
    Ref,
    Repeat,
    Select,
    Switch,
    Text,
    blocks_of,
    choices_of,
    dependencies,
    last_id,
    name_of,
    path_of,
)
from rtlang.lang.lazy_values.values import user_location
from rtlang.lang.output_types.types import OutputType

_INSIDE = (
    "the value was generated inside a branch or loop of the graph; return it from the branch, and use the value of rt.switch or "
    "rt.repeat"
)


_EMPTY: dict[Any, Any] = {}


@dataclass(slots=True)
class Control:
    """A control node that is being recorded; see `RecordedNodes.control`."""

    nodes: RecordedNodes
    node_id: int
    node: Switch | Repeat | None = None

    @property
    def span(self) -> int:
        """Number of ids that the blocks so far occupy."""
        return self.nodes.free_id - self.node_id - 1


@dataclass(frozen=True, slots=True)
class Computed:
    """A value that a node computes from generated values; see `Recording.operand`."""

    needs: tuple[int, ...]
    read: Callable[[], Any]
    what: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of a generation with checks, by the ids in the graph.

    Attributes:
        path: of the generation.
        node_id: the generation.
        thought: the reasoning before it, if any.
        message: the call whose value is None if the attempt was accepted, or the message.
    """

    path: str
    node_id: int
    thought: int | None
    message: int


class RecordedNodes:
    """The nodes of a recording, which owns them, and facts about each. May be used from several threads.

    Attributes:
        outer: every node outside of blocks by id, as recorded (not folded); of a block only while it is recorded.
        inner: the nodes of blocks, by the ids that they have in the graph.
        types: the types of generations and selects, by id in the graph.
        locations: `file:line` of the calls that recorded nodes, by id in the graph.
        functions: the functions of host calls, by id in the graph.
        readers: make their values from plain data, where their functions declare a type that plain data loses.
        emitted_before: of emissions, the one before in the same state; both by id in the graph.
        computed: the values of pure functions, by the ids of the nodes that compute them.
        reasoning_of: the nodes of reasoning by the nodes of the values that follow them.
        names_of_reasoning: the names of these values by the nodes of reasoning.
        checked: the attempts of generations with checks, by the node that stands for the accepted value.
        checked_by: this node by the nodes of the attempts.
        inputs: names of the graph inputs used so far, as keys.
        free_id: the id of the next node.
        block_depth: the number of branches and loops that are being recorded, within each other.
        is_closed: whether the body has ended, so that recording more raises.
        lock: held while a node is added, or while several are.
    """

    def __init__(self) -> None:
        self.outer: dict[int, Node] = {}
        self.inner: dict[int, Node] = {}
        self.types: dict[int, OutputType] = {}
        self.locations: dict[int, str] = {}
        self.functions: dict[int, HostFunction] = {}
        self.readers: dict[int, Callable[[Any], Any]] = {}
        self.emitted_before: dict[int, int] = {}
        self.computed: dict[int, Computed] = {}
        self.reasoning_of: dict[int, int] = {}
        self.names_of_reasoning: dict[int, str | None] = {}
        self.checked: dict[int, tuple[Attempt, ...]] = {}
        self.checked_by: dict[int, int] = {}
        self.inputs: dict[str, None] = {}
        self.free_id = 0
        self.block_depth = 0
        self.is_closed = False
        self.lock = threading.RLock()
        self._num_paths: dict[str, int] = {}
        self._pending: list[Node] = []
        self._applied: dict[tuple[str, str], int] = {}

    # Adding

    def next_id(self) -> int:
        """The id of the next node. Call it and `append` with the lock held.

        Raises:
            TraceError: the body has ended, or there are too many nodes.
        """
        if self.is_closed:
            raise TraceError("the program has ended; its state cannot be appended to", user_location())
        if len(self.outer) + len(self.inner) >= MAX_NODES:
            raise TraceError(f"a program may record at most {MAX_NODES} nodes", user_location())
        return self.free_id

    def append(self, node: Node) -> int:
        """Record a node with the id `next_id`; returns the id.

        Raises:
            TraceError: the node depends on one inside a block that has ended.
        """
        if self.inner and self.is_any_inside(dependencies(node)):
            raise TraceError(_INSIDE, user_location())
        self.outer[node.node_id] = node
        self.free_id = last_id(node) + 1
        self._pending.append(node)
        return node.node_id

    def add_value(self, make: Callable[[int], Node]) -> int:
        """Record a node that computes a value, at the line of the user's call; `make` gets its id. Returns the id."""
        with self.lock:
            node_id = self.append(make(self.next_id()))
        self.locations[node_id] = user_location()
        return node_id

    def add_apply(self, function: str, args: tuple[Operand, ...]) -> Ref:
        """Record a pure function of operands, once for equal ones."""
        key = (function, repr(args))  # equal numbers of different types are different constants
        node_id = self._applied.get(key)
        if node_id is None:
            for arg in args:
                if isinstance(arg, Arg):
                    self.inputs[arg.name] = None
            node_id = self._applied[key] = self.add_value(lambda node_id: Apply(node_id, function, args))
        return Ref(node_id)

    def add_checked(self, node_id: int, kind: OutputType, attempts: Sequence[Attempt], internal: Iterable[int]) -> None:
        """Note that a node stands for the accepted value among attempts. `internal`: their nodes that are no variables."""
        self.types[node_id] = kind
        self.checked[node_id] = tuple(attempts)
        self.checked_by.update(dict.fromkeys(internal, node_id))

    @contextmanager
    def control(self, parent: int | None, location: str) -> Iterator[Control]:
        """Record a control node: its blocks are recorded one after the other within the context, which sets `node`."""
        with self.lock:
            node_id = self.next_id()
            self.outer[node_id] = Text(node_id, parent, ())  # the blocks continue it
            self.free_id = node_id + 1
            control = Control(self, node_id)
            self.locations[node_id] = location
            try:
                yield control
                node = control.node
                assert node is not None
            except BaseException:
                del self.outer[node_id]
                raise
            self.append(node)

    @contextmanager
    def in_block(self) -> Iterator[list[Node]]:
        """Record a block; the list has its nodes when the context ends."""
        nodes: list[Node] = []
        self._pending, before = [], self._pending
        applied, computed = dict(self._applied), dict(self.computed)
        self.block_depth += 1
        try:
            yield nodes
            nodes.extend(self._pending)
        finally:
            self.block_depth -= 1
            for node in self._pending:
                self.inner[node.node_id] = self.outer.pop(node.node_id)
            self._pending, self._applied, self.computed = before, applied, computed

    def new_path(self, place: str, last: str) -> str:
        """The path of a new node, or of a new place for nodes: `last`, a segment, in a place; numbered if the place has it already."""
        path = joined(place, last)
        with self.lock:
            number = self._num_paths[path] = self._num_paths.get(path, 0) + 1
        return path if number == 1 else f"{path}#{number}"

    def place_of(self, operands: Iterable[Operand], place: str) -> str:
        """The place of a call with these operands, made in `place`: that of their nodes, if all are in one place within it, as in a fork.

        So a call of a fork's values belongs to the fork, in whatever order the body makes it.
        """
        found: set[str] = set()
        todo = [each.node_id for each in operands if isinstance(each, Ref)]
        while todo:
            node = self.outer.get(todo.pop())
            path = None if node is None else path_of(node)
            if path is not None:
                found.add(path.rpartition("/")[0])
            elif isinstance(node, Apply):
                todo.extend(each.node_id for each in node.args if isinstance(each, Ref))
        only = found.pop() if len(found) == 1 else place
        return only if not place or only.startswith(f"{place}/") else place

    # Submitting

    def take(self, *, is_last: bool) -> list[Node]:
        """Remove and return the nodes to submit now.

        Text that no generation follows yet waits, so that it is tokenized together with text that is appended later, wherever the body
        reads a value in between. At the end it is dropped as unused.
        """
        with self.lock:
            needed: set[int] = set()
            taken: list[Node] = []
            waiting: list[Node] = []
            for node in reversed(self._pending):
                if isinstance(node, Text) and node.node_id not in needed:
                    waiting.append(node)
                else:
                    needed |= dependencies(node)
                    taken.append(node)
            self._pending = [] if is_last else waiting[::-1]
            return taken[::-1]

    def before_unsent_text(self, ended: set[int]) -> set[int]:
        """`ended`, the last nodes of sequences, with the node before the text of each that was not submitted."""
        found = ended
        for node in reversed(self._pending):
            if node.node_id in found and isinstance(node, Text) and node.parent is not None:
                if found is ended:
                    found = set(found)
                found.add(node.parent)
        return found

    def release(self) -> None:
        """Share the tables that stayed empty with other recordings: nothing is added any more."""
        assert self.is_closed, "the body has not ended"
        self._pending = []
        for name in ("inner", "functions", "computed", "reasoning_of", "names_of_reasoning", "inputs", "_applied"):
            if not getattr(self, name):
                setattr(self, name, _EMPTY)

    # Reading

    def node(self, node_id: int) -> Node:
        """A node by the id under which it runs."""
        found = self.outer.get(node_id)
        return self.inner[self.written_id(node_id)] if found is None else found

    def host_function(self, node_id: int) -> HostFunction | None:
        """The function of a host call, by the id under which the call runs; None if there is none."""
        return self.functions.get(self.written_id(node_id))

    def name_of(self, node_id: int) -> str:
        """The name of a node for messages."""
        node = self.node(node_id)
        name = None if isinstance(node, Text) else node.name
        return f"node {node_id}" if name is None else name

    def attempts_of(self, node_id: int) -> tuple[Attempt, ...] | None:
        """The attempts of a generation with checks, by the ids under which it and they run; None for other nodes."""
        if not self.checked:
            return None
        written = self.written_id(node_id)
        found, offset = self.checked.get(written), node_id - written
        if found is None or not offset:
            return found
        return tuple(
            replace(
                each,
                node_id=each.node_id + offset,
                thought=None if each.thought is None else each.thought + offset,
                message=each.message + offset,
                path=self.path_at(each.node_id + offset) or each.path,
            )
            for each in found
        )

    def is_internal(self, node_id: int) -> bool:
        """Whether a node, by the id under which it runs, is reasoning or part of an attempt, and no generation of its own."""
        if not self.names_of_reasoning and not self.checked_by:
            return False
        written = self.written_id(node_id)
        return written in self.names_of_reasoning or written in self.checked_by

    def checked_at(self, node_id: int) -> int:
        """The node that stands for the value of a generation with checks, for a part of it; both by the ids under which they run."""
        written = self.written_id(node_id)
        return self.checked_by.get(written, written) + node_id - written

    def is_generation(self, node: Node) -> bool:
        """Whether a node is a generation that a program has asked for, by the id under which it runs; the attempts of one are none."""
        if isinstance(node, (Generate, Select)):
            return not self.is_internal(node.node_id)
        return bool(self.checked) and self.written_id(node.node_id) in self.checked

    def is_checked(self, node_id: int) -> bool:
        """Whether a node, by the id under which it runs, is a generation with checks or a part of one."""
        written = self.written_id(node_id)
        return written in self.checked or written in self.checked_by

    def shown_name(self, node_id: int) -> str | None:
        """The name of the variable that a node, by the id under which it runs, is or is a part of; None if it has none."""
        written = self.written_id(node_id)
        if written in self.names_of_reasoning:
            return self.names_of_reasoning[written]
        written = self.checked_by.get(written, written)
        return name_of(self.outer[written] if written in self.outer else self.inner[written])

    def needs_of(self, node_ids: Sequence[int]) -> tuple[int, ...]:
        """The generations that must have ended before the texts or values of these nodes are known."""
        if not self.computed:
            return tuple(node_ids)
        needed: dict[int, None] = {}
        for node_id in node_ids:
            computed = self.computed.get(node_id)
            needed.update(dict.fromkeys((node_id,) if computed is None else computed.needs))
        return tuple(needed)

    def is_control(self, part: Part) -> bool:
        """Whether a part stands for a branch or loop that has not finished."""
        return isinstance(part, Ref) and isinstance(self.outer.get(part.node_id), (Switch, Repeat))

    def is_repeated(self, node_id: int) -> bool:
        """Whether an inner node runs once per iteration of a loop."""
        return any(
            isinstance(node, Repeat) and node.node_id < node_id <= last_id(node)
            for node in (*self.outer.values(), *self.inner.values())
        )

    def is_any_inside(self, node_ids: Iterable[int]) -> bool:
        """Whether a block that has been recorded contains one of these nodes."""
        return bool(self.inner) and not self.inner.keys().isdisjoint(node_ids)

    def written_id(self, node_id: int) -> int:
        """The id that a node has in the graph, for the id under which it runs: iterations of loops have ids of their own."""
        return self._written(node_id)[0]

    def path_at(self, node_id: int, choice: int | None = None) -> str | None:
        """The path of a node by the id under which it runs; None for text and pure functions.

        Args:
            choice: the completion whose path it is: with n > 1 each has its index.
        """
        written, turns = self._written(node_id)
        node = self.outer[written] if written in self.outer else self.inner[written]
        path = path_of(node)
        if path is None:
            return None
        index = f"[{choice}]" if choice is not None and choices_of(node) > 1 else ""
        return reduce(at_turn, turns, path) + index

    def _written(self, node_id: int) -> tuple[int, list[int]]:
        """The id in the graph, and the turns of the loops around the node, the outermost first."""
        turns: list[int] = []
        if not self.inner or node_id in self.outer:
            return node_id, turns
        nodes: Sequence[Node] = tuple(self.outer.values())
        while not any(node.node_id == node_id for node in nodes):
            control = next((node for node in nodes if node.node_id < node_id <= last_id(node)), None)
            if control is None:
                break
            if isinstance(control, Repeat):
                turn, index = divmod(node_id - control.node_id - 1, control.stride)
                node_id = control.node_id + 1 + index
                turns.append(turn)
            nodes = tuple(inner for block in blocks_of(control) for inner in block.nodes)
        return node_id, turns

    def check_outside(self, node_ids: Sequence[int], location: str) -> None:
        """Raise TraceError if a block is being recorded, or contains one of these nodes: their values cannot be waited for."""
        if self.block_depth:
            raise TraceError(
                "a branch or loop of the graph cannot wait for a value; read it before the branch, use operations that the graph "
                "computes, or call functions and tools with rt.call",
                location,
            )
        if self.is_any_inside(node_ids):
            raise TraceError(_INSIDE, location)
