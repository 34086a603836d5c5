"""Recorders of events, and the canary."""

from __future__ import annotations

from rtlang.contract.errors import OverloadError
from rtlang.contract.events import TextDelta
from rtlang.testing import ScriptedRuntime
from rtlang_bench.serve.streams import Canary, Recorder, generation
from tests.support.programs.scripted_target import ScriptedTarget


def test_a_recorder_keeps_text_tokens_and_the_end() -> None:
    target = ScriptedTarget()
    recorder = Recorder().submit(target, generation("p", max_tokens=3))
    assert not recorder.has_ended
    target.finish()
    assert recorder.wait(0)
    assert (recorder.text, recorder.deltas, recorder.num_tokens, recorder.error) == ("xxx", ["x"] * 3, 3, None)
    assert len(recorder.gaps) == 2


def test_a_refusal_and_a_cancel_are_errors() -> None:
    target = ScriptedTarget()
    recorder = Recorder().submit(target, generation("p", max_tokens=3))
    recorder.cancel()
    target.finish()
    assert recorder.error is not None
    target.refusal = OverloadError("full", 1.0)
    refused = Recorder().submit(target, generation("p", max_tokens=3))
    assert refused.has_ended
    assert isinstance(refused.error, OverloadError)


def test_the_longest_gap_counts_both_ends() -> None:
    recorder = Recorder()
    recorder.times = [1.0, 2.0, 2.5]
    assert recorder.longest_gap(0.5, 5.0) == 2.5
    assert recorder.longest_gap(0.0, 2.5) == 1.0
    assert recorder.longest_gap(3.0, 4.0) == 1.0


def test_a_canary_starts_again_until_it_is_stopped() -> None:
    with ScriptedRuntime(default="abc") as runtime, Canary(runtime, max_tokens=5) as canary:
        while len(canary.recorders) < 3:
            canary.recorders[-1].wait(5.0)
    times = [moment for each in canary.recorders for moment in each.times]
    assert canary.num_errors == 0
    assert canary.longest_gap(times[0], times[-1]) <= times[-1] - times[0]


def test_deltas_without_ids_count_as_one_token() -> None:
    recorder = Recorder()
    recorder(TextDelta(1, 1, 0, "a", ()))
    recorder(TextDelta(1, 1, 1, "b", (4, 5)))
    assert (recorder.num_tokens, recorder.deltas) == (3, ["a"])
