"""What a run of a program gave."""

from __future__ import annotations

from typing import Any

from rtlang.errors import RtlangError, TraceError
from rtlang.events import NodeFinished
from rtlang.lang.graph import Part, Ref, RequestGraph, Text
from rtlang.lang.recording import Break
from rtlang.lang.session import Session
from rtlang.lang.state import State
from rtlang.lang.values import deep_real
from rtlang.lang.variables import Variable, generated, messages_of, view
from rtlang.params import Usage


class Result:
    """The variables of a program that has ended, wholly or in part.

    `result[name]` is a parsed value, `result.text(name)` its text, `result.meta(name)` its `Meta`; reading what failed raises its error.
    Names of forks that were never joined give lists, in the order of recording.

    Attributes:
        error: why the run failed: an exception of the body, the end of the graph, or the first failed node that the body did not
            handle. None where all went well.
        usage: tokens spent.
        graph: every node that was submitted, as one graph.
        breaks: the graph breaks of the run.
    """

    def __init__(self, session: Session, state: State, returned: Any, error: BaseException | None) -> None:
        self._state, self._recording = state, session.recording
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
        except RecursionError:
            self._value_error = TraceError(
                "the value that the program returned contains itself, or is nested too deeply"
            )
        error = error or self._value_error
        self.error: BaseException | None = error

    @property
    def value(self) -> Any:
        """What the body returned, with generated values in place. Raises the error of one that failed."""
        if self._value_error is not None:
            raise self._value_error
        return self._value

    @property
    def messages(self) -> list[dict[str, str]]:
        """The chat of the program's main sequence, up to the first text that is missing."""
        kept: list[Part] = []
        for part in self._state._sequence.parts(None):
            if isinstance(part, Ref):
                outcome = self._recording.driver.outcome(part.node_id)
                if not isinstance(outcome, NodeFinished):
                    break
            kept.append(part)
        return messages_of(kept, self._recording.text_of)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all variables."""
        generated_names = (node.name for node in self._recording.nodes.values() if not isinstance(node, Text))
        return tuple(dict.fromkeys([*self._state._variables, *(name for name in generated_names if name)]))

    def __getitem__(self, name: str) -> Any:
        """The value of a variable.

        Raises:
            KeyError: there is none of that name. RtlangError: it failed.
        """
        return deep_real(view(self._variable(name), "value", name))

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def text(self, name: str) -> Any:
        """The text of a variable, or a list of texts. Raises as `result[name]`."""
        return deep_real(view(self._variable(name), "text", name))

    def meta(self, name: str) -> Any:
        """The `Meta` of a variable, or a list of them. Raises as `result[name]`."""
        return deep_real(view(self._variable(name), "meta", name))

    def __repr__(self) -> str:
        state = "ok" if self.error is None else f"error {type(self.error).__name__}: {self.error}"
        return f"<Result {list(self.names)}, {state}>"

    def _variable(self, name: str) -> Variable:
        if name in self._state._variables:
            return self._state._variables[name]
        found: list[Variable] = []
        for node_id, node in self._recording.nodes.items():
            if isinstance(node, Text) or node.name != name:
                continue
            count = getattr(node, "params", None)
            texts: list[Variable] = [
                generated(self._recording, node_id, choice, repr(name), is_text=False)
                for choice in range(1 if count is None else count.n)
            ]
            found.append(texts if len(texts) > 1 else texts[0])
        if not found:
            raise KeyError(f"there is no variable {name!r}; known are: {', '.join(self.names) or 'none'}")
        return found[0] if len(found) == 1 else found
