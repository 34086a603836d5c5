"""The sequence of a state of a run that has ended, with the tokens that the run computed.

It is read from the nodes as they were submitted, because the compiler decides where texts are divided, and from their outcomes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from rtlang.contract.errors import RtlangError, TraceError
from rtlang.contract.request_graph import (
    Generate,
    Node,
    Part,
    Ref,
    Repeat,
    RoleEnd,
    RoleStart,
    Select,
    Switch,
    Text,
    TokenIds,
    blocks_of,
    last_id,
    parent_of,
)
from rtlang.lang.program_state.history import History, without_open_message
from rtlang.lang.program_state.state_record import StateRecord
from rtlang.lang.recordings.control_paths import path_pieces
from rtlang.lang.recordings.recording import Recording
from rtlang.lang.sessions.session import Session


def history_of(session: Session, state: StateRecord) -> History:
    """The sequence of a state, up to the first missing text, and without a message that does not end."""
    pieces = _Pieces(session.recording)
    with suppress(RtlangError):  # of a generation: the text ends before it
        _add_sequence(pieces, session, state.sequence.head)
    return History(without_open_message(pieces.all), session.target)


def history_at(session: Session, node_id: int, choice: int) -> History:
    """The sequence that ends with a node, by the id under which it ran; a message that is open there is closed.

    Args:
        choice: the completion that the sequence ends with.
    Raises:
        RtlangError: the node, or one before it, failed.
    """
    recording = session.recording
    outer = recording.nodes.outer
    pieces = _Pieces(recording)
    if node_id not in outer:
        control = next(each for each in outer.values() if blocks_of(each) and each.node_id < node_id <= last_id(each))
        _add_sequence(pieces, session, parent_of(control))
        _add_control(pieces, session, _submitted(session), control, up_to=node_id)
    elif isinstance(outer[node_id], (Generate, Select)):
        _add_sequence(pieces, session, parent_of(outer[node_id]))
        pieces.add_generated(node_id, choice)
    else:
        _add_sequence(pieces, session, node_id)
    found = pieces.all
    parts = [part for piece in found for part in piece if isinstance(part, (RoleStart, RoleEnd))]
    if parts and isinstance(parts[-1], RoleStart):
        found[-1] = (*found[-1], RoleEnd())
    return History(tuple(piece for piece in found if piece), session.target)


def _add_sequence(pieces: _Pieces, session: Session, head: int | None) -> None:
    """Add the sequence that ends with a node outside of blocks. Raises the error of one that failed."""
    submitted = _submitted(session)
    sent, tail = _nodes_of(session, submitted, head)
    for node in sent:
        match node:
            case Text():
                pieces.add_text(node.parts)
                pieces.is_divided = True
            case Switch() | Repeat():
                _add_control(pieces, session, submitted, node)
            case _:
                pieces.add_generated(node.node_id)
    for node in tail:
        pieces.add_text(node.parts)
        pieces.is_divided = node.node_id in session.recording.branch_points


def _submitted(session: Session) -> dict[int, Node]:
    return {node.node_id: node for node in session.submitted}


def _add_control(
    pieces: _Pieces, session: Session, submitted: Mapping[int, Node], node: Node, up_to: int | None = None
) -> None:
    """Add what a branch or loop has added to its sequence, or the part of it that ends with a node."""
    assert isinstance(node, (Switch, Repeat))
    for piece in path_pieces(node, submitted, session.recording.outcomes.finished):
        if len(piece) == 1 and isinstance(piece[0], Ref):  # references in texts are replaced by their texts
            pieces.add_generated(piece[0].node_id)
            if piece[0].node_id == up_to:
                return
        else:
            pieces.add_text(piece)
            pieces.is_divided = True
    if up_to is not None:
        name = session.recording.nodes.path_at(up_to)
        raise TraceError(f"{name} is no part of the sequence after its branch or loop: continue from a node of it")


def _nodes_of(session: Session, submitted: Mapping[int, Node], head: int | None) -> tuple[list[Node], list[Text]]:
    """The nodes of a sequence as they were submitted, in order, and the texts after them that were not, if nothing is missing between."""
    outer, aliases = session.recording.nodes.outer, session.savings.aliases
    tail: list[Text] = []
    at = head
    while at is not None and aliases.get(at, at) not in submitted:
        node = outer[at]
        if isinstance(node, Text):
            tail.append(node)
        else:
            tail = []  # a generation that no output needed
        at = parent_of(node)
    found: list[Node] = []
    at = None if at is None else aliases.get(at, at)
    while at is not None:
        found.append(submitted[at])
        at = parent_of(submitted[at])
    return found[::-1], tail[::-1]


class _Pieces:
    """Collects the pieces of a `History`.

    Attributes:
        is_divided: whether text that is added next is tokenized apart from the text so far.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._done: list[tuple[Part, ...]] = []
        self._open: list[Part] = []
        self.is_divided = False

    @property
    def all(self) -> list[tuple[Part, ...]]:
        """The pieces so far."""
        return [*self._done, tuple(self._open)]

    def add_text(self, parts: Sequence[Part]) -> None:
        """Add the text of a node. Raises the error of a value in it."""
        if not parts:
            return
        if self.is_divided:
            self._done.append(tuple(self._open))
            self._open, self.is_divided = [], False
        for part in parts:
            is_ref = isinstance(part, Ref)
            self._open.append(self._recording.text_of(part.node_id, part.choice) if is_ref else part)  # type: ignore[union-attr]

    def add_generated(self, node_id: int, choice: int = 0) -> None:
        """Add the tokens of a completion of a generation or select. Raises its error."""
        node, completion = (
            self._recording.nodes.node(node_id),
            self._recording.outcomes.finished(node_id).completions[choice],
        )
        # After healing its first token holds the end of the text before it; at the start of a sequence there may be a start token.
        is_text = isinstance(node, Generate) and node.params.token_healing
        if is_text or not completion.token_ids or not (self._done or self._open):
            self._open.append(completion.text)
        else:
            self._open.append(TokenIds(completion.token_ids, completion.text))
        self.is_divided = False
