"""Time moves by the steps of the engine, and over idle time; what is recorded adds up."""

from __future__ import annotations

import pytest

from rtlang.bench.workloads.load import Call, ProgramLoad
from rtlang.contract.config import RuntimeConfig
from tests.support.engine.timed_engine import pretended_engine

STEP_S = 0.025  # of a few tokens, by `machine_s`


def test_a_program_alone_takes_the_time_of_its_steps_and_idle_time_takes_none() -> None:
    run = pretended_engine(RuntimeConfig())
    run.run([ProgramLoad(5.0, [Call(10, 3)]), ProgramLoad(1000.0, [Call(10, 2)])])
    first, second = run.records
    assert first.latency_s == pytest.approx(3 * STEP_S, rel=1e-3)
    assert first.first_token_s == [pytest.approx(STEP_S, rel=1e-3)]
    assert [(gap.seconds, gap.step) for gap in first.gaps] == [
        (pytest.approx(STEP_S, rel=1e-3), 1),
        (pytest.approx(STEP_S, rel=1e-3), 2),
    ]
    assert second.first_step == second.start_step == 3
    assert second.end_s == pytest.approx(1000 + 2 * STEP_S, rel=1e-3)
    assert run.busy_s == pytest.approx(5 * STEP_S, rel=1e-3)
    assert [step.is_plain for step in run.steps] == [False, True, True, False, True]


def test_a_program_that_comes_during_a_step_waits_for_its_end() -> None:
    run = pretended_engine(RuntimeConfig())
    run.run([ProgramLoad(0.0, [Call(10, 4)]), ProgramLoad(0.01, [Call(10, 1)])])
    late = run.records[1]
    assert late.latency_s == pytest.approx(2 * STEP_S - 0.01, rel=1e-3)
    assert (late.start_step, late.first_step) == (1, 1)


def test_calls_follow_each_other_and_continue_the_text() -> None:
    run = pretended_engine(RuntimeConfig(page_size=4))
    run.run([ProgramLoad(0.0, [Call(10, 6), Call(5, 2)])])
    (record,) = run.records
    assert (len(record.first_token_s), len(record.gaps), record.num_generated) == (2, 6, 8)
    assert record.latency_s == pytest.approx(8 * STEP_S, rel=1e-3)
    assert run.engine.num_cached_tokens >= 12  # the first three pages of the text before


def test_clients_and_priorities_reach_the_engine() -> None:
    run = pretended_engine(RuntimeConfig())
    run.add(ProgramLoad(0.0, [Call(10, 2)], client=3, priority=-7))
    (request,) = run.engine.requests
    assert (request.spec.principal.name, request.spec.priority) == ("client 3", -7)
