"""What the cache has of a prompt: matched, diverging, evicted, and below, of its own namespace only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rtlang.cache.node import pack
from rtlang.cache.tiers.host_tier import HostTier
from rtlang.contract.runs.principal import Principal
from rtlang.contract.service.cache_report import CacheExplanation, Divergence, StateReport
from rtlang.engine.prefix_report import MAX_ASKED, explain_prefix
from tests.engine.tiers.test_page_transfers import PAGE, Driver, tokens_of
from tests.support.engine.state_driver import StateDriver


def explained(driver: Driver, tokens: list[int], namespace: str = "") -> CacheExplanation:
    def run(command: Callable[[], Any], /) -> Any:
        return command()

    return explain_prefix(driver.engine, run, lambda ids: " ".join(map(str, ids)), tokens, namespace)


def test_a_prompt_that_diverges_is_explained_with_both_texts() -> None:
    driver = Driver([])
    stored = tokens_of(0)
    driver.generate(stored)
    asked = [*stored[:10], 7, 8, 9, *stored[13:]]
    found = explained(driver, asked)
    assert (found.num_tokens, found.num_cached_tokens) == (41, 10)
    assert found.divergence is not None
    assert (found.divergence.position, found.divergence.token_id, found.divergence.stored_token_id) == (
        10,
        7,
        stored[10],
    )
    assert found.divergence.text.startswith("7 8 9 ")
    assert found.divergence.stored_text.startswith(f"{stored[10]} {stored[11]} ")
    assert [(run.tier, run.num_tokens) for run in found.pages] == [("pool", 8), (None, 32)]
    assert explained(driver, stored).divergence is None
    assert explained(driver, stored).pages[0].num_tokens == 40
    assert explained(driver, [5]).divergence == Divergence(0, 5, "5", 1, " ".join(map(str, stored[:8])))
    assert explained(Driver([]), stored).divergence is None


def test_an_evicted_prompt_tells_when_and_whether_a_tier_has_it() -> None:
    for tiers, place in (([HostTier(1 << 20)], "host"), ([], None)):
        driver = Driver(tiers)
        for number in range(4):
            driver.generate(tokens_of(number))
        (run,) = explained(driver, tokens_of(0)).pages
        assert (run.tier, run.num_tokens) == (place, 10 * PAGE)
        assert run.evicted_s_ago is not None
        assert 0 <= run.evicted_s_ago < 600
        (never,) = explained(driver, tokens_of(9)).pages
        assert (never.tier, never.evicted_s_ago) == (None, None)


def test_other_namespaces_are_not_told() -> None:
    driver = Driver([HostTier(1 << 20)])
    for number in range(4):
        driver.generate(tokens_of(number), principal=Principal(name="a", namespace="a"))
    for number in range(4):
        found = explained(driver, tokens_of(number), "b")
        assert found.num_cached_tokens == 0
        assert found.divergence is None
        assert [(run.tier, run.evicted_s_ago) for run in found.pages] == [(None, None)]
        assert explained(driver, tokens_of(number), "a").pages[0].tier is not None


def test_what_follows_a_public_prompt_is_told_to_its_own_namespace_only() -> None:
    public = tokens_of(0, 12)
    driver = Driver([])
    namespaces = driver.engine.namespaces
    namespaces._public, namespaces._most_public = [pack([*public, 3])], 13
    secret, own = tokens_of(1), tokens_of(2)
    driver.generate([*public, *secret])
    driver.generate([*public, *own], principal=Principal(name="a", namespace="a"))
    for namespace, mine in (("", secret), ("a", own), ("b", [])):
        found = explained(driver, [*public, 5, 6], namespace)
        assert found.num_cached_tokens == 12
        if mine:
            assert found.divergence is not None
            assert found.divergence.stored_text == " ".join(map(str, mine[:8]))
        else:
            assert found.divergence is None
    start = explained(driver, [*public[:6], 5, 6], "b").divergence
    assert start is not None
    assert start.stored_text == " ".join(map(str, public[6:])), "a public prompt may be told"


def test_long_prompts_ask_the_engine_thread_for_a_bounded_number_of_pages_at_a_time() -> None:
    driver = Driver([])
    num_asked: list[int] = []

    def run(command: Callable[[], Any], /) -> Any:
        found = command()
        num_asked.append(len(found) if isinstance(found, list) else 0)
        return found

    found = explain_prefix(driver.engine, run, str, list(range(3 * MAX_ASKED * PAGE + 3)))
    assert sum(num_asked) == 3 * MAX_ASKED
    assert max(num_asked) == MAX_ASKED
    assert found.pages[0].num_tokens == 3 * MAX_ASKED * PAGE


def test_a_prompt_of_a_model_with_states_is_explained_with_what_is_replayed() -> None:
    driver = StateDriver(8, 200, eos_every=10**9)
    stored = [1, *range(50, 89)]
    driver.add(stored, 2)
    driver.run()

    def explained_states(tokens: list[int]) -> tuple[int, StateReport | None]:
        found = explain_prefix(driver.engine, lambda command: command(), str, tokens)
        return found.num_cached_tokens, found.states

    assert explained_states([*stored, 7]) == (36, StateReport(40, 36, (36,)))
    assert explained_states([*stored[:30], 7, 8]) == (0, StateReport(28, 0))
    asked = driver.add([*stored[:30], 7, 8], 1)
    driver.run()
    assert (asked.stats.num_cached_tokens, asked.stats.num_replayed_tokens) == (0, 28)
    assert explained_states([*stored[:30], 9]) == (28, StateReport(28, 28, (28,)))
    assert explained(Driver([]), stored).states is None
