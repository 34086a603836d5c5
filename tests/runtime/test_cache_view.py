"""The cache of a runtime for its users: explanations, pins within the share, and the tree."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pytest

from rtlang.contract.errors import ParameterError
from rtlang.contract.params import SamplingParams
from rtlang.runtime.runtime import Runtime

PAGE = 4
FIRST = [7 + number % 90 for number in range(41)]
OTHER = [9, 8, *FIRST[2:]]
PARAMS = SamplingParams(max_tokens=1)


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    with Runtime(page_size=PAGE, num_pages=40, max_rows=4, num_threads=1) as runtime:
        yield runtime


@pytest.fixture(autouse=True)
def _empty(runtime: Runtime) -> None:
    runtime.cache.clear()


def fill(runtime: Runtime) -> None:
    """Compute prompts that need more than the pool."""
    for number in range(6):
        runtime.generate(token_ids=[20 + number, *FIRST], params=PARAMS).result()


def test_a_prompt_is_explained_as_text_and_as_tokens(runtime: Runtime) -> None:
    text = "Once upon a time there was a cat"
    runtime.generate(text, params=PARAMS).result()
    found = runtime.cache.explain("Once upon a time there was a dog")
    assert found.divergence is not None
    assert found.divergence.position == found.num_cached_tokens >= PAGE
    assert "dog".startswith(found.divergence.text.strip())
    assert found.divergence.stored_text.strip() in ("cat", "at")
    ids = runtime.text_service.encode(text)
    assert runtime.cache.explain(token_ids=ids).num_tokens == len(ids)
    assert runtime.cache.explain(token_ids=ids).num_cached_tokens == len(ids)
    assert runtime.cache.explain([{"role": "user", "content": "x"}]).num_tokens > 0
    with pytest.raises(ParameterError, match="exactly one"):
        runtime.cache.explain()


def test_pinned_pages_survive_what_evicts_the_others(runtime: Runtime) -> None:
    runtime.generate(token_ids=OTHER, params=PARAMS).result()
    with runtime.cache.pin(token_ids=FIRST) as pinned:
        assert (pinned.num_tokens, pinned.num_granted_tokens) == (41, 41)
        assert "41 of 41" in repr(pinned)
        fill(runtime)
        assert pinned.is_kept
        assert runtime.cache.explain(token_ids=FIRST).num_cached_tokens == 41
        assert runtime.cache.explain(token_ids=OTHER).num_cached_tokens < PAGE
    assert not pinned.is_kept
    pinned.release()
    fill(runtime)
    assert runtime.cache.explain(token_ids=FIRST).num_cached_tokens < PAGE


def test_the_share_bounds_what_is_granted_and_the_answer_says_it(runtime: Runtime) -> None:
    with (
        runtime.cache.pin(token_ids=FIRST) as first,  # 11 pages of 20
        runtime.cache.pin(token_ids=OTHER) as second,
        runtime.cache.pin(token_ids=[3, *FIRST]) as third,
    ):
        assert first.num_granted_tokens == 41
        assert second.num_granted_tokens == 9 * PAGE
        assert third.num_granted_tokens == 0
        assert (first.is_kept, second.is_kept, third.is_kept) == (True, True, False)
    with runtime.cache.pin(token_ids=[5, *FIRST], computes=False) as none:
        assert none.num_granted_tokens == 0


def test_a_pin_ends_with_its_time_to_live(runtime: Runtime) -> None:
    pinned = runtime.cache.pin(token_ids=FIRST, ttl_s=0.01)
    assert pinned.num_granted_tokens == 41
    loop, done = runtime._running_loop(), threading.Event()
    loop.post(lambda: loop.call_at(loop.clock() + 0.02, done.set) and None)
    assert done.wait(30)
    assert not pinned.is_kept
    for ttl_s in (0, -1, True, "x", float("nan")):
        with pytest.raises(ParameterError, match="ttl_s"):
            runtime.cache.pin(token_ids=FIRST, ttl_s=ttl_s)  # type: ignore[arg-type]


def test_the_tree_is_plain_data(runtime: Runtime) -> None:
    runtime.generate(token_ids=FIRST, params=PARAMS).result()
    runtime.generate(token_ids=[*FIRST[:20], *OTHER], params=PARAMS).result()
    nodes = json.loads(json.dumps(runtime.cache.tree()))
    top = next(node for node in nodes if node["parent"] is None)
    assert (top["num_tokens"], top["num_pages"], top["num_children"]) == (20, 5, 2)
    assert {node["parent"] for node in nodes} >= {None, top["id"]}
    assert len(runtime.cache.tree(1)) == 1
    with pytest.raises(ParameterError, match="max_nodes = 0"):
        runtime.cache.tree(0)
