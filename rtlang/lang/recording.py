"""The recording of a program run: its nodes and their outcomes.

A `Recording` owns the nodes of one run. It assigns node ids, keeps nodes that are not submitted yet, and converts outcomes (the events that
ended nodes) into text, parsed values and errors. It neither submits nor waits; its `Driver` does. May be used from several threads of one
body.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from rtlang.compiler.context import Pieces
from rtlang.contract.errors import (
    AbortedError,
    ApplyError,
    ConnectionLostError,
    DeadlineError,
    DependencyError,
    EngineDeadError,
    GraphError,
    OverloadError,
    ParameterError,
    RtlangError,
    SlowConsumerError,
    TraceError,
    ValueParseError,
    rebuild,
)
from rtlang.contract.events import NodeFinished
from rtlang.contract.graph import (
    MAX_NODES,
    Apply,
    Arg,
    Generate,
    Node,
    Operand,
    Part,
    Ref,
    RequestGraph,
    Select,
    Text,
    dependencies,
    last_id,
    name_of,
    parent_of,
)
from rtlang.contract.params import FinishReason, SamplingParams, SelectMethod, sampling_params
from rtlang.contract.pure_functions import text_of_plain
from rtlang.lang.decided import decided_without
from rtlang.lang.error_places import OptionsOf, at_generation, rebuilt
from rtlang.lang.meta import Meta
from rtlang.lang.operations import Lazy, Operation, Term, parsed
from rtlang.lang.output_types.kinds import Reading
from rtlang.lang.output_types.tools import thoughts
from rtlang.lang.output_types.types import OutputType
from rtlang.lang.output_types.value_kinds import reading_of_type
from rtlang.lang.partials.shapes import Shape
from rtlang.lang.recorded_blocks import INSIDE, Computed, RecordedBlocks
from rtlang.lang.values import user_location

Outcome = NodeFinished | RtlangError
_RUN_ERRORS = (AbortedError, ConnectionLostError, DeadlineError, EngineDeadError, OverloadError, SlowConsumerError)
"""Errors that end the whole run. They name a generation that had not ended."""


@dataclass(frozen=True, slots=True)
class Break:
    """A graph break: at `location` (file:line) the body needed the value `what` for `reason`."""

    location: str
    what: str
    reason: str

    def __str__(self) -> str:
        return f"{self.location}: needs {self.what} for {self.reason}"


class Driver(Protocol):
    """Submits nodes and waits for them, on behalf of a recording."""

    @property
    def is_async(self) -> bool:
        """Whether the body is a coroutine, which must await instead of block."""

    @property
    def tool_format(self) -> str | None:
        """See `Target.tool_format`.

        Raises:
            TraceError: no model is known.
        """

    def outcome(self, node_id: int) -> Outcome | None:
        """The outcome of a node (a failed graph ends all its nodes); None while it is running or not submitted."""

    @property
    def outcome_ids(self) -> Sequence[int]:
        """Ids of the nodes that have ended with an event, under which they ran."""

    def wait(self, node_ids: Sequence[int]) -> None:
        """Submit recorded nodes and block until all these nodes have an outcome."""

    async def wait_async(self, node_ids: Sequence[int]) -> None:
        """`wait` for coroutines."""


class _HasHead(Protocol):
    @property
    def head(self) -> int | None: ...


class AheadOfTime:
    """The driver of `Program.graph`: nothing runs, so waiting is impossible."""

    def __init__(self, is_async: bool) -> None:
        self._is_async = is_async

    @property
    def is_async(self) -> bool:
        return self._is_async

    @property
    def tool_format(self) -> str | None:
        raise TraceError(
            "the format of tool calls depends on the model, which is not known when recording ahead of time; pass format=...",
            user_location(),
        )

    def outcome(self, node_id: int) -> Outcome | None:
        return None

    @property
    def outcome_ids(self) -> Sequence[int]:
        return ()

    def wait(self, node_ids: Sequence[int]) -> None:
        raise AssertionError("the recording refuses breaks before it asks to wait")

    async def wait_async(self, node_ids: Sequence[int]) -> None:
        raise AssertionError("the recording refuses breaks before it asks to wait")


class Recording(RecordedBlocks):
    """The nodes of one program run and their outcomes.

    Attributes:
        breaks: the graph breaks so far.
        branch_points: ids of nodes that later nodes may continue although they already have a child.
        open_starts: the nodes before open messages, each with the number of sequences in which it is open.
        ended: ids of the last nodes of sequences to which nothing can be appended any more.
        dropped: ids of nodes that were never submitted, because no output needs them.
        free_texts: the pieces of texts whose order is not settled yet, by node id.
        fork_sequences: the sequences of all forks.
        reasoning_of: the nodes of reasoning by the nodes of the values that follow them.
        names_of_reasoning: the names of these values by the nodes of reasoning.
        has_unnamed: whether a generation without a name was recorded.
        has_decisions: whether one value among several was chosen.
    """

    def __init__(self, driver: Driver, base: SamplingParams | None = None) -> None:
        super().__init__()
        self.driver, self.base = driver, base
        self.breaks: list[Break] = []
        self.branch_points: set[int] = set()
        self.open_starts: Counter[int] = Counter()
        self.ended: set[int] = set()
        self.dropped: set[int] = set()
        self.free_texts: dict[int, Pieces] = {}
        self.fork_sequences: list[_HasHead] = []
        self.reasoning_of: dict[int, int] = {}
        self.names_of_reasoning: dict[int, str | None] = {}
        self.has_unnamed = False
        self.has_decisions = False
        self.is_closed = False
        self._inputs: dict[str, None] = {}
        self._types: dict[int, OutputType] = {}
        self._values: dict[tuple[int, int], Any] = {}
        self._reported: set[int] = set()
        self._handled: set[int] = set()  # by the ids in the graph

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the graph inputs used so far."""
        return tuple(self._inputs)

    def add_text(self, parent: int | None, parts: Sequence[Part]) -> int:
        """Record a text node; returns its id."""
        for part in parts:
            if type(part) is Arg:
                self._inputs[part.name] = None
        with self._lock:
            return self._add(Text(self._next_id(), parent, tuple(parts)))

    def add_generate(
        self,
        parent: int | None,
        name: str | None,
        params: SamplingParams,
        kind: OutputType,
        *,
        reasoning: int | None = None,
    ) -> int:
        """Record a generate node whose completions parse as `kind`; returns its id. `reasoning`: the node of the reasoning before it."""
        if kind.for_format is not None:
            with OptionsOf(name):
                kind = kind.for_format(self.driver.tool_format)
        if name is None:
            self.has_unnamed = True
        with self._lock:
            node_id = self._add(Generate(self._next_id(), parent, name, params, kind.constraint))
        self._types[node_id], self._locations[node_id] = kind, user_location()
        if reasoning is not None:
            self.reasoning_of[node_id], self.names_of_reasoning[reasoning] = reasoning, name
        return node_id

    def add_reasoning(self, parent: int | None, params: SamplingParams, name: str | None) -> int:
        """Record the reasoning before a value, whose generation is called `name`; returns its id."""
        try:
            tool_format = self.driver.tool_format
        except TraceError:
            raise TraceError(
                "the marks of reasoning depend on the model, which is not known when recording ahead of time",
                user_location(),
            ) from None
        kind = thoughts(format=tool_format or "json")
        with self._lock:
            node_id = self._add(Generate(self._next_id(), parent, None, params, kind.constraint))
        self._types[node_id], self._locations[node_id] = kind, user_location()
        self.names_of_reasoning[node_id] = name
        return node_id

    def add_select(
        self, parent: int | None, name: str | None, choices: tuple[str, ...], method: SelectMethod, kind: OutputType
    ) -> int:
        """Record a select node whose text parses as `kind`; returns its id."""
        if name is None:
            self.has_unnamed = True
        with self._lock:
            node_id = self._add(Select(self._next_id(), parent, name, choices, method))
        self._types[node_id], self._locations[node_id] = kind, user_location()
        return node_id

    def take(self, *, is_last: bool) -> list[Node]:
        """Remove and return the nodes to submit now.

        Text that no generation follows yet waits, so that it is tokenized together with text that is appended later, wherever the body
        reads a value in between. At the end it is dropped as unused.
        """
        with self._lock:
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

    def ended_before_text(self) -> set[int]:
        """`ended`, with the nodes behind which such a sequence has only text that was not submitted."""
        found = self.ended
        for node in reversed(self._pending):
            if node.node_id in found and isinstance(node, Text) and node.parent is not None:
                if found is self.ended:
                    found = set(found)
                found.add(node.parent)
        return found

    def settle_order(self, node_id: int, parts: tuple[Part, ...]) -> None:
        """Give a text whose order was free its final parts."""
        self.free_texts.pop(node_id, None)
        self.nodes[node_id] = Text(node_id, parent_of(self.nodes[node_id]), parts)

    def close(self) -> None:
        """Close the recording, because the body has ended; recording more raises."""
        self.is_closed = True

    @property
    def is_async(self) -> bool:
        """Whether the body is a coroutine."""
        return self.driver.is_async

    def has(self, node_ids: Sequence[int]) -> bool:
        """Whether all these nodes have outcomes."""
        outcome = self.driver.outcome
        if self.inner and not self.is_closed and not self.inner.keys().isdisjoint(node_ids):
            return False
        for node_id in node_ids:  # noqa: SIM110 - a generator costs more than the rest of this function
            if outcome(node_id) is None:
                return False
        return True

    def location_of(self, node_ids: Sequence[int]) -> str:
        """`file:line` of the call that recorded the last generation among these nodes."""
        return next((self._locations[each] for each in reversed(node_ids) if each in self._locations), "<unknown>:0")

    def require(self, node_ids: Sequence[int], reason: str, what: str) -> None:
        """Wait until these nodes have outcomes; a graph break if they have none yet.

        Raises:
            TraceError: the graph is recorded ahead of time, or the body is a coroutine that must await.
        """
        if self.has(node_ids):
            return
        location = user_location()
        self._check_outside(node_ids, location)
        self._may_break(location, what, reason)
        if self.driver.is_async:
            raise TraceError(f"{reason} needs {what}: write `await` before it in an async program", location)
        self.breaks.append(Break(location, what, reason))
        self.driver.wait(node_ids)

    async def require_async(self, node_ids: Sequence[int], what: str, location: str) -> None:
        """`require` for coroutines; holds no thread.

        Raises:
            TraceError: the graph is recorded ahead of time, or the program is not a coroutine.
        """
        if self.has(node_ids):
            return
        self._check_outside(node_ids, location)
        self._may_break(location, what, "await")
        if not self.driver.is_async:
            raise TraceError(f"await needs an `async def` program to get {what}", location)
        self.breaks.append(Break(location, what, "await"))
        await self.driver.wait_async(node_ids)

    def text_of(self, node_id: int, choice: int) -> str:
        """The text of an ended node.

        Raises:
            RtlangError: the error of the node, or for a dependent node the error of its root cause.
        """
        computed = self._computed.get(node_id)
        if computed is not None:
            return text_of_plain(computed.read())
        end = self.finished(node_id)
        return end.completions[choice].text if end.completions else text_of_plain(end.value)

    def plain_value(self, node_id: int) -> Any:
        """The value of an ended node that computes one. Raises like `text_of`."""
        end = self.finished(node_id)
        if end.is_cancelled:
            raise self._located(node_id, AbortedError("it was not computed, because a decision was made without it"))
        return end.value

    def needs_of(self, node_ids: Sequence[int]) -> tuple[int, ...]:
        """The generations that must have ended before the texts or values of these nodes are known."""
        if not self._computed:
            return tuple(node_ids)
        needed: dict[int, None] = {}
        for node_id in node_ids:
            computed = self._computed.get(node_id)
            needed.update(dict.fromkeys((node_id,) if computed is None else computed.needs))
        return tuple(needed)

    def type_of(self, ref: Ref) -> OutputType | None:
        """The type of a generation or select, by the id that it has in the graph."""
        return self._types.get(ref.node_id)

    def note_handled(self, node_id: int) -> None:
        """Text of this node that is no value is no error of the run, because the program has handled it."""
        self._handled.add(node_id)

    def lazy_of(self, ref: Ref) -> Lazy | None:
        """A generation with a type other than text, as a lazy value; None if its type has no kind."""
        found = self.reading_of(ref)
        return None if found is None else parsed(found, ref)

    def reading_of(self, ref: Ref) -> Reading | None:
        """How a graph reads the text of a generation; None if its type has no kind."""
        kind = self._types.get(ref.node_id)
        if kind is None:
            return None
        return reading_of_type(kind.python_type) if kind.reading is None else kind.reading()

    def operand(self, term: Term, needs: tuple[int, ...], read: Callable[[], Any], what: str) -> Ref:
        """The node that computes a term; recorded once for equal terms.

        Args:
            needs: see `needs_of`.
            read: computes the value in Python, once they have ended.
            what: describes the value.
        """
        with self._lock:
            found = self._operand(term if isinstance(term, Operation) else Operation("str", (term,)))
            assert isinstance(found, Ref)
            self._computed.setdefault(found.node_id, Computed(needs, read, what))
            return found

    def _operand(self, term: Term) -> Operand:
        if not isinstance(term, Operation):
            return term
        return self._apply(term.function, tuple(self._operand(each) for each in term.args))

    def _apply(self, function: str, args: tuple[Operand, ...]) -> Ref:
        key = (function, repr(args))  # equal numbers of different types are different constants
        node_id = self._applied.get(key)
        if node_id is None:
            for arg in args:
                if isinstance(arg, Arg):
                    self._inputs[arg.name] = None
            node_id = self._applied[key] = self._add(Apply(self._next_id(), function, args))
            self._locations[node_id] = user_location()
        return Ref(node_id)

    def value_of(self, node_id: int, choice: int) -> Any:
        """The text of an ended node parsed as its type; parsed once.

        Raises:
            ValueParseError: the text does not parse. RtlangError: as for `text_of`.
        """
        found = self.read(node_id, choice)
        if isinstance(found, RtlangError):
            self._reported.add(node_id)
            raise self._located(node_id, found)
        return found

    def read(self, node_id: int, choice: int) -> Any:
        """The parsed value of a finished node's text, or the ValueParseError of parsing it."""
        key = (node_id, choice)
        if key not in self._values:
            if self.finished(node_id).completions[choice].finish_reason is FinishReason.CANCELLED:
                return None  # a decision was made without it
            text = self.text_of(node_id, choice)
            try:
                self._values[key] = self._types[self._written(node_id)].read(self.name_of(node_id), text)
            except ValueParseError as error:
                self._values[key] = error
        return self._values[key]

    def shape_of(self, node_id: int) -> Shape | None:
        """The types inside a generation's value; None if its text is not JSON."""
        kind = self._types.get(self._written(node_id))
        return None if kind is None else kind.shape

    def meta_of(self, node_id: int, choice: int) -> Meta:
        """The metadata of an ended node's text. Raises like `text_of`."""
        found = Meta.of(self.node(node_id), self.finished(node_id), choice)
        before = self.reasoning_of.get(node_id)
        if before is None:
            return found
        thought = self.finished(before).completions[0]
        return replace(found, reasoning=self.value_of(before, 0), reasoning_tokens=len(thought.token_ids))

    def finished(self, node_id: int) -> NodeFinished:
        """The final event of a node. Raises like `text_of`."""
        outcome = self.driver.outcome(node_id)
        if isinstance(outcome, NodeFinished):
            return outcome
        if outcome is None:
            raise TraceError(f"{self.name_of(node_id)!r} was recorded but never run", user_location())
        root_id, error = self._root(node_id, outcome)
        self._reported.add(root_id)
        raise self._located(root_id, error)

    def root_error(self, node_id: int, error: RtlangError) -> RtlangError:
        """The root cause of a node's `error`."""
        return self._located(*self._root(node_id, error))

    def parse_error(self, node_id: int, error: ValueParseError) -> RtlangError:
        """The error of parsing a node's text, with its place."""
        return self._located(node_id, error)

    def run_error(self, error: RtlangError) -> RtlangError:
        """The error that ended the run, with the place of the generation that it names, or else of the first unfinished one."""
        if isinstance(error, GraphError):
            place = None if error.node_id is None else self._shown_at(error.node_id)
        elif isinstance(error, _RUN_ERRORS):
            outcome = self.driver.outcome
            place = next((each for each in self._types if outcome(each) is error or outcome(each) is None), None)
        else:
            place = None
        return error if place is None else self._located(place, error)

    def _shown_at(self, node_id: int) -> int | None:
        """The generation that a node is, or the first one that continues it."""
        for each in self._locations:
            at: int | None = each
            while at is not None and at > node_id:
                at = parent_of(self.nodes[at])
            if at == node_id:
                return each
        return None

    def name_of(self, node_id: int) -> str:
        """The name of a node for messages."""
        node = self.node(node_id)
        name = None if isinstance(node, Text) else node.name
        return f"node {node_id}" if name is None else name

    def first_error(self) -> RtlangError | None:
        """The first error of a node, or of parsing its text, that the body has not seen."""
        for node_id in self._run_ids():
            node = self.node(node_id)
            if isinstance(node, Text) or node_id in self.dropped:
                continue
            outcome = self.driver.outcome(node_id)
            if isinstance(node, Apply) and not isinstance(outcome, ApplyError):  # it ends without an event
                continue
            if isinstance(outcome, RtlangError):
                root_id, error = self._root(node_id, outcome)
                if root_id not in self._reported and root_id not in decided_without(self.nodes, self.driver.outcome):
                    return self._located(root_id, error)
            elif outcome is not None and isinstance(node, (Generate, Select)) and not self._is_handled(node_id):
                for choice in range(len(outcome.completions)):
                    value = self.read(node_id, choice)
                    if isinstance(value, RtlangError):
                        return self._located(node_id, value)
        return None

    def _run_ids(self) -> list[int]:
        """The nodes outside of blocks, and those of the blocks that ran, by the ids under which they did, in order."""
        if not self.inner:
            return list(self.nodes)
        inside = [each for each in self.driver.outcome_ids if each not in self.nodes]
        return sorted([*self.nodes, *inside])

    def _is_handled(self, node_id: int) -> bool:
        """Whether the program knows that a node's text is no value of its type."""
        return node_id in self._reported or self._written(node_id) in self._handled

    def graph(self) -> RequestGraph:
        """Everything recorded, as one graph."""
        return RequestGraph(tuple(self.nodes.values()), self.inputs)

    def effective(self, name: str | None, params: SamplingParams | None, options: Mapping[str, Any]) -> SamplingParams:
        """The sampling parameters of one generation: its own options override its `params`, or else those of the run.

        Raises:
            ParameterError: an option is invalid; names it, the generation and the line.
        """
        try:
            return sampling_params(options, params or self.base)
        except ParameterError as error:
            raise at_generation(error, name, user_location()) from None

    def _outcome(self, node_id: int) -> Outcome | None:
        return self.driver.outcome(node_id)

    def _next_id(self) -> int:
        """The id of the next node; the lock must be held until `_add`."""
        if self.is_closed:
            raise TraceError("the program has ended; nothing more can be appended to its state", user_location())
        if len(self.nodes) + len(self.inner) >= MAX_NODES:
            raise TraceError(f"a program may record at most {MAX_NODES} nodes", user_location())
        return self._free_id

    def _add(self, node: Node) -> int:
        if self.inner and not self.inner.keys().isdisjoint(dependencies(node)):
            raise TraceError(INSIDE, user_location())
        self.nodes[node.node_id] = node
        self._free_id = last_id(node) + 1
        self._pending.append(node)
        return node.node_id

    def _may_break(self, location: str, what: str, reason: str) -> None:
        if isinstance(self.driver, AheadOfTime):
            self.breaks.append(Break(location, what, reason))
            raise TraceError(
                f"graph break: {reason} needs {what}, which is not available when recording ahead of time", location
            )
        if self.is_closed:
            raise TraceError(f"the program ended before {what} was generated", location)

    def _root(self, node_id: int, error: RtlangError) -> tuple[int, RtlangError]:
        """The root cause of a node's error, and where it shows: the failed generation, or the one that continues the failed text."""
        seen, located = {node_id}, node_id
        while isinstance(error, DependencyError):
            cause = self.driver.outcome(error.node_id) if error.node_id not in seen else None
            if not isinstance(cause, RtlangError):
                return located, rebuild(error.cause_code, error.cause_message)
            seen.add(error.node_id)
            if self._written(error.node_id) in self._locations:
                located = error.node_id
            error = cause
        return located, error

    def _located(self, node_id: int, error: RtlangError) -> RtlangError:
        """A copy of an error, without its traceback, whose message names the generation and the line that recorded it."""
        written = self._written(node_id)
        location = self._locations.get(written)
        if location is None:
            return rebuilt(error, error.message)
        relation = "unfinished: " if isinstance(error, _RUN_ERRORS) else ""
        node = self.node(node_id)
        noun = "generation" if isinstance(node, (Generate, Select)) else "value"
        name = self.names_of_reasoning.get(node_id, name_of(node))
        return at_generation(error, name, location, relation + noun)
