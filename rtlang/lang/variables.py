"""Variables of a state and views of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rtlang.contract.errors import TraceError
from rtlang.contract.graph import Part, Ref, RoleEnd, RoleStart
from rtlang.lang.recording import Recording
from rtlang.lang.values import Value, text_value, user_location


@dataclass(frozen=True, slots=True)
class Entry:
    """A generated variable: its parsed value, its text and its metadata (None if it is not a single generation)."""

    value: Value
    text: Value
    meta: Value | None


@dataclass(frozen=True, slots=True)
class Plain:
    """A variable set by the program body."""

    value: Any


Variable = Entry | Plain | list["Variable"] | None
"""None within the list of a joined variable stands for a fork without that variable."""


def generated(recording: Recording, node_id: int, choice: int, what: str, is_text: bool) -> Entry:
    """Create the variable for one completion of a node; with `is_text` its value is the text itself."""
    parts = (Ref(node_id, choice),)
    text = text_value(recording, parts, what)
    value = text if is_text else Value(recording, (node_id,), parts, lambda: recording.value_of(node_id, choice), what)
    meta = Value(recording, (node_id,), None, lambda: recording.meta_of(node_id, choice), f"the meta of {what}")
    return Entry(value, text, meta)


Reading = Literal["value", "text", "meta"]
"""The readable aspects of a variable."""


def view(variable: Variable, which: Reading, name: str) -> Any:
    """The `value`, `text` or `meta` of a variable; a list for a list."""
    match variable:
        case None:
            return None
        case list():
            return [view(each, which, name) for each in variable]
        case Plain():
            if which == "meta":
                raise TraceError(f"{name!r} was set by the program, not generated, and has no meta", user_location())
            if which == "text" and not isinstance(variable.value, (str, Value)):
                return str(variable.value)
            return variable.value
        case Entry():
            if which == "meta" and variable.meta is None:
                raise TraceError(f"{name!r} is the text of a scope and has no meta", user_location())
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
                raise TraceError("an input of a graph has no text while the graph is recorded", user_location())
    return messages
