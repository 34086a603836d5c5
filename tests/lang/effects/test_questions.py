"""Questions: typed, lazy answers, from a function in code or from people through a journal."""

from __future__ import annotations

import contextlib
import datetime
import json
import threading
import time
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

import rtlang as rt
from rtlang.cassette.answers import AnswersFile
from rtlang.cassette.journal_file import JournalFile
from rtlang.testing import ScriptedRuntime


class Order(BaseModel):
    item: str
    count: int = Field(ge=1)


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


@rt.program
def approve(s: rt.State, item: str) -> str:
    s += rt.text("Offer for ", item, ":")
    s += rt.gen("offer")
    answer = rt.ask(rt.format("Buy for {}?", s["offer"]), bool)
    s += rt.text(" approved: ", answer)
    s += rt.gen("letter")
    return "yes" if answer else "no"


def test_a_function_answers_in_code() -> None:
    asked: list[rt.Question] = []

    def answer(question: rt.Question) -> bool:
        asked.append(question)
        return True

    with ScriptedRuntime({"offer": "5 EUR"}) as runtime:
        result = approve.run("tea", runtime=runtime, ask=answer)
        assert result.value == "yes"
        assert " approved: True" in result.text() or " approved: true" in result.text()
        assert [
            each.value for each in approve.run_batch([{"item": "a"}, {"item": "b"}], runtime=runtime, ask=answer)
        ] == ["yes"] * 2
    assert (asked[0].text, asked[0].path, asked[0].schema) == ("Buy for 5 EUR?", "ask", {"type": "boolean"})
    assert len(asked) == 3


@pytest.mark.parametrize(
    ("schema", "given", "value"),
    [
        (None, "any text", "any text"),
        (int, 5, 5),
        (Literal["a", "b"], "b", "b"),
        (Order, {"item": "tea", "count": 2}, Order(item="tea", count=2)),
        (list[Order], [{"item": "tea", "count": 2}], [Order(item="tea", count=2)]),
        ({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}, {"n": 3}, {"n": 3}),
        ('{"enum": ["x", 1]}', 1, 1),
        (Order, Order(item="tea", count=2), Order(item="tea", count=2)),
        (list[Order] | None, [Order(item="tea", count=2)], [Order(item="tea", count=2)]),
        (Size, Size.LARGE, Size.LARGE),
        (datetime.date, datetime.date(2024, 5, 1), datetime.date(2024, 5, 1)),
        (Decimal, Decimal("1.10"), Decimal("1.10")),
        (set[int], {3}, {3}),
    ],
)
def test_answers_are_typed(schema: Any, given: Any, value: Any) -> None:
    @rt.program
    def body(s: rt.State) -> Any:
        return rt.value(rt.ask("?", schema))

    with ScriptedRuntime() as runtime:
        assert body.run(runtime=runtime, ask=lambda question: given).value == value
        assert type(body.run(runtime=runtime, ask=lambda question: given).value) is type(value)


@pytest.mark.parametrize(
    ("schema", "given"),
    [
        (None, 5),
        (bool, "perhaps"),
        (int, "five"),
        (Literal["a", "b"], "c"),
        (Order, {"item": "tea", "count": 0}),
        ({"type": "integer"}, 1.5),
        (Order, object()),
        (int, Size.LARGE),
        ({"type": "integer"}, Size.LARGE),
    ],
)
def test_answers_that_do_not_fit_are_errors_that_name_the_question(schema: Any, given: Any) -> None:
    @rt.program
    def body(s: rt.State) -> Any:
        return rt.value(rt.ask("How many?", schema))

    with ScriptedRuntime() as runtime, pytest.raises(rt.QuestionError, match=r"'How many\?' at 'ask': .*does not fit"):
        body.run(runtime=runtime, ask=lambda question: given)


def test_a_function_that_answers_too_late_fails_in_time() -> None:
    @rt.program
    def body(s: rt.State) -> Any:
        return rt.ask("?", bool, timeout_s=0.2)

    may_end = threading.Event()

    def late(question: rt.Question) -> bool:
        return may_end.wait(30)

    started = time.monotonic()
    with ScriptedRuntime() as runtime, pytest.raises(rt.QuestionError, match=r"within timeout_s = 0\.2"):
        body.run(runtime=runtime, ask=late)
    assert time.monotonic() - started < 20
    may_end.set()
    with ScriptedRuntime() as runtime:
        assert body.run(runtime=runtime, ask=lambda question: True).value is True


def test_without_anybody_it_is_an_error_that_says_who_could_answer() -> None:
    with (
        ScriptedRuntime() as runtime,
        pytest.raises(rt.UnansweredError, match=r"pass ask= to the run, or use a journal"),
    ):
        approve.run("tea", runtime=runtime)


@pytest.mark.parametrize("options", [{"timeout_s": 0}, {"timeout_s": True}, {"schema": 5}, {"schema": object()}])
def test_wrong_options_are_named(options: dict[str, Any]) -> None:
    @rt.program
    def body(s: rt.State) -> Any:
        return rt.ask("?", **options)

    with ScriptedRuntime() as runtime, pytest.raises(rt.ParameterError, match=next(iter(options))):
        body.run(runtime=runtime)
    with ScriptedRuntime() as runtime, pytest.raises(rt.ParameterError, match="ask"):
        body.run(runtime=runtime, ask=5)


def test_a_run_without_an_answer_ends_and_goes_on_after_it(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with ScriptedRuntime({"offer": "5 EUR", "letter": "Dear"}) as runtime:
        for _ in range(2):
            with (
                rt.journal(path, runtime, wait_s=0),
                pytest.raises(rt.UnansweredError, match=r"rtlang answer .*journal ask VALUE"),
            ):
                approve.run("tea")
        assert runtime.count("offer") == 1
        with contextlib.closing(JournalFile(path)) as file:
            assert not file.is_finished
            (intent,) = file.intents.values()
        assert intent["args"][:2] == ["Buy for 5 EUR?", {"type": "boolean"}]
        answers = AnswersFile(str(path))
        answers.add("ask", "perhaps")
        with rt.journal(path, runtime, wait_s=0), pytest.raises(rt.UnansweredError):
            approve.run("tea")
        answers.add("ask", False)
        with rt.journal(path, runtime, wait_s=0):
            assert approve.run("tea").value == "no"
        answers.add("ask", True)  # too late
    with rt.journal(path):
        assert approve.run("tea").value == "no"


def test_a_run_that_waits_takes_the_answer_at_once(tmp_path: Path) -> None:
    path, found = tmp_path / "journal", list[str]()
    with ScriptedRuntime() as runtime, rt.journal(path, runtime) as durable:
        running = threading.Thread(target=lambda: found.append(approve.run("tea", runtime=durable).value))
        running.start()
        deadline = time.monotonic() + 20
        while not path.exists() or b"rt.ask" not in path.read_bytes():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        AnswersFile(str(path)).add("ask", True)
        running.join(20)
    assert found == ["yes"]


def test_a_question_that_nobody_answers_in_time_fails_for_good(tmp_path: Path) -> None:
    path = tmp_path / "journal"

    @rt.program
    def body(s: rt.State) -> str:
        s += "A"
        s += rt.gen("x")
        try:
            return str(rt.ask("Now?", timeout_s=0.3))
        except rt.QuestionError as error:
            return error.reason

    with ScriptedRuntime() as runtime:
        with rt.journal(path, runtime):
            assert body.run().value == "nobody answered within timeout_s = 0.3"
        AnswersFile(str(path)).add("ask", "late")
        with rt.journal(path, runtime):
            assert body.run().value == "nobody answered within timeout_s = 0.3"


def test_questions_of_forks_and_branches_have_paths_of_their_own(tmp_path: Path) -> None:
    @rt.program
    def body(s: rt.State) -> Any:
        answers = []
        for fork in s.fork(2):
            fork += "A"
            fork += rt.gen("x")
            answers.append(rt.ask(fork["x"], int))
        s += "B"

        def turn(inner: rt.State) -> None:
            inner += rt.gen("y")
            inner += rt.text(rt.ask("Go?"))

        rt.repeat(turn, at_most=2)
        return rt.value(answers), str(s.text())

    asked: list[str] = []

    def answer(question: rt.Question) -> Any:
        asked.append(question.path)
        return len(asked) if question.schema else "go"

    with ScriptedRuntime({"y": "."}) as runtime, rt.journal(tmp_path / "journal", runtime):
        result = body.run(ask=answer)
    assert sorted(asked) == ["fork[0]/ask", "fork[1]/ask", "repeat[0]/ask", "repeat[1]/ask"]
    assert result.value[1] == "B.go.go"
    with rt.journal(tmp_path / "journal"):
        assert json.dumps(body.run().value) == json.dumps(result.value)


def test_an_async_body_awaits_the_answer() -> None:
    @rt.program
    async def body(s: rt.State) -> Any:
        return await rt.ask("How many?", int)

    async def answer(question: rt.Question) -> int:
        return 4

    with ScriptedRuntime() as runtime:
        assert body.run(runtime=runtime, ask=answer).value == 4


def test_recordings_keep_answers(tmp_path: Path) -> None:
    with ScriptedRuntime() as runtime, rt.record(tmp_path / "tape", runtime):
        assert approve.run("tea", ask=lambda question: True).value == "yes"
    with rt.replay(tmp_path / "tape"):
        assert approve.run("tea").value == "yes"
