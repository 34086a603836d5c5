"""Which nodes a recording hands out, and when the body waits for them."""

from __future__ import annotations

import pytest

from rtlang.contract.errors import (
    ParameterError,
    TraceError,
)
from rtlang.contract.params import SamplingParams, SelectMethod
from rtlang.contract.request_graph import Generate, Ref, RequestGraph, Text
from rtlang.lang.output_types.types import TEXT
from rtlang.lang.recordings.driver import AheadOfTime
from rtlang.lang.recordings.recording import Recording
from tests.support.fake_driver import FakeDriver

PARAMS = SamplingParams()


def test_ids_rise_and_the_graph_is_valid() -> None:
    recording = Recording(FakeDriver())
    text = recording.add_text(None, ("a",))
    node = recording.add_generate(text, "x", PARAMS, TEXT)
    choice = recording.add_select(node, "y", ("a", "b"), SelectMethod.FULL_LIKELIHOOD, TEXT)
    end = recording.add_text(choice, (Ref(node),))
    assert [text, node, choice, end] == [0, 1, 2, 3]
    recording.graph().validate()
    assert recording.graph() == RequestGraph(tuple(recording.nodes.outer.values()), ())
    assert (recording.nodes.name_of(node), recording.nodes.name_of(end)) == ("x", "node 3")


def test_taking_leaves_text_that_no_generation_follows() -> None:
    recording = Recording(FakeDriver())
    first = recording.add_text(None, ("a",))
    other = recording.add_text(None, ("b",))
    node = recording.add_generate(other, None, PARAMS, TEXT)
    assert [each.node_id for each in recording.nodes.take(is_last=False)] == [other, node]
    quote = recording.add_text(first, (Ref(node),))
    recording.add_text(other, ("dropped",))
    recording.add_generate(quote, None, PARAMS, TEXT)
    assert [each.node_id for each in recording.nodes.take(is_last=True)] == [first, quote, 5]


def test_taking_leaves_trailing_text() -> None:
    recording = Recording(FakeDriver())
    node = recording.add_generate(None, None, PARAMS, TEXT)
    recording.add_text(node, ("a",))
    assert [type(node) for node in recording.nodes.take(is_last=False)] == [Generate]
    assert recording.nodes.take(is_last=False) == []
    recording.add_generate(1, None, PARAMS, TEXT)
    assert [type(node) for node in recording.nodes.take(is_last=False)] == [Text, Generate]
    recording.add_text(2, ("b",))
    assert recording.nodes.take(is_last=True) == []


def test_a_closed_recording_takes_no_nodes() -> None:
    recording = Recording(FakeDriver())
    recording.close()
    with pytest.raises(TraceError, match="has ended"):
        recording.add_text(None, ("a",))


def test_only_what_is_missing_breaks() -> None:
    driver = FakeDriver()
    recording = Recording(driver)
    node = recording.add_generate(None, "x", PARAMS, TEXT)
    recording.require((node,), "a comparison", "'x'")
    recording.require((node,), "a comparison", "'x'")
    assert [(each.what, each.reason) for each in recording.breaks] == [("'x'", "a comparison")]
    assert recording.breaks[0].location.startswith(f"{__file__}:")


def test_ahead_of_time_nothing_can_be_waited_for() -> None:
    recording = Recording(AheadOfTime(is_async=False))
    node = recording.add_generate(None, "x", PARAMS, TEXT)
    with pytest.raises(TraceError, match="graph break"):
        recording.require((node,), "len()", "'x'")
    assert [each.reason for each in recording.breaks] == ["len()"]


def test_what_never_ran_cannot_be_read() -> None:
    driver = FakeDriver()
    recording = Recording(driver)
    node = recording.add_generate(None, "x", PARAMS, TEXT)
    with pytest.raises(TraceError, match="never run"):
        recording.text_of(node, 0)
    recording.close()
    with pytest.raises(TraceError, match="program ended"):
        recording.require((node,), "len()", "'x'")


def test_options_are_layered() -> None:
    recording = Recording(FakeDriver(), SamplingParams(max_tokens=7, top_k=2))
    assert recording.effective(None, None, {}) == SamplingParams(max_tokens=7, top_k=2)
    assert recording.effective(None, None, {"top_k": 3}) == SamplingParams(max_tokens=7, top_k=3)
    assert recording.effective(None, SamplingParams(seed=1), {"top_k": 3}) == SamplingParams(seed=1, top_k=3)
    assert Recording(FakeDriver()).effective(None, None, {"top_k": 3}) == SamplingParams(top_k=3)
    with pytest.raises(ParameterError, match=r"top_k = -1: .* \(generation 'x' at .*test_recording.py:\d+\)"):
        recording.effective("x", None, {"top_k": -1})
