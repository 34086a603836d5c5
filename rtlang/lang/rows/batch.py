"""Runs one program over many inputs and waits for all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rtlang.contract.errors import ParameterError
from rtlang.lang.execution.result import RowResult
from rtlang.lang.execution.run import resolve_runtime
from rtlang.lang.program_state.body import Body
from rtlang.lang.rows.progress import Report, reporter
from rtlang.lang.rows.row_runs import RowRuns
from rtlang.lang.sessions.program_options import ProgramOptions


def run_batch(
    body: Body,
    inputs: Iterable[Mapping[str, Any]],
    options: ProgramOptions,
    *,
    progress: bool | Report,
    max_threads: int,
) -> list[RowResult]:
    """Run once per input. See `Program.run_batch`."""
    check_max_threads(max_threads)
    runs = RowRuns(body, resolve_runtime(options.runtime), options, max_threads=max_threads)
    for index, given in enumerate(inputs):
        if not isinstance(given, Mapping):
            raise ParameterError(f"inputs[{index}]", given, "expected a mapping of argument names to values")
        try:
            bound = body.bound((), given)
            bound.check_complete()
        except TypeError as error:
            raise TypeError(f"inputs[{index}]: {error}") from None
        runs.add(given, bound, starts=False)
    runs.end_rows()
    results: list[RowResult | None] = [None] * runs.num_read
    with reporter(progress, body.name) as report:
        report(0, len(results))
        runs.start()
        try:
            while (result := runs.next()) is not None:
                results[result.index] = result
                report(runs.num_taken, len(results))
                if options.on_error == "raise" and result.error is not None:
                    raise result.error
        finally:
            runs.stop()
    return [result for result in results if result is not None]


def check_max_threads(max_threads: object) -> None:
    """Raise ParameterError unless `max_threads` is a positive integer."""
    if isinstance(max_threads, bool) or not isinstance(max_threads, int) or max_threads < 1:
        raise ParameterError("max_threads", max_threads, "expected an integer of at least 1")
