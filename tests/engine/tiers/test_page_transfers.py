"""Transfers between pool and tiers: the texts of naive generation, whatever comes and goes, and in any order of threads.

The pages of the fake runner hold token ids, and it checks every page of every row, so a wrong page fails at once.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from rtlang.cache.tiers.disk_tier import DiskTier
from rtlang.cache.tiers.host_tier import HostTier
from rtlang.cache.tiers.tier import CacheTier
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.runs.principal import Principal
from rtlang.contract.step import StepOutput
from rtlang.engine.requests.request import Request, RequestStatus
from rtlang.engine.tiers import page_transfers
from rtlang.engine.tiers.configured_tiers import CacheTiers
from rtlang.engine.tiers.page_transfers import PageTransfers, TransferTime
from tests.support.engine.engine_driver import EngineDriver
from tests.support.engine.fake_device import FakeDeviceRunner
from tests.support.engine.fake_runner import FakeFlight, FakeRunner, naive_generate
from tests.support.engine.held_jobs import Jobs

PAGE = 4


class Driver(EngineDriver):
    """An engine with these tiers."""

    def __init__(
        self,
        tiers: Sequence[CacheTier],
        num_pages: int = 22,
        jobs: Jobs | None = None,
        compute_s: Callable[[int, int], float | None] = lambda num_before, num_tokens: None,
        clock: Callable[[], float] = time.perf_counter,
        timer: Callable[[float, Callable[[], None]], None] = lambda seconds, call: None,
        runner: FakeRunner | None = None,
        **settings: Any,
    ) -> None:
        runner = runner or FakeRunner(num_pages, PAGE, eos_every=10**9)
        rebuild = settings.pop("rebuild", None)
        super().__init__(
            runner, RuntimeConfig(page_size=PAGE, num_pages=num_pages, max_step_tokens=16, **settings), rebuild
        )
        self.jobs = jobs or Jobs()
        engine, self.num_wakes = self.engine, 0
        self.engine.cache._tree.tracks_new_pages = True
        engine.transfers = engine.preparation._transfers = PageTransfers(
            engine.cache,
            runner,
            CacheTiers(tuple(tiers)),
            lambda request: engine.scheduler.rank(request.program.arrival_time, request.spec.priority),
            self.wake,
            self.jobs,
            compute_s,
            TransferTime(clock, timer),
        )

    def wake(self) -> None:
        self.num_wakes += 1

    @property
    def transfers(self) -> PageTransfers:
        assert self.engine.transfers is not None
        return self.engine.transfers

    def generate(self, tokens: list[int], max_tokens: int = 2, **rest: Any) -> Request:
        request = self.add(tokens, max_tokens, seed=1, **rest)
        self.run()
        assert request.token_ids[len(tokens) :] == naive_generate(tokens, max_tokens, seed=1, eos_every=10**9)
        return request


class Broken(HostTier):
    """A tier that raises on every access."""

    name = "broken"

    def put(self, digest: bytes, page: memoryview) -> None:
        raise OSError("broken")

    def has(self, digest: bytes) -> bool:
        raise OSError("broken")


class Partial(HostTier):
    """A tier whose pages from a number on are damaged."""

    num_good = 3

    def get(self, digest: bytes) -> memoryview | None:
        self.num_good -= 1
        return super().get(digest) if self.num_good >= 0 else None


def tokens_of(number: int, length: int = 41) -> list[int]:
    rng = random.Random(number)
    return [1, *(rng.randint(100, 200) for _ in range(length - 1))]


def test_evicted_pages_come_back_from_below() -> None:
    driver = Driver([HostTier(1 << 20)])
    first = driver.generate(tokens_of(0))
    assert first.stats.num_fetched_tokens == {}
    for number in range(1, 4):  # the pool has room for two
        driver.generate(tokens_of(number))
    assert driver.engine.cache.peek(tokens_of(0)) < PAGE
    computed = driver.runner.num_computed
    again = driver.generate(tokens_of(0))
    assert again.stats.num_fetched_tokens == {"host": 40}
    assert again.stats.num_cached_tokens == 40
    assert driver.runner.num_computed - computed == 2
    assert driver.transfers.num_fetched == {"host": 10}
    assert driver.transfers.offloading.num_lost == 0
    driver.assert_idle()


def test_the_next_process_finds_pages_on_disk_but_not_in_memory(tmp_path: Path) -> None:
    def tiers() -> list[CacheTier]:
        return [HostTier(1 << 20), DiskTier(tmp_path, "model", 8 * PAGE, 1 << 20)]

    driver = Driver(tiers())
    driver.generate(tokens_of(0))
    driver.engine.close()
    driver.engine.close()
    assert driver.generate(tokens_of(5)).num_output_tokens == 2  # a closed engine goes on without tiers
    restarted = Driver(tiers())
    assert restarted.generate(tokens_of(0)).stats.num_fetched_tokens == {"disk": 40}
    longer = [*tokens_of(0), *tokens_of(1)]
    assert restarted.generate(longer).stats.num_fetched_tokens == {}
    assert (
        Driver([DiskTier(tmp_path, "other", 8 * PAGE, 1 << 20)]).generate(tokens_of(0)).stats.num_fetched_tokens == {}
    )


def test_what_is_not_copied_in_time_is_stored_when_the_engine_closes(tmp_path: Path) -> None:
    jobs = Jobs(is_held=True)
    driver = Driver([DiskTier(tmp_path, "model", 8 * PAGE, 1 << 20)], jobs=jobs)
    jobs.waiting.pop(0)()  # opening
    driver.transfers.offloading.is_busy = True  # the disk is busy until the end
    driver.generate(tokens_of(0))
    driver.engine.close()
    restarted = Driver([DiskTier(tmp_path, "model", 8 * PAGE, 1 << 20)])
    assert restarted.generate(tokens_of(0)).stats.num_fetched_tokens == {"disk": 40}


def test_namespaces_share_nothing_below() -> None:
    tier = HostTier(1 << 20)
    driver = Driver([tier])
    a, b = Principal(name="a", namespace="a"), Principal(name="b", namespace="b")
    driver.generate(tokens_of(0), principal=a)
    num_stored = tier.stats.num_pages
    for number in range(1, 4):
        driver.generate(tokens_of(number), principal=a)
    assert driver.generate(tokens_of(0), principal=b).stats.num_fetched_tokens == {}
    assert tier.stats.num_pages == 5 * num_stored
    for number in range(1, 4):
        driver.generate(tokens_of(number), principal=b)
    assert driver.generate(tokens_of(0), principal=a).stats.num_fetched_tokens == {"host": 40}


def test_damaged_pages_are_computed() -> None:
    driver = Driver([Partial(1 << 20)])
    for number in range(4):
        driver.generate(tokens_of(number))
    assert driver.generate(tokens_of(0)).stats.num_fetched_tokens == {"host": 3 * PAGE}
    driver.assert_idle()


def test_a_tier_that_raises_costs_no_request(caplog: pytest.LogCaptureFixture) -> None:
    driver = Driver([Broken(1 << 20)])
    driver.transfers.tiers[0].stats.num_pages = 1  # it claims to have something
    for number in (0, 1, 2, 3, 0):
        assert driver.generate(tokens_of(number)).stats.num_fetched_tokens == {}
    assert "a transfer of the cache failed" in caplog.text
    driver.assert_idle()


def test_a_request_that_is_cancelled_while_it_waits_leaves_its_pages_to_others() -> None:
    jobs = Jobs()
    driver = Driver([HostTier(1 << 20)], jobs=jobs)
    for number in range(4):
        driver.generate(tokens_of(number))
    jobs.is_held = True
    request = driver.add(tokens_of(0), 2)
    assert request.status is RequestStatus.FETCHING
    assert not driver.engine.has_work
    jobs.waiting.pop()()
    assert driver.engine.has_work
    driver.step()
    assert driver.transfers.num_fetching == 1
    assert driver.engine.cache.num_in_use == 10
    driver.engine.abort(request)
    while jobs.waiting:
        jobs.waiting.pop()()
    jobs.is_held = False
    driver.run()
    assert driver.last[request].error is not None
    computed = driver.runner.num_computed
    driver.generate(tokens_of(0))
    assert driver.runner.num_computed - computed == 2
    driver.assert_idle()


def test_two_requests_load_the_same_pages_once() -> None:
    driver = Driver([HostTier(1 << 20)])
    for number in range(4):
        driver.generate(tokens_of(number))
    requests = [driver.add([*tokens_of(0), 7 + number], 2, seed=1) for number in range(3)]
    driver.run()
    assert driver.transfers.num_fetched == {"host": 10}
    assert sorted(sum(request.stats.num_fetched_tokens.values()) for request in requests) == [0, 0, 40]


class LosingDevice(FakeDeviceRunner):
    """A device whose pages hold nonsense after the results of a step were lost."""

    def collect(self, flight: FakeFlight) -> StepOutput:
        try:
            return super().collect(flight)
        except RuntimeError:
            self.slots[:] = -7
            raise


@pytest.mark.parametrize("seed", range(8))
def test_random_requests_give_the_tokens_of_naive_generation_in_any_order_of_threads(seed: int) -> None:
    """The working set is several times the pool, and the tier has room for a part of it. On a device steps lose their results."""
    rng = random.Random(seed)
    jobs = Jobs(is_held=True)
    tier = HostTier(8 * PAGE * rng.choice([20, 1000]))
    num_pages, runner = rng.choice([12, 20]), None
    if seed % 4 == 3:
        lost = set(rng.sample(range(5, 200), 12))
        runner = LosingDevice(num_pages, PAGE, eos_every=10**9, fail_collect_at=lost)
    driver = Driver([tier], num_pages=num_pages, jobs=jobs, max_rows=3, runner=runner)
    jobs.waiting.pop()()  # opening
    made = [tokens_of(number, 21) for number in range(5)]
    expected: dict[Request, list[int]] = {}
    for _ in range(60):
        tokens = list(rng.choice(made))[: rng.randint(5, 30)]
        tokens += [rng.randint(100, 103) for _ in range(rng.randint(1, 6))]
        made.append(tokens)
        max_tokens = rng.randint(1, 6)
        request = driver.add(tokens, max_tokens, seed=rng.randint(0, 1))
        expected[request] = naive_generate(tokens, max_tokens, seed=request.spec.seed, eos_every=10**9)
        for _ in range(rng.randint(0, 6)):
            rng.choice([driver.step, lambda: jobs.run_one(rng)])()
        if rng.random() < 0.1:
            driver.engine.abort(request)
        if rng.random() < 0.05:
            driver.engine.cache.clear()
    while jobs.waiting or driver.engine.has_work:
        rng.choice([driver.step, lambda: jobs.run_one(rng)])()
    for request, tokens in expected.items():
        if driver.last[request].error is None:
            assert request.output_token_ids == tokens
    assert sum(driver.transfers.num_fetched.values()) > 0
    driver.assert_idle()


def test_pages_of_a_runner_that_was_replaced_are_not_used() -> None:
    jobs = Jobs()
    new = FakeRunner(22, PAGE, eos_every=10**9)
    driver = Driver([HostTier(1 << 20)], jobs=jobs, rebuild=lambda num_failed: new)
    for number in range(4):
        driver.generate(tokens_of(number))
    jobs.is_held = True
    request = driver.add(tokens_of(0), 2, seed=1)
    jobs.waiting.pop()()  # the pages are found
    others = [driver.add(tokens_of(number, PAGE), 2, seed=1) for number in range(5, 11)]
    driver.runner.is_broken = True
    for _ in range(100):
        if driver.engine._runner is not new:
            driver.step()
    assert driver.engine._runner is new
    jobs.is_held = False
    while jobs.waiting:  # the pages are loaded into the old runner
        jobs.waiting.pop(0)()
    driver.run()
    assert driver.last[request].error is None
    assert request.output_token_ids == naive_generate(tokens_of(0), 2, seed=1, eos_every=10**9)
    assert any(driver.last[other].error is None for other in others)
    driver.assert_idle()
    for number in range(4):
        driver.generate(tokens_of(number))


class Timed(HostTier):
    """A tier that takes so many seconds for a page, by a clock that the test reads."""

    now, page_s = 0.0, 1.0

    def get(self, digest: bytes) -> memoryview | None:
        self.now += self.page_s
        return super().get(digest)


def timed(page_s: float, compute_s: float | None) -> tuple[Driver, Timed]:
    """A driver with a tier of so many seconds a page, whose model computes a token in `compute_s`; the pool has lost the first prompt."""
    tier = Timed(1 << 20)
    tier.page_s = page_s
    driver = Driver(
        [tier],
        compute_s=lambda num_before, num_tokens: None if compute_s is None else num_tokens * compute_s,
        clock=lambda: tier.now,
    )
    for number in range(4):
        driver.generate(tokens_of(number))
    return driver, tier


def test_a_tier_that_is_slower_than_computing_is_left_out_and_counted() -> None:
    for page_s, is_loaded in ((3.9, True), (4.1, False)):
        driver, _ = timed(page_s, 1.0)
        driver.transfers.prices.observe("host", 1000, 1000 * page_s)
        request = driver.generate(tokens_of(0))
        assert request.stats.num_fetched_tokens == ({"host": 40} if is_loaded else {})
        assert driver.transfers.num_recomputed == ({} if is_loaded else {"host": 10})
        driver.assert_idle()


def test_a_load_that_takes_longer_than_computing_ends_and_the_rest_is_computed() -> None:
    driver, _ = timed(9.0, 1.0)
    assert driver.generate(tokens_of(0)).stats.num_fetched_tokens == {"host": 5 * PAGE}, (
        "the sixth page would begin after 45 s"
    )
    assert driver.transfers.num_fetched == {"host": 5}
    assert driver.transfers.num_recomputed == {"host": 5}
    assert driver.transfers.prices.price("host") == 9.0
    for number in (1, 2, 3):
        driver.generate(tokens_of(number))
    assert driver.generate(tokens_of(0)).stats.num_fetched_tokens == {}, "now the price is known"
    driver.assert_idle()


def test_without_a_cost_of_computing_slow_pages_are_loaded() -> None:
    driver, _ = timed(100.0, None)
    assert driver.generate(tokens_of(0)).stats.num_fetched_tokens == {"host": 40}
    assert not driver.transfers.num_recomputed


def test_a_request_behind_a_long_load_is_computed_and_others_go_on_meanwhile() -> None:
    driver, _ = timed(3.0, 1.0)
    driver.transfers.prices.observe("host", 1000, 3000.0)
    driver.jobs.is_held = True
    first = driver.add(tokens_of(0), 2, seed=1)
    driver.jobs.waiting.pop(0)()  # its pages are found
    driver.step()
    second, fresh = driver.add(tokens_of(1), 2, seed=1), driver.add(tokens_of(9), 2, seed=1)
    driver.jobs.waiting.pop()()  # nothing is below for the third
    driver.jobs.waiting.pop()()
    while not {second, fresh} <= driver.last.keys():
        driver.step()
    assert first.status is RequestStatus.FETCHING
    assert second.stats.num_fetched_tokens == {}, "it would have waited for 30 s to save 10"
    driver.jobs.is_held = False
    while driver.jobs.waiting:
        driver.jobs.waiting.pop(0)()
    driver.run()
    assert first.stats.num_fetched_tokens == {"host": 40}
    assert first.output_token_ids == naive_generate(tokens_of(0), 2, seed=1, eos_every=10**9)
    driver.assert_idle()


class Elsewhere(HostTier):
    """A remote tier: the pages of `there`. Asking takes `asking_s` of the clock."""

    name = "peer"

    def __init__(self, there: HostTier, clock: list[float], asking_s: float = 0.0) -> None:
        super().__init__(1)
        self.stats.num_connected = 1
        self.there, self.clock, self.asking_s = there, clock, asking_s
        self.known, self.asked, self.expected = set[bytes](), list[int](), list[int]()

    def ask(self, digests: Sequence[bytes]) -> None:
        self.clock[0] += self.asking_s
        self.asked.append(len(digests))
        self.known |= {digest for digest in digests if self.there.has(digest)}

    def set_peers(self, peers: Sequence[tuple[str, int]]) -> None:
        self.peers = list(peers)

    def expect(self, digests: Sequence[bytes]) -> None:
        self.expected.append(len(digests))

    def has(self, digest: bytes) -> bool:
        return digest in self.known

    def put(self, digest: bytes, page: memoryview) -> None:
        raise AssertionError("peers fetch what they need")

    def get(self, digest: bytes) -> memoryview | None:
        return self.there.get(digest)


def test_pages_that_only_another_engine_has_are_asked_for_once_and_kept() -> None:
    first, own = Driver([HostTier(1 << 20)]), HostTier(1 << 20)
    first.generate(tokens_of(0))
    first.generate(tokens_of(0)[:21] + tokens_of(1, 20))
    there = first.transfers.tiers[0]
    assert isinstance(there, HostTier)
    remote = Elsewhere(there, [0.0])
    driver = Driver([own, remote])
    assert driver.generate(tokens_of(0)[:21]).stats.num_fetched_tokens == {"peer": 20}
    assert remote.asked == [5]
    assert remote.expected == [5, 0]
    for number in range(2, 8):
        driver.generate(tokens_of(number))
    asked = len(remote.asked)
    again = driver.generate(tokens_of(0))
    assert again.stats.num_fetched_tokens == {"host": 20, "peer": 20}, "what was fetched is in the own tier now"
    assert remote.asked[asked:] == [5]
    assert remote.expected[-2:] == [5, 0]
    driver.assert_idle()


def test_transfers_are_settled_when_all_written_pages_are_in_the_tiers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_transfers, "SETTLE_S", 0.0)
    jobs = Jobs(is_held=True)
    driver = Driver([HostTier(1 << 20)], jobs=jobs)
    assert driver.transfers.settle()
    driver.add(tokens_of(0), 1, seed=1)
    states = []
    for _ in range(100):
        driver.step()
        states.append((driver.transfers.settle(), driver.transfers.tiers[0].stats.num_pages))
        if jobs.waiting:
            jobs.waiting.pop(0)()
    assert states[-1] == (True, 10)
    assert all(count in (0, 10) for is_settled, count in states if is_settled)


def test_another_engine_is_not_asked_where_computing_is_faster_than_an_answer() -> None:
    clock = [0.0]
    first = Driver([HostTier(1 << 20)])
    first.generate(tokens_of(0))
    there = first.transfers.tiers[0]
    assert isinstance(there, HostTier)
    remote = Elsewhere(there, clock, asking_s=5.0)
    driver = Driver([remote], compute_s=lambda num_before, num_tokens: num_tokens / PAGE, clock=lambda: clock[0])
    driver.generate(tokens_of(1))
    assert len(remote.asked) == 1, "the time of an answer is not known"
    driver.generate(tokens_of(0)[:17])
    assert len(remote.asked) == 1, "4 s of computing against 5 s"
    assert driver.generate(tokens_of(0)).stats.num_fetched_tokens == {"peer": 24}
    for number in range(2, 16):
        driver.generate(tokens_of(number)[:13])
    assert len(remote.asked) > 2, "its price falls, so it is tried again"
    remote.stats.num_connected, num_asked = 0, len(remote.asked)
    driver.generate(tokens_of(9))
    assert len(remote.asked) == num_asked, "nobody is there"
    driver.assert_idle()


def test_a_tier_that_does_not_answer_holds_requests_for_a_limited_time(caplog: pytest.LogCaptureFixture) -> None:
    """The thread that looks, or the one that loads, hangs; it reports in the end."""
    for num_done in (0, 1):
        now, timers, jobs = [0.0], list[tuple[float, Callable[[], None]]](), Jobs()  # filling the pool starts a timer
        driver = Driver(
            [HostTier(1 << 20)],
            jobs=jobs,
            clock=lambda: now[0],  # noqa: B023
            timer=lambda seconds, call: timers.append((now[0] + seconds, call)),  # noqa: B023
        )
        for number in range(6):
            driver.generate(tokens_of(number))
        lost = [tokens_of(number) for number in range(6) if driver.engine.cache.peek(tokens_of(number)) < PAGE]
        jobs.is_held = True
        first = driver.add(lost[0], 2, seed=1)
        for _ in range(num_done):
            jobs.waiting.pop(0)()
            driver.step()
        now[0] = 4.0
        second = driver.add(lost[1], 2, seed=1)
        while timers:
            when, call = timers.pop()
            now[0] = max(now[0], when)
            call()
            driver.run()
        assert now[0] == 14.0
        assert {first, second} <= driver.last.keys()
        third = driver.add(lost[2], 2, seed=1)
        assert third.status is RequestStatus.WAITING, "nobody waits for this tier now"
        driver.run()
        jobs.is_held = False
        while jobs.waiting:
            jobs.waiting.pop(0)()
        driver.run()
        assert first.stats.num_fetched_tokens == second.stats.num_fetched_tokens == {}
        for number in range(6, 10):
            driver.generate(tokens_of(number))
        assert driver.generate(lost[0]).stats.num_fetched_tokens == {"host": 40}, "it answers again"
        assert driver.transfers._waiting_since == {}
        driver.assert_idle()
    assert "does not answer" in caplog.text
