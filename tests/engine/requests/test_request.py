"""The small derived facts of a request."""

from __future__ import annotations

from typing import Any

from rtlang.contract.errors import AbortedError
from rtlang.contract.events import TokenLogprob
from rtlang.contract.params import FinishReason, SamplingParams
from rtlang.contract.step import LogitFilters
from rtlang.engine.requests.request import Request, RequestOutput
from rtlang.engine.token_rules.bad_words import BadWords
from tests.support.requests import make_request


def request(tokens: list[int], options: dict[str, Any] | None = None, **rest: Any) -> Request:
    return make_request(1, tokens, SamplingParams(**(options or {})), **rest)


def test_a_generating_request_needs_all_its_tokens_computed_but_takes_all_but_one_from_the_cache() -> None:
    made = request([1, 2, 3])
    assert (made.num_target_tokens, made.match_limit, made.num_prompt_tokens) == (3, 2, 3)
    made.token_ids.append(9)
    assert (made.num_output_tokens, made.output_token_ids, made.match_limit) == (1, [9], 3)


def test_a_scoring_request_needs_logits_from_the_token_before_the_first_score() -> None:
    made = request([1, 2, 3, 4, 5], score_from=2, score_only=True)
    assert (made.next_score, made.match_limit, made.num_target_tokens) == (2, 1, 4)
    made.results.scores += [TokenLogprob(3, -1.0), TokenLogprob(4, -1.0)]
    assert (made.next_score, made.match_limit) == (4, 3)
    made.results.scores.append(TokenLogprob(5, -1.0))
    assert made.next_score is None


def test_min_tokens_bans_what_would_end_the_text() -> None:
    made = request([1], {"min_tokens": 1, "max_tokens": 4}, stop_ids=frozenset({7}))
    assert made.bans_after(0) == (7,)
    made.token_ids.append(8)
    assert made.bans_after(0) == ()


def test_history_is_needed_for_penalties_rules_and_mirostat_only() -> None:
    assert not request([1]).needs_history
    assert not request([1], {"typical_p": 0.5, "temperature": 1.0}, filters=LogitFilters(truncates=True)).needs_history
    assert request([1], {"mirostat": 2, "temperature": 1.0}, filters=LogitFilters(truncates=True)).needs_history
    assert request(
        [1], {"bad_words": "a"}, filters=LogitFilters((BadWords(["a"], lambda text: [ord(each) for each in text]),))
    ).needs_history
    for option in ({"presence_penalty": 0.5}, {"frequency_penalty": 0.5}, {"repetition_penalty": 1.1}):
        assert request([1], option).needs_history


def test_an_output_is_the_last_with_a_reason_or_an_error() -> None:
    made = request([1])
    assert not RequestOutput(made).is_last
    assert RequestOutput(made, finish_reason=FinishReason.STOP).is_last
    assert RequestOutput(made, error=AbortedError("x")).is_last
