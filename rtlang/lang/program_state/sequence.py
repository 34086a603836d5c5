"""The end of a growing sequence of nodes.

A `NodeSequence` holds its last node and the open chat message. States are views of a sequence: a program called on a state extends the same
sequence, and a fork starts a new one at the same node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rtlang.compiler.context import Pieces
from rtlang.contract.errors import TraceError
from rtlang.contract.request_graph import Part, RoleEnd, RoleStart, Text, parent_of
from rtlang.lang.lazy_values.values import user_location
from rtlang.lang.recordings.recording import Recording


class NodeSequence:
    """The position of a state.

    Attributes:
        head: the last node; None if the sequence is empty.
        role: the role of the open chat message, or None.
        start: the last node when the sequence was made; of a branch the node of the fork.

    The recording owns the nodes; the states of a sequence share it.
    """

    __slots__ = ("_open_start", "_recording", "head", "role", "start")

    def __init__(self, recording: Recording, head: int | None = None, role: str | None = None) -> None:
        self._recording, self.head, self.role, self.start = recording, head, role, head
        self._open_start: int | None = None  # the end before the open message, to which it may still be given up

    def branch(self) -> NodeSequence:
        """A new sequence that continues this one."""
        self.keep_head()
        branch = NodeSequence(self._recording, self.head, self.role)
        branch._hold_start(self._open_start)
        return branch

    def keep_head(self) -> None:
        """Declare that several nodes may continue the last node."""
        if self.head is not None:
            self._recording.branch_points.add(self.head)

    def append(self, parts: Iterable[Part], free: Pieces = ()) -> None:
        """Append text; `free` are the pieces among the parts whose order the compiler chooses."""
        kept = [part for part in parts if part != ""]
        if kept:
            self.head = self._recording.add_text(self.head, kept)
            if len(free) > 1:
                self._recording.free_texts[self.head] = free

    def append_message(self, start: RoleStart, parts: Iterable[Part], free: Pieces = ()) -> None:
        """Append a whole chat message of text, as one node.

        Raises:
            TraceError: a message is open, or one with tools or template options follows others.
        """
        self._check_role(start)
        self.append([start, *parts, RoleEnd()], free)

    def append_pieces(self, pieces: Sequence[Sequence[Part]]) -> None:
        """Append text that stays divided into these pieces, each a node.

        Raises:
            TraceError: as `append_message`, for the first message among them.
        """
        first = next((part for piece in pieces for part in piece if isinstance(part, RoleStart)), None)
        if first is not None:
            self._check_role(first)
        for number, piece in enumerate(pieces):
            if number:
                self.keep_head()
            self.append(piece)

    def open_role(self, start: RoleStart) -> int | None:
        """Start a chat message; returns the previous end, for `close_role` and `drop_role`.

        Raises:
            TraceError: another message is open, or one with tools or template options follows others.
        """
        self._check_role(start)
        before = self.head
        self._hold_start(before)
        self.append([start])
        self.role = start.role
        return before

    def close_role(self, start: int | None) -> None:
        """End the open chat message. A message that contains only side branches (n > 1) leaves no empty message."""
        recording = self._recording
        assert self.head is not None
        self.role = None
        self._release_start()
        reached = recording.nodes.outer[self.head]
        opening = reached.parts[0] if isinstance(reached, Text) and len(reached.parts) == 1 else None
        if isinstance(opening, RoleStart) and self.head in recording.branch_points:
            self.head = start
            self.keep_head()
        else:
            self.append([RoleEnd()])

    def drop_role(self, start: int | None) -> None:
        """Give up the open chat message and all that was appended in it: the sequence goes on from before the message."""
        self.role, self.head = None, start
        self.keep_head()
        self._release_start()

    def _hold_start(self, start: int | None) -> None:
        """Keep the node before the open message separate in the parts that are submitted while the message is open."""
        self._open_start = start
        if start is not None:
            self._recording.open_starts[start] += 1

    def _release_start(self) -> None:
        if self._open_start is not None:
            counts = self._recording.open_starts
            counts[self._open_start] -= 1
            if not counts[self._open_start]:
                del counts[self._open_start]
            self._open_start = None

    def end(self) -> None:
        """Declare that nothing is appended to this sequence any more."""
        if self.head is not None and self.head not in self._recording.branch_points:
            self._recording.ended.add(self.head)

    def _check_role(self, start: RoleStart) -> None:
        if self.role is not None:
            raise TraceError(f"a {start.role} message cannot start inside a {self.role} message", user_location())
        what = "tools" if start.tools is not None else "template options"
        has_settings = start.tools is not None or start.template_options is not None
        if has_settings and any(isinstance(part, RoleStart) for part in self.parts(None, settles=False)):
            raise TraceError(
                f"{what} are allowed on the first message only, not on a later {start.role} message",
                user_location(),
            )

    def parts(self, after: int | None, *, end: int | None = None, settles: bool = True) -> list[Part]:
        """The parts of the sequence after node `after`, or from the start if it is None.

        Args:
            end: the last node; default: the head.
            settles: whether texts with a free order keep the order that is returned. Otherwise it may change until they are submitted.
        """
        found: list[tuple[Part, ...]] = []
        node_id = self.head if end is None else end
        free_texts = self._recording.free_texts
        while node_id is not None and node_id != after:
            node = self._recording.nodes.outer[node_id]
            if settles and free_texts:
                free_texts.pop(node_id, None)
            found.append(node.parts if isinstance(node, Text) else self._recording.outcomes.parts_of(node))
            node_id = parent_of(node)
        return [part for parts in reversed(found) for part in parts]
