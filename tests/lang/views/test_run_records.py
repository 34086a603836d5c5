"""Records of runs, and the pictures of results that are drawn from them."""

from __future__ import annotations

import copy
import pickle
import threading
from typing import Any

import rtlang as rt
from rtlang.contract.pictures.run_record import segments
from rtlang.lang.execution.result import Result
from rtlang.lang.views.run_records import record_of as record_of_session
from rtlang.serve.server import running_server
from rtlang.testing import ScriptedRuntime
from tests.support.programs.fake_target import FakeTarget, answer, by_name
from tests.support.servers.html_check import read_html


def record_of(result: Result) -> Any:
    return result._record()


def words(result: Result) -> str:
    """The texts of the first sequence, without its branches."""
    return "".join(span.text for span in segments(record_of(result))[0].spans if span.kind != "role")


def test_a_result_is_drawn_with_texts_usage_and_breaks(target: FakeTarget) -> None:
    def body(s: Any) -> str:
        s += rt.user("question") + rt.assistant(rt.gen("x"))
        if s["x"] == "never":
            return "no"
        s += rt.user("and ", s["x"].upper()) + rt.assistant(rt.gen("y"))
        return "yes"

    result = rt.program(body).run()
    root = read_html(result.to_html("title of it"))
    for part in (
        "title of it",
        result["x"],
        result["y"],
        result["x"].upper(),
        "test_run_records.py:",
        "returned 'yes'",
    ):
        assert part in root.words
    assert "1 graph break" in root.words
    (graph,) = root.all(kind="rt-graph")
    assert result["y"] in graph.words
    texts = read_html(result._repr_html_())
    assert [each.words for each in texts.all(kind="rt-span")] == [result["x"], result["y"]]
    assert not texts.all("script")


def test_times_are_those_of_the_run(target: FakeTarget) -> None:
    def body(s: Any) -> None:
        s += rt.gen("x")
        if s["x"]:
            s += rt.gen("y")

    record = record_of(rt.program(body).run())
    ends = [record.nodes[node_id].ended_s for node_id in sorted(record.nodes)]
    assert len(ends) == 2
    assert 0 <= ends[0] <= ends[1] <= record.seconds


def test_a_failed_run_shows_its_errors(target: FakeTarget) -> None:
    target.script = by_name({"bad": rt.ConstraintError("no <such> shape")})

    def body(s: Any) -> None:
        s += rt.gen("good") + rt.gen("bad") + rt.gen("after")

    result = rt.program(body).run(on_error="result")
    root = read_html(result.to_html())
    assert "no <such> shape" in root.words
    assert len(root.all(kind="rt-bad")) == 2  # and what depends on it
    (shown,) = root.all(kind="rt-error")
    assert "ConstraintError" in shown.words
    assert "no <such> shape" in read_html(result._repr_html_()).words


def test_a_run_that_is_cancelled_is_drawn(target: FakeTarget) -> None:
    target.hold()

    def body(s: Any) -> None:
        s += rt.gen("x")
        raise ValueError("stopped")

    result = rt.program(body).run(on_error="result")
    root = read_html(result.to_html())
    assert "ValueError: stopped" in root.words


def test_a_copy_and_a_pickle_are_drawn_alike(target: FakeTarget) -> None:
    def body(s: Any) -> Any:
        forks = s.fork(2)
        forks += lambda index: rt.text(index) + rt.gen("x")
        forks.join()
        return s["x"]

    result = rt.program(body).run()
    assert pickle.loads(pickle.dumps(result)).to_html() == result.to_html()
    assert copy.copy(result)._repr_html_() == result._repr_html_()


def test_merged_generations_are_shown_in_every_branch(target: FakeTarget) -> None:
    def body(s: Any) -> None:
        s += "start"
        forks = s.fork(3)
        forks += rt.gen("same")
        forks.join()
        s += rt.gen("end")

    result = rt.program(body).run()
    spans = read_html(result._repr_html_()).all(kind="rt-span")
    assert [each.words for each in spans].count(answer("start", "same")) == 3


def test_values_of_pure_functions_are_shown(target: FakeTarget) -> None:
    def body(s: Any) -> None:
        s += rt.gen("x")
        s += rt.user(s["x"].strip().upper(), " and ", rt.join(", ", [s["x"], "b"]))
        s += rt.gen("y")

    result = rt.program(body).run()
    x = result["x"]
    assert words(result) == f"{x}{x.strip().upper()} and {x}, b{result['y']}"


def test_branches_loops_and_calls_are_shown_as_they_ran() -> None:
    @rt.program
    def agent(s: rt.State) -> Any:
        s += rt.user("go")

        def step(b: rt.State) -> Any:
            b += rt.assistant(rt.gen("tool", choices=["search", "done"]))

            def search(c: rt.State) -> Any:
                c += rt.tool(rt.call(str.upper, b["tool"]))
                return b["tool"]

            return rt.switch(b["tool"], {"search": search}, default="none")

        rt.repeat(step, until=lambda b: b["tool"] == "done", at_most=5)
        s += rt.assistant(rt.gen("end", max_tokens=5))

    with ScriptedRuntime({"tool": ["search", "search", "done"], "end": "bye"}) as runtime:
        result = agent.run(runtime=runtime)
    assert words(result) == result.text() == "gosearchSEARCHsearchSEARCHdonenonebye"
    root = read_html(result.to_html())
    (graph,) = root.all(kind="rt-graph")
    assert "3 times" in graph.words
    spans = read_html(result._repr_html_()).all(kind="rt-span")
    assert [each.words for each in spans] == ["search", "search", "done", "bye"]
    assert all("tool" in each.attributes["title"] for each in spans[:3])


def test_a_run_over_a_socket_has_the_same_picture() -> None:
    @rt.program
    def looped(s: rt.State) -> Any:
        def step(b: rt.State) -> None:
            b += rt.gen("x", max_tokens=5)

        rt.repeat(step, until=lambda b: b["x"] == "done", at_most=4)
        s += "." + rt.gen("end", max_tokens=5)
        return s["end"]

    answers: dict[str | None, Any] = {"x": ["a", "b", "done"], "end": "bye"}
    found = []
    with ScriptedRuntime(answers) as runtime:
        found.append(looped.run(runtime=runtime))
    with ScriptedRuntime(answers) as runtime, running_server(runtime) as url, rt.connect(url) as remote:
        found.append(looped.run(runtime=remote))
    local, served = found
    assert words(local) == words(served) == "abdone.bye"
    for result in found:
        assert "3 times" in result.to_html()
        assert len(record_of(result).nodes) == len(record_of(local).nodes)


def test_reasoning_is_shown_under_its_own_name() -> None:
    @rt.program
    def thinks(s: rt.State) -> None:
        s += rt.user("hm?") + rt.assistant(rt.gen("answer", max_tokens=20, reasoning=20))

    with rt.Runtime(num_threads=1) as runtime:
        result = thinks.run(runtime=runtime, on_error="result")
    titles = [each.attributes["title"] for each in read_html(result._repr_html_()).all(kind="rt-span")]
    assert any("reasoning of answer" in each for each in titles)


def test_pictures_while_other_threads_deliver_events(target: FakeTarget) -> None:
    """The record may be taken at any time."""
    stream = rt.program(_many).stream()
    session = stream._session
    errors: list[BaseException] = []

    def draw() -> None:
        try:
            while session.final is None:
                segments(record_of_session(session))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=draw)
    thread.start()
    stream.result()
    thread.join(20)
    assert not thread.is_alive()
    assert errors == []


def _many(s: Any) -> None:
    forks = s.fork(40)
    forks += lambda index: rt.text(index) + rt.gen("x")
    for fork in forks:
        if fork["x"]:
            fork += rt.gen("y")
