"""A snapshot with made-up numbers, and a target that shows it."""

from __future__ import annotations

from dataclasses import replace

from rtlang.contract.service.fleet_report import FleetReport, ReplicaReport
from rtlang.contract.service.snapshot import EngineSnapshot, WatchedStep
from tests.support.programs.scripted_target import ScriptedTarget


def some_snapshot() -> EngineSnapshot:
    return EngineSnapshot(
        taken_s=12.5,
        process_bytes=1 << 28,
        model="some:model",
        page_size=16,
        max_rows=64,
        num_steps=12,
        num_prompt_tokens=300,
        num_cached_tokens=200,
        num_generated_tokens=50,
        num_preemptions=1,
        num_queried_tokens=400,
        num_hit_tokens=300,
        num_evicted_pages=3,
        num_running=1,
        num_waiting=2,
        num_requests=4,
        num_pages=100,
        num_free_pages=60,
        num_cached_pages=30,
        num_used_pages=10,
        num_held_pages=2,
        num_prefixes=0,
    )


class WatchedTarget(ScriptedTarget):
    """Attributes: present, the snapshot that is shown; asked, the `after_step` of each call; error, what the calls raise."""

    def __init__(self) -> None:
        super().__init__()
        self.present: EngineSnapshot | None = some_snapshot()
        self.asked: list[int] = []
        self.error: Exception | None = None

    def snapshot(self, *, after_step: int = 0) -> EngineSnapshot | None:
        self.asked.append(after_step)
        if self.error is not None:
            raise self.error
        if self.present is None:
            return None
        return replace(self.present, steps=tuple(step for step in self.present.steps if step.number > after_step))

    def show(self, *steps: WatchedStep, num_steps: int) -> None:
        """Show the same numbers after `num_steps` steps, with these steps recorded."""
        assert self.present is not None
        self.present = replace(self.present, num_steps=num_steps, steps=steps)


class WatchedFleet(WatchedTarget):
    """A target with replicas, each of which shows itself as the model.

    Attributes:
        names: of the replicas that are ready, the first of which is shown if none is chosen.
        leaving: names of replicas that are not ready.
    """

    def __init__(self, *names: str) -> None:
        super().__init__()
        self.names, self.leaving = names, ("old",)

    def fleet_report(self) -> FleetReport:
        ready, leaving = (
            [ReplicaReport(name, state, "any", *[0] * 9) for name in names]
            for names, state in ((self.names, "ready"), (self.leaving, "draining"))
        )
        return FleetReport("some:model", 0, 0, (*ready, *leaving))

    def snapshot(self, *, after_step: int = 0, replica: str | None = None) -> EngineSnapshot | None:
        found = super().snapshot(after_step=after_step)
        name = self.names[0] if replica is None else replica
        return replace(found, model=name) if found is not None and name in self.names else None
