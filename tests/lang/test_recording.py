"""What a recording hands out and how outcomes become texts, values and errors."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rtlang.contract.errors import (
    ConstraintError,
    ContextLengthError,
    DependencyError,
    EngineDeadError,
    ParameterError,
    TraceError,
    ValueParseError,
)
from rtlang.contract.events import Completion, NodeFinished, Timing
from rtlang.contract.graph import Generate, Ref, RequestGraph, Text
from rtlang.contract.params import FinishReason, SamplingParams, SelectMethod, Usage
from rtlang.lang.output_types.types import TEXT, output_type
from rtlang.lang.recording import AheadOfTime, Outcome, Recording

PARAMS = SamplingParams()


class Outcomes:
    """A driver that knows outcomes and cannot wait."""

    is_async = False

    def __init__(self) -> None:
        self.known: dict[int, Outcome] = {}

    def finish(self, node_id: int, *texts: str) -> None:
        completions = tuple(Completion(text, (), FinishReason.STOP) for text in texts)
        self.known[node_id] = NodeFinished(1, node_id, None, completions, Usage(), Timing())

    @property
    def outcome_ids(self) -> tuple[int, ...]:
        return tuple(self.known)

    def outcome(self, node_id: int) -> Outcome | None:
        return self.known.get(node_id)

    def wait(self, node_ids: Sequence[int]) -> None:
        for node_id in node_ids:
            self.finish(node_id, "waited for")

    async def wait_async(self, node_ids: Sequence[int]) -> None:
        self.wait(node_ids)


def test_ids_rise_and_the_graph_is_valid() -> None:
    recording = Recording(Outcomes())
    text = recording.add_text(None, ("a",))
    node = recording.add_generate(text, "x", PARAMS, TEXT)
    choice = recording.add_select(node, "y", ("a", "b"), SelectMethod.FULL_LIKELIHOOD, TEXT)
    end = recording.add_text(choice, (Ref(node),))
    assert [text, node, choice, end] == [0, 1, 2, 3]
    recording.graph().validate()
    assert recording.graph() == RequestGraph(tuple(recording.nodes.values()), ())
    assert (recording.name_of(node), recording.name_of(end)) == ("x", "node 3")


def test_taking_leaves_text_that_no_generation_follows() -> None:
    recording = Recording(Outcomes())
    first = recording.add_text(None, ("a",))
    other = recording.add_text(None, ("b",))
    node = recording.add_generate(other, None, PARAMS, TEXT)
    assert [each.node_id for each in recording.take(is_last=False)] == [other, node]
    quote = recording.add_text(first, (Ref(node),))
    recording.add_text(other, ("dropped",))
    recording.add_generate(quote, None, PARAMS, TEXT)
    assert [each.node_id for each in recording.take(is_last=True)] == [first, quote, 5]


def test_taking_leaves_trailing_text() -> None:
    recording = Recording(Outcomes())
    node = recording.add_generate(None, None, PARAMS, TEXT)
    recording.add_text(node, ("a",))
    assert [type(node) for node in recording.take(is_last=False)] == [Generate]
    assert recording.take(is_last=False) == []
    recording.add_generate(1, None, PARAMS, TEXT)
    assert [type(node) for node in recording.take(is_last=False)] == [Text, Generate]
    recording.add_text(2, ("b",))
    assert recording.take(is_last=True) == []


def test_a_closed_recording_takes_no_nodes() -> None:
    recording = Recording(Outcomes())
    recording.close()
    with pytest.raises(TraceError, match="has ended"):
        recording.add_text(None, ("a",))


def test_values_are_parsed_once_and_errors_are_fresh() -> None:
    driver = Outcomes()
    recording = Recording(driver)
    calls: list[str] = []
    kind = output_type(type=int)
    counted = type(kind)(kind.constraint, lambda text: calls.append(text) or int(text))  # type: ignore[func-returns-value]
    good = recording.add_generate(None, "good", PARAMS, counted)
    bad = recording.add_generate(None, "bad", PARAMS, counted)
    driver.finish(good, "4")
    driver.finish(bad, "four")
    assert [recording.value_of(good, 0) for _ in range(2)] == [4, 4]
    errors = []
    for _ in range(2):
        with pytest.raises(ValueParseError) as caught:
            recording.value_of(bad, 0)
        errors.append(caught.value)
    assert calls == ["4", "four"]
    assert errors[0] is not errors[1]
    assert (errors[1].name, errors[1].text) == ("bad", "four")
    assert isinstance(errors[1].__cause__, ValueError)


def test_dependants_have_the_error_at_the_root() -> None:
    driver = Outcomes()
    recording = Recording(driver)
    for _ in range(4):
        recording.add_generate(None, None, PARAMS, TEXT)
    driver.known[0] = ConstraintError("bad", "/a")
    driver.known[1] = DependencyError(0, "constraint", "bad")
    driver.known[2] = DependencyError(1, "dependency", "node 0 failed: bad")
    driver.known[3] = DependencyError(99, "engine_dead", "gone")
    for node_id in (0, 1, 2):
        with pytest.raises(ConstraintError) as caught:
            recording.text_of(node_id, 0)
        assert caught.value.location == "/a"
    with pytest.raises(EngineDeadError, match="gone"):
        recording.text_of(3, 0)


def test_a_circle_of_dependencies_ends() -> None:
    driver = Outcomes()
    recording = Recording(driver)
    recording.add_generate(None, None, PARAMS, TEXT)
    driver.known[0] = DependencyError(0, "constraint", "bad")
    with pytest.raises(ConstraintError):
        recording.text_of(0, 0)


def test_the_first_error_is_one_the_body_has_not_seen() -> None:
    driver = Outcomes()
    recording = Recording(driver)
    for _ in range(4):
        recording.add_generate(None, None, PARAMS, output_type(type=int))
    driver.known[0] = ConstraintError("first")
    driver.known[1] = DependencyError(0, "constraint", "first")
    driver.finish(2, "not a number")
    driver.finish(3, "5")
    assert str(recording.first_error()).startswith("first (generation at ")
    with pytest.raises(ConstraintError):
        recording.text_of(1, 0)  # tells of the root
    assert isinstance(recording.first_error(), ValueParseError)
    with pytest.raises(ValueParseError):
        recording.value_of(2, 0)
    assert recording.first_error() is None


def test_only_what_is_missing_breaks() -> None:
    driver = Outcomes()
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
    driver = Outcomes()
    recording = Recording(driver)
    node = recording.add_generate(None, "x", PARAMS, TEXT)
    with pytest.raises(TraceError, match="never run"):
        recording.text_of(node, 0)
    recording.close()
    with pytest.raises(TraceError, match="program ended"):
        recording.require((node,), "len()", "'x'")


def test_options_are_layered() -> None:
    recording = Recording(Outcomes(), SamplingParams(max_tokens=7, top_k=2))
    assert recording.effective(None, None, {}) == SamplingParams(max_tokens=7, top_k=2)
    assert recording.effective(None, None, {"top_k": 3}) == SamplingParams(max_tokens=7, top_k=3)
    assert recording.effective(None, SamplingParams(seed=1), {"top_k": 3}) == SamplingParams(seed=1, top_k=3)
    assert Recording(Outcomes()).effective(None, None, {"top_k": 3}) == SamplingParams(top_k=3)
    with pytest.raises(ParameterError, match=r"top_k = -1: .* \(generation 'x' at .*test_recording.py:\d+\)"):
        recording.effective("x", None, {"top_k": -1})


def test_an_error_of_a_text_names_the_generation_that_continues_it() -> None:
    driver = Outcomes()
    recording = Recording(driver)
    text = recording.add_text(None, ("much text",))
    node = recording.add_generate(text, "x", PARAMS, TEXT)
    driver.known = {text: ContextLengthError(900, 0, 512), node: DependencyError(text, "context_length", "too long")}
    with pytest.raises(ContextLengthError, match=r"\(generation 'x' at .*test_recording.py:\d+\)"):
        recording.text_of(node, 0)
