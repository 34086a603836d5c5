"""Steps until an important request starts, on the engine and a pretended machine, while a long prompt is computed beside streams."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rtlang.bench.workloads.load import Call, ProgramLoad
from rtlang.contract.config import RuntimeConfig
from rtlang.engine.requests.program_account import ProgramAccount
from rtlang.engine.requests.request import Request
from rtlang.engine.scheduling.policy import DEADLINE_S
from rtlang_bench.arrivals.timed_engine import ProgramRecord, TimedEngine
from tests.support.engine.timed_engine import pretended_engine

NUM_STREAMS = 8
PROMPT = 8000


def busy_engine(num_streams: int, **settings: Any) -> tuple[TimedEngine, ProgramRecord, Request]:
    """An engine in the first steps of a prompt of 8,000 tokens beside streams; with the prompt's record and request."""
    run = pretended_engine(RuntimeConfig(page_size=64, **settings))
    for _ in range(num_streams):
        run.add(ProgramLoad(0.0, [Call(32, 400)]))
    for _ in range(12):
        if run.engine.has_work:
            run.step()
    long = run.add(ProgramLoad(run.now, [Call(PROMPT, 16)]))
    run.step()
    request = next(each for each in run.engine.requests if each.num_prompt_tokens == PROMPT)
    run.step()
    assert 0 < request.num_computed_tokens < PROMPT // 2
    return run, long, request


def steps_until_started(run: TimedEngine, record: ProgramRecord) -> int:
    """Steps from its arrival to the one that computes something for it, which counts."""
    while record.first_step is None:
        run.step()
    return record.first_step - record.start_step + 1


@pytest.mark.parametrize("num_streams", [0, NUM_STREAMS])
@pytest.mark.parametrize("num_tokens", [32, 3000])
def test_a_higher_priority_starts_in_the_next_step_of_a_long_prompt(num_streams: int, num_tokens: int) -> None:
    run, _, long = busy_engine(num_streams)
    urgent = run.add(ProgramLoad(run.now, [Call(num_tokens, 4)], priority=-100))
    before = long.num_computed_tokens
    assert steps_until_started(run, urgent) == 1
    while not urgent.first_token_s:  # its whole prompt goes before the rest of the long one
        run.step()
    last = run.steps[-1]
    assert long.num_computed_tokens - before <= last.num_tokens - last.num_decodes
    while run.engine.has_work:
        run.step()
    assert all(record.end_s is not None for record in run.records)


def test_a_lower_priority_waits_for_the_long_prompt() -> None:
    run, long, _ = busy_engine(NUM_STREAMS)
    patient = run.add(ProgramLoad(run.now, [Call(32, 4)], priority=100))
    steps_until_started(run, patient)
    assert long.first_token_s or run.steps[patient.first_step or 0].num_tokens > NUM_STREAMS


@pytest.mark.parametrize("max_rows", [NUM_STREAMS + 1, 3])
def test_a_higher_priority_gets_a_row_when_all_are_taken(max_rows: int) -> None:
    run, long, _ = busy_engine(max_rows - 1, max_rows=max_rows, max_running=max_rows)
    scheduler = run.engine.scheduler
    assert len(scheduler.running) == max_rows
    urgent = run.add(ProgramLoad(run.now, [Call(32, 4)], priority=-100))
    assert steps_until_started(run, urgent) <= 2
    assert scheduler.num_preemptions == 1
    while run.engine.has_work:
        run.step()
    assert long.end_s is not None
    assert urgent.end_s is not None
    assert urgent.end_s < long.end_s


def test_equal_priorities_do_not_preempt_each_other() -> None:
    run, _, _ = busy_engine(NUM_STREAMS, max_rows=NUM_STREAMS + 1, max_running=NUM_STREAMS + 1)
    run.add(ProgramLoad(run.now, [Call(32, 4)]))
    for _ in range(10):
        run.step()
    assert run.engine.scheduler.num_preemptions == 0


def test_a_near_deadline_starts_in_the_next_step_of_a_long_prompt() -> None:
    run, _, long = busy_engine(NUM_STREAMS)
    program = ProgramAccount(run.now, deadline=run.now + DEADLINE_S / 6)
    spec = replace(long.spec, prompt_ids=[7] * 2000, listener=lambda output: None, program=program)
    request = run.engine.add(spec, run.now)
    run.step()
    assert request.stats.first_step_time is not None
    before = long.num_computed_tokens
    while request.num_computed_tokens < 1900:
        assert long.num_computed_tokens == before
        run.step()
