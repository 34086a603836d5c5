"""Meta of texts and of selects."""

from __future__ import annotations

from rtlang.contract.events import Completion, NodeFinished, Timing, TokenLogprob
from rtlang.contract.params import FinishReason, SamplingParams, Usage
from rtlang.contract.request_graph import Generate, Select
from rtlang.lang.recordings.meta import Meta

USAGE, TIMING = Usage(5, 4, 3), Timing(0.1, 0.2, 0.3)


def test_meta_of_a_text_is_that_of_its_choice() -> None:
    logprobs = (TokenLogprob(7, -0.5),)
    completions = (
        Completion("a", (6,), FinishReason.LENGTH),
        Completion("b", (7,), FinishReason.STOP, "\n", logprobs),
    )
    event = NodeFinished(1, 0, "x", completions, USAGE, TIMING, prompt_logprobs=logprobs)
    meta = Meta.of(Generate(0, None, "x", SamplingParams(n=2)), event, 1)
    assert meta == Meta(FinishReason.STOP, "\n", (7,), USAGE, TIMING, logprobs, logprobs)


def test_meta_of_a_select_has_numbers_by_choice() -> None:
    completion = Completion("b", (7,), FinishReason.STOP)
    event = NodeFinished(1, 0, "x", (completion,), USAGE, TIMING, (-2.0, -1.0), (0.25, 0.75))
    meta = Meta.of(Select(0, None, "x", ("a", "b")), event, 0)
    assert (meta.scores, meta.probabilities) == ({"a": -2.0, "b": -1.0}, {"a": 0.25, "b": 0.75})
    assert (meta.choice_logprobs, meta.unconditional_logprobs) == (None, None)


def test_meta_of_a_select_has_the_tokens_of_each_choice() -> None:
    given = ((TokenLogprob(6, -2.0),), (TokenLogprob(7, -0.5), TokenLogprob(8, -1.5)))
    alone = ((TokenLogprob(6, -3.0),), (TokenLogprob(7, -4.0), TokenLogprob(8, -5.0)))
    completion = Completion("b", (7, 8), FinishReason.STOP)
    event = NodeFinished(1, 0, "x", (completion,), USAGE, TIMING, choice_logprobs=given, unconditional_logprobs=alone)
    meta = Meta.of(Select(0, None, "x", ("a", "b")), event, 0)
    assert meta.choice_logprobs == {"a": given[0], "b": given[1]}
    assert meta.unconditional_logprobs == {"a": alone[0], "b": alone[1]}


def test_a_runtime_that_reports_no_scores_is_taken_as_it_is() -> None:
    event = NodeFinished(1, 0, "x", (Completion("a", (), FinishReason.STOP),), USAGE, TIMING)
    meta = Meta.of(Select(0, None, "x", ("a",)), event, 0)
    assert (meta.scores, meta.probabilities) == (None, None)
