"""A runtime with a draft model: the same texts, fewer steps, and figures in every place that shows them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import rtlang as rt

SETTINGS = {"model": "rtlang:tiny", "dtype": "float32", "num_threads": 1, "num_pages": 512}


@rt.program
def story(s: Any) -> None:
    s += "Once upon a time there was a little"
    s += rt.gen("first", max_tokens=48, temperature=0.8, seed=5)
    if len(s["first"]) > 3:
        s += rt.gen("second", max_tokens=16)


@pytest.fixture(scope="module")
def runtime() -> Iterator[rt.Runtime]:
    with rt.Runtime(draft_model="rtlang:tiny", speculation="on", **SETTINGS) as opened:
        engine = opened._engine
        assert engine is not None
        assert engine.drafter is not None
        policy: Any = engine.drafter._model_policy
        engine.drafter._sources.clear()  # only the draft model
        policy.model.cost.predict = lambda size: 1e-9  # as if it were much smaller
        yield opened


def test_texts_are_the_same_and_steps_are_saved(runtime: rt.Runtime) -> None:
    with rt.Runtime(speculation="off", **SETTINGS) as plain:
        expected = story.run(runtime=plain)
        num_plain = plain.stats()["num_steps"]
    before = runtime.stats()
    found = story.run(runtime=runtime)
    after = runtime.stats()
    assert (found["first"], found["second"]) == (expected["first"], expected["second"])
    assert after["num_steps"] - before["num_steps"] < num_plain / 2
    accepted = after["num_accepted_tokens"] - before["num_accepted_tokens"]
    assert accepted > 0.95 * (after["num_drafted_tokens"] - before["num_drafted_tokens"])
    assert after["num_draft_model_steps"] > 0
    values = runtime.metrics.snapshot()
    assert values["rtlang_draft_tokens_accepted_total{draft_model}"] == after["num_accepted_tokens"]
    assert values["rtlang_draft_model_steps_total"] == after["num_draft_model_steps"]
    meta = found.meta("first")
    assert [each.source for each in meta.drafts] == ["draft_model"]


def test_an_explanation_tells_the_saved_steps_of_each_generation(runtime: rt.Runtime) -> None:
    before = runtime.stats()["num_accepted_tokens"]
    found = rt.explain(story, runtime=runtime)
    assert set(found.drafts) == {"first", "second"}
    assert found.num_saved_steps == runtime.stats()["num_accepted_tokens"] - before > 0
    for name, (use,) in found.drafts.items():
        line = f"  {name}: {use.num_accepted} of {use.num_drafted} draft tokens accepted (draft_model "
        assert line in str(found)
