"""A driver of a recording whose outcomes a test sets."""

from __future__ import annotations

from collections.abc import Sequence

from rtlang.contract.events import Completion, NodeFinished, Timing
from rtlang.contract.params import FinishReason, Usage
from rtlang.lang.recordings.driver import Outcome


class FakeDriver:
    """A driver that knows outcomes and cannot wait."""

    is_async = False

    def __init__(self) -> None:
        self.known: dict[int, Outcome] = {}

    def finish(self, node_id: int, *texts: str) -> None:
        completions = tuple(Completion(text, (), FinishReason.STOP) for text in texts)
        self.known[node_id] = NodeFinished(1, node_id, None, completions, Usage(), Timing())

    @property
    def outcome_ids(self) -> tuple[int, ...]:
        return tuple(self.known)

    def outcome(self, node_id: int) -> Outcome | None:
        return self.known.get(node_id)

    def wait(self, node_ids: Sequence[int]) -> None:
        for node_id in node_ids:
            self.finish(node_id, "waited for")

    async def wait_async(self, node_ids: Sequence[int]) -> None:
        self.wait(node_ids)
