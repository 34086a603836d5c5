"""Emitted values come to the stream in order, typed, and once for a reader that has taken them."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import rtlang as rt
from rtlang.cassette.journal_file import MAGIC
from rtlang.cassette.records import decode_records
from rtlang.contract.errors import JournalError
from rtlang.contract.events import CallRequested
from rtlang.lang.sessions.emissions import EmissionOrder
from rtlang.testing import ScriptedRuntime


class Sheet(BaseModel):
    name: str


@dataclass
class Step:
    number: int


def emitted(stream: Any) -> list[Any]:
    return [(event.path, event.value) for event in stream if isinstance(event, rt.EmitEvent)]


@rt.program
def report(s: rt.State) -> str:
    s.emit("started")
    s += "A"
    s += rt.gen("sheet", schema=Sheet)
    s.emit(s["sheet"])
    s.emit(Step(1))
    s += rt.gen("text")
    with s.scope("end"):
        s.emit([s["text"], {"done": True}])
    return str(s["text"])


EXPECTED = [
    ("emit", "started"),
    ("emit#2", Sheet(name="Ada")),
    ("emit#3", Step(1)),
    ("end/emit", ["whole", {"done": True}]),
]


def test_values_come_typed_and_in_the_order_of_the_body() -> None:
    answers = {"sheet": '{"name": "Ada"}', "text": "whole"}
    with ScriptedRuntime(answers, delay_s={"sheet": 0.05}) as runtime:
        assert emitted(report.stream(runtime=runtime)) == EXPECTED
        assert report.run(runtime=runtime).value == "whole"


def test_async_streams_have_them_too() -> None:
    async def read(runtime: ScriptedRuntime) -> list[Any]:
        return [event.value async for event in report.stream(runtime=runtime) if isinstance(event, rt.EmitEvent)]

    with ScriptedRuntime({"sheet": '{"name": "Ada"}', "text": "whole"}) as runtime:
        assert asyncio.run(read(runtime)) == [value for _, value in EXPECTED]


def test_a_failed_value_does_not_stop_the_later_ones() -> None:
    @rt.program
    def body(s: rt.State) -> None:
        forks = s.fork(2)
        for name, fork in zip("AB", forks, strict=True):
            fork += name
        forks[0] += rt.gen("bad")
        forks[1] += rt.gen("good")
        s.emit(forks[0]["bad"])
        s.emit(forks[1]["good"])

    with ScriptedRuntime({"bad": ValueError("no"), "good": "fine"}, delay_s={"bad": 0.05}) as runtime:
        assert [value for _, value in emitted(body.stream(runtime=runtime, on_error="result"))] == ["fine"]


def test_in_loops_of_the_graph_each_turn_sends() -> None:
    @rt.program
    def body(s: rt.State) -> None:
        s += "A"

        def turn(inner: rt.State) -> None:
            inner += rt.gen("x")
            inner.emit(inner["x"])

        rt.repeat(turn, at_most=3)

    with ScriptedRuntime({"x": ["a", "b", "c"]}) as runtime:
        assert emitted(body.stream(runtime=runtime)) == [(f"repeat[{turn}]/emit", "abc"[turn]) for turn in range(3)]


def test_a_run_that_goes_on_sends_what_the_reader_had_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with ScriptedRuntime({"sheet": '{"name": "Ada"}', "text": "whole"}) as runtime:
        with rt.journal(path, runtime) as durable:
            assert emitted(report.stream(runtime=durable)) == EXPECTED
        data = path.read_bytes()
        records = list(decode_records(data, MAGIC, "", JournalError))
        for at, (_, end) in enumerate(records):
            path.write_bytes(data[:end])
            taken = {body[1] for body, _ in records[: at + 1] if body[0] == "answer"}
            with rt.journal(path, runtime) as durable:
                assert emitted(report.stream(runtime=durable)) == [each for each in EXPECTED if each[0] not in taken]
        path.unlink()
        with rt.journal(path, runtime) as durable:
            stream = report.stream(runtime=durable)
            for event in stream:
                if isinstance(event, rt.EmitEvent) and event.path == "emit#2":
                    break  # the reader dies while it deals with the second one
            stream.close()
        with rt.journal(path, runtime) as durable:
            assert emitted(report.stream(runtime=durable)) == EXPECTED[1:]


def test_recordings_send_again(tmp_path: Path) -> None:
    answers = {"sheet": '{"name": "Ada"}', "text": "whole"}
    for _ in range(2):
        with ScriptedRuntime(answers) as runtime, rt.record(tmp_path / "tape", runtime) as recorder:
            assert emitted(report.stream(runtime=recorder)) == EXPECTED
    with rt.replay(tmp_path / "tape") as replay:
        assert emitted(report.stream(runtime=replay)) == EXPECTED


def test_what_no_graph_holds_is_refused() -> None:
    @rt.program
    def body(s: rt.State) -> None:
        s.emit(threading.Lock())

    with (
        ScriptedRuntime() as runtime,
        pytest.raises(rt.TraceError, match=r"the value of emit\(\): .*is not plain data"),
    ):
        body.run(runtime=runtime)


def test_values_wait_for_the_ones_before_them() -> None:
    ended: set[int] = set()
    order = EmissionOrder({2: 1, 3: 2, 9: 8}, ended.__contains__)
    event = [CallRequested(0, number, "rt.emit", ()) for number in range(10)]
    assert order.take(event[3]) == []
    assert order.take(event[2]) == []
    assert order.holds_any
    assert order.take(event[1]) == event[1:4]
    ended.add(8)
    assert order.take(event[9]) == [event[9]]
    with contextlib.suppress(KeyError):
        assert order.end(5) == []
    assert not order.holds_any
