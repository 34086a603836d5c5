"""The recording of a program run: its nodes, their order in sequences, and the places where the body waited.

A `Recording` adds the nodes of one run to its `RecordedNodes`, and makes the body wait for nodes whose values it needs; their `Outcomes`
give the values. It does not submit nodes; its `Driver` does. May be used from several threads of one body.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from rtlang.compiler.context import Pieces
from rtlang.contract.errors import ParameterError, TraceError
from rtlang.contract.graph.host_calls import HostFunction
from rtlang.contract.graph.node_paths import mixed_seed, tells_more
from rtlang.contract.graph.nodes import Policy
from rtlang.contract.params import SamplingParams, SelectMethod, sampling_params
from rtlang.contract.request_graph import Arg, Call, Generate, Operand, Part, Ref, RequestGraph, Select, Text, parent_of
from rtlang.lang.function_digest import function_digest
from rtlang.lang.lazy_values.operations import Lazy, Operation, Term, parsed
from rtlang.lang.lazy_values.values import user_location
from rtlang.lang.output_types.kinds import Reading
from rtlang.lang.output_types.tools import thoughts
from rtlang.lang.output_types.types import OutputType
from rtlang.lang.output_types.value_kinds import reading_of_type
from rtlang.lang.recordings.driver import AheadOfTime, Driver
from rtlang.lang.recordings.error_places import OptionsOf, at_generation
from rtlang.lang.recordings.node_outcomes import Outcomes
from rtlang.lang.recordings.recorded_nodes import Computed, RecordedNodes
from rtlang.lang.recordings.tool_runs import ToolRuns


@dataclass(frozen=True, slots=True)
class Break:
    """A graph break: at `location` (file:line) the body needed the value `what` of the node with this path for `reason`."""

    location: str
    what: str
    reason: str
    path: str | None = None

    def __str__(self) -> str:
        where = f" ({self.path})" if self.path is not None and tells_more(self.path) else ""
        return f"{self.location}: needs {self.what}{where} for {self.reason}"


class _Sequence(Protocol):
    @property
    def head(self) -> int | None: ...
    def leave_failed(self) -> None: ...


class Recording:
    """The recording of one program run.

    Args:
        seed: for a graph that is recorded ahead of time: generations get the seeds that they would have in a run with this seed.

    Attributes:
        driver: submits nodes and waits for them.
        base: the sampling parameters of generations without their own; None for the defaults.
        nodes: the nodes.
        outcomes: their values and errors.
        breaks: the graph breaks so far.
        branch_points: ids of nodes that later nodes may continue although they already have a child.
        open_starts: the nodes before open messages, each with the number of sequences in which it is open.
        ended: ids of the last nodes of sequences to which nothing can be appended any more.
        free_texts: the pieces of texts whose order is not settled yet, by node id.
        fork_sequences: the sequences of all forks.
        has_unnamed: whether a generation without a name was recorded.
        has_decisions: whether one value among several was chosen.
    """

    def __init__(self, driver: Driver, base: SamplingParams | None = None, seed: int | None = None) -> None:
        self.driver, self.base, self._seed = driver, base, seed
        self.nodes = RecordedNodes()
        self.outcomes = Outcomes(
            self.nodes, driver, ToolRuns(weakref.proxy(self))
        )  # not a cycle, which would keep the results of ended runs
        self.breaks: list[Break] = []
        self.branch_points: set[int] = set()
        self.open_starts: Counter[int] = Counter()
        self.ended: set[int] = set()
        self.free_texts: dict[int, Pieces] = {}
        self.fork_sequences: list[_Sequence] = []
        self.has_unnamed = False
        self.has_decisions = False

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the graph inputs used so far."""
        return tuple(self.nodes.inputs)

    @property
    def is_async(self) -> bool:
        """Whether the body is a coroutine."""
        return self.driver.is_async

    @property
    def is_in_block(self) -> bool:
        """Whether a branch or the body of a loop is being recorded."""
        return self.nodes.block_depth > 0

    @property
    def is_closed(self) -> bool:
        """Whether the body has ended."""
        return self.nodes.is_closed

    # Recording

    def add_text(self, parent: int | None, parts: Sequence[Part]) -> int:
        """Record a text node; returns its id."""
        nodes = self.nodes
        for part in parts:
            if type(part) is Arg:
                nodes.inputs[part.name] = None
        with nodes.lock:
            return nodes.append(Text(nodes.next_id(), parent, tuple(parts)))

    def add_generate(
        self,
        parent: int | None,
        name: str | None,
        params: SamplingParams,
        kind: OutputType,
        path: str | None = None,
        *,
        reasoning: int | None = None,
        is_attempt: bool = False,
    ) -> int:
        """Record a generate node whose completions parse as `kind`; returns its id.

        Args:
            reasoning: the node of the reasoning before it.
            is_attempt: whether another node stands for its value, so that it has no name.
        """
        if kind.for_format is not None:
            with OptionsOf(name):
                kind = kind.for_format(self.driver.tool_format)
        if is_attempt:
            name = None
        elif name is None:
            self.has_unnamed = True
        if self._seed is not None and path is not None and params.depends_on_run_seed(kind.constraint):
            params = replace(params, seed=mixed_seed(self._seed, path))
        nodes = self.nodes
        with nodes.lock:
            node_id = nodes.append(Generate(nodes.next_id(), parent, name, params, kind.constraint, path=path))
        nodes.types[node_id], nodes.locations[node_id] = kind, user_location()
        if reasoning is not None:
            nodes.reasoning_of[node_id], nodes.names_of_reasoning[reasoning] = reasoning, name
        return node_id

    def add_reasoning(self, parent: int | None, params: SamplingParams, name: str | None, path: str) -> int:
        """Record the reasoning before a value, whose generation is called `name`; returns its id."""
        try:
            tool_format = self.driver.tool_format
        except TraceError:
            raise TraceError(
                "the marks of reasoning depend on the model, which is not known when recording ahead of time",
                user_location(),
            ) from None
        kind = thoughts(format=tool_format or "json")
        node_id = self.nodes.add_value(
            lambda node_id: Generate(node_id, parent, None, params, kind.constraint, path=path)
        )
        self.nodes.types[node_id], self.nodes.names_of_reasoning[node_id] = kind, name
        return node_id

    def add_select(
        self,
        parent: int | None,
        name: str | None,
        choices: tuple[str, ...],
        method: SelectMethod,
        kind: OutputType,
        path: str | None = None,
    ) -> int:
        """Record a select node whose text parses as `kind`; returns its id."""
        if name is None:
            self.has_unnamed = True
        node_id = self.nodes.add_value(lambda node_id: Select(node_id, parent, name, choices, method, path=path))
        self.nodes.types[node_id] = kind
        return node_id

    def add_call(
        self,
        name: str,
        operands: tuple[Operand, ...],
        run: HostFunction,
        path: str,
        policy: Policy = "once",
        functions: Iterable[Callable[..., Any]] = (),
    ) -> int:
        """Record a call of a function of this process; returns its id.

        Args:
            functions: what `run` calls, if the outcome of a pure call follows from it and the operands.
        """
        variant = function_digest(functions) if policy == "pure" else None
        with self.nodes.lock:
            node_id = self.nodes.add_value(
                lambda node_id: Call(node_id, name, operands, path=path, policy=policy, variant=variant)
            )
            self.nodes.functions[node_id] = run
        return node_id

    def operand(self, term: Term, needs: tuple[int, ...], read: Callable[[], Any], what: str) -> Ref:
        """The node that computes a term; recorded once for equal terms.

        Args:
            needs: see `needs_of`.
            read: computes the value in Python, once they have ended.
            what: describes the value.
        """
        with self.nodes.lock:
            found = self._operand(term if isinstance(term, Operation) else Operation("str", (term,)))
            assert isinstance(found, Ref)
            self.nodes.computed.setdefault(found.node_id, Computed(needs, read, what))
            return found

    def _operand(self, term: Term) -> Operand:
        if not isinstance(term, Operation):
            return term
        return self.nodes.add_apply(term.function, tuple(self._operand(each) for each in term.args))

    def settle_order(self, node_id: int, parts: tuple[Part, ...]) -> None:
        """Give a text whose order was free its final parts."""
        self.free_texts.pop(node_id, None)
        self.nodes.outer[node_id] = Text(node_id, parent_of(self.nodes.outer[node_id]), parts)

    def close(self) -> None:
        """Close the recording, because the body has ended; recording more raises."""
        self.nodes.is_closed = True

    def release(self, driver: Driver) -> None:
        """Read outcomes from `driver` from now on: the one that ran the body is not kept for them."""
        self.driver = driver
        self.outcomes.release(driver)
        self.nodes.release()

    def graph(self) -> RequestGraph:
        """Everything recorded, as one graph."""
        return RequestGraph(tuple(self.nodes.outer.values()), self.inputs)

    def effective(self, name: str | None, params: SamplingParams | None, options: Mapping[str, Any]) -> SamplingParams:
        """The sampling parameters of one generation: its own options override its `params`, or else the parameters of the run.

        Raises:
            ParameterError: an option is invalid; names it, the generation and the line.
        """
        try:
            return sampling_params(options, params or self.base)
        except ParameterError as error:
            raise at_generation(error, name, user_location()) from None

    # Values of nodes

    def type_of(self, ref: Ref) -> OutputType | None:
        """The type of a generation or select, by the id that it has in the graph."""
        return self.nodes.types.get(ref.node_id)

    def lazy_of(self, ref: Ref) -> Lazy | None:
        """A generation with a type other than text, as a lazy value; None if its type has no kind."""
        found = self.reading_of(ref)
        return None if found is None else parsed(found, ref)

    def reading_of(self, ref: Ref) -> Reading | None:
        """How a graph reads the text of a generation; None if its type has no kind."""
        kind = self.type_of(ref)
        if kind is None:
            return None
        return reading_of_type(kind.python_type) if kind.reading is None else kind.reading()

    def needs_of(self, node_ids: Sequence[int]) -> tuple[int, ...]:
        """See `RecordedNodes.needs_of`."""
        return self.nodes.needs_of(node_ids)

    def plain_value(self, node_id: int) -> Any:
        """See `Outcomes.plain_value`."""
        return self.outcomes.plain_value(node_id)

    def needs_of_parts(self, parts: Sequence[Part]) -> tuple[int, ...]:
        """`needs_of` for the parts of a sequence. Those inside blocks are of branches and loops that have ended: nothing waits for them."""
        refs = [part.node_id for part in parts if isinstance(part, Ref)]
        return self.needs_of([node_id for node_id in refs if not self.nodes.is_any_inside((node_id,))])

    def text_of(self, node_id: int, choice: int) -> str:
        """See `Outcomes.text_of`."""
        return self.outcomes.text_of(node_id, choice)

    # Waiting

    def has(self, node_ids: Sequence[int]) -> bool:
        """Whether all these nodes have outcomes."""
        outcome = self.driver.outcome
        nodes = self.nodes
        if nodes.inner and not nodes.is_closed and nodes.is_any_inside(node_ids):
            return False
        for node_id in node_ids:  # noqa: SIM110 - a generator costs more than the rest of this function
            if outcome(node_id) is None:
                return False
        return True

    def location_of(self, node_ids: Sequence[int]) -> str:
        """`file:line` of the call that recorded the last generation among these nodes."""
        locations = self.nodes.locations
        return next((locations[each] for each in reversed(node_ids) if each in locations), "<unknown>:0")

    def require(self, node_ids: Sequence[int], reason: str, what: str) -> None:
        """Wait until these nodes have outcomes; a graph break if they have none yet.

        Raises:
            TraceError: the graph is recorded ahead of time, or the body is a coroutine that must await.
        """
        if self.has(node_ids):
            return
        location = user_location()
        self.check_waiting(node_ids, location, what, reason)
        if self.driver.is_async:
            raise TraceError(f"{reason} needs {what}: write `await` before it in an async program", location)
        self.note_break(location, what, reason, node_ids)
        self.driver.wait(node_ids)

    async def require_async(self, node_ids: Sequence[int], what: str, location: str) -> None:
        """`require` for coroutines; holds no thread.

        Raises:
            TraceError: the graph is recorded ahead of time, or the program is not a coroutine.
        """
        if self.has(node_ids):
            return
        self.check_waiting(node_ids, location, what, "await")
        if not self.driver.is_async:
            raise TraceError(f"await needs an `async def` program to get {what}", location)
        self.note_break(location, what, "await", node_ids)
        await self.driver.wait_async(node_ids)

    def check_waiting(self, node_ids: Sequence[int], location: str, what: str, reason: str) -> None:
        """Check that the body may wait for nodes.

        Raises:
            TraceError: the graph is recorded ahead of time, a block is being recorded, or the body has ended.
        """
        self.nodes.check_outside(node_ids, location)
        if isinstance(self.driver, AheadOfTime):
            self.breaks.append(Break(location, what, reason, self._path_of(node_ids)))
            raise TraceError(
                f"graph break: {reason} needs {what}, which is not available when recording ahead of time", location
            )
        if self.is_closed:
            raise TraceError(f"the program ended before {what} was generated", location)

    def note_break(self, location: str, what: str, reason: str, node_ids: Sequence[int] = ()) -> None:
        """Note that the body waits for these nodes."""
        self.breaks.append(Break(location, what, reason, self._path_of(node_ids)))

    def _path_of(self, node_ids: Sequence[int]) -> str | None:
        """The path of the last of these nodes that has one."""
        found = (self.nodes.path_at(each) for each in reversed(self.needs_of(node_ids)))
        return next((path for path in found if path is not None), None)
