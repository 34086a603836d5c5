"""A runtime without work gives memory back: soon what is free, later what is cached, and never what is kept."""

from __future__ import annotations

from rtlang.contract.config import RuntimeConfig
from rtlang.runtime.process.idle import SOON_S, idle_actions
from tests.support.engine.engine_driver import EngineDriver
from tests.support.engine.fake_runner import FakeRunner


def test_free_pages_are_released_soon_and_cached_ones_later() -> None:
    driver = EngineDriver(FakeRunner(40, 4, eos_every=10**9), RuntimeConfig(page_size=4, num_pages=40))
    tokens, kept = [1, *range(100, 120)], [2, *range(100, 120)]
    for each in (tokens, kept):
        driver.add(each, 2)
        driver.run()
    cache, slots = driver.engine.cache, driver.runner.slots
    hold = cache.hold(kept, 0.0)
    assert hold is not None
    slots[cache.free_runs[0][0]] = 5
    (soon_s, soon), (later_s, later) = idle_actions(RuntimeConfig(cache_idle_s=60))
    assert (soon_s, later_s) == (SOON_S, 60)
    soon(driver.engine)
    assert all((slots[first : first + count] == -1).all() for first, count in cache.free_runs)
    assert cache.peek(tokens) == len(tokens)
    later(driver.engine)
    assert cache.peek(tokens) == 0
    assert cache.peek(kept) == hold.num_tokens
    driver.add(tokens, 2)
    driver.run()
    assert idle_actions(RuntimeConfig(cache_idle_s=1))[0][0] == 1
