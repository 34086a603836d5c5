"""Records programs without running them: for `trace`, and to find the text that all runs of a program begin with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from rtlang.compat.sglang.backends import Backend
from rtlang.compat.sglang.execution import Execution, new_session
from rtlang.compat.sglang.options import run_options
from rtlang.compat.sglang.pieces import Mark, Piece
from rtlang.compat.sglang.recorder import Recorder
from rtlang.compat.sglang.state import ProgramState
from rtlang.contract.errors import TraceError
from rtlang.contract.request_graph import (
    Apply,
    Arg,
    Const,
    Node,
    Ref,
    RequestGraph,
    RoleEnd,
    RoleStart,
    Select,
    Text,
    dependencies,
    name_of,
    parent_of,
)
from rtlang.contract.service.target import Target
from rtlang.lang.lazy_values.values import arg
from rtlang.lang.program_state import expr as exprs
from rtlang.lang.program_state.state import State, record_of
from rtlang.lang.program_state.state_record import StateRecord
from rtlang.lang.recordings.driver import AheadOfTime
from rtlang.lang.recordings.recording import Recording

_MIN_PREFIX_CHARS = 64  # a shorter text is computed faster than it is found


class NotTracedError(TraceError, TypeError):
    """A program needs the text of a value or of an input, which has none in a trace. Also a TypeError, as programs of SGLang expect."""


class _NoTexts:
    """A backend that is not asked: nothing runs."""

    has_vocabulary = True

    def token_text(self, token_id: int) -> None:
        return None

    def learn_texts(self, token_ids: Iterable[int]) -> None:
        """Nothing is known."""

    def mark_text(self, roles: tuple[str, ...], role: str, is_begin: bool) -> str:
        return ""


class Trace:
    """A recorded program.

    Attributes:
        graph: its request graph, which `graph.run` can run.
        state: the state behind it; its variables are lazy.
        ret_value: the return value of the body.
    """

    def __init__(self, graph: RequestGraph, state: ProgramState) -> None:
        self.graph, self.state, self.ret_value = graph, state, state.ret_value

    @property
    def variables(self) -> list[str]:
        """The names of the variables."""
        return list(self.state._variables)

    @property
    def last_node(self) -> TraceNode:
        """The last node of the program's sequence, with the graph before it."""
        head = record_of(self.state._recorder.inner).sequence.head
        return TraceNode(self.graph, head)

    def __getitem__(self, name: str) -> Any:
        return self.state[name]

    def __str__(self) -> str:
        """One line per node: its id, the node that it continues, and what it does."""
        return "\n".join(map(_line, self.graph.nodes))


class TraceNode:
    """A node of a trace.

    Attributes:
        node: the node of the graph; None if the sequence is empty.
    """

    def __init__(self, graph: RequestGraph, node_id: int | None) -> None:
        self._nodes = {each.node_id: each for each in graph.nodes}
        self.node = None if node_id is None else self._nodes[node_id]

    def print_graph_dfs(self) -> None:
        """Print the nodes on which this one depends, and then this one: each node after those that it needs."""
        order: dict[int, None] = {}
        todo = [] if self.node is None else [(self.node.node_id, False)]
        while todo:
            node_id, is_left = todo.pop()
            if is_left:
                order[node_id] = None
            elif node_id not in order:
                todo.append((node_id, True))
                todo += [(each, False) for each in sorted(dependencies(self._nodes[node_id]), reverse=True)]
        for node_id in order:
            print(_line(self._nodes[node_id]))

    def __str__(self) -> str:
        return "" if self.node is None else _line(self.node)


def _line(node: Node) -> str:
    parent = parent_of(node)
    before = "" if parent is None else f"%{parent} + "
    match node:
        case Text():
            return f"%{node.node_id} = {before}{' + '.join(map(_shown, node.parts))}"
        case Apply():
            return f"%{node.node_id} = {node.function}({', '.join(map(_shown, node.args))})"
        case Select():
            return f"%{node.node_id} = {before}select({node.name!r}, choices={list(node.choices)})"
        case _:
            return f"%{node.node_id} = {before}gen({name_of(node)!r})"


def _shown(part: object) -> str:
    match part:
        case Ref():
            return f"%{part.node_id}"
        case Arg():
            return f"arg({part.name!r})"
        case RoleStart():
            return f"{part.role}_begin()"
        case RoleEnd():
            return "end of message"
        case Const():
            return repr(part.value)
        case _:
            return repr(part)


_current: ContextVar[Recording | None] = ContextVar("rtlang_sglang_trace", default=None)


def is_tracing() -> bool:
    """Whether the code runs within the body of a traced program."""
    return _current.get() is not None


@contextmanager
def _traced(recording: Recording) -> Iterator[None]:
    token = _current.set(recording)
    try:
        yield
    except TraceError as error:
        found = NotTracedError(error.message)
        found.location = error.location
        raise found from error
    finally:
        _current.reset(token)


def _state_of(recording: Recording) -> ProgramState:
    return ProgramState(Recorder(Execution(recording, _NoTexts(), run_options({})), State(StateRecord(recording))))


def _with_inputs(names: Iterable[str], arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {**{name: arg(name) for name in names if name not in arguments}, **arguments}


def trace(
    function: Callable[..., Any],
    names: Iterable[str],
    arguments: Mapping[str, Any],
    backend: Backend | Target | None,
) -> Trace:
    """Record a program. See `SglFunction.trace`; the backend does not matter."""
    recording = Recording(AheadOfTime(is_async=False))
    state = _state_of(recording)
    with _traced(recording):
        state._execution.ret_value = function(state, **_with_inputs(names, arguments))
    recording.close()
    graph = recording.graph()
    graph.validate()
    return Trace(graph, state)


def call_in_trace(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> ProgramState:
    """Record a program that a traced one calls, as a sequence of its own. Returns its state."""
    recording = _current.get()
    assert recording is not None
    state = _state_of(recording)
    state._execution.ret_value = function(state, *args, **kwargs)
    return state


def compute_prefix(
    function: Callable[..., Any], names: Iterable[str], arguments: Mapping[str, Any], backend: Backend
) -> None:
    """Compute the constant text at the beginning of a program, unless it is short, and wait for it."""
    recording = Recording(AheadOfTime(is_async=False))
    state = _state_of(recording)
    try:
        with _traced(recording):
            function(state, **_with_inputs(names, arguments))
    except (TraceError, TypeError, AttributeError):  # it reads an argument or a value; what comes before is recorded
        pass
    pieces = _constant(state._pieces)
    if sum(len(piece) for piece in pieces if isinstance(piece, str)) <= _MIN_PREFIX_CHARS:
        return
    session = new_session(backend.target, None)
    copy = Recorder(Execution(session.recording, backend, run_options({})), State(StateRecord(session.recording)))
    with session.ended_by_errors():
        for piece in pieces:
            copy.append_piece(piece)
        copy.inner += exprs.gen("prefix", 1)
        session.finish()
        session.wait_final()


def _constant(pieces: Iterable[Piece]) -> list[str | Mark]:
    found: list[str | Mark] = []
    for piece in pieces:
        if not isinstance(piece, (str, Mark)):
            break
        found.append(piece)
    return found
