"""Going on after a failure: the state of a sequence once the body has seen that a generation of it failed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import BaseModel

import rtlang as rt
from rtlang.contract.errors import ApplyError, CheckError, RequestError, RtlangError, ValueParseError
from rtlang.testing import ScriptedRuntime
from tests.support.servers.serving import serving


class Model(BaseModel):
    total: int

    def model_post_init(self, context: object) -> None:
        if self.total < 0:
            raise ValueError("below 0")


GOOD, BAD = '{"total":1}', '{"total":-1}'
FAIL = RequestError("no memory")


@pytest.fixture(params=["local", "remote"])
def serve(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Makes runtimes that answer from a script, in this process or behind a socket."""
    closers: list[Any] = []

    def start(answers: dict[str | None, Any]) -> tuple[Any, ScriptedRuntime]:
        script = ScriptedRuntime(answers)
        closers.append(script.close)
        if request.param == "local":
            return script, script
        server = serving(cast(Any, script))
        remote = rt.connect(server.__enter__().url)
        closers.extend((lambda: server.__exit__(None, None, None), remote.close))
        return remote, script

    yield start
    for close in reversed(closers):
        close()


def contents(result: Any) -> list[str]:
    return [each["content"] for each in result.messages]


@pytest.mark.parametrize("failure", [BAD, FAIL])
@pytest.mark.parametrize("passes", [True, False])
def test_a_retry_loop_in_python_goes_on_from_before_the_failure(serve: Any, failure: Any, passes: bool) -> None:
    @rt.program
    def ask(s: rt.State) -> Any:
        s += rt.user("hi")
        for _ in range(3):
            s += rt.assistant("> ", rt.gen("x", type=Model))
            try:
                return rt.value(s["x"])
            except (ValueParseError, RequestError) as error:
                s += rt.user("no: " + error.message.partition(" (")[0])
        return None

    runtime, script = serve({"x": [failure, failure, GOOD]})
    result = ask.run(runtime=runtime, passes=passes)
    assert result.value == Model(total=1) == result["x"]
    turns = contents(result)
    assert len(turns) == 4
    assert turns[0] == "hi"
    assert turns[1] == turns[2]
    assert turns[3] == f"> {GOOD}"
    assert script.prompts("x")[2].count("Assistant:") == 1


def test_the_same_request_after_a_failure_is_asked_again(serve: Any) -> None:
    @rt.program
    def ask(s: rt.State) -> Any:
        for _ in range(4):
            s += "a" + rt.gen("x", type=Model)
            try:
                return rt.value(s["x"])
            except RtlangError:
                continue
        return None

    runtime, script = serve({"x": [BAD, FAIL, GOOD]})
    assert ask.run(runtime=runtime).value == Model(total=1)
    assert script.prompts("x") == ["a", "a", "a"]


def test_an_error_that_the_body_has_not_seen_ends_the_run(serve: Any) -> None:
    @rt.program
    def ask(s: rt.State) -> None:
        s += "a" + rt.gen("x", 5)
        s += "b" + rt.gen("y", 5)

    runtime, _ = serve({"x": FAIL, "y": "end"})
    with pytest.raises(RequestError, match="no memory"):
        ask.run(runtime=runtime)


WAYS: dict[str, Any] = {
    "value": lambda s: rt.value(s["x"]),
    "str": lambda s: str(s["x"]),
    "text": lambda s: str(s.text("x")),
    "meta": lambda s: s.meta("x").usage,
    "truth": lambda s: bool(s["x"]),
    "nested": lambda s: rt.value({"all": [s["x"]]}),
    "dependant": lambda s: str(s["y"]),
    "call": lambda s: rt.value(rt.call(len, s["x"])),
    "switch": lambda s: rt.value(rt.switch(s["x"], {"a": lambda s: "b"}, default=lambda s: "c")),
    "whole text": lambda s: str(s.text()),
    "messages": lambda s: rt.value(s.messages()),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_see_an_error_leaves_the_failure(serve: Any, way: str) -> None:
    @rt.program
    def ask(s: rt.State) -> Any:
        s += rt.user("hi")
        s += rt.assistant(rt.gen("x", 5))
        s += rt.user("more")
        s += rt.assistant(rt.gen("y", 5))
        with pytest.raises(RequestError, match="no memory"):
            WAYS[way](s)
        s += rt.assistant("plain, ", rt.gen("z", 5))
        return s["z"]

    runtime, script = serve({"x": FAIL, "y": "y", "z": "end"})
    result = ask.run(runtime=runtime)
    assert result.value == "end"
    assert contents(result) == ["hi", "plain, end"]
    assert script.prompts("z") == ["User: hi\nAssistant: plain, "]
    with pytest.raises(RequestError, match="no memory"):
        _ = result["y"]


def test_an_expression_is_dropped_as_a_whole_and_what_was_before_it_stays(serve: Any) -> None:
    @rt.program
    def ask(s: rt.State) -> Any:
        s += "a"
        s += "b"
        s += "c: " + rt.gen("x", 5) + "d"
        s += "e"
        try:
            str(s["x"])
        except RequestError:
            s += "f"
        return s.text()

    runtime, _ = serve({"x": FAIL})
    assert ask.run(runtime=runtime).value == "abf"


def test_in_an_open_message_only_the_expression_is_dropped(serve: Any) -> None:
    @rt.program
    def ask(s: rt.State) -> Any:
        s += rt.user("hi")
        with s.assistant():
            s += "so "
            s += "maybe " + rt.gen("x", 5)
            try:
                str(s["x"])
            except RequestError:
                s += "sorry " + rt.gen("y", 5)
        s += rt.user("ok")
        s += rt.assistant(rt.gen("z", 5))
        return s.messages()

    runtime, script = serve({"x": FAIL, "y": "y", "z": "z"})
    result = ask.run(runtime=runtime)
    assert contents(result) == ["hi", "so sorry y", "ok", "z"]
    assert script.prompts("z") == ["User: hi\nAssistant: so sorry y\nUser: ok\nAssistant: "]


def test_a_message_with_nothing_left_in_it_leaves_none(serve: Any) -> None:
    @rt.program
    def ask(s: rt.State) -> Any:
        s += rt.user("hi")
        with s.assistant():
            s += rt.gen("x", 5)
            with pytest.raises(RequestError):
                str(s["x"])
        s += rt.assistant(rt.gen("y", 5))

    runtime, script = serve({"x": FAIL, "y": "y"})
    assert contents(ask.run(runtime=runtime)) == ["hi", "y"]
    assert script.prompts("y") == ["User: hi\nAssistant: "]


def test_a_message_that_has_ended_is_dropped_as_a_whole(serve: Any) -> None:
    @rt.program
    def ask(s: rt.State) -> Any:
        with s.user():
            s += "hi"
        with s.assistant():
            s += "so "
            s += rt.gen("x", 5)
        try:
            str(s["x"])
        except RequestError:
            s += rt.assistant("again ", rt.gen("y", 5))

    runtime, script = serve({"x": FAIL, "y": "y"})
    assert contents(ask.run(runtime=runtime)) == ["hi", "again y"]
    assert script.prompts("y") == ["User: hi\nAssistant: again "]


def test_a_failure_before_the_open_message_keeps_the_message_open(serve: Any) -> None:
    @rt.program
    def ask(s: rt.State) -> Any:
        s += rt.user("hi")
        s += rt.assistant(rt.gen("x", 5))
        with s.user():
            s += "I heard "
            try:
                s += str(s["x"])
            except RequestError:
                s += "nothing"
        s += rt.assistant(rt.gen("y", 5))

    runtime, script = serve({"x": FAIL, "y": "y"})
    assert contents(ask.run(runtime=runtime)) == ["hi", "nothing", "y"]
    assert script.prompts("y") == ["User: hi\nUser: nothing\nAssistant: "]


def test_a_called_program_is_one_step_for_its_caller_and_many_for_itself(serve: Any) -> None:
    @rt.program
    def inner(s: rt.State, catches: bool) -> Any:
        s += "one "
        s += rt.gen("x", 5)
        if catches:
            with pytest.raises(RequestError):
                str(s["x"])
            s += "two "
        return s["x"]

    @rt.program
    def ask(s: rt.State, catches: bool, kind: str) -> Any:
        s += "zero "
        try:
            if kind == "call":
                str(inner(s, catches))
            else:
                s += inner.bind(catches)
                str(s["inner.x"])
        except RequestError:
            s += "after"
        return s.text()

    for kind in ("call", "append"):
        runtime, _ = serve({"inner.x": FAIL})
        assert ask.run(False, kind, runtime=runtime).value == "zero after"
        runtime, _ = serve({"inner.x": FAIL})
        assert ask.run(True, kind, runtime=runtime).value == "zero one two after"


def test_an_exception_that_leaves_a_called_program_drops_what_it_appended(serve: Any) -> None:
    @rt.program
    def inner(s: rt.State) -> None:
        s += "one " + rt.gen("a", 5)
        s += "two " + rt.gen("x", 5)
        str(s["x"])

    @rt.program
    def ask(s: rt.State) -> Any:
        s += "zero "
        try:
            s += inner.bind()
        except RequestError:
            s += "after"
        return s.text()

    runtime, _ = serve({"a": "a", "x": FAIL})
    assert ask.run(runtime=runtime).value == "zero after"


def test_forks_go_on_from_before_a_failure_of_theirs_and_of_their_parent(serve: Any) -> None:
    @rt.program
    def ask(s: rt.State) -> Any:
        s += "a"
        s += "b" + rt.gen("x", 5)
        forks = s.fork(3)
        forks += lambda index: f"{index}" + rt.gen("y", 5)
        with pytest.raises(RequestError):
            str(s["x"])
        for index, fork in enumerate(forks):
            fork += f"again{index} " + rt.gen("z", 5)
        s += "own"
        return [s.text(), *(fork.text() for fork in forks)]

    runtime, _ = serve({"x": FAIL, "y": "y", "z": "z"})
    assert ask.run(runtime=runtime).value == ["aown", "aagain0 z", "aagain1 z", "aagain2 z"]

    @rt.program
    def branch(s: rt.State) -> Any:
        s += "a" + rt.gen("w", 5)
        forks = s.fork(2)
        for index, fork in enumerate(forks):
            fork += f"b{index}" + rt.gen("x", 5)
            try:
                str(fork["x"])
            except RequestError:
                fork += "c" + rt.gen("y", 5)
        return [fork.text() for fork in forks]

    runtime, _ = serve({"w": "w", "x": [FAIL, "x"], "y": "y"})
    assert branch.run(runtime=runtime).value == ["awcy", "awb1x"]


def test_a_text_with_a_failed_value_of_another_sequence_is_left_too(serve: Any) -> None:
    @rt.program
    def ask(s: rt.State) -> Any:
        (fork,) = s.fork(1)
        fork += rt.gen("x", 5)
        s += "a "
        s += "b " + fork["x"]
        s += rt.gen("y", 5)
        with pytest.raises(RequestError, match="no memory"):
            str(s["y"])
        s += "c " + rt.gen("z", 5)
        return s.text()

    runtime, script = serve({"x": FAIL, "y": "y", "z": "z"})
    assert ask.run(runtime=runtime).value == "a c z"
    assert script.prompts("z") == ["a c "]


def test_a_text_that_quotes_an_unusable_value_stays(serve: Any) -> None:
    @rt.program
    def ask(s: rt.State) -> Any:
        (fork,) = s.fork(1)
        fork += rt.gen("x", type=Model)
        with pytest.raises(ValueParseError):
            rt.value(fork["x"])
        s += "It said " + fork.text("x")
        s += rt.gen("y", 5)
        return s.text()

    runtime, _ = serve({"x": BAD, "y": "y"})
    assert ask.run(runtime=runtime).value == f"It said {BAD}y"


def test_operations_that_fail_in_the_graph_are_left(serve: Any) -> None:
    @rt.program
    def ask(s: rt.State) -> Any:
        s += "a " + rt.gen("x", 5)
        s += "b " + s["x"].split("-")[3]
        s += rt.gen("y", 5)
        with pytest.raises(ApplyError):
            str(s["y"])
        s += "c " + rt.gen("z", 5)
        return s.text()

    runtime, _ = serve({"x": "x", "y": "y", "z": "z"})
    assert ask.run(runtime=runtime).value == "a xc z"


def test_refused_values_loops_and_scopes_are_left(serve: Any) -> None:
    @rt.program
    def ask(s: rt.State) -> Any:
        s += "a"
        with s.scope("part"):
            s += "b " + rt.gen("x", 5, check=lambda text: "short", repair=1)
            with pytest.raises(CheckError):
                str(s["x"])
            s += "c"
        rt.repeat(lambda s: s.__iadd__(rt.gen("z", 5)) and None, at_most=2)
        with pytest.raises(RequestError):
            str(s.text())
        s += "d"
        return [s.text(), s["part"]]

    runtime, _ = serve({"x": "x", "z": ["z", FAIL]})
    assert ask.run(runtime=runtime).value == ["acd", "c"]


def test_an_expression_that_raises_is_not_appended(serve: Any) -> None:
    @rt.program
    def ask(s: rt.State) -> Any:
        s += "a"
        (fork,) = s.fork(1)
        fork += rt.gen("x", type=Model)
        with pytest.raises(ValueParseError):
            s += rt.text("b ", rt.gen("y", 5), " ", rt.value(fork["x"]).total)
        with pytest.raises(rt.TraceError):
            s += "b " + rt.gen("y", 5) + rt.user("c", rt.assistant("d"))
        s += "e"
        return s.text()

    runtime, _ = serve({"x": BAD})
    assert ask.run(runtime=runtime).value == "ae"


def test_async_programs_go_on(serve: Any) -> None:
    @rt.program
    async def ask(s: rt.State) -> Any:
        s += rt.user("hi")
        for _ in range(3):
            s += rt.assistant(rt.gen("x", type=Model))
            try:
                return (await s["x"]).total
            except RtlangError:
                s += rt.user("again")
        return None

    runtime, script = serve({"x": [BAD, FAIL, GOOD]})
    assert asyncio.run(ask.arun(runtime=runtime)).value == 1
    assert script.prompts("x")[2] == "User: hi\nUser: again\nUser: again\nAssistant: "


def test_streams_have_the_error_and_the_values_after_it(serve: Any) -> None:
    @rt.program
    def ask(s: rt.State) -> Any:
        s += "a" + rt.gen("x", 5)
        try:
            str(s["x"])
        except RequestError:
            s += "b" + rt.gen("x", 5)
        return s["x"]

    runtime, _ = serve({"x": [FAIL, "x"]})
    events = list(ask.stream(runtime=runtime))
    assert [type(each).__name__ for each in events] == ["ErrorEvent", "TextEvent", "ValueEvent", "EndEvent"]


def test_a_function_that_gets_a_value_that_does_not_parse_is_no_sight_of_it(serve: Any) -> None:
    @rt.program
    def ask(s: rt.State) -> Any:
        s += rt.gen("x", type=Model)
        shown = rt.call(str, s["x"])
        s += " " + shown
        rt.value(shown)
        s += "." + rt.gen("y", 5)
        return s.text()

    runtime, script = serve({"x": BAD, "y": "y"})
    ask.run(runtime=runtime, on_error="result")
    assert script.prompts("y")[0].startswith(BAD)


def test_a_long_chain_is_walked_once_for_each_failure(serve: Any) -> None:
    @rt.program
    def ask(s: rt.State) -> Any:
        for index in range(300):
            s += f"{index} "
            s += rt.gen("x", 5)
            if index % 100 == 50:
                with pytest.raises(RequestError):
                    str(s["x"])
        return s.text()

    runtime, _ = serve({"x": lambda prompt: FAIL if prompt.endswith("50 ") else "x"})
    text = ask.run(runtime=runtime, on_error="result").value
    assert text.startswith("0 x1 x")
    assert "49 x50 51 x" in text


def test_journals_and_recordings_go_on_from_before_a_failure(tmp_path: Path) -> None:
    @rt.program
    def careful(s: rt.State) -> Any:
        s += rt.user("Write a code.")
        for pattern in ("[0-9]{200}", "[0-9]{2}"):
            s += rt.assistant("It is ", rt.gen("code", regex=pattern, max_tokens=3, temperature=1.0))
            try:
                return rt.value(s["code"])
            except rt.BudgetError:
                s += rt.user("Shorter.")
        return None

    with rt.Runtime("rtlang:tiny", num_threads=1) as runtime:
        results = []
        for _ in range(2):
            with rt.journal(tmp_path / "journal", runtime) as durable:
                results.append(careful.run(runtime=durable))
        with rt.record(tmp_path / "recording", runtime) as recorder:
            results.append(careful.run(runtime=recorder, seed=3))
        with rt.replay(tmp_path / "recording") as replayed:
            results.append(careful.run(runtime=replayed, seed=3))
    for first, again in (results[:2], results[2:]):
        assert contents(again) == contents(first) == ["Write a code.", "Shorter.", f"It is {first.value}"]
