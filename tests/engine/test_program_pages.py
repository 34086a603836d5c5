"""A program's access to the cache: it acts with the program's arrival, and not at all once the engine has failed."""

from __future__ import annotations

from rtlang.cache.prefix_cache import PrefixCache
from rtlang.engine.program_pages import ProgramPages


def stored(num_tokens: int) -> PrefixCache:
    cache = PrefixCache(8, 4)
    node = cache.match([], 0).node
    cache.lock(node)
    page_ids = cache.allocate(-(-num_tokens // 4))
    assert page_ids is not None
    cache.finish(node, list(range(num_tokens)), page_ids)
    return cache


def test_holds_carry_the_arrival_of_the_program() -> None:
    cache = stored(8)
    pages = ProgramPages(cache, 3.0)
    hold = pages.hold(range(8))
    assert hold is not None
    assert (hold.order[0], cache.num_held, pages.page_size) == (3.0, 2, 4)
    assert cache.num_available_to(3.0) == 6
    assert cache.num_available_to(2.0) == 8
    pages.release(hold)
    assert cache.num_held == 0


def test_nothing_is_done_once_the_engine_has_failed() -> None:
    cache, failed = stored(8), [False]
    pages = ProgramPages(cache, 3.0, lambda: failed[0])
    hold = pages.hold(range(8))
    assert hold is not None
    failed[0] = True
    pages.release(hold)
    assert pages.hold(range(8)) is None
    pages.give_up(range(8), 0)
    assert cache.num_held == 2
