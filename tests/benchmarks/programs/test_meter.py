"""Runs are measured by the engine's own counters, and programs from their submission to their end."""

from __future__ import annotations

from typing import Any

import pytest

import rtlang as rt
from rtlang.testing import ScriptedRuntime
from rtlang_bench.programs.meter import Meter, checked, measure


@rt.program
def written(s: rt.State, text: str) -> Any:
    s += text
    s += rt.gen("out", max_tokens=3, min_tokens=3, ignore_eos=True)


def test_tokens_steps_and_pages_of_a_run() -> None:
    with rt.Runtime("rtlang:tiny", speculation="off") as runtime:
        text = "once upon a time there was a little tree and it was very old " * 4
        num_tokens = len(runtime.tokenizer.encode(text, is_start=True))

        def play(meter: Meter) -> None:
            for _ in range(2):
                checked([written.run(text, runtime=meter.target)])

        for _ in range(2):  # the cache is emptied before each
            run = measure(runtime, play)
            page_size = runtime.config.page_size
            assert num_tokens < run.prompt_tokens <= num_tokens + page_size
            assert run.generated_tokens == 6
            assert run.peak_pages == -(-(num_tokens + 2) // page_size)
            assert len(run.latencies_s) == 2
            assert 3 <= run.latency_steps <= run.num_steps
            assert run.cached_share is None


def test_a_failed_program_leaves_no_figures() -> None:
    with ScriptedRuntime({"out": rt.RequestError("broken")}) as runtime:
        results = written.run_batch([{"text": "a"}], runtime=runtime)
    with pytest.raises(rt.RequestError, match="broken"):
        checked(results)
