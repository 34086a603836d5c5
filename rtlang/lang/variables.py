"""Variables of a state and views of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rtlang.contract.errors import TraceError, ValueParseError
from rtlang.contract.graph import Part, Ref, RoleEnd, RoleStart
from rtlang.contract.params import Constraint, ConstraintKind
from rtlang.lang.recording import Recording
from rtlang.lang.values import Value, text_value, user_location


@dataclass(frozen=True, slots=True)
class Entry:
    """A generated variable.

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


@dataclass(frozen=True, slots=True)
class Plain:
    """A variable set by the program body."""

    value: Any


Variable = Entry | Plain | list["Variable"] | None
"""None within the list of a joined variable stands for a fork without that variable."""


def generated(
    recording: Recording, node_id: int, choice: int, what: str, constraint: Constraint | None, *, is_text: bool
) -> Entry:
    """Create the variable for one completion of a node; with `is_text` its value is the text itself."""
    parts = (Ref(node_id, choice),)
    text = text_value(recording, parts, what)
    value = text if is_text else Value(recording, (node_id,), parts, lambda: recording.value_of(node_id, choice), what)
    meta = Value(recording, (node_id,), None, lambda: recording.meta_of(node_id, choice), f"the meta of {what}")
    if constraint is None or constraint.kind is not ConstraintKind.LARK:
        return Entry(value, text, meta)
    tree = Value(
        recording,
        (node_id,),
        None,
        lambda: _tree(recording, node_id, constraint, recording.text_of(node_id, choice)),
        f"the tree of {what}",
    )
    return Entry(value, text, meta, tree)


def _tree(recording: Recording, node_id: int, constraint: Constraint, text: str) -> Any:
    from rtlang_grammars.context_free.lexing.parse_trees import parse_tree

    try:
        return parse_tree(constraint.source, text, constraint.lexer, constraint.indentation)
    except ValueError as error:
        parse_error = ValueParseError(recording.name_of(node_id), text, str(error))
        raise recording.parse_error(node_id, parse_error) from None


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
        case Entry():
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
            case _:
                raise TraceError("an input of a graph has no text while the graph is being recorded", user_location())
    return messages
