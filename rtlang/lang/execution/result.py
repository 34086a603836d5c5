"""The result of a run of a program."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any, Generic, Protocol, get_args

from rtlang.contract.errors import RtlangError, TraceError
from rtlang.contract.events import NodeFinished
from rtlang.contract.graph import Generate, Part, Ref, RequestGraph, Text, choices_of
from rtlang.contract.params import Usage
from rtlang.lang.execution.session import Session
from rtlang.lang.forcing import deep_real
from rtlang.lang.recording import Break
from rtlang.lang.state import State
from rtlang.lang.static_types import AnyValue, R_co
from rtlang.lang.variables import Reading, Variable, generated, messages_of, view


class Result(Generic[R_co]):
    """The variables of a finished or failed program.

    `result[name]` is a parsed value, `result.text(name)` its text, `result.meta(name)` its `Meta`; reading a failed
    variable raises its error. Names used in forks that were not joined yield lists, in recording order. Results can be copied and pickled
    if their values can.

    Attributes:
        error: why the run failed: an exception of the body, the end of the graph, or the first failed node that the body did not
            handle. None if the run succeeded.
        usage: tokens used.
        graph: all submitted nodes, as one graph.
        breaks: the graph breaks of the run.
    """

    def __init__(self, session: Session, state: State, returned: Any, error: BaseException | None) -> None:
        self._source: _Source = _Run(session, state)
        self._value: Any = None
        self._value_error: RtlangError | None = None
        self.usage: Usage = session.usage
        self.graph = RequestGraph(tuple(session.submitted), session.recording.inputs)
        self.breaks: tuple[Break, ...] = tuple(session.recording.breaks)
        if error is None and isinstance(session.final, RtlangError):
            error = session.final
        if error is None:
            error = session.recording.first_error()
        try:
            self._value = deep_real(returned)
        except RtlangError as value_error:
            self._value_error = value_error
        error = error or self._value_error
        self.error: BaseException | None = error

    @property
    def value(self) -> R_co:
        """The return value of the body, with lazy values replaced by actual ones. Raises the error of a failed generation."""
        if self._value_error is not None:
            raise self._value_error
        return self._value  # type: ignore[no-any-return]

    @property
    def messages(self) -> list[dict[str, str]]:
        """The chat messages of the main sequence, up to the first missing text."""
        return self._source.messages()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all variables."""
        return self._source.names

    def __getitem__(self, name: str) -> AnyValue:
        """The value of a variable.

        Raises:
            KeyError: the variable does not exist.
            RtlangError: its generation failed.
        """
        return self._source.read(name, "value")  # type: ignore[no-any-return]

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def text(self, name: str) -> Any:
        """The text of a variable, or a list of strings. Raises as `result[name]`."""
        return self._source.read(name, "text")

    def meta(self, name: str) -> Any:
        """The `Meta` of a variable, or a list of them. Raises as `result[name]`."""
        return self._source.read(name, "meta")

    def tree(self, name: str) -> Any:
        """The parse tree of a variable generated under a Lark grammar, a `lark.Tree`, or a list of them. Raises as `result[name]`."""
        return self._source.read(name, "tree")

    def __repr__(self) -> str:
        state = "ok" if self.error is None else f"error {type(self.error).__name__}: {self.error}"
        return f"<Result {list(self.names)}, {state}>"

    def __getstate__(self) -> dict[str, Any]:
        """A snapshot for copies and pickles: all readable data, without the run.

        Raises:
            TraceError: the program is still running.
        """
        return {**vars(self), "_source": self._source.saved()}


class _Source(Protocol):
    """The source of a result's data."""

    @property
    def names(self) -> tuple[str, ...]: ...

    def read(self, name: str, which: Reading) -> Any:
        """The `value`, `text`, `meta` or `tree` of a variable, or its error."""

    def messages(self) -> list[dict[str, str]]: ...

    def saved(self) -> _Saved: ...


class _Run:
    """Reads values from the run on access."""

    def __init__(self, session: Session, state: State) -> None:
        self._session, self._state, self._recording = session, state, session.recording

    @property
    def names(self) -> tuple[str, ...]:
        generated_names = (node.name for node in self._recording.nodes.values() if not isinstance(node, Text))
        return tuple(dict.fromkeys([*self._state._variables, *(name for name in generated_names if name)]))

    def read(self, name: str, which: Reading) -> Any:
        return deep_real(view(self._variable(name), which, name))

    def messages(self) -> list[dict[str, str]]:
        kept: list[Part] = []
        for part in self._state._sequence.parts(None):
            if isinstance(part, Ref):
                outcome = self._recording.driver.outcome(part.node_id)
                if not isinstance(outcome, NodeFinished):
                    break
            kept.append(part)
        return messages_of(kept, self._recording.text_of)

    def saved(self) -> _Saved:
        if self._session.final is None:
            raise TraceError("the program is still running; its result can be copied and pickled once it has ended")
        names = self.names
        readings = {(name, which): _reading(self, name, which) for name in names for which in get_args(Reading)}
        return _Saved(names, readings, self.messages())

    def _variable(self, name: str) -> Variable:
        if name in self._state._variables:
            return self._state._variables[name]
        found: list[Variable] = []
        for node_id, node in self._recording.nodes.items():
            if isinstance(node, Text) or node.name != name:
                continue
            constraint = node.constraint if isinstance(node, Generate) else None
            texts: list[Variable] = [
                generated(self._recording, node_id, choice, repr(name), constraint, is_text=False)
                for choice in range(choices_of(node))
            ]
            found.append(texts if len(texts) > 1 else texts[0])
        if not found:
            raise _unknown(name, self.names)
        return found[0] if len(found) == 1 else found


@dataclass(frozen=True, slots=True)
class _Failure:
    error: RtlangError


@dataclass(frozen=True, slots=True)
class _Saved:
    """The data of a snapshot."""

    names: tuple[str, ...]
    readings: dict[tuple[str, Reading], Any]
    chat: list[dict[str, str]]

    def read(self, name: str, which: Reading) -> Any:
        if name not in self.names:
            raise _unknown(name, self.names)
        found = self.readings[name, which]
        if isinstance(found, _Failure):
            raise copy(found.error)  # a raised exception collects tracebacks
        return found

    def messages(self) -> list[dict[str, str]]:
        return [dict(message) for message in self.chat]

    def saved(self) -> _Saved:
        return self


def _reading(run: _Run, name: str, which: Reading) -> Any:
    try:
        return run.read(name, which)
    except RtlangError as error:
        return _Failure(error)


def _unknown(name: str, names: tuple[str, ...]) -> KeyError:
    return KeyError(f"variable {name!r} does not exist; existing variables: {', '.join(names) or 'none'}")
