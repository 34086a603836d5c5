"""One load: its pages and its state reach their places, and nothing does once it is over, whenever its thread comes to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rtlang.cache.tiers.host_tier import HostTier
from rtlang.engine.tiers.page_load import Fetch, PageLoad
from rtlang.engine.tiers.stored_states import StoredState
from tests.support.engine.fake_runner import FakeRunner
from tests.support.engine.fake_state_runner import FakeStateMemory

PAGE, NUM_PAGES = 4, 6
NOBODY: Any = None  # the request and the node are the engine's affair


class Watched(FakeRunner):
    """Pages whose writer looks at a load after each one."""

    load: PageLoad | None = None
    end_after = -1

    def write_pages(self, pages: Iterable[tuple[int, NDArray[np.uint8]]]) -> None:
        for number, page in enumerate(pages):
            super().write_pages([page])
            if number == self.end_after and self.load is not None:
                self.load.end(self, None)


def digest_of(number: int) -> bytes:
    return bytes([number]) * 16


def tier(numbers: Sequence[int], num_bytes: int = 8 * PAGE) -> HostTier:
    found = HostTier(1 << 20)
    for number in numbers:
        found.put(digest_of(number), memoryview(np.full(num_bytes, number, dtype=np.uint8)))
    return found


def load_of(page_ids: list[int], state: StoredState | None = None, limit_s: float | None = None) -> PageLoad:
    """A load of the pages 1, 2, ... into these."""
    fetch = Fetch(NOBODY, [digest_of(1 + index) for index in range(len(page_ids))], 0.0, limit_s, state)
    return PageLoad(fetch, NOBODY, 0, page_ids, 0.0, None if state is None else 3)


def written(runner: FakeRunner) -> dict[int, int]:
    """By page, the number of the content."""
    first = runner.slots.view(np.uint8)[:, 0]
    return {page: int(first[page]) for page in range(NUM_PAGES) if runner.slots[page, 0] != -1}


def test_pages_come_from_the_first_tier_that_has_all_of_one() -> None:
    runner = FakeRunner(NUM_PAGES, PAGE)
    short, second = tier([2], num_bytes=8), tier([2, 3])
    second.name = "second"
    now = iter(range(100))
    found = load_of([5, 0, 4, 1]).run([tier([1]), short, second], runner, None, lambda: float(next(now)))
    assert written(runner) == {5: 1, 0: 2, 4: 3}
    assert (found.tiers, found.is_slow) == (["host", "second", "second"], False)
    assert found.seconds == {"host": 1.0, "second": 2.0}


def test_a_load_that_is_late_ends() -> None:
    runner = FakeRunner(NUM_PAGES, PAGE)
    now = iter(range(100))
    found = load_of([5, 0, 4], limit_s=1.5).run([tier([1, 2, 3])], runner, None, lambda: float(next(now)))
    assert written(runner) == {5: 1, 0: 2}
    assert (found.tiers, found.is_slow) == (["host", "host"], True)


@pytest.mark.parametrize(("end_after", "expected"), [(-1, {5: 1, 0: 2, 4: 3}), (0, {5: 1}), (1, {5: 1, 0: 2})])
def test_nothing_is_written_once_the_load_is_over(end_after: int, expected: dict[int, int]) -> None:
    runner, load = Watched(NUM_PAGES, PAGE), load_of([5, 0, 4])
    runner.load, runner.end_after = load, end_after
    load.run([tier([1, 2, 3])], runner, None, lambda: 0.0)
    assert written(runner) == expected


@pytest.mark.parametrize("is_over", [False, True])
def test_a_thread_that_begins_late_writes_no_page_and_no_state(is_over: bool) -> None:
    runner, states = FakeRunner(NUM_PAGES, PAGE), FakeStateMemory([(0, 0)] * 4, 64)
    load = load_of([5], StoredState(PAGE, digest_of(9)))
    below = tier([1])
    below.put(digest_of(9), memoryview(np.full(64, 9, dtype=np.uint8)))
    if is_over:
        load.end(runner, states)
    found = load.run([below], runner, states, lambda: 0.0)
    assert found.state_tier == "host"
    assert bool(written(runner)) is bool(states.states[3][0]) is not is_over


def test_pages_are_of_no_use_without_the_state() -> None:
    runner, states = FakeRunner(NUM_PAGES, PAGE), FakeStateMemory([(0, 0)] * 4, 64)
    found = load_of([5], StoredState(PAGE, digest_of(9))).run([tier([1])], runner, states, lambda: 0.0)
    assert (found.state_tier, found.tiers, written(runner)) == (None, [], {})
