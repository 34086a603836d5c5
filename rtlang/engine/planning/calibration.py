"""Measures a few steps of a loaded model before the first request, so that the first plans are good ones."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter, thread_time

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.params import SamplingParams
from rtlang.contract.step import Row, RowStates, Step
from rtlang.engine.planning.step_cost import StepCost, size_of
from rtlang.model.runner import Runner

BUDGET_S = 0.3
"""Time that may be spent, in seconds; a step is not begun if it is expected to end later."""

_LONG, _WRITTEN = 1024, 32  # tokens of a long context, which repeats the pages of an earlier step of so many tokens
_STEPS = ((1, 0, 1), (1, 0, 8), (32, 0, 1), (32, _LONG, 1), (128, 0, 1))  # tokens of a row, tokens before them, rows


def clock_of(runner: Runner) -> Callable[[], float]:
    """The clock for the steps of a runner: CPU time of the thread on the host, elapsed time on a device."""
    return perf_counter if runner.is_pipelined else thread_time


def measured_cost(config: RuntimeConfig, runner: Runner) -> StepCost:
    """The cost of steps of a runner that has just been loaded. Not measured in Triton's interpreter."""
    if config.device == "interpreter":
        return StepCost()
    return calibrated(runner, config.page_size, max_rows=config.row_limit if runner.is_pipelined else None)


def calibrated(
    runner: Runner, page_size: int, *, max_rows: int | None = None, clock: Callable[[], float] | None = None
) -> StepCost:
    """The cost of steps of a runner. Overwrites its pages and states, so nothing may be in them.

    Args:
        max_rows: limit for the rows of a step.
        clock: in seconds; default: `clock_of`.
    """
    cost, clock = StepCost(), clock_of(runner) if clock is None else clock
    end = clock() + BUDGET_S
    for number, (num_tokens, num_before, num_rows) in enumerate(_STEPS, 1):
        step = _step(number, num_tokens, num_before, num_rows, page_size, has_states=runner.num_states > 0)
        if max_rows is not None and num_rows > max_rows:
            continue
        is_too_long = num_before + num_tokens > runner.max_model_len or 0 < runner.num_states < num_rows
        if is_too_long or max(page for row in step.rows for page in row.page_ids) >= runner.num_pages:
            continue
        for turn in range(2):  # what the first prepares is not counted
            if clock() + cost.predict(size_of(step)) > end:
                return cost
            started = clock()
            flight = runner.launch(step)
            runner.sample(flight, step.rows, None)
            runner.collect(flight)
            if turn:
                cost.observe(size_of(step), clock() - started)
    return cost


def _step(step_id: int, num_tokens: int, num_before: int, num_rows: int, page_size: int, *, has_states: bool) -> Step:
    num_pages, num_written = -(-num_tokens // page_size), max(1, _WRITTEN // page_size) if num_before else 0
    params = SamplingParams(temperature=1.0)
    before = tuple(page % num_written for page in range(-(-num_before // page_size)))
    pages = [
        (*before, *(num_written + index * num_pages + page for page in range(num_pages))) for index in range(num_rows)
    ]
    rows = [Row(index, (0,) * num_tokens, num_before, own, 0, True, params) for index, own in enumerate(pages)]
    if has_states:  # the time does not depend on the content of a state
        rows = [row._replace(states=RowStates(None, ((num_tokens, index),))) for index, row in enumerate(rows)]
    return Step(step_id, tuple(rows))
