"""The whole benchmark on a small trace, with servers in processes of their own."""

from __future__ import annotations

import pytest

from rtlang.bench.agents.report import LRU
from rtlang.bench.agents.run import AgentsOptions, _Sizes, run_agents
from rtlang.bench.agents.traces import TraceOptions, make_tasks
from rtlang.contract.config import EMBEDDED_MODEL
from rtlang.model.loader import model_directory
from rtlang.model.text.tokenizer import Tokenizer

TRACE = TraceOptions(num_tasks=3, mean_turns=3, scale=0.004)


def test_a_smaller_pool_has_room_for_the_largest_prompt_at_least() -> None:
    tokenizer = Tokenizer.from_pretrained(model_directory(EMBEDDED_MODEL))
    tasks = make_tasks(TRACE)
    sizes = _Sizes.of(tasks, 20, tokenizer)
    assert sizes.num_pages(1.0) * 16 >= sizes.shared + 20 * sizes.own > sizes.num_pages(3.0) * 32
    assert sizes.num_pages(100.0) * 16 >= sizes.longest


@pytest.mark.long
def test_the_benchmark_ends_with_figures_of_each_pool() -> None:
    told: list[str] = []
    options = AgentsOptions(TRACE, num_sessions=2, factors=(1.0, 4.0), sides=(LRU,), speed=100.0)
    report = run_agents(options, tell=told.append)
    assert [(each.factor, each.side) for each in report.figures] == [(1.0, LRU), (4.0, LRU)]
    assert told[-1] == "4x, plain LRU: 3 of 3 tasks"
    assert all(each.num_checked for each in report.figures)
