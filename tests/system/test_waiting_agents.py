"""Agents that wait for a tool while other programs fill the pool go on from the cache, here and through a socket."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import rtlang as rt
from rtlang.serve.server import running_server

TASK = " ".join(f"Item {number} costs {number * 7} coins." for number in range(12))


@rt.program
def breaking_agent(s: rt.State, tool: Callable[[str], str]) -> None:
    """Python calls the tool, so the program waits at a graph break."""
    s += rt.user(TASK)
    s += rt.assistant(rt.gen("thought", max_tokens=8, ignore_eos=True))
    s += rt.user("Result: ", tool(str(s["thought"])))
    s += rt.assistant(rt.gen("answer", max_tokens=8, ignore_eos=True))


@rt.program
def whole_agent(s: rt.State, tool: Callable[[str], str]) -> None:
    """The tool is a node of the graph."""
    s += rt.user(TASK)
    s += rt.assistant(rt.gen("thought", max_tokens=8, ignore_eos=True))
    s += rt.user("Result: ", rt.call(tool, s["thought"]))
    s += rt.assistant(rt.gen("answer", max_tokens=8, ignore_eos=True))


@rt.program
def load(s: rt.State, number: int) -> None:
    s += rt.text(f"{number} " * 60) + rt.gen("out", max_tokens=4, ignore_eos=True)


class Gate:
    """A tool that waits until it may answer."""

    def __init__(self) -> None:
        self.is_asked, self.is_open = threading.Event(), threading.Event()

    def __call__(self, thought: str) -> str:
        self.is_asked.set()
        assert self.is_open.wait(60)
        return f"{len(thought)} coins"


@contextmanager
def target_of(runtime: rt.Runtime, *, is_remote: bool) -> Iterator[Any]:
    if is_remote:
        with running_server(runtime) as url, rt.connect(url) as remote:
            yield remote
    else:
        yield runtime


@pytest.fixture(scope="module")
def runtime() -> Iterator[rt.Runtime]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RTLANG_DEBUG", "1")
        with rt.Runtime(dtype="float32", num_pages=90, page_size=8, num_threads=1) as started:
            yield started


def run(agent: Any, runtime: rt.Runtime, target: Any, passes: Any) -> tuple[rt.Result[Any], int]:
    """The result, and the pages that were held while the tool ran."""
    runtime.clear_cache()
    gate, results = Gate(), list[rt.Result[Any]]()
    thread = threading.Thread(target=lambda: results.append(agent.run(gate, runtime=target, passes=passes)))
    thread.start()
    try:
        assert gate.is_asked.wait(60)
        assert not any(each.error for each in load.run_batch([{"number": n} for n in range(700, 712)], runtime=target))
        num_held = runtime.stats()["num_pages_held"]
    finally:
        gate.is_open.set()
        thread.join(60)
    assert results[0].error is None
    assert runtime.stats()["num_pages_held"] == 0
    return results[0], num_held


@pytest.mark.parametrize("is_remote", [False, True], ids=["local", "socket"])
@pytest.mark.parametrize("agent", [breaking_agent, whole_agent], ids=["break", "node"])
def test_what_a_waiting_agent_has_computed_stays_cached(agent: Any, is_remote: bool, runtime: rt.Runtime) -> None:
    with target_of(runtime, is_remote=is_remote) as target:
        kept, num_held = run(agent, runtime, target, True)
        lost, num_without = run(agent, runtime, target, "-retain")
    assert num_held > num_without == 0
    assert (kept.text("thought"), kept.text("answer")) == (lost.text("thought"), lost.text("answer"))
    before = kept.meta("thought").usage
    num_known = before.prompt_tokens + before.completion_tokens
    assert kept.meta("answer").usage.cached_tokens >= 0.95 * num_known
    assert lost.meta("answer").usage.cached_tokens <= 0.2 * num_known
