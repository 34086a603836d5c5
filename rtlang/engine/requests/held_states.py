"""The state slots of one request of a model with recurrent layers."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class HeldStates:
    """What a running or parked request holds in the state slots of the runner. Changed by the scheduler.

    On the host a request has one slot, which each row reads and writes. On a pipelined runner it has two, which the rows write in turn: a
    row that was computed from a wrong token leaves the state before it intact.

    Attributes:
        slots: its own slots.
        source: slot of the state at `num_computed_tokens`, one of its own or a checkpoint that it locks; None for the start of a sequence.
        before, num_before: slot of the state before the row launched last, and its position; kept on a pipelined runner only.
        has_before: whether `before` is known; it may be None for the start of a sequence.
        num_kv_tokens: number of tokens whose K and V are in its pages: at least `num_computed_tokens`.
        wishes: positions at which a state is to be kept, when a row passes them.
        marks: (position, slot) of the states that the row being built keeps, and of those whose page is not full yet.
        is_sound: False once its results cannot be trusted; its states are not kept then.
    """

    slots: tuple[int, ...]
    source: int | None
    num_kv_tokens: int
    before: int | None = None
    num_before: int = 0
    has_before: bool = False
    wishes: set[int] = field(default_factory=set)
    marks: list[tuple[int, int]] = field(default_factory=list)
    is_sound: bool = True

    @property
    def target(self) -> int:
        """The slot that the next row writes."""
        if len(self.slots) > 1 and self.source == self.slots[0]:
            return self.slots[1]
        return self.slots[0]

    def undo(self) -> None:
        """Go back before the row launched last, of one token."""
        assert self.has_before, "a row can be undone once"
        assert self.source in self.slots, "a row of an unknown token ended at a checkpoint"
        self.source, self.before, self.has_before = self.before, None, False
        self.num_kv_tokens -= 1
