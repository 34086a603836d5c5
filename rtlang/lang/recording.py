"""What a program body has recorded so far, and what is known of it.

A `Recording` owns the nodes of one run: it hands out node ids, keeps those not yet submitted, and turns outcomes (the events that ended
nodes) into texts, parsed values and errors. A `Driver` behind it can wait for nodes; the recording itself neither submits nor
waits. It may be used from several threads of one body.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from rtlang.contract.errors import DependencyError, RtlangError, TraceError, ValueParseError, rebuild
from rtlang.contract.events import NodeFinished
from rtlang.contract.graph import MAX_NODES, Arg, Generate, Node, Part, RequestGraph, Select, Text
from rtlang.contract.params import SamplingParams, SelectMethod
from rtlang.lang.meta import Meta
from rtlang.lang.output_types.types import OutputType
from rtlang.lang.values import user_location

Outcome = NodeFinished | RtlangError


@dataclass(frozen=True, slots=True)
class Break:
    """A place where the body needed a value: `location` is file:line, `what` the value, `reason` what asked for it."""

    location: str
    what: str
    reason: str

    def __str__(self) -> str:
        return f"{self.location}: needs {self.what} for {self.reason}"


class Driver(Protocol):
    """What lets a recording's body wait."""

    @property
    def is_async(self) -> bool:
        """The body is a coroutine: it may await, not block."""

    def outcome(self, node_id: int) -> Outcome | None:
        """How a node ended (a failed graph ends all of its nodes); None while it runs or is not submitted."""

    def wait(self, node_ids: Sequence[int]) -> None:
        """Submit what is recorded and return when all these nodes have an outcome."""

    async def wait_async(self, node_ids: Sequence[int]) -> None:
        """The same for a coroutine."""


class AheadOfTime:
    """The driver of `Program.graph`: nothing runs, nothing can be waited for."""

    def __init__(self, is_async: bool) -> None:
        self._is_async = is_async

    @property
    def is_async(self) -> bool:
        return self._is_async

    def outcome(self, node_id: int) -> Outcome | None:
        return None

    def wait(self, node_ids: Sequence[int]) -> None:
        raise AssertionError("the recording refuses breaks before it asks to wait")

    async def wait_async(self, node_ids: Sequence[int]) -> None:
        raise AssertionError("the recording refuses breaks before it asks to wait")


class Recording:
    """Nodes of one run of a program and what became of them.

    Attributes:
        nodes: every node by id, as recorded (not folded).
        breaks: the graph breaks so far.
        branch_points: ids of nodes that later nodes may continue although they have a child already.
    """

    def __init__(self, driver: Driver, base: SamplingParams | None = None) -> None:
        self.driver, self.base = driver, base
        self.nodes: dict[int, Node] = {}
        self.breaks: list[Break] = []
        self.branch_points: set[int] = set()
        self.is_closed = False
        self._pending: list[Node] = []
        self._inputs: dict[str, None] = {}
        self._types: dict[int, OutputType] = {}
        self._values: dict[tuple[int, int], Any] = {}
        self._reported: set[int] = set()
        self._lock = threading.RLock()

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the graph inputs used so far."""
        return tuple(self._inputs)

    def add_text(self, parent: int | None, parts: Sequence[Part]) -> int:
        """Record a text node; its id."""
        for part in parts:
            if isinstance(part, Arg):
                self._inputs[part.name] = None
        return self._add(lambda node_id: Text(node_id, parent, tuple(parts)))

    def add_generate(self, parent: int | None, name: str | None, params: SamplingParams, kind: OutputType) -> int:
        """Record a generate node whose texts read as `kind`; its id."""
        node_id = self._add(lambda node_id: Generate(node_id, parent, name, params, kind.constraint))
        self._types[node_id] = kind
        return node_id

    def add_select(
        self, parent: int | None, name: str | None, choices: tuple[str, ...], method: SelectMethod, kind: OutputType
    ) -> int:
        """Record a select node whose text reads as `kind`; its id."""
        node_id = self._add(lambda node_id: Select(node_id, parent, name, choices, method))
        self._types[node_id] = kind
        return node_id

    def take(self, *, is_last: bool) -> list[Node]:
        """Nodes to submit now. Text after the last generation stays for later, or is dropped at the end: no output needs it."""
        with self._lock:
            count = len(self._pending)
            while count and isinstance(self._pending[count - 1], Text):
                count -= 1
            taken = self._pending[:count]
            self._pending = [] if is_last else self._pending[count:]
            return taken

    def close(self) -> None:
        """The body is done; recording more is an error from here on."""
        self.is_closed = True

    def require(self, node_ids: Sequence[int], reason: str, what: str) -> None:
        """Return when these nodes have outcomes, which may be a graph break.

        Raises:
            TraceError: the graph is recorded ahead of time, or the body is a coroutine that must await.
        """
        if self._have(node_ids):
            return
        location = user_location()
        self._may_break(location, what, reason)
        if self.driver.is_async:
            raise TraceError(f"{reason} needs {what}: write `await` before it in an async program", location)
        self.breaks.append(Break(location, what, reason))
        self.driver.wait(node_ids)

    async def require_async(self, node_ids: Sequence[int], what: str, location: str) -> None:
        """Return when these nodes have outcomes, holding no thread.

        Raises:
            TraceError: the graph is recorded ahead of time, or the program is not a coroutine.
        """
        if self._have(node_ids):
            return
        self._may_break(location, what, "await")
        if not self.driver.is_async:
            raise TraceError(f"await needs an `async def` program to get {what}", location)
        self.breaks.append(Break(location, what, "await"))
        await self.driver.wait_async(node_ids)

    def text_of(self, node_id: int, choice: int) -> str:
        """The text of an ended node.

        Raises:
            RtlangError: the error it ended in; of a dependant, the error at the root.
        """
        return self.finished(node_id).completions[choice].text

    def value_of(self, node_id: int, choice: int) -> Any:
        """The text of an ended node read as its type, once.

        Raises:
            ValueParseError: the text does not read as the type. RtlangError: as for `text_of`.
        """
        found = self.read(node_id, choice)
        if isinstance(found, RtlangError):
            self._reported.add(node_id)
            raise _fresh(found)
        return found

    def read(self, node_id: int, choice: int) -> Any:
        """The value of a finished node's text, or the ValueParseError that reading it gives."""
        key = (node_id, choice)
        if key not in self._values:
            text = self.text_of(node_id, choice)
            try:
                self._values[key] = self._types[node_id].read(self.name_of(node_id), text)
            except ValueParseError as error:
                self._values[key] = error
        return self._values[key]

    def meta_of(self, node_id: int, choice: int) -> Meta:
        """What is known of an ended node's text besides the text. Raises as `text_of`."""
        return Meta.of(self.nodes[node_id], self.finished(node_id), choice)

    def finished(self, node_id: int) -> NodeFinished:
        """How an ended node finished. Raises as `text_of`."""
        outcome = self.driver.outcome(node_id)
        if isinstance(outcome, NodeFinished):
            return outcome
        if outcome is None:
            raise TraceError(f"{self.name_of(node_id)!r} was recorded but never run", user_location())
        root_id, error = self._root(node_id, outcome)
        self._reported.add(root_id)
        raise _fresh(error)

    def root_error(self, node_id: int, error: RtlangError) -> RtlangError:
        """What made a node fail with `error`: of a dependant, the error at the root."""
        return _fresh(self._root(node_id, error)[1])

    def name_of(self, node_id: int) -> str:
        """What to call a node in messages."""
        node = self.nodes[node_id]
        name = None if isinstance(node, Text) else node.name
        return f"node {node_id}" if name is None else name

    def first_error(self) -> RtlangError | None:
        """The first failure of a node or of reading its text that the body has not been told of."""
        for node_id, node in self.nodes.items():
            if isinstance(node, Text):
                continue
            outcome = self.driver.outcome(node_id)
            if isinstance(outcome, RtlangError):
                root_id, error = self._root(node_id, outcome)
                if root_id not in self._reported:
                    return _fresh(error)
            elif outcome is not None and node_id not in self._reported:
                for choice in range(len(outcome.completions)):
                    value = self.read(node_id, choice)
                    if isinstance(value, RtlangError):
                        return _fresh(value)
        return None

    def graph(self) -> RequestGraph:
        """Everything recorded, as one graph."""
        return RequestGraph(tuple(self.nodes.values()), self.inputs)

    def effective(self, params: SamplingParams | None, options: Mapping[str, Any]) -> SamplingParams:
        """The options of one generation: its own, over its `params`, over those of the run, over the defaults.

        Raises:
            ParameterError: an option is wrong; names it.
        """
        base = params or self.base
        if base is None:
            return SamplingParams(**options)
        return replace(base, **options) if options else base

    def _add(self, make: Any) -> int:
        with self._lock:
            if self.is_closed:
                raise TraceError("the program has ended; its state cannot grow", user_location())
            node_id = len(self.nodes)
            if node_id >= MAX_NODES:
                raise TraceError(f"a program may record at most {MAX_NODES} nodes", user_location())
            node: Node = make(node_id)
            self.nodes[node_id] = node
            self._pending.append(node)
            return node_id

    def _have(self, node_ids: Sequence[int]) -> bool:
        return all(self.driver.outcome(node_id) is not None for node_id in node_ids)

    def _may_break(self, location: str, what: str, reason: str) -> None:
        if isinstance(self.driver, AheadOfTime):
            self.breaks.append(Break(location, what, reason))
            raise TraceError(f"graph break: {reason} needs {what}, which a graph ahead of time does not have", location)
        if self.is_closed:
            raise TraceError(f"the program ended before {what} was there", location)

    def _root(self, node_id: int, error: RtlangError) -> tuple[int, RtlangError]:
        seen = {node_id}
        while isinstance(error, DependencyError):
            cause = self.driver.outcome(error.node_id) if error.node_id not in seen else None
            if not isinstance(cause, RtlangError):
                return error.node_id, rebuild(error.cause_code, error.cause_message)
            node_id = error.node_id
            seen.add(node_id)
            error = cause
        return node_id, error


def _fresh(error: RtlangError) -> RtlangError:
    """The same error without the tracebacks of earlier raises; the first instance stays its cause where it has one."""
    copy = rebuild(error.code, error.message, error.facts)
    copy.__cause__ = error.__cause__
    return copy
