"""One drawn token, one request: accepted, steered, shown, ended."""

from __future__ import annotations

from typing import Any

import pytest

from rtlang.contract.errors import BudgetError, NumericsError
from rtlang.contract.events import TokenLogprob
from rtlang.contract.params import FinishReason, SamplingParams
from rtlang.contract.step import Row, SampledRow, SampledToken
from rtlang.engine.requests.output_processor import advance
from rtlang.engine.requests.request import Request, RequestOutput
from rtlang_grammars.spec.work_limit import WorkLimit
from tests.support.engine.fake_runner import EOS
from tests.support.requests import make_request

A, B = 3 + ord("a"), 3 + ord("b")


class ScriptedSession:
    """Allows `texts`; steers to B when one token remains."""

    def __init__(self, complete_after: int, *, steers: bool = True) -> None:
        self.complete_after, self.steers, self.count = complete_after, steers, 0

    def try_accept(self, token_id: int, remaining: int, work: WorkLimit) -> bool:
        return True

    def accept(self, token_id: int, remaining: int) -> int | None:
        self.count += 1
        return B if self.steers and remaining == 1 else token_id

    def captures(self) -> dict[str, tuple[str, ...]] | None:
        return {"n": ("a",) * self.count}

    @property
    def is_complete(self) -> bool:
        return self.count >= self.complete_after

    @property
    def is_accepting(self) -> bool:
        return self.is_complete


ROW = Row(1, [5], 1, [0], 0, True, SamplingParams(max_tokens=4))


def request(session: Any = None, *, eos: bool = True, **options: Any) -> Request:
    params = SamplingParams(**({"max_tokens": 4} | options))
    eos_ids = frozenset({EOS})
    stop_ids = frozenset(params.stop_token_ids) | (eos_ids if eos else frozenset())
    made = make_request(1, [1, 5], params, stop_ids=stop_ids, eos_ids=eos_ids)
    made.session = session
    made.num_computed_tokens = 2
    return made


def draw(target: Request, *tokens: int, **rest: Any) -> list[RequestOutput | None]:
    return [
        next(advance(target, ROW, SampledRow((SampledToken(token, **rest),)), WorkLimit(0)), None) for token in tokens
    ]


def test_a_token_is_appended_and_shown() -> None:
    target = request()
    (output,) = draw(target, A)
    assert output is not None
    assert (output.text, output.token_ids, output.is_last) == ("a", (A,), False)
    assert target.token_ids == [1, 5, A]


def test_end_tokens_end_without_being_part_of_the_text() -> None:
    target = request()
    output = draw(target, A, EOS)[-1]
    assert output is not None
    assert output.finish_reason is FinishReason.STOP
    assert target.output_token_ids == [A]
    assert target.results.stop is None


def test_a_stop_token_is_named() -> None:
    target = request(stop_token_ids=(B,))
    output = draw(target, A, B)[-1]
    assert output is not None
    assert (output.finish_reason, target.results.stop) == (FinishReason.STOP, B)


def test_ignore_eos_makes_it_a_token() -> None:
    target = request(eos=False)
    assert draw(target, EOS)[0] is not None
    assert target.output_token_ids == [EOS]


def test_the_limit_ends_with_length() -> None:
    output = draw(request(max_tokens=2), A, A)[-1]
    assert output is not None
    assert output.finish_reason is FinishReason.LENGTH


def test_a_complete_constraint_ends_without_an_end_token() -> None:
    output = draw(request(ScriptedSession(2)), A, A)[-1]
    assert output is not None
    assert (output.finish_reason, output.token_ids) == (FinishReason.STOP, (A,))


def test_a_steered_token_takes_the_place_of_the_drawn_one() -> None:
    target = request(ScriptedSession(4), logprobs=1)
    logprob = TokenLogprob(A, -0.5, ((A, -0.5), (B, -1.5)))
    outputs = draw(target, A, A, A, A, logprob=logprob)
    assert target.output_token_ids == [A, A, A, B]
    assert target.results.logprobs[-1].token_id == B
    assert target.results.logprobs[-1].logprob == -1.5
    assert outputs[-1] is not None
    assert outputs[-1].finish_reason is FinishReason.STOP


def test_what_a_grammar_has_captured_is_kept_once_the_text_has_ended() -> None:
    target = request(ScriptedSession(2))
    draw(target, A)
    assert target.results.captures is None
    draw(target, A)
    assert target.results.captures == {"n": ("a", "a")}


def test_a_session_that_accepts_nothing_more_ends_the_text_before_the_token() -> None:
    class Ending(ScriptedSession):
        def accept(self, token_id: int, remaining: int) -> int | None:
            return None if remaining == 2 else super().accept(token_id, remaining)

    target = request(Ending(9))
    outputs = draw(target, A, A, A)
    assert target.output_token_ids == [A, A]
    assert outputs[-1] is not None
    assert (outputs[-1].finish_reason, outputs[-1].token_ids) == (FinishReason.STOP, ())


def test_a_value_that_could_not_be_closed_is_an_error() -> None:
    with pytest.raises(BudgetError):
        draw(request(ScriptedSession(9, steers=False)), A, A, A, A)


def test_logits_that_are_not_finite_raise() -> None:
    with pytest.raises(NumericsError, match="token 2"):
        list(advance(request(), ROW, SampledRow(is_finite=False), WorkLimit(0)))


def test_a_row_of_an_unfinished_prompt_says_nothing() -> None:
    assert list(advance(request(), ROW, SampledRow(), WorkLimit(0))) == []
