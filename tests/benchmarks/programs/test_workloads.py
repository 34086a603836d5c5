"""The workloads of the ablation do what they say; no timing decides."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from rtlang_bench.programs.workloads import MAKERS, SETTINGS, Delays


def test_every_workload_is_offered() -> None:
    assert tuple(MAKERS) == ("tree", "judge", "agents", "vote")
    assert SETTINGS.keys() <= MAKERS.keys()


def test_tools_take_until_the_other_load_has_run() -> None:
    delays, seen = Delays(2, 2), []
    lock = threading.Lock()

    def agent(name: str) -> None:
        for turn in range(2):
            answer = delays.tool(turn, name)
            with lock:
                seen.append(answer)

    def load(turn: int) -> None:
        with lock:
            seen.append(f"load {turn}")

    with ThreadPoolExecutor(2) as pool:
        delays.run([pool.submit(agent, name) for name in "ab"], load)
    assert seen[0] == "load 0"
    assert sorted(seen[1:3]) == ["a found nothing in turn 0", "b found nothing in turn 0"]
    assert seen[3] == "load 1"


def test_an_agent_that_ends_early_ends_the_delays_of_the_others() -> None:
    delays = Delays(2, 1)

    def fail() -> None:
        raise RuntimeError("broken")

    with ThreadPoolExecutor(2) as pool:
        waiting, broken = pool.submit(delays.tool, 0, "call"), pool.submit(fail)
        delays.run([broken], lambda turn: pytest.fail("no load runs"))
        assert waiting.result(timeout=30) == "call found nothing in turn 0"
