"""The end of a growing sequence of nodes.

A `NodeSequence` holds its last node and the open chat message. States are views of a sequence: a program called on a state extends the same
sequence, and a fork starts a new one at the same node.

A sequence grows by steps: an appended expression, a message, a program called on it. Once the body has seen that a node of the sequence
failed, the sequence goes back to the state before the outermost step that has ended and contains the node. The texts before that place may
have been submitted as one with what followed, so they are recorded again after the last node that is no text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rtlang.compiler.context import Pieces
from rtlang.contract.errors import TraceError
from rtlang.contract.request_graph import Node, Part, RoleEnd, RoleStart, Text, parent_of
from rtlang.lang.lazy_values.values import user_location
from rtlang.lang.recordings.recording import Recording

_Step = tuple[int, int, int | None, "_Step | None"]
"""A step that has ended: the first and the last id of its nodes, the node before it, and the step before it."""


class NodeSequence:
    """The position of a state.

    Attributes:
        head: the last node; None if the sequence is empty.
        role: the role of the open chat message, or None.
        start: the last node when the sequence was made; of a branch the node of the fork.

    The recording owns the nodes; the states of a sequence share it.
    """

    __slots__ = (
        "_num_seen",
        "_open_start",
        "_opening",
        "_opening_id",
        "_recording",
        "_replaced",
        "_step",
        "head",
        "role",
        "start",
    )

    def __init__(self, recording: Recording, head: int | None = None, role: str | None = None) -> None:
        self._recording, self.head, self.role, self.start = recording, head, role, head
        self._open_start: int | None = None  # the end before the open message, to which it may still be given up
        self._opening: RoleStart | None = None
        self._opening_id = -1  # of the node that began the open message
        self._step: _Step | None = None
        self._num_seen = 0  # failures that the sequence has left
        self._replaced: dict[int, int | None] = {}

    def branch(self) -> NodeSequence:
        """A new sequence that continues this one."""
        self.keep_head()
        branch = NodeSequence(self._recording, self.head, self.role)
        branch._hold_start(self._open_start)
        branch._opening, branch._opening_id = self._opening, self._opening_id
        branch._step, branch._num_seen, branch._replaced = self._step, self._num_seen, self._replaced.copy()
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

    def open_role(self, start: RoleStart) -> None:
        """Start a chat message.

        Raises:
            TraceError: another message is open, or one with tools or template options follows others.
        """
        self._check_role(start)
        self._hold_start(self.head)
        self._open(start)

    def _open(self, start: RoleStart) -> None:
        self.append([start])
        assert self.head is not None
        self.role, self._opening, self._opening_id = start.role, start, self.head

    def close_role(self) -> None:
        """End the open chat message. A message that contains only side branches (n > 1) leaves no empty message."""
        recording, start = self._recording, self._open_start
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
            self.end_step(self._opening_id, start)

    def drop_role(self) -> None:
        """Give up the open chat message and all that was appended in it: the sequence goes on from before the message."""
        self.role, self.head = None, self._open_start
        self.keep_head()
        self._release_start()

    def end_step(self, first_id: int, before: int | None) -> None:
        """Note that a step has ended which began after the node `before`, when `first_id` was the next id."""
        step = self._step
        while step is not None and step[0] >= first_id:  # steps within it
            step = step[3]
        self._step = (first_id, self._recording.nodes.free_id - 1, before, step)

    def go_back_to(self, node_id: int | None) -> None:
        """Give up what was appended after a node of the sequence."""
        self.head = node_id
        self.keep_head()

    # Failures

    def leave_failed(self) -> None:
        """Go back to the state before the nodes that have failed with errors which the body has seen.

        An open message stays open: what precedes the failed step in it is kept, or all of the message is dropped but its start.
        """
        outcomes = self._recording.outcomes
        if outcomes.num_seen == self._num_seen or self._recording.is_in_block or self._recording.is_closed:
            return
        self._num_seen = outcomes.num_seen
        outer = self._recording.nodes.outer
        failed: int | None = None
        at = self.head
        while at is not None:
            if outcomes.has_failed(at):
                failed = at
            at = parent_of(outer[at])
        if failed is None:
            return
        is_open, before = self.role is not None, self._before(failed)
        loses_opening = is_open and (before is None or before < self._opening_id)
        self._restart(before)
        if loses_opening:
            assert self._opening is not None
            self._release_start()
            self._hold_start(self.head)
            self._open(self._opening)
        elif is_open:
            start, opening = self.current(self._open_start), self.current(self._opening_id)
            self._release_start()
            self._hold_start(start)
            assert opening is not None
            self._opening_id = opening
        if is_open and self.head == self._opening_id:
            self.keep_head()  # a message that ends now leaves none

    def current(self, node_id: int | None) -> int | None:
        """The node that stands for an earlier one of the sequence, after it went back."""
        while node_id is not None and node_id in self._replaced:
            node_id = self._replaced[node_id]
        return node_id

    def _before(self, failed: int) -> int | None:
        """The node before the step of a failed one."""
        step = self._step
        while step is not None and failed < step[0]:
            step = step[3]
        if step is not None and failed <= step[1]:
            return self.current(step[2])
        return parent_of(self._recording.nodes.outer[failed])

    def _restart(self, end: int | None) -> None:
        """Go on after the node `end`, before which the texts are recorded again."""
        recording = self._recording
        outer = recording.nodes.outer
        dropped: list[int] = []
        at = self.head
        while at != end:
            assert at is not None
            dropped.append(at)
            at = parent_of(outer[at])
        texts: list[Text] = []
        while at is not None and isinstance(text := outer[at], Text):
            texts.append(text)
            at = text.parent
        self.go_back_to(at)
        for text in reversed(texts):
            self.head = recording.add_text(self.head, text.parts)
            self._replaced[text.node_id] = self.head
            free = recording.free_texts.get(text.node_id)
            if free is not None:
                recording.free_texts[self.head] = free
        self._replaced.update(dict.fromkeys(dropped, self.head))

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
            found.append(self.parts_of(node))
            node_id = parent_of(node)
        return [part for parts in reversed(found) for part in parts]

    def parts_of(self, node: Node) -> tuple[Part, ...]:
        """The parts that a node adds to the sequence."""
        return node.parts if isinstance(node, Text) else self._recording.outcomes.parts_of(node)
