"""`call.run()` in a program is a call of the graph: it happens once, on the body's thread, with the tool's own exception."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import datetime
import pickle
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import rtlang as rt
from rtlang.cassette.journal_file import MAGIC, JournalFile
from rtlang.cassette.records import decode_records
from rtlang.contract.errors import JournalError
from rtlang.contract.request_graph import Call
from rtlang.testing import ScriptedRuntime
from tests.support.programs.fake_target import FakeTarget
from tests.support.schemas.tool_templates import render

LOG: list[Any] = []


@dataclass
class Receipt:
    amount: int
    at: datetime.date


def pay(amount: int, day: datetime.date) -> Receipt:
    LOG.append((amount, threading.current_thread().name))
    return Receipt(amount, day)


def fails(amount: int) -> None:
    LOG.append(amount)
    raise KeyError("no such account")


def opaque(amount: int) -> Any:
    return threading.Lock()


def stamp(amount: int) -> datetime.datetime:
    return datetime.datetime(2026, 1, amount, tzinfo=datetime.UTC)


def unannotated(amount: int):  # type: ignore[no-untyped-def]
    return {"tags": {amount}, "day": datetime.date(2026, 1, 2)}


@pytest.fixture(autouse=True)
def cleared() -> None:
    LOG.clear()


@contextlib.contextmanager
def calling(*calls: tuple[str, dict[str, Any]]) -> Iterator[FakeTarget]:
    with FakeTarget(script=lambda call: render("hermes", "", "", list(calls))) as target:
        target.tool_format = "hermes"
        yield target


def one(tool: Any) -> rt.Program:
    @rt.program
    def body(s: rt.State) -> Any:
        s += "?"
        s += rt.gen("step", 60, tools=[tool])
        return s["step"].run()

    return body


def test_a_run_records_a_call_and_happens_on_the_bodys_thread() -> None:
    names: list[str] = []

    @rt.program
    def body(s: rt.State) -> Any:
        s += "?"
        s += rt.gen("step", 60, tools=[pay])
        names.append(threading.current_thread().name)
        return s["step"].run()

    with calling(("pay", {"amount": 3, "day": "2026-05-01"})) as target:
        result = body.run(runtime=target)
    assert result.value == Receipt(3, datetime.date(2026, 5, 1)), "the annotated type"
    assert [(3, names[0])] == LOG
    (call,) = (node for node in result.graph.nodes if isinstance(node, Call))
    assert (call.function, call.path) == ("pay", "step/pay()")


def test_the_exception_of_the_tool_is_the_cause() -> None:
    with calling(("fails", {"amount": 3})) as target:
        with pytest.raises(rt.ToolError, match=r"the tool 'fails' failed at .*KeyError: 'no such account'") as found:
            one(fails).run(runtime=target)
        assert isinstance(found.value.__cause__, KeyError)

        @rt.program
        def catching(s: rt.State) -> str:
            s += "?"
            s += rt.gen("step", 60, tools=[fails])
            try:
                s["step"].run()
            except rt.ToolError as error:
                return error.reason
            return ""

        result = catching.run(runtime=target)
    assert result.value == "KeyError: 'no such account'"
    assert result.error is None, "the body has seen it"
    assert LOG == [3, 3]


@pytest.mark.parametrize(
    ("tool", "value"),
    [
        (stamp, datetime.datetime(2026, 1, 3, tzinfo=datetime.UTC)),
        (unannotated, {"tags": [3], "day": "2026-01-02"}),
    ],
)
def test_results_are_data_with_the_annotated_type(tool: Any, value: Any) -> None:
    with calling((tool.__name__, {"amount": 3})) as target:
        assert one(tool).run(runtime=target).value == value


def test_a_result_that_cannot_be_kept_is_an_error_that_says_what_to_write() -> None:
    message = r"which a run cannot keep: return plain data.*call.function"
    with calling(("opaque", {"amount": 3})) as target, pytest.raises(rt.CallError, match=message):
        one(opaque).run(runtime=target)


def test_async_tools_run_in_the_loop_of_the_body() -> None:
    loops: list[Any] = []

    async def wait(amount: int) -> int:
        loops.append(asyncio.get_running_loop())
        await asyncio.sleep(0)
        return amount + 1

    @rt.program
    async def body(s: rt.State) -> list[int]:
        loops.append(asyncio.get_running_loop())
        s += "?"
        s += rt.gen("step", 60, type=rt.tools([wait], choice="required", reasoning="forbidden"))
        reply = await s["step"]
        return [*await asyncio.gather(*(call.arun() for call in reply.calls)), reply.calls[0].run()]

    with calling(("wait", {"amount": 3}), ("wait", {"amount": 7})) as target:
        result = asyncio.run(body.arun(runtime=target))
    assert result.value == [4, 8, 4]
    assert loops[1] is loops[2] is loops[0], "arun uses the loop of the body"
    paths = [node.path for node in result.graph.nodes if isinstance(node, Call)]
    assert paths == ["step/wait()", "step/wait()[1]", "step/wait()#2"]


def test_outside_of_programs_and_within_calls_it_runs_directly() -> None:
    @rt.program
    def body(s: rt.State) -> Any:
        s += "?"
        s += rt.gen("step", 60, tools=[pay])
        call = rt.value(s["step"])
        return call, str(rt.call(lambda: call.run().amount)), rt.call(call)

    with calling(("pay", {"amount": 3, "day": "2026-05-01"})) as target:
        result = body.run(runtime=target)
    call, amount, called = result.value
    assert (amount, called) == ("3", Receipt(3, datetime.date(2026, 5, 1)))
    assert len(LOG) == 2
    for each in (call, pickle.loads(pickle.dumps(call)), copy.deepcopy(call)):
        assert each.run() == Receipt(3, datetime.date(2026, 5, 1))
        assert asyncio.run(each.arun()).amount == 3
    assert len(LOG) == 8


def test_a_branch_cannot_wait_for_a_tool() -> None:
    @rt.program
    def body(s: rt.State) -> None:
        s += "?"
        s += rt.gen("step", 60, tools=[pay])
        call = rt.value(s["step"])
        rt.switch(s["step"].name, {"pay": lambda inner: call.run()})

    message = r"a branch or loop of the graph cannot wait .* rt.call"
    with calling(("pay", {"amount": 3, "day": "2026-05-01"})) as target, pytest.raises(rt.TraceError, match=message):
        body.run(runtime=target)
    assert LOG == []


def test_a_durable_run_that_goes_on_does_not_call_again(tmp_path: Path) -> None:
    path = tmp_path / "journal"

    @rt.program
    def agent(s: rt.State) -> list[int]:
        s += "?"
        amounts = []
        for _ in range(3):
            s += rt.gen("step", 60, type=rt.tools([pay], choice="required", reasoning="forbidden", format="hermes"))
            for call in s["step"].calls:
                amounts.append(call.run().amount)
        return amounts

    text = render(
        "hermes", "", "", [("pay", {"amount": 3, "day": "2026-05-01"}), ("pay", {"amount": 4, "day": "2026-05-02"})]
    )
    with ScriptedRuntime({"step": text}) as runtime:
        with rt.journal(path, runtime):
            first = agent.run()
        assert first.value == [3, 4] * 3
        assert len(LOG) == 6
        data = path.read_bytes()
        ends = [end for body, end in decode_records(data, MAGIC, "", JournalError) if body[0] in ("answer", "end")]
        for end in ends:
            path.write_bytes(data[:end])
            with contextlib.closing(JournalFile(path)) as file:
                num_done, is_unknown = len(file.answers), len(file.intents) > len(file.answers)
            assert not is_unknown
            LOG.clear()
            with rt.journal(path, runtime):
                assert agent.run().value == first.value
            assert len(LOG) == 6 - num_done
