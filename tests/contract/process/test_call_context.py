"""The circumstances of a host call."""

from __future__ import annotations

from typing import Any

import pytest

from rtlang.contract.errors import QuestionError, TraceError, UnansweredError
from rtlang.contract.process.call_context import (
    CallContext,
    Question,
    current_call,
    current_call_or_none,
    idempotency_key,
    idempotency_key_of,
    within_call,
)


def test_a_call_knows_its_key_only_while_it_runs() -> None:
    context = CallContext("pay()", idempotency_key_of("run", "pay()"))
    with pytest.raises(TraceError, match="expected to run inside a call"):
        current_call()
    with within_call(context):
        assert current_call() is context
        assert idempotency_key() == context.idempotency_key
    assert current_call_or_none() is None


def test_keys_differ_by_run_and_path_and_are_the_same_everywhere() -> None:
    keys = [idempotency_key_of(run, path) for run in ("a", "b") for path in ("pay()", "pay()#2", "\udcff")]
    assert len(set(keys)) == 6


def test_questions_go_to_the_desk_or_to_the_handler() -> None:
    def check(answer: Any) -> Any:
        if answer != "yes":
            raise ValueError("expected yes")
        return True

    question = Question("Pay?", "ask", check=check)
    with pytest.raises(UnansweredError, match="nobody can answer it; pass ask="):
        CallContext("ask", "k").ask(question)
    assert CallContext("ask", "k", handler=lambda asked: "yes").ask(question) is True
    with pytest.raises(QuestionError, match="the answer 'no' does not fit: expected yes"):
        CallContext("ask", "k", handler=lambda asked: "no").ask(question)

    class Desk:
        def answer(self, asked: Question, handler: Any) -> Any:
            return asked.path, handler

    assert CallContext("ask", "k", handler=len, desk=Desk()).ask(question) == ("ask", len)
