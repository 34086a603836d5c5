"""Limits the work of requests that the engine thread does in one of its turns, over all graphs and clients.

Work is counted by its price before it is done. A turn that has done `TURN_WORK_US` puts the rest off, and the clients of what was put off
take turns (`EngineLoop.call_later_turn`). Steps of the model and the events of their outputs are not counted.
"""

from __future__ import annotations

TURN_WORK_US = 3_000.0
"""Work of one turn in microseconds."""
MOST_TURN_US = 4_000.0
"""Bound of one turn, including the work that was begun before the turn was full."""


class TurnWork:
    """The work of the present turn. Used on the engine thread only.

    Attributes:
        spent_us: estimated microseconds so far.
    """

    def __init__(self) -> None:
        self.spent_us = 0.0

    def begin(self) -> None:
        """A turn begins."""
        self.spent_us = 0.0

    def has_room(self, price_us: float = 0.0) -> bool:
        """Whether work of this price may be done in this turn; the first one always may."""
        return self.spent_us <= 0.0 or self.spent_us + price_us <= TURN_WORK_US

    def spend(self, price_us: float) -> None:
        """Count work that is done now."""
        self.spent_us += price_us
