"""The form in which outcomes are stored: messages of the wire protocol, and how the text was streamed."""

from __future__ import annotations

from typing import Any

from rtlang.contract.errors import CassetteError, ProtocolError
from rtlang.contract.events import NodeFailed, NodeFinished, TextDelta
from rtlang.contract.known import KnownOutcome
from rtlang.protocol.event_codec import event_from_wire, event_to_wire

REPEATED_ERRORS = frozenset(("constraint", "budget", "invalid_value", "context_length", "parameter", "apply", "switch"))
"""Codes of errors that follow from the node alone. All others, such as overloads and deadlines, are tried again."""


def is_kept(event: NodeFinished | NodeFailed, *, has_budget: bool = False) -> bool:
    """Whether an outcome is recorded: a whole result of this run, or an error that would come again.

    Where a budget of the run decided, the outcome does not follow from the node.
    """
    if isinstance(event, NodeFailed):
        return event.error.code in REPEATED_ERRORS and not (has_budget and event.error.code == "budget")
    return (
        not event.is_replayed
        and event.max_tokens is None
        and all(str(each.finish_reason) != "cancelled" for each in event.completions)
    )


def to_stored(event: NodeFinished | NodeFailed, deltas: list[TextDelta]) -> Any:
    """An outcome as plain data."""
    message = event_to_wire(0, event)
    for name in ("t", "s", "n", "name"):
        message.pop(name, None)
    chunks = [] if isinstance(event, NodeFailed) else _chunks(event, deltas)
    return [message, chunks]


def from_stored(path: str, stored: Any) -> KnownOutcome:
    """The inverse.

    Raises:
        CassetteError: the data has another form.
    """
    try:
        message, chunks = stored
        event = event_from_wire({"t": "event", "n": 0, "name": None, **message}, 0)
        spans = tuple((int(choice), int(chars), int(tokens)) for choice, chars, tokens in chunks)
    except (ProtocolError, TypeError, ValueError) as error:
        raise CassetteError(path, f"an outcome has an unknown form: {error}") from None
    if isinstance(event, NodeFailed):
        return KnownOutcome(event.error)
    assert isinstance(event, NodeFinished)
    return KnownOutcome(event, spans)


def _chunks(event: NodeFinished, deltas: list[TextDelta]) -> list[list[int]]:
    """How the texts were cut into pieces; empty if the pieces are not exactly the texts."""
    for choice, completion in enumerate(event.completions):
        own = [delta for delta in deltas if delta.choice == choice]
        if "".join(delta.text for delta in own) != completion.text:
            return []
        if sum((delta.token_ids for delta in own), ()) != completion.token_ids:
            return []
    return [[delta.choice, len(delta.text), len(delta.token_ids)] for delta in deltas]
