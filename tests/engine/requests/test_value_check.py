"""Finished values are checked off the step, generated again as often as allowed, and end in an error of their own otherwise."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from rtlang.contract.errors import AbortedError, ConstraintError, EngineDeadError, InvalidValueError
from rtlang.contract.params import FinishReason, SamplingParams
from rtlang.engine.requests.request import RequestOutput, RequestSpec
from rtlang.engine.requests.value_check import ValueChecker
from rtlang.work.fair_executor import FairExecutor, WorkFuture
from rtlang.work.fair_queue import Owner
from rtlang_grammars import Constraint, ConstraintKind, TextCheck
from rtlang_grammars.lowering.structure_check import structure_check
from rtlang_grammars.schema.value_checks import value_check
from rtlang_grammars.spec.structures import read_structure, tagged

UNIQUE = value_check({"type": "array", "uniqueItems": True})
SCHEMA = Constraint(ConstraintKind.JSON_SCHEMA, '{"type": "array", "uniqueItems": true}')
TAGGED = structure_check(read_structure(tagged([("<a>", SCHEMA, "</a>")]).source), ["#/tags/0/part"])


class InPlace(FairExecutor):
    """Runs jobs where they are submitted, and notes their owners."""

    def __init__(self) -> None:
        super().__init__(1, "never started")
        self.owners: list[Owner] = []

    def submit_for(self, owner: Owner, price: float, fn: Callable[[], Any], **options: Any) -> WorkFuture[Any]:
        self.owners.append(owner)
        future: WorkFuture[Any] = WorkFuture()
        future.set_result(fn())
        return future


@dataclass
class Bench:
    """An engine that gives one text after the other, in pieces, and whoever listens to it. Tokens are characters.

    Attributes:
        check: of the sessions.
        texts: what the requests generate, in order; without what they are given.
        num_pieces: of each text.
    """

    check: TextCheck | None
    texts: list[str]
    num_pieces: int = 2
    is_wanted: bool = True
    started: list[tuple[float, int]] = field(default_factory=list)
    given: list[str] = field(default_factory=list)
    told: list[tuple[str, Any]] = field(default_factory=list)
    aborted: list[Any] = field(default_factory=list)
    waiting: list[Callable[[], None]] = field(default_factory=list)

    def start(self, spec: RequestSpec) -> Any:
        given_ids = spec.given_ids
        text = self.texts[len(self.started)]
        self.started.append((spec.params.temperature, spec.seed))
        given = "".join(map(chr, given_ids))
        self.given.append(given)
        shown = SimpleNamespace(text=given, shown=given)
        session = SimpleNamespace(value_check=self.check)
        request: Any = SimpleNamespace(session=session, output_text=shown, output_token_ids=list(given_ids))

        def give(begin: int, end: int) -> None:
            shown.text = shown.shown = given + text[:end]
            request.output_token_ids = [*given_ids, *map(ord, text[:end])]
            reason = FinishReason.STOP if end == len(text) else None
            spec.listener(RequestOutput(request, text[begin:end], tuple(map(ord, text[begin:end])), reason))

        cuts = [len(text) * i // self.num_pieces for i in range(self.num_pieces + 1)]
        self.waiting += [functools.partial(give, *each) for each in itertools.pairwise(cuts)]
        return request

    def listen(self, output: RequestOutput) -> None:
        self.told.append((output.text, output.error or output.finish_reason))

    def run(self, checker: ValueChecker | None = None, **params: Any) -> None:
        checker = checker or ValueChecker(lambda command: command(), InPlace())
        spec = RequestSpec(prompt_ids=[1], params=SamplingParams(**params), seed=7, listener=self.listen)
        checker.start(self.start, spec, self.aborted.append, lambda: self.is_wanted)
        while self.waiting:
            self.waiting.pop(0)()


def test_what_needs_no_check_is_passed_on_as_it_comes() -> None:
    bench = Bench(None, ["[1, 1]"])
    bench.run()
    assert bench.told == [("[1,", None), (" 1]", FinishReason.STOP)]


def test_a_valid_value_is_shown_at_once_where_it_might_have_been_replaced() -> None:
    bench = Bench(UNIQUE, ["[1, 2]"])
    bench.run()
    assert bench.told == [("[1, 2]", FinishReason.STOP)]


def test_an_invalid_value_is_generated_again_with_another_seed() -> None:
    bench = Bench(UNIQUE, ["[1, 1]", "[2, 2]", "[1, 2]"])
    bench.run(max_retries=2)
    assert bench.told == [("[1, 2]", FinishReason.STOP)]
    assert [temperature for temperature, _ in bench.started] == [0.0, 1.0, 1.0]
    assert len({seed for _, seed in bench.started}) == 3
    again = Bench(UNIQUE, ["[1, 1]", "[2, 2]", "[1, 2]"])
    again.run(max_retries=2)
    assert again.started == bench.started


@pytest.mark.parametrize("max_retries", [0, 2])
def test_a_value_that_stays_invalid_ends_in_an_error_that_says_why(max_retries: int) -> None:
    bench = Bench(UNIQUE, ["[1, 1]"] * 3)
    bench.run(max_retries=max_retries)
    text, error = bench.told[-1]
    assert isinstance(error, InvalidValueError)
    assert (error.text, error.num_attempts) == ("[1, 1]", max_retries + 1)
    assert "two elements are equal" in error.message
    assert text == ""
    assert len(bench.told) == (2 if max_retries == 0 else 1)  # without retries the text is shown as it comes


@pytest.mark.parametrize("max_retries", [0, 2])
def test_the_last_invalid_value_can_be_kept(max_retries: int) -> None:
    bench = Bench(UNIQUE, [f"[{number}, {number}]" for number in range(3)])
    bench.run(max_retries=max_retries, keeps_invalid=True)
    assert "".join(text for text, _ in bench.told) == f"[{max_retries}, {max_retries}]"
    assert bench.told[-1][1] is FinishReason.STOP
    assert len(bench.started) == max_retries + 1


def test_text_before_a_checked_part_is_streamed_and_later_attempts_go_on_behind_it() -> None:
    bench = Bench(TAGGED, ["hello <a>[1,1]</a> you", ">[2,2]</a>", ">[1,2]</a>."], num_pieces=11)
    bench.run()
    assert bench.given == ["", "hello <a", "hello <a"]
    assert "".join(text for text, _ in bench.told) == "hello <a>[1,2]</a>."
    assert bench.told[-1] == (">[1,2]</a>.", FinishReason.STOP)
    assert len(bench.told) == 6


def test_content_that_no_call_follows_is_streamed_to_its_end() -> None:
    bench = Bench(TAGGED, ["just text"], num_pieces=9)
    bench.run()
    assert [text for text, _ in bench.told] == list("just text")


def test_a_checked_part_is_streamed_if_it_is_not_generated_again() -> None:
    bench = Bench(TAGGED, ["<a>[1,1]</a>"], num_pieces=3)
    bench.run(max_retries=0)
    assert "".join(text for text, _ in bench.told) == "<a>[1,1]"
    assert isinstance(bench.told[-1][1], InvalidValueError)


def test_a_check_that_takes_too_long_ends_in_an_error() -> None:
    bench = Bench(value_check({"uniqueItems": True}, max_seconds=-1), ["[1]"])
    bench.run()
    ((_, error),) = bench.told
    assert isinstance(error, ConstraintError)
    assert "too long" in error.message


def test_nothing_is_started_or_kept_for_those_who_have_gone() -> None:
    bench = Bench(UNIQUE, ["[1, 1]", "[1, 2]"], is_wanted=False)
    bench.run()
    assert bench.told == []
    assert len(bench.started) == 1
    bench = Bench(UNIQUE, ["[1, 1]", "[1, 2]"])

    def listen_once() -> None:
        bench.is_wanted = False

    checker = ValueChecker(lambda command: (command(), listen_once())[0], InPlace())
    bench.run(checker)
    assert len(bench.aborted) == 1


def test_errors_of_the_engine_are_passed_on() -> None:
    request: Any = SimpleNamespace(session=SimpleNamespace(value_check=UNIQUE))
    error = AbortedError("gone")
    bench = Bench(UNIQUE, [])

    def start(spec: RequestSpec) -> Any:
        spec.listener(RequestOutput(request, finish_reason=FinishReason.CANCELLED, error=error))
        return request

    checker = ValueChecker(lambda command: command(), InPlace())
    spec = RequestSpec(prompt_ids=[1], params=SamplingParams(), listener=bench.listen)
    checker.start(start, spec, bench.aborted.append, lambda: True)
    assert bench.told == [("", error)]


def test_an_answer_after_the_end_is_dropped() -> None:
    def post(command: Callable[[], None]) -> None:
        raise EngineDeadError("stopped")

    bench = Bench(UNIQUE, ["[1, 2]"])
    bench.run(ValueChecker(post, InPlace()))
    assert bench.told == []


def test_own_threads_answer_and_can_be_closed() -> None:
    answers: list[Callable[[], None]] = []
    done: Future[None] = Future()

    def post(command: Callable[[], None]) -> None:
        answers.append(command)
        done.set_result(None)

    threads = FairExecutor(1, "check")
    checker = ValueChecker(post, threads)
    bench = Bench(UNIQUE, ["[1, 2]"])
    bench.run(checker)
    done.result(30)
    answers[0]()
    assert bench.told == [("[1, 2]", FinishReason.STOP)]
    threads.shutdown()
