"""Variables of a state and views of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rtlang.contract.errors import TraceError, ValueParseError
from rtlang.contract.events import NodeFinished
from rtlang.contract.params import Constraint, ConstraintKind, FinishReason
from rtlang.contract.request_graph import Part, Ref, RoleEnd, RoleStart, TokenIds
from rtlang.lang.lazy_values.values import Value, text_value, user_location
from rtlang.lang.recordings.recording import Recording


@dataclass(frozen=True, slots=True)
class TextVariable:
    """A variable made of generated text.

    Attributes:
        value: its parsed value.
        text: its text.
        meta: its metadata; None if it is not a single generation.
        tree: its parse tree; None if it was not generated under a Lark grammar.
    """

    value: Value
    text: Value
    meta: Value | None
    tree: Value | None = None


class Generated:
    """The variable of one completion of a node. Its values are made when they are read; most are not.

    Attributes: as of `TextVariable`.
    """

    __slots__ = ("_choice", "_constraint", "_is_text", "_node_id", "_recording", "_text", "_value", "_what")

    def __init__(
        self, recording: Recording, node_id: int, choice: int, what: str, constraint: Constraint | None, is_text: bool
    ) -> None:
        self._recording, self._node_id, self._choice, self._what = recording, node_id, choice, what
        self._constraint, self._is_text = constraint, is_text
        self._value: Value | None = None
        self._text: Value | None = None

    @property
    def value(self) -> Value:
        """See `TextVariable`."""
        if self._is_text:
            return self.text
        if self._value is None:
            recording, node_id, choice = self._recording, self._node_id, self._choice
            self._value = Value(
                recording,
                (node_id,),
                (Ref(node_id, choice),),
                lambda: recording.outcomes.value_of(node_id, choice),
                self._what,
            )
        return self._value

    @property
    def is_cancelled(self) -> bool:
        """Whether a decision that did not need the completion has cancelled it."""
        end = self._recording.driver.outcome(self._node_id)
        return (
            isinstance(end, NodeFinished)
            and bool(end.completions)
            and end.completions[self._choice].finish_reason is FinishReason.CANCELLED
        )

    @property
    def text(self) -> Value:
        """See `TextVariable`."""
        if self._text is None:
            self._text = text_value(self._recording, (Ref(self._node_id, self._choice),), self._what)
        return self._text

    @property
    def meta(self) -> Value:
        """See `TextVariable`."""
        recording, node_id, choice = self._recording, self._node_id, self._choice
        return Value(
            recording,
            (node_id,),
            None,
            lambda: recording.outcomes.meta_of(node_id, choice),
            f"the meta of {self._what}",
        )

    @property
    def tree(self) -> Value | None:
        """See `TextVariable`."""
        recording, node_id, choice, constraint, what = (
            self._recording,
            self._node_id,
            self._choice,
            self._constraint,
            self._what,
        )
        if constraint is None or constraint.kind is not ConstraintKind.LARK:
            return None
        return Value(
            recording,
            (node_id,),
            None,
            lambda: _tree(recording, node_id, constraint, recording.text_of(node_id, choice)),
            f"the tree of {what}",
        )


@dataclass(frozen=True, slots=True)
class Plain:
    """A variable set by the program body."""

    value: Any


Variable = TextVariable | Generated | Plain | list["Variable"] | None
"""None within the list of a joined variable stands for a fork without that variable."""


def generated(
    recording: Recording, node_id: int, choice: int, what: str, constraint: Constraint | None, *, is_text: bool
) -> Generated:
    """Create the variable for one completion of a node; with `is_text` its value is the text itself."""
    return Generated(recording, node_id, choice, what, constraint, is_text)


def without_cancelled(variable: Variable, found: Any) -> Any:
    """The value `found` of a variable, with None for each completion that a decision ended."""
    if isinstance(variable, list):
        return [without_cancelled(each, value) for each, value in zip(variable, found, strict=True)]
    return None if isinstance(variable, Generated) and variable.is_cancelled else found


def _tree(recording: Recording, node_id: int, constraint: Constraint, text: str) -> Any:
    from rtlang_grammars.context_free.lexer_build.parse_trees import parse_tree

    try:
        return parse_tree(constraint.source, text, constraint.lexer, constraint.indentation)
    except ValueError as error:
        parse_error = ValueParseError(recording.nodes.name_of(node_id), text, str(error))
        raise recording.outcomes.parse_error(node_id, parse_error) from None


Reading = Literal["value", "text", "meta", "tree"]
"""The readable aspects of a variable."""


def view(variable: Variable, which: Reading, name: str) -> Any:
    """The `value`, `text`, `meta` or `tree` of a variable; a list for a list."""
    match variable:
        case None:
            return None
        case list():
            return [view(each, which, name) for each in variable]
        case Plain():
            if which in ("meta", "tree"):
                raise TraceError(f"{name!r} was set by the program, not generated, and has no {which}", user_location())
            if which == "text" and not isinstance(variable.value, (str, Value)):
                return str(variable.value)
            return variable.value
        case TextVariable() | Generated():
            if which == "meta" and variable.meta is None:
                raise TraceError(f"{name!r} is the text of a scope and has no meta", user_location())
            if which == "tree" and variable.tree is None:
                raise TraceError(f"{name!r} was not generated with a Lark grammar and has no tree", user_location())
            return getattr(variable, which)


def messages_of(parts: Sequence[Part], text_of: Callable[[int, int], str]) -> list[dict[str, str]]:
    """The chat messages of a sequence. `text_of(node_id, choice)` returns the text of a node."""
    messages: list[dict[str, str]] = []
    is_inside = False
    for part in parts:
        match part:
            case RoleStart():
                messages.append({"role": part.role, "content": ""})
                is_inside = True
            case RoleEnd():
                is_inside = False
            case str() | Ref():
                if is_inside:
                    messages[-1]["content"] += part if isinstance(part, str) else text_of(part.node_id, part.choice)
            case TokenIds():
                if is_inside:
                    messages[-1]["content"] += part.text
            case _:
                raise TraceError("an input of a graph has no text while the graph is being recorded", user_location())
    return messages
