"""The growing end of one sequence of nodes.

A `Sequence` knows the node it has reached and the chat message that is open there. States are views of one: a program called on a
state grows the same sequence, a fork starts another at the same node.
"""

from __future__ import annotations

from collections.abc import Iterable

from rtlang.contract.errors import TraceError
from rtlang.contract.graph import Part, Ref, RoleEnd, RoleStart, Text
from rtlang.lang.recording import Recording
from rtlang.lang.values import user_location


class Sequence:
    """Where a state is: `head` is the node reached (None: nothing yet), `role` the open chat message.

    The recording owns the nodes; the states that share a sequence own it together.
    """

    __slots__ = ("_recording", "head", "role")

    def __init__(self, recording: Recording, head: int | None = None, role: str | None = None) -> None:
        self._recording, self.head, self.role = recording, head, role

    def branch(self) -> Sequence:
        """Another sequence that continues from here."""
        self.keep_head()
        return Sequence(self._recording, self.head, self.role)

    def keep_head(self) -> None:
        """More than one node will continue the node reached."""
        if self.head is not None:
            self._recording.branch_points.add(self.head)

    def append(self, parts: Iterable[Part]) -> None:
        """Text follows."""
        kept = [part for part in parts if part != ""]
        if kept:
            self.head = self._recording.add_text(self.head, kept)

    def open_role(self, role: str) -> int | None:
        """Begin a chat message; returns where the sequence was, for `close_role`.

        Raises:
            TraceError: a message is open.
        """
        if self.role is not None:
            raise TraceError(f"a {role} message cannot begin inside a {self.role} message", user_location())
        start = self.head
        self.append([RoleStart(role)])
        self.role = role
        return start

    def close_role(self, start: int | None) -> None:
        """End the open chat message. One that held nothing but side branches (n > 1) leaves no empty message behind."""
        recording = self._recording
        assert self.head is not None
        self.role = None
        reached = recording.nodes[self.head]
        opening = reached.parts[0] if isinstance(reached, Text) and len(reached.parts) == 1 else None
        if isinstance(opening, RoleStart) and self.head in recording.branch_points:
            self.head = start
            self.keep_head()
        else:
            self.append([RoleEnd()])

    def parts(self, after: int | None) -> list[Part]:
        """Parts of the sequence from behind node `after` (None: from the start) to here."""
        found: list[tuple[Part, ...]] = []
        node_id = self.head
        while node_id is not None and node_id != after:
            node = self._recording.nodes[node_id]
            found.append(node.parts if isinstance(node, Text) else (Ref(node_id),))
            node_id = node.parent
        return [part for parts in reversed(found) for part in parts]
