"""How outcomes become texts, values and errors."""

from __future__ import annotations

import pytest

from rtlang.contract.errors import (
    ConstraintError,
    ContextLengthError,
    DependencyError,
    EngineDeadError,
    ValueParseError,
)
from rtlang.contract.params import SamplingParams
from rtlang.lang.output_types.types import TEXT, output_type
from rtlang.lang.recordings.recording import Recording
from tests.support.fake_driver import FakeDriver

PARAMS = SamplingParams()


def test_values_are_parsed_once_and_errors_are_fresh() -> None:
    driver = FakeDriver()
    recording = Recording(driver)
    calls: list[str] = []
    kind = output_type(type=int)
    counted = type(kind)(kind.constraint, lambda text: calls.append(text) or int(text))  # type: ignore[func-returns-value]
    good = recording.add_generate(None, "good", PARAMS, counted)
    bad = recording.add_generate(None, "bad", PARAMS, counted)
    driver.finish(good, "4")
    driver.finish(bad, "four")
    assert [recording.outcomes.value_of(good, 0) for _ in range(2)] == [4, 4]
    errors = []
    for _ in range(2):
        with pytest.raises(ValueParseError) as caught:
            recording.outcomes.value_of(bad, 0)
        errors.append(caught.value)
    assert calls == ["4", "four"]
    assert errors[0] is not errors[1]
    assert (errors[1].name, errors[1].text) == ("bad", "four")
    assert isinstance(errors[1].__cause__, ValueError)


def test_dependants_have_the_error_at_the_root() -> None:
    driver = FakeDriver()
    recording = Recording(driver)
    for _ in range(4):
        recording.add_generate(None, None, PARAMS, TEXT)
    driver.known[0] = ConstraintError("bad", "/a")
    driver.known[1] = DependencyError(0, "constraint", "bad")
    driver.known[2] = DependencyError(1, "dependency", "node 0 failed: bad")
    driver.known[3] = DependencyError(99, "engine_dead", "gone")
    for node_id in (0, 1, 2):
        with pytest.raises(ConstraintError) as caught:
            recording.outcomes.text_of(node_id, 0)
        assert caught.value.location == "/a"
    with pytest.raises(EngineDeadError, match="gone"):
        recording.outcomes.text_of(3, 0)


def test_a_circle_of_dependencies_ends() -> None:
    driver = FakeDriver()
    recording = Recording(driver)
    recording.add_generate(None, None, PARAMS, TEXT)
    driver.known[0] = DependencyError(0, "constraint", "bad")
    with pytest.raises(ConstraintError):
        recording.outcomes.text_of(0, 0)


def test_the_first_error_is_one_the_body_has_not_seen() -> None:
    driver = FakeDriver()
    recording = Recording(driver)
    for _ in range(4):
        recording.add_generate(None, None, PARAMS, output_type(type=int))
    driver.known[0] = ConstraintError("first")
    driver.known[1] = DependencyError(0, "constraint", "first")
    driver.finish(2, "not a number")
    driver.finish(3, "5")
    assert str(recording.outcomes.first_error()).startswith("first (generation at ")
    with pytest.raises(ConstraintError):
        recording.outcomes.text_of(1, 0)  # tells of the root
    assert isinstance(recording.outcomes.first_error(), ValueParseError)
    with pytest.raises(ValueParseError):
        recording.outcomes.value_of(2, 0)
    assert recording.outcomes.first_error() is None


def test_an_error_of_a_text_names_the_generation_that_continues_it() -> None:
    driver = FakeDriver()
    recording = Recording(driver)
    text = recording.add_text(None, ("much text",))
    node = recording.add_generate(text, "x", PARAMS, TEXT)
    driver.known = {text: ContextLengthError(900, 0, 512), node: DependencyError(text, "context_length", "too long")}
    with pytest.raises(ContextLengthError, match=r"\(generation 'x' at .*test_node_outcomes.py:\d+\)"):
        recording.outcomes.text_of(node, 0)
