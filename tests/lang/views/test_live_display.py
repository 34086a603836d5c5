"""Displays that follow a run, in a notebook that is made up for the test and on standard output."""

from __future__ import annotations

import asyncio
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import rtlang as rt
from rtlang.lang.views.live_display import INTERVAL_S, NotebookDisplay, TerminalDisplay, live_display
from rtlang.testing import ScriptedRuntime
from tests.support.programs.fake_target import FakeTarget, answer, by_name
from tests.support.servers.html_check import read_html


class Html:
    """As `IPython.display.HTML`."""

    def __init__(self, data: str) -> None:
        self.data = data


class Notebook:
    """The protocol of `IPython.display`: `display(..., display_id=True)` returns a handle with `update`."""

    HTML = Html

    def __init__(self) -> None:
        self.outputs: list[list[str]] = []

    def display(self, shown: Html, *, display_id: bool) -> Any:
        assert display_id
        output = [shown.data]
        self.outputs.append(output)
        return SimpleNamespace(update=lambda other: output.append(other.data))


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Notebook:
    """Makes this process look like a notebook."""
    found = Notebook()
    ipython = ModuleType("IPython")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    display = ModuleType("IPython.display")
    display.HTML, display.display = found.HTML, found.display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return found


@rt.program
def story(s: rt.State) -> Any:
    s += rt.user("hi") + rt.assistant(rt.gen("first", max_tokens=40))
    forks = s.fork(3)
    forks += lambda index: rt.text(index) + rt.gen("part", max_tokens=40)
    forks.join()
    if s["first"]:
        s += "\n" + rt.gen("last", max_tokens=40)
    return s["last"]


SCRIPT = {"first": "once upon a time", "part": ["<a>", "b", "c"], "last": "the end"}


def test_a_stream_grows_in_one_output_and_ends_as_the_result(notebook: Notebook) -> None:
    with ScriptedRuntime(SCRIPT) as runtime:
        result = story.stream(runtime=runtime).display()
    assert result.value == "the end"
    (output,) = notebook.outputs
    assert output[-1] == result._repr_html_()
    for html in output:
        read_html(html)


def test_an_async_stream_is_displayed_too(notebook: Notebook) -> None:
    @rt.program
    async def body(s: rt.State) -> Any:
        s += rt.gen("first", max_tokens=40)
        return await s["first"]

    async def main(runtime: Any) -> Any:
        return await body.stream(runtime=runtime).adisplay()

    with ScriptedRuntime(SCRIPT) as runtime:
        result = asyncio.run(main(runtime))
    assert result.value == SCRIPT["first"]
    assert notebook.outputs[0][-1] == result._repr_html_()


def test_a_stream_as_the_value_of_a_cell_is_displayed(notebook: Notebook) -> None:
    with ScriptedRuntime(SCRIPT) as runtime:
        stream = story.stream(runtime=runtime)
        stream._ipython_display_()
        assert notebook.outputs[0][-1] == stream.result()._repr_html_()


def test_errors_are_shown_and_raised(notebook: Notebook) -> None:
    with ScriptedRuntime({"first": rt.ConstraintError("no <such> shape")}) as runtime:
        with pytest.raises(rt.ConstraintError):
            story.stream(runtime=runtime).display()
        result = story.stream(runtime=runtime, on_error="result").display()
    assert isinstance(result.error, rt.ConstraintError)
    for output in notebook.outputs:
        assert "no <such> shape" in read_html(output[-1]).words


def test_text_so_far_is_shown(target: FakeTarget) -> None:
    """Updates come at most once per interval, and the last text is never left unseen."""
    now = 0.0
    stream = rt.program(_two).stream()
    stream.result()
    session = stream._session
    session._outcomes.clear()
    session._end_times.clear()
    session.final = None
    notebook = Notebook()
    display = NotebookDisplay(session, notebook, lambda: now)
    assert display.due_s() == 0.0
    display.update()
    assert display.due_s() is None
    display.add(0, 0, "so ")
    assert display.due_s() == pytest.approx(INTERVAL_S)
    now = 0.06
    display.add(0, 0, "far")
    assert display.due_s() == pytest.approx(INTERVAL_S - 0.06)
    now = 0.2
    assert display.due_s() == 0.0
    display.update()
    assert [len(output) for output in notebook.outputs] == [2]
    assert "so far" in read_html(notebook.outputs[0][-1]).words


def test_drawing_takes_a_small_share_of_the_time(target: FakeTarget) -> None:
    stream = rt.program(_two).stream()
    stream.result()
    times = iter([0.0, 10.0, 12.0, 12.0])  # drawing takes two seconds
    display = NotebookDisplay(stream._session, Notebook(), lambda: next(times))
    display.update()
    display.add(0, 0, "x")
    assert display.due_s() == pytest.approx(8.0)


def _two(s: Any) -> None:
    s += rt.gen("x") + rt.gen("y")


def test_a_terminal_prints_one_text_after_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    with ScriptedRuntime(SCRIPT) as runtime:
        result = story.stream(runtime=runtime).display()
    assert result.value == "the end"
    assert capsys.readouterr().out == "first: once upon a time\npart: <a>\npart: b\npart: c\nlast: the end\n"


def test_control_characters_are_printed_as_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    with ScriptedRuntime(SCRIPT | {"first": "\x1b]0;title\x07"}) as runtime:
        story.stream(runtime=runtime).display()
    assert capsys.readouterr().out.startswith("first: \\x1b]0;title\\x07\n")


def test_a_terminal_keeps_texts_apart_that_grow_together(
    target: FakeTarget, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = rt.program(_many).stream()
    stream.result()
    display = TerminalDisplay(stream._session, sys.stdout)
    first, second = (node.node_id for node in stream.recorded_nodes)
    display.add(second, 0, "B")
    display.add(first, 1, "A")
    display.update()
    display.add(second, 0, "b")
    display.add(first, 1, "a")
    display.update()
    display.end_node(second)
    display.end_node(first, rt.ConstraintError("bad"))
    assert display.due_s() == 0.0
    display.update()
    assert display.due_s() is None
    display.end(ValueError("wrong"), None)
    assert capsys.readouterr().out == "n[1]: Aa\nn[0]: [failed: bad]\nz: Bb\nValueError: wrong\n"


def _many(s: Any) -> None:
    s += rt.gen("n", n=2)
    s += rt.gen("z")


def test_failures_are_printed(target: FakeTarget, capsys: pytest.CaptureFixture[str]) -> None:
    target.script = by_name({"y": rt.ConstraintError("bad")})
    rt.program(_two).stream(on_error="result").display()
    out = capsys.readouterr().out
    assert out.startswith(f"x: {answer('', 'x')}\ny: [failed: ")
    assert out.endswith("\n")
    assert "ConstraintError" in out.splitlines()[-1]


def test_an_ipython_terminal_is_no_notebook(monkeypatch: pytest.MonkeyPatch, target: FakeTarget) -> None:
    ipython = ModuleType("IPython")
    ipython.get_ipython = lambda: SimpleNamespace()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    stream = rt.program(_two).stream()
    stream.result()
    assert isinstance(live_display(stream._session), TerminalDisplay)
    ipython.get_ipython = lambda: None  # type: ignore[attr-defined]
    assert isinstance(live_display(stream._session), TerminalDisplay)
