"""The form in which outcomes are stored: messages of the wire protocol, and how the text was streamed."""

from __future__ import annotations

from enum import Enum
from typing import Any

from rtlang.contract.errors import CassetteError, ProtocolError
from rtlang.contract.events import NodeFailed, NodeFinished, TextDelta
from rtlang.contract.params import FinishReason
from rtlang.contract.runs.known import KnownOutcome
from rtlang.protocol.event_codec import event_from_wire, event_to_wire

REPEATED_ERRORS = frozenset(
    ("constraint", "dead_end", "budget", "invalid_value", "context_length", "parameter", "apply", "switch")
)
"""Codes of errors that follow from the node alone. Others, such as overloads and deadlines, are tried again."""


OWN_ERRORS = frozenset(("call", "tool", "value", "question", "spent", "budget"))
"""Codes of errors that belong to one run: `rt.record` tries again, `rt.replay` repeats them."""


class Kept(Enum):
    """For which runs an outcome is recorded."""

    ALL = "all"
    REPLAY = "replay"
    """For replays of the same run only: it does not follow from the node."""
    NO = "no"


def how_kept(event: NodeFinished | NodeFailed, *, has_budget: bool = False) -> Kept:
    """Classify an outcome for recording. Complete results and reproducible errors are valid for all runs.

    Outcomes that a budget or a decision cut short are not.
    """
    if isinstance(event, NodeFailed):
        code = event.error.code
        if code in REPEATED_ERRORS and not (has_budget and code == "budget"):
            return Kept.ALL
        return Kept.REPLAY if code in OWN_ERRORS else Kept.NO
    if event.is_replayed:
        return Kept.NO
    is_cut = any(each.finish_reason is FinishReason.CANCELLED for each in event.completions)
    return Kept.REPLAY if is_cut or event.max_tokens is not None else Kept.ALL


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
    """The choice, characters and tokens of each streamed chunk; empty if the chunks differ from the texts."""
    for choice, completion in enumerate(event.completions):
        own = [delta for delta in deltas if delta.choice == choice]
        if "".join(delta.text for delta in own) != completion.text:
            return []
        if sum((delta.token_ids for delta in own), ()) != completion.token_ids:
            return []
    return [[delta.choice, len(delta.text), len(delta.token_ids)] for delta in deltas]
