"""States go below the pool and come back: the tokens of generation without a cache, and what is computed again; see fake_state_runner."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from rtlang.cache.tiers.disk_tier import DiskTier
from rtlang.cache.tiers.host_tier import HostTier
from rtlang.cache.tiers.tier import CacheTier
from rtlang.contract.runs.principal import Principal
from rtlang.engine.tiers.fetch_price import state_place
from tests.support.engine.fake_state_runner import FakeStateRunner
from tests.support.engine.held_jobs import Jobs
from tests.support.engine.tiered_states import STATE_BYTES, TieredStateDriver, Unreliable, without_states
from tests.support.long_tests import sized

PAGE, PAGE_BYTES = 4, 32
NEVER = {"eos_every": 10**9}


def tokens_of(number: int, length: int = 41) -> list[int]:
    rng = random.Random(number)
    return [1, *(rng.randint(100, 200) for _ in range(length - 1))]


def forget_pool(driver: TieredStateDriver) -> None:
    """Evict all pages and checkpoints."""
    driver.engine.cache.clear()
    assert driver.engine.cache.num_cached == 0


def test_evicted_states_come_back_with_the_pages_up_to_them() -> None:
    driver = TieredStateDriver([HostTier(1 << 20)], **NEVER)
    driver.generate(tokens_of(0))
    forget_pool(driver)
    again = driver.generate(tokens_of(0))
    assert again.stats.num_fetched_tokens == {"host": 40}
    assert again.stats.num_cached_tokens == 40
    assert again.stats.num_replayed_tokens == 0
    assert driver.transfers.num_fetched_states == {"host": 1}
    assert driver.transfers.offloading.num_lost == 0
    driver.assert_texts()


def test_a_conversation_goes_on_from_the_end_of_its_last_answer() -> None:
    """The state at the end of a generation lies inside a page, whose part up to there is stored as well."""
    for num_output in range(1, 9):
        first, tier = 0, HostTier(1 << 20)
        driver = TieredStateDriver([tier], **NEVER)
        turn = driver.generate(tokens_of(0, 42), num_output + 1)
        first = driver.runner.num_computed
        assert first == 42 + num_output
        forget_pool(driver)
        known = list(turn.token_ids[: 42 + num_output])
        again = driver.generate([*known, turn.token_ids[-1], *tokens_of(1, 6)], 1)
        assert again.stats.num_cached_tokens == len(known)
        assert again.stats.num_fetched_tokens == {"host": len(known)}
        assert driver.runner.num_computed - first == 7
        driver.assert_texts()


def test_a_state_in_a_stored_page_needs_no_tail_of_its_own() -> None:
    """The sequence went on, so a whole page contains the end of the first turn; its states behind that are lost."""
    tier = HostTier(1 << 20)
    driver = TieredStateDriver([tier], **NEVER)
    turn = driver.generate(tokens_of(0, 42), 2)
    tails = [digest for digest, content in tier._pages.items() if len(content) == PAGE_BYTES]
    states = [digest for digest, content in tier._pages.items() if len(content) == STATE_BYTES]
    longer = [*turn.token_ids, 7, 8]
    driver.generate(longer, 1)
    for digest, content in list(tier._pages.items()):
        if len(content) == STATE_BYTES and digest not in states:
            del tier._pages[digest]
    assert len(tails) == 11
    forget_pool(driver)
    again = driver.generate([*longer[:44], 9, 9, 9], 1)
    assert again.stats.num_cached_tokens == 43
    assert again.stats.num_fetched_tokens == {"host": 44}
    driver.assert_texts()


def test_pages_that_no_state_reaches_are_not_fetched() -> None:
    tier = HostTier(1 << 20)
    first = TieredStateDriver([tier], **NEVER)
    first.generate(tokens_of(0))
    driver = TieredStateDriver([without_states(tier)], **NEVER)
    found = driver.generate(tokens_of(0))
    assert found.stats.num_fetched_tokens == {}
    assert driver.transfers.num_fetched == {}
    driver.assert_texts()


def test_a_state_alone_is_fetched_where_the_pool_kept_the_pages() -> None:
    driver = TieredStateDriver([HostTier(1 << 20)], **NEVER)
    driver.generate(tokens_of(0))
    assert driver.engine.cache.states is not None
    driver.engine.cache.states.drop_all()
    again = driver.generate(tokens_of(0))
    assert again.stats.num_cached_tokens == 40
    assert again.stats.num_replayed_tokens == 0
    assert again.stats.num_fetched_tokens == {}
    assert driver.transfers.num_fetched_states == {"host": 1}
    driver.assert_texts()


def test_the_next_process_finds_states_on_disk(tmp_path: Path) -> None:
    def tiers() -> list[CacheTier]:
        return [DiskTier(tmp_path, "model", PAGE_BYTES, 1 << 20, STATE_BYTES)]

    driver = TieredStateDriver(tiers(), **NEVER)
    driver.generate(tokens_of(0))
    driver.engine.close()
    restarted = TieredStateDriver(tiers(), **NEVER)
    assert restarted.generate(tokens_of(0)).stats.num_cached_tokens == 40
    other = TieredStateDriver([DiskTier(tmp_path, "other", PAGE_BYTES, 1 << 20, STATE_BYTES)], **NEVER)
    assert other.generate(tokens_of(0)).stats.num_cached_tokens == 0
    for each in (driver, restarted, other):
        each.assert_texts()


def test_what_is_not_copied_in_time_is_stored_when_the_engine_closes(tmp_path: Path) -> None:
    jobs = Jobs(is_held=True)
    driver = TieredStateDriver([DiskTier(tmp_path, "model", PAGE_BYTES, 1 << 20, STATE_BYTES)], jobs=jobs, **NEVER)
    jobs.waiting.pop(0)()  # opening
    driver.transfers.offloading.is_busy = True  # the disk is busy until the end
    driver.generate(tokens_of(0))
    driver.engine.close()
    restarted = TieredStateDriver([DiskTier(tmp_path, "model", PAGE_BYTES, 1 << 20, STATE_BYTES)], **NEVER)
    assert restarted.generate(tokens_of(0)).stats.num_cached_tokens == 40


def test_what_is_being_copied_when_the_engine_closes_is_stored(tmp_path: Path) -> None:
    """At each moment of the last copies; their threads never go on."""
    for num_done in range(4):
        jobs, folder = Jobs(), tmp_path / str(num_done)
        driver = TieredStateDriver([DiskTier(folder, "model", PAGE_BYTES, 1 << 20, STATE_BYTES)], jobs=jobs, **NEVER)
        jobs.is_held = True
        turn = driver.generate(tokens_of(0, 42), 4)
        for _ in range(num_done):
            if jobs.waiting:
                jobs.waiting.pop(0)()
            driver.step()
        driver.engine.close()
        restarted = TieredStateDriver([DiskTier(folder, "model", PAGE_BYTES, 1 << 20, STATE_BYTES)], **NEVER)
        assert restarted.generate([*turn.token_ids, 7]).stats.num_cached_tokens == 45
        restarted.assert_texts()


def test_a_file_with_a_state_of_another_size_is_named_and_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    driver = TieredStateDriver([DiskTier(tmp_path, "model", PAGE_BYTES, 1 << 20, STATE_BYTES)], **NEVER)
    driver.generate(tokens_of(0))
    tier = DiskTier(tmp_path, "model", PAGE_BYTES, 1 << 20, 2 * STATE_BYTES)
    restarted = TieredStateDriver([tier], state_bytes=2 * STATE_BYTES, **NEVER)
    assert restarted.generate(tokens_of(0)).stats.num_cached_tokens == 0
    assert f"is not used and removed: expected {64 + PAGE_BYTES} or {64 + 2 * STATE_BYTES} bytes" in caplog.text
    restarted.assert_texts()


def test_a_state_whose_slot_is_used_again_before_it_is_copied_is_not_stored() -> None:
    jobs, tier = Jobs(), HostTier(1 << 20)
    driver = TieredStateDriver([tier], num_states=2, jobs=jobs, **NEVER)
    offloading = driver.transfers.offloading
    offloading.is_busy = True
    lost = driver.generate(tokens_of(0))
    offloading.is_busy, jobs.is_held = False, True
    offloading.begin()
    for number in range(1, 4):
        driver.generate(tokens_of(number, 9))
    jobs.is_held = False
    while jobs.waiting:
        jobs.waiting.pop(0)()
        driver.step()
    assert offloading.num_lost == 2, "the ends of the prompt and of the answer"
    forget_pool(driver)
    again = driver.generate([*lost.token_ids, 7])
    assert again.stats.num_cached_tokens == 0
    driver.assert_texts()


def test_namespaces_share_no_states_below() -> None:
    driver = TieredStateDriver([HostTier(1 << 20)], **NEVER)
    a, b = Principal(name="a", namespace="a"), Principal(name="b", namespace="b")
    turn = driver.generate(tokens_of(0, 42), 3, principal=a)
    forget_pool(driver)
    longer = [*turn.token_ids, 5, 6, 7]
    assert driver.generate(longer, principal=b).stats.num_cached_tokens == 0
    forget_pool(driver)
    assert driver.generate(longer, principal=a).stats.num_cached_tokens == 44
    driver.assert_texts()


def test_a_state_that_costs_more_than_it_spares_is_stored_once_it_is_used() -> None:
    tier = HostTier(1 << 20)
    driver = TieredStateDriver([tier], state_bytes=4 * 8 * 41, **NEVER)  # 4 times the K and V of 41 tokens

    def num_states() -> int:
        return sum(len(content) == 4 * 8 * 41 for content in tier._pages.values())

    driver.generate(tokens_of(0, 35), 2)
    assert num_states() == 0
    driver.generate([*tokens_of(0, 35), 5], 1)
    assert num_states() == 1, "the end of the prompt was used"
    driver.generate(tokens_of(1, 60), 1)
    assert num_states() == 2
    driver.assert_texts()


def test_a_state_is_neither_stored_nor_fetched_where_computing_is_faster() -> None:
    now = [0.0]

    class Slow(HostTier):
        def get(self, digest: bytes) -> memoryview | None:
            now[0] += 5.0
            return super().get(digest)

    tier = Slow(1 << 20)
    driver = TieredStateDriver(
        [tier], compute_s=lambda num_before, num_tokens: num_tokens * 1.5, clock=lambda: now[0], **NEVER
    )
    for number, length in ((0, 41), (1, 13)):
        driver.generate(tokens_of(number, length))
    forget_pool(driver)
    assert driver.generate(tokens_of(0)).stats.num_cached_tokens == 40, "55 s of loading against 60"
    assert driver.transfers.prices.price(state_place("host")) == 5.0
    forget_pool(driver)
    assert driver.generate(tokens_of(1, 13)).stats.num_cached_tokens == 0, "20 s of loading against 18"
    assert driver.transfers.num_recomputed == {"host": 3}
    num_stored = tier.stats.num_stored
    driver.generate(tokens_of(2, 3), 1)
    assert tier.stats.num_stored == num_stored, "3 tokens take 4.5 s"
    driver.assert_texts()


def test_a_load_waits_for_no_slot_and_takes_none_from_a_hold() -> None:
    tier = HostTier(1 << 20)
    TieredStateDriver([tier], **NEVER).generate(tokens_of(0))
    driver = TieredStateDriver([tier], num_states=2, **NEVER)
    running = driver.add(tokens_of(1), 30)
    driver.step()
    cache = driver.engine.cache
    kept = driver.generate(tokens_of(2), 1)
    hold = cache.hold(kept.token_ids, 0.0)
    assert hold is not None
    num_kept = cache.peek(kept.token_ids)
    assert num_kept == 41
    driver.add(tokens_of(0), 2)
    assert cache.states is not None
    assert cache.states.num_loading == 0, "one slot is that of the running request, the other is held"
    assert cache.peek(kept.token_ids) == num_kept
    driver.run()
    assert driver.last[running].error is None
    cache.release(hold)
    driver.assert_texts()


def test_states_of_a_runner_that_was_replaced_are_not_used() -> None:
    jobs = Jobs()
    new = FakeStateRunner(64, PAGE, eos_every=10**9, num_states=16, state_bytes=STATE_BYTES)
    driver = TieredStateDriver([HostTier(1 << 20)], jobs=jobs, rebuild=lambda num_failed: new, **NEVER)
    driver.generate(tokens_of(0))
    forget_pool(driver)
    jobs.is_held = True
    request = driver.add(tokens_of(0), 2)
    jobs.waiting.pop()()  # the state is found
    for number in range(5, 11):
        driver.add(tokens_of(number, PAGE), 2)
    driver.runner.is_broken = True
    for _ in range(100):
        if driver.engine._runner is not new:
            driver.step()
    assert driver.engine._runner is new
    jobs.is_held = False
    while jobs.waiting:  # the state is loaded into the old runner
        jobs.waiting.pop(0)()
    driver.run()
    assert driver.last[request].error is None
    assert request.output_token_ids == driver.expected[request]
    assert driver.engine.cache.states is not None
    assert driver.engine.cache.states.num_private == driver.engine.cache.states.num_loading == 0
    driver.assert_idle()


def prompts(rng: random.Random, count: int) -> list[list[int]]:
    """Prompts that share prefixes of all lengths."""
    made: list[list[int]] = [[1]]
    for _ in range(count):
        base = rng.choice(made)
        cut = rng.randint(1, len(base))
        made.append((base[:cut] + [rng.randint(100, 103) for _ in range(rng.randint(1, 20))])[:40])
    return made[1:]


def run_workload(seed: int) -> tuple[int, int]:
    """Random requests on an engine with two unreliable tiers. Returns the number of states restored and of entries lost.

    Threads run in any order, the working set is several times the pool, tiers are small, and entries are lost, cut or too long.
    """
    rng = random.Random(seed)
    jobs = Jobs()
    tiers: Sequence[Unreliable] = [
        Unreliable(rng, (0.0, 0.2, 0.5)[seed % 3], rng.choice([1 << 10, 1 << 12, 1 << 20])) for _ in range(2)
    ]
    driver = TieredStateDriver(
        tiers,
        rng.choice([3, 5, 9]),
        rng.choice([20, 24, 40]),
        jobs=jobs,
        is_pipelined=seed % 2 == 1,
        compute_s=rng.choice([lambda num_before, num_tokens: None, lambda num_before, num_tokens: 1.0 * num_tokens]),
        max_rows=rng.choice([2, 5]),
        max_step_tokens=rng.choice([5, 16, 64]),
    )
    driver.runner.fail_at = set(rng.sample(range(5, 200, 30), rng.choice([0, 3])))
    jobs.is_held = True
    namespaces = [Principal(name=each, namespace=each) for each in ("b", "a")]
    for tokens in prompts(rng, 30):
        driver.add(tokens, rng.randint(1, 14), principal=rng.choice(namespaces), seed=rng.randint(0, 1))
        for _ in range(rng.randint(0, 6)):
            driver.step()
            jobs.run_one(rng)
        if rng.random() < 0.1:
            driver.abort_one(rng)
        if rng.random() < 0.1:
            driver.engine.cache.clear()
    for _ in range(5000):
        if len(driver.last) == len(driver.expected) and not jobs.waiting:
            break
        driver.step()
        jobs.run_one(rng)
    driver.run()
    driver.assert_texts()
    return sum(driver.transfers.num_fetched_states.values()), sum(tier.num_lost for tier in tiers)


@pytest.mark.parametrize("first", range(0, sized(300, usual=12), 4))
def test_random_workloads_over_unreliable_tiers_give_the_tokens_of_generation_without_a_cache(first: int) -> None:
    counts = [run_workload(seed) for seed in range(first, first + 4)]
    assert sum(num_restored for num_restored, _ in counts) > 0
    assert sum(num_lost for _, num_lost in counts) > 0
