"""The result of a run of a program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, Never

from rtlang.contract.errors import RtlangError
from rtlang.contract.params import Usage
from rtlang.contract.pictures.page import run_fragment, run_page
from rtlang.contract.pictures.run_record import RunRecord
from rtlang.contract.request_graph import RequestGraph
from rtlang.contract.runs.known_finder import Base
from rtlang.lang.execution.node_view import NodeView, Origin, RunNodes
from rtlang.lang.execution.readings import StateReadings, WholeRunReadings
from rtlang.lang.lazy_values.static_types import AnyValue, R_co
from rtlang.lang.program_state.forcing import returned_value
from rtlang.lang.program_state.history import History
from rtlang.lang.program_state.state_record import StateRecord
from rtlang.lang.program_state.variables import Reading
from rtlang.lang.recordings.meta import AnyMeta
from rtlang.lang.recordings.recording import Break
from rtlang.lang.sessions.session import Session
from rtlang.lang.views.notebook import with_cell_names
from rtlang.lang.views.run_records import ended


class StateResult:
    """The variables of one state of a program that has ended: of a fork, or of the main state (see `Result`).

    A key is the name of a variable, or an index: `[0]` is the first generation, named or not, `[-1]` the last one.
    """

    def __init__(self, source: StateReadings) -> None:
        self._source = source

    @property
    def messages(self) -> list[dict[str, str]]:
        """The chat messages of the sequence, up to the first missing text."""
        return self._source.messages()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all variables."""
        return self._source.names

    @property
    def forks(self) -> tuple[tuple[StateResult, ...], ...]:
        """The forks of this state and of the programs that it called, in order: `forks[0][2]` is the third state of the first `fork`."""
        return tuple(tuple(StateResult(each) for each in forks) for forks in self._source.forks)

    def __getitem__(self, key: str | int) -> AnyValue:
        """The value of a variable, or of the generation at an index; a list for n > 1.

        Raises:
            KeyError, IndexError: it does not exist.
            RtlangError: its generation failed.
        """
        return self._read(key, "value")  # type: ignore[no-any-return]

    def all(self, name: str) -> list[Any]:
        """The values of all generations of a variable that was generated again, in order; the last one is `result[name]`.

        Raises:
            KeyError: the variable does not exist. RtlangError: a generation failed.
        """
        return self._source.read_all(name)

    def __iter__(self) -> Never:
        raise TypeError(f"a {type(self).__name__} cannot be iterated; its variables are in .names")

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def text(self, key: str | int | None = None) -> Any:
        """The text of a variable or generation, or a list of strings. Raises as reading its value.

        Without a key it is the text of the whole sequence, up to the first missing text: the contents of messages one after the other,
        without the marks of the chat template around them.
        """
        return self._source.whole_text() if key is None else self._read(key, "text")

    def meta(self, key: str | int) -> AnyMeta:
        """The `Meta` of a variable or generation, or a list of them. Raises as reading its value."""
        return self._read(key, "meta")  # type: ignore[no-any-return]

    def tree(self, key: str | int) -> Any:
        """The parse tree of a text generated under a Lark grammar, a `lark.Tree`, or a list of them. Raises as reading its value."""
        return self._read(key, "tree")

    def _rt_history(self) -> History:
        """The sequence, for `rt.messages` and `rt.fit`."""
        return self._source.history()

    def _read(self, key: str | int, which: Reading) -> Any:
        return self._source.read(key, which)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {list(self.names)}>"

    def __getstate__(self) -> dict[str, Any]:
        """A snapshot for copies and pickles: all readable data, without the run.

        Raises:
            TraceError: the program is still running.
        """
        return {**vars(self), "_source": self._source.saved()}


class Result(StateResult, Generic[R_co]):
    """The variables of a finished or failed program.

    `result[name]` is a parsed value, `result.text(name)` its text, `result.meta(name)` its `Meta`; reading a failed variable raises its
    error. Names used in forks that were not joined yield lists, in recording order; `result.forks` has the forks one by one. `result[0]`,
    `result[1]`, ... are all generations of the run, named or not, in recording order. Results can be copied and pickled if their values
    can.

    Attributes:
        error: why the run failed: an exception of the body, the end of the graph, or the first failed node that the body did not
            handle. None if the run succeeded.
        usage: tokens used.
        cut: names of the generations that got fewer tokens than they asked for, or none, because of the budget of the run.
        graph: all submitted nodes, as one graph.
        breaks: the graph breaks of the run.
    """

    def __init__(
        self,
        session: Session,
        state: StateRecord,
        returned: Any,
        error: BaseException | None,
        origin: Origin[Result[R_co]] | None = None,
    ) -> None:
        super().__init__(WholeRunReadings(session, state))
        self._origin = origin
        self._arguments: str | None = None
        self._value: Any = None
        self._value_error: BaseException | None = None
        self.usage: Usage = session.usage
        self.cut: tuple[str, ...] = session.cut
        self.graph = RequestGraph(tuple(session.submitted), session.recording.inputs)
        self.breaks: tuple[Break, ...] = tuple(session.recording.breaks)
        body_error = error
        if error is None and isinstance(session.final, RtlangError):
            error = session.recording.outcomes.run_error(session.final)
        if error is None:
            error = session.recording.outcomes.first_error()
        try:
            self._value = returned_value(returned, session.recording.nodes.is_any_inside)
        except Exception as value_error:  # of a generation, or of an operation on its value
            self._value_error = value_error
        error = error or self._value_error
        self.error: BaseException | None = error
        if body_error is not None and returned is None:  # there is no return value, and None may be one
            self._value_error = body_error

    @property
    def value(self) -> R_co:
        """The return value of the body, with lazy values replaced by actual ones.

        Raises:
            Exception: the body raised it, so that there is no value, or it is the error of a failed generation in the value.
        """
        if self._value_error is not None:
            raise self._value_error
        return self._value  # type: ignore[no-any-return]

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of all nodes that ran, such as `fork[1]/tip`, in recording order."""
        return tuple(self._source.record().node_paths.values())

    def at(self, path: str) -> NodeView[Result[R_co]]:
        """The node with this path: its text, value, meta and prompt, and what depends on it.

            edited = result.at("fork[1]/tip").edit(text="Use fewer words.")

        Raises:
            KeyError: there is none; lists the paths that are like it.
        """
        return RunNodes(self._source, self._origin).at(path)

    def record(self) -> RunRecord:
        """What pictures and comparisons of the run are made from, as plain data."""
        return self._source.record()

    @property
    def arguments_digest(self) -> str | None:
        """A digest of the arguments of the run; None if they are not known."""
        return self._arguments if self._origin is None else self._origin.body.arguments_digest()

    @property
    def _rt_model(self) -> str | None:
        return self._source.model

    def _rt_base(self) -> Base:
        return Base(self._source.known_outcomes())

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_origin": None, "_arguments": self.arguments_digest}

    def _read(self, key: str | int, which: Reading) -> Any:
        try:
            return super()._read(key, which)
        except (KeyError, IndexError) as missing:
            if self.error is None or (isinstance(key, str) and key in self.names):
                raise
            raise type(missing)(f"{missing.args[0]}; the run failed: {self.error}") from self.error

    def to_html(self, title: str = "run") -> str:
        """A self-contained HTML page of the run: its graph with texts, durations and tokens, timeline, graph breaks and texts."""
        return run_page(self._record(), title)

    def _record(self) -> RunRecord:
        return ended(self._source.record(), self.error, self._value)

    def _repr_pretty_(self, printer: Any, is_cycle: bool) -> None:
        """The representation for IPython, with the names of cells."""
        printer.text(with_cell_names(repr(self)))

    def _repr_html_(self) -> str:
        """The texts of the run for a notebook, generated ones marked by variable."""
        return run_fragment(self._record())

    def __repr__(self) -> str:
        state = "ok" if self.error is None else f"error {type(self.error).__name__}: {self.error}"
        return f"<Result {list(self.names)}, {state}>"


class RowResult(Result[R_co]):
    """The result of one row of several.

    Attributes:
        index: the number of the row, from 0.
        row: the row as it was given.
    """

    def __init__(
        self,
        session: Session,
        state: StateRecord,
        returned: Any,
        error: BaseException | None,
        index: int,
        row: Mapping[str, Any],
        origin: Origin[Result[R_co]] | None = None,
    ) -> None:
        super().__init__(session, state, returned, error, origin)
        self.index, self.row = index, row
