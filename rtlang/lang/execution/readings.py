"""The readable data of a run: read from its session on access, or saved as plain data for copies and pickles.

A state of the program (the main one, or a fork) has variables by name, generations by position, messages and text.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, get_args

from rtlang.contract.errors import TraceError
from rtlang.contract.events import NodeFinished
from rtlang.contract.graph.node_paths import first_of
from rtlang.contract.graph.value_text import text_of_plain
from rtlang.contract.pictures.run_record import RunRecord
from rtlang.contract.request_graph import (
    Generate,
    Node,
    Part,
    Ref,
    Select,
    Text,
    TokenIds,
    choices_of,
    name_of,
    parent_of,
)
from rtlang.contract.runs.known_finder import RunOutcomes
from rtlang.lang.execution.histories import history_at, history_of
from rtlang.lang.program_state.forcing import deep_real
from rtlang.lang.program_state.history import History, without_open_message
from rtlang.lang.program_state.state_record import StateRecord
from rtlang.lang.program_state.variables import Reading, Variable, generated, messages_of, view, without_cancelled
from rtlang.lang.sessions.session import Session
from rtlang.lang.views.run_records import record_of

_MAX_HISTORIES = 256
"""States of a snapshot from which another run goes on with the same tokens; from the others it goes on with the text."""
_OF_NODES: tuple[Reading, ...] = ("value", "text", "meta")


class StateReadings(Protocol):
    """The source of the data of one state."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all variables."""

    @property
    def forks(self) -> tuple[tuple[StateReadings, ...], ...]:
        """The forks that the state made, by call of `fork`."""

    def read(self, key: str | int, which: Reading) -> Any:
        """The `value`, `text`, `meta` or `tree` of a variable, or of the generation at an index.

        Raises:
            KeyError, IndexError: it does not exist. RtlangError: its generation failed.
        """

    def read_all(self, name: str) -> list[Any]:
        """The values of a variable that was generated again, in order.

        Raises:
            KeyError: it does not exist. RtlangError: a generation failed.
        """

    def whole_text(self) -> str:
        """The text of the sequence, up to the first missing text."""

    def messages(self) -> list[dict[str, str]]:
        """The chat messages of the sequence, up to the first missing text."""

    def history(self) -> History:
        """The sequence, for another run to go on from."""

    def read_node(self, node_id: int, choice: int, which: Reading) -> Any:
        """The `value`, `text` or `meta` of a node of the run, by the id under which it ran.

        Raises:
            RtlangError: it failed.
        """

    def known_outcomes(self) -> RunOutcomes:
        """The outcomes of the run, for another one to take over."""

    @property
    def model(self) -> str | None:
        """The identity of the model, if it is known."""

    def record(self) -> RunRecord:
        """The record from which pictures of the whole run are drawn; empty in the snapshot of a fork."""

    def saved(self) -> SavedReadings:
        """The same data without the run.

        Raises:
            TraceError: the program is still running.
        """


class RunReadings:
    """Reads values of a state from its run on access."""

    def __init__(self, session: Session, state: StateRecord) -> None:
        self._session, self._state, self._recording = session, state, session.recording

    @property
    def forks(self) -> tuple[tuple[RunReadings, ...], ...]:
        return tuple(tuple(RunReadings(self._session, each) for each in forks) for forks in self._state.forks)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._state.visible())

    def read(self, key: str | int, which: Reading) -> Any:
        return self._read(self._at(key) if isinstance(key, int) else self._variable(key), key, which)

    def _read(self, variable: Variable, key: str | int, which: Reading) -> Any:
        found = deep_real(view(variable, which, str(key)))
        return without_cancelled(variable, found) if which == "value" and self._recording.has_decisions else found

    def read_all(self, name: str) -> list[Any]:
        return [self._read(each, name, "value") for each in self._all_of(name)]

    def whole_text(self) -> str:
        texts: list[str] = []
        for part in self._parts():
            match part:
                case str():
                    texts.append(part)
                case Ref():
                    texts.append(self._recording.text_of(part.node_id, part.choice))
                case TokenIds():
                    texts.append(part.text)
        return "".join(texts)

    def messages(self) -> list[dict[str, str]]:
        return messages_of(self._parts(), self._recording.text_of)

    def saved(self) -> SavedReadings:
        if self._session.final is None:
            raise TraceError("the program is still running; its result can be copied and pickled once it has ended")
        states: list[SavedState] = []
        nodes: dict[int, SavedNode] = {}
        todo: deque[RunReadings] = deque([self])
        num_states = 1
        while todo:  # forks may be nested deeper than Python calls
            each = todo.popleft()
            forks = each.forks
            todo.extend(fork for call in forks for fork in call)
            numbers = []
            for call in forks:
                numbers.append(tuple(range(num_states, num_states + len(call))))
                num_states += len(call)
            state = each._saved_state(tuple(numbers), nodes)
            if len(states) < _MAX_HISTORIES:
                state = replace(state, sequence=each.history().saved())
            states.append(state)
        return SavedReadings(tuple(states), nodes, 0)

    def history(self) -> History:
        """See `StateReadings`."""
        return history_of(self._session, self._state)

    def read_node(self, node_id: int, choice: int, which: Reading) -> Any:
        """See `StateReadings`."""
        outcomes, node = self._recording.outcomes, self._recording.nodes.node(node_id)
        if not isinstance(node, (Generate, Select)):
            value = outcomes.finished(node_id).value
            return value if which == "value" else text_of_plain(value) if which == "text" else None
        if which == "meta":
            return outcomes.meta_of(node_id, choice)
        return deep_real(outcomes.value_of(node_id, choice) if which == "value" else outcomes.text_of(node_id, choice))

    def history_at(self, node_id: int, choice: int) -> History:
        """The sequence that ends with a node, for another run to go on from. Raises the error of one that failed."""
        return history_at(self._session, node_id, choice)

    def check_text(self, node_id: int, text: str) -> None:
        """Raise ValueParseError if a text does not parse as the type of a node."""
        nodes = self._recording.nodes
        nodes.types[nodes.written_id(node_id)].read(nodes.name_of(node_id), text)

    def finished(self, node_id: int) -> NodeFinished:
        """The final event of a node. Raises its error."""
        return self._recording.outcomes.finished(node_id)

    def known_outcomes(self) -> RunOutcomes:
        """See `StateReadings`."""
        return self._session.known_outcomes()

    @property
    def model(self) -> str | None:
        """See `StateReadings`."""
        return self._session.model_identity

    def record(self) -> RunRecord:
        """See `StateReadings`."""
        return record_of(self._session)

    def _saved_state(self, forks: tuple[tuple[int, ...], ...], nodes: dict[int, SavedNode]) -> SavedState:
        """Add the nodes of the sequence that are not among `nodes` yet: those that forks share are saved once."""
        variables: dict[str | int, Variable] = {name: self._variable(name) for name in self.names}
        variables.update(enumerate(self._generations()))
        readings = {
            (key, which): _saved(partial(self._read, variable, key, which))
            for key, variable in variables.items()
            for which in get_args(Reading)
        }
        head = node_id = self._state.sequence.head
        while node_id is not None and node_id not in nodes:
            node = self._recording.nodes.outer[node_id]
            kept, is_whole = self._known(self._state.sequence.parts_of(node))
            text_of = self._recording.text_of
            parts = tuple(text_of(part.node_id, part.choice) if isinstance(part, Ref) else part for part in kept)
            nodes[node_id] = SavedNode(parent_of(node), parts, is_whole)
            node_id = parent_of(node)
        all_values = {}
        for name in self.names:
            found = self._all_of(name)
            if len(found) != 1 or found[0] is not variables[name]:
                all_values[name] = [_saved(partial(self._read, each, name, "value")) for each in found]
        return SavedState(self.names, readings, all_values, head, forks)

    def _parts(self) -> list[Part]:
        return self._known(self._state.sequence.parts(None))[0]

    def _known(self, parts: Sequence[Part]) -> tuple[list[Part], bool]:
        """The parts up to the first missing text, and whether these are all."""
        kept: list[Part] = []
        for part in parts:
            if isinstance(part, Ref):
                needs = self._recording.needs_of((part.node_id,))
                if not all(isinstance(self._recording.driver.outcome(each), NodeFinished) for each in needs):
                    return kept, False
            kept.append(part)
        return kept, True

    def _variable(self, name: str) -> Variable:
        found = self._state.visible()
        if name not in found:
            raise _unknown(name, self.names)
        return found[name]

    def _all_of(self, name: str) -> list[Variable]:
        """The variables of all generations with this name, in order."""
        last = self._variable(name)
        return [*self._state.replaced.get(name, ()), last]

    def _generations(self) -> list[Variable]:
        return self._state.generated

    def _at(self, index: int) -> Variable:
        found = self._generations()
        if not -len(found) <= index < len(found):
            raise _out_of_range(index, len(found))
        return found[index]


class WholeRunReadings(RunReadings):
    """Reads the main state; generations of forks and called programs, by name or position, too."""

    @property
    def names(self) -> tuple[str, ...]:
        nodes = sorted({**self._recording.nodes.outer, **self._recording.nodes.inner}.items())
        generated_names = (name_of(node) for _, node in nodes)
        return tuple(dict.fromkeys([*self._state.variables, *(name for name in generated_names if name)]))

    def saved(self) -> SavedReadings:
        run = self.record()
        readings = {
            (node_id, choice, which): _saved(partial(self.read_node, node_id, choice, which))
            for node_id in run.node_paths
            for choice in range(choices_of(self._recording.nodes.node(node_id)))
            for which in _OF_NODES
        }
        return replace(super().saved(), run=run, node_readings=readings, outcomes=self.known_outcomes())

    def _variable(self, name: str) -> Variable:
        inside = [node for node in self._recording.nodes.inner.values() if name_of(node) == name]
        if name in self._state.variables and not inside:
            return self._state.variables[name]
        found = list(self._last_by_place(name).values())
        if inside:
            is_list = len(found) > 1 or any(self._recording.nodes.is_repeated(node.node_id) for node in inside)
            return found if is_list else found[0] if found else None
        if not found:
            raise _unknown(name, self.names)
        return found[0] if len(found) == 1 else found

    def _all_of(self, name: str) -> list[Variable]:
        is_of_nodes = name not in self._state.variables or self._is_inside(name)
        if not is_of_nodes:
            return super()._all_of(name)
        found = [self._of_node(node) for node in self._run_nodes() if name_of(node) == name]
        return found or [self._variable(name)]

    def _is_inside(self, name: str) -> bool:
        return any(name_of(node) == name for node in self._recording.nodes.inner.values())

    def _last_by_place(self, name: str) -> dict[str | int, Variable]:
        """The nodes called `name`; of those that repeat the name in one place, such as a loop of a fork, the last one."""
        found: dict[str | int, Variable] = {}
        for node in self._run_nodes():
            if name_of(node) == name:
                path = self._recording.nodes.path_at(node.node_id)
                found[node.node_id if path is None else first_of(path)] = self._of_node(node)
        return found

    def _generations(self) -> list[Variable]:
        recorded = self._recording.nodes
        return [self._of_node(node) for node in self._run_nodes() if recorded.is_generation(node)]

    def _run_nodes(self) -> list[Node]:
        """The nodes in the order of their ids. A node of a block appears once for each run, under the id of the run."""
        recorded = self._recording.nodes
        nodes = list(recorded.outer.values())
        if recorded.inner:
            for node_id in self._session.outcome_ids:
                if node_id not in recorded.outer:
                    nodes.append(replace(recorded.node(node_id), node_id=node_id))
            nodes.sort(key=lambda node: node.node_id)
        return nodes

    def _of_node(self, node: Node) -> Variable:
        assert not isinstance(node, Text)
        constraint = node.constraint if isinstance(node, Generate) else None
        what = f"node {node.node_id}" if node.name is None else repr(node.name)
        texts: list[Variable] = [
            generated(self._recording, node.node_id, choice, what, constraint, is_text=False)
            for choice in range(choices_of(node))
        ]
        return texts if len(texts) > 1 else texts[0]


@dataclass(frozen=True, slots=True)
class _Failure:
    error: Exception


@dataclass(frozen=True, slots=True)
class SavedNode:
    """The parts that a node adds to its sequence, with texts in the place of references, and whether none is missing."""

    parent: int | None
    parts: tuple[Part, ...]
    is_whole: bool


@dataclass(frozen=True, slots=True)
class SavedState:
    """The data of one state of a snapshot: the last node of its sequence, and the numbers of the states of its forks.

    Deeply nested states can be pickled, because none holds another.
    """

    names: tuple[str, ...]
    readings: dict[tuple[str | int, Reading], Any]
    all_values: dict[str, list[Any]]
    head: int | None
    forks: tuple[tuple[int, ...], ...]
    sequence: History | None = None


@dataclass(frozen=True, slots=True)
class SavedReadings:
    """One of the states of a snapshot; see `StateReadings`."""

    states: tuple[SavedState, ...]
    nodes: dict[int, SavedNode]
    number: int
    run: RunRecord | None = None
    node_readings: dict[tuple[int, int, Reading], Any] = field(default_factory=dict)
    outcomes: RunOutcomes | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return self.states[self.number].names

    @property
    def forks(self) -> tuple[tuple[SavedReadings, ...], ...]:
        calls = self.states[self.number].forks
        return tuple(tuple(SavedReadings(self.states, self.nodes, number) for number in call) for call in calls)

    def read(self, key: str | int, which: Reading) -> Any:
        readings = self.states[self.number].readings
        num_generations = sum(isinstance(key, int) and kind == "value" for key, kind in readings)
        if isinstance(key, int):
            if not -num_generations <= key < num_generations:
                raise _out_of_range(key, num_generations)
            key %= num_generations
        elif key not in self.names:
            raise _unknown(key, self.names)
        return _restored(readings[key, which])

    def read_all(self, name: str) -> list[Any]:
        last = self.read(name, "value")
        found = self.states[self.number].all_values.get(name)
        return [last] if found is None else [_restored(each) for each in found]

    def history(self) -> History:
        found = self.states[self.number].sequence
        return History(without_open_message([tuple(self._parts())])) if found is None else found

    def whole_text(self) -> str:
        return "".join(
            part if isinstance(part, str) else part.text for part in self._parts() if isinstance(part, (str, TokenIds))
        )

    def messages(self) -> list[dict[str, str]]:
        return messages_of(self._parts(), _no_text)

    def _parts(self) -> list[Part]:
        found: list[SavedNode] = []
        node_id = self.states[self.number].head
        while node_id is not None:
            found.append(self.nodes[node_id])
            node_id = found[-1].parent
        parts: list[Part] = []
        for node in reversed(found):
            parts.extend(node.parts)
            if not node.is_whole:
                break
        return parts

    def read_node(self, node_id: int, choice: int, which: Reading) -> Any:
        return _restored(self.node_readings[node_id, choice, which])

    def known_outcomes(self) -> RunOutcomes:
        return RunOutcomes(None, None) if self.outcomes is None else self.outcomes

    @property
    def model(self) -> str | None:
        return self.known_outcomes().model

    def record(self) -> RunRecord:
        return RunRecord() if self.run is None else self.run

    def saved(self) -> SavedReadings:
        return self


def _no_text(node_id: int, choice: int) -> str:
    raise AssertionError("a snapshot has texts in the place of references")


def _restored(found: Any) -> Any:
    if isinstance(found, _Failure):
        raise copy(found.error)  # a raised exception collects tracebacks
    return found


def _saved(read: Callable[[], Any]) -> Any:
    try:
        return deep_real(read())
    except Exception as error:  # of a generation, or of an operation on its value
        return _Failure(error)


def _unknown(name: str, names: tuple[str, ...]) -> KeyError:
    return KeyError(f"variable {name!r} does not exist; existing variables: {', '.join(names) or 'none'}")


def _out_of_range(index: int, count: int) -> IndexError:
    return IndexError(f"generation {index} does not exist; there are {count}")
