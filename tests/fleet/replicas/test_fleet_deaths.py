"""Engines in processes that are killed at random moments under 16 programs: none is lost, nothing comes twice, no delivered text changes.

Runs with RTLANG_TEST_LONG=1: 100 kills, 10 to 30 minutes. RTLANG_TEST_KILLS sets another number.
"""

from __future__ import annotations

import faulthandler
import os
import random
import signal
import time

import pytest

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.events import NodeFinished
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Generate, RequestGraph, Text
from rtlang.contract.runs.run_options import RunOptions
from rtlang.fleet.engines import engine_link
from rtlang.fleet.engines.launcher import ProcessLauncher
from rtlang.fleet.replicas.fleet import Fleet
from tests.support.programs.graph_ear import Ear

NUM_PROGRAMS = 16
NUM_KILLS = int(os.environ.get("RTLANG_TEST_KILLS", "100"))
MOST_TOKENS = 400
"""Tokens between two kills, at most; of time, a busy machine would leave none to any engine."""
LIMIT_S = 3600.0
START = "Notes of a long journey by sea. " * 12


def program(index: int) -> RequestGraph:
    params = SamplingParams(max_tokens=16 + 4 * (index % 4), temperature=1.0, ignore_eos=True)
    both = SamplingParams(max_tokens=24, temperature=1.0, n=2, ignore_eos=True)
    return RequestGraph(
        (
            Text(0, None, (START, f"Day {index}:")),
            Generate(1, 0, "x", params),
            Text(2, 1, (" And then",)),
            Generate(3, 2, "y", both),
            Text(4, 0, (" In short:",)),
            Generate(5, 4, "z", params),
        )
    )


class Slot:
    """A program that is started again whenever it has ended."""

    def __init__(self, fleet: Fleet, index: int) -> None:
        self._fleet, self._index = fleet, index
        self.num_ended = 0
        self.begin()

    def begin(self) -> None:
        self.ear = Ear()
        self._fleet.submit(program(self._index), self.ear, RunOptions(seed=self._index))

    def finish(self) -> dict[str, object]:
        """The values of the present run, of which nothing was lost, changed or came twice."""
        values = self.ear.values()
        self.num_ended += 1
        finished = [event for event in self.ear.events if isinstance(event, NodeFinished)]
        assert sorted(event.node_id for event in finished if event.completions) == [1, 3, 5]
        for event in finished:
            for choice, completion in enumerate(event.completions):
                key = event.node_id, choice
                assert self.ear.text[key] == completion.text, "the delivered text is the final one"
                assert tuple(self.ear.token_ids[key]) == tuple(completion.token_ids)
        assert len(self.ear.finals) == 1
        return values


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_nothing_is_lost_when_processes_are_killed(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    faulthandler.cancel_dump_traceback_later()  # that of all tests is too short, and LIMIT_S does
    monkeypatch.setattr(engine_link, "MAX_PAUSE_S", 0.2)
    rng = random.Random(7)
    launchers = [ProcessLauncher(name) for name in ("a", "b", "c")]
    num_equal = num_all = num_kills = 0
    started = time.monotonic()
    with Fleet(launchers, RuntimeConfig(dtype=dtype, num_pages=600, num_threads=1)) as fleet:
        slots = [Slot(fleet, index) for index in range(NUM_PROGRAMS)]
        expected = [slot.finish() for slot in slots]
        for slot in slots:
            slot.begin()
        num_ended_tokens, next_kill = 0, rng.randrange(MOST_TOKENS)
        while num_kills < NUM_KILLS:
            assert time.monotonic() < started + LIMIT_S
            time.sleep(0.002)
            for slot, values in zip(slots, expected, strict=True):
                if slot.ear.finals:
                    num_equal += slot.finish() == values
                    num_all += 1
                    num_ended_tokens += slot.ear.num_tokens
                    slot.begin()
            ready = [link for link in fleet._links.values() if link.is_ready and link.pid]
            num_tokens = num_ended_tokens + sum(slot.ear.num_tokens for slot in slots)
            if ready and num_tokens >= next_kill:
                pid = rng.choice(ready).pid
                assert pid is not None
                os.kill(pid, signal.SIGKILL)
                num_kills += 1
                next_kill = num_tokens + rng.randrange(MOST_TOKENS)
                if num_kills % 10 == 0:
                    print(
                        f"{num_kills} kills, {num_all} programs, {num_equal} equal, {time.monotonic() - started:.0f} s",
                        flush=True,
                    )
        for slot, values in zip(slots, expected, strict=True):
            num_equal += slot.finish() == values
            num_all += 1
        report = fleet.fleet_report()
    print(f"{dtype}: {num_kills} kills, {num_all} programs ended, {num_equal} with the text of the undisturbed run")
    assert sum(replica.num_deaths for replica in report.replicas) >= num_kills - 3
    assert sum(replica.num_moved for replica in report.replicas) > num_kills
    if dtype == "float32":
        assert num_equal == num_all
