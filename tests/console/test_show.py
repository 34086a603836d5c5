from __future__ import annotations

import dataclasses
import datetime
import json
from io import StringIO

import pydantic
import pytest
from rich.console import Console

import rtlang as rt
from rtlang.console.show import EventPrinter, Labels, plain, run_and_show, to_json, usage_line, values_of
from rtlang.console.source import CommandError
from rtlang.contract.errors import ConstraintError, RtlangError
from rtlang.contract.params import SamplingParams, Usage
from rtlang.contract.request_graph import Generate, RequestGraph, Text
from rtlang.contract.runs.run_options import RunOptions
from rtlang.lang.execution.stream import ErrorEvent, TextEvent
from rtlang.testing import ScriptedRuntime
from tests.support.programs.fake_target import Call, FakeTarget, Script, by_name


@rt.program
def tips(s: rt.State) -> object:
    s += "start "
    s += rt.gen("plan")
    forks = s.fork(2)
    for number, fork in enumerate(forks):
        fork += f"tip {number}"
        fork += rt.gen("tip")
    forks.join()
    s += rt.gen("many", n=2)
    return s["plan"]


@rt.program
def looks(s: rt.State) -> None:
    s += rt.gen("question")
    if s["question"] == "yes":
        s += rt.gen("answer")
        again = s.fork(1)[0]
        again += "again "
        again += rt.gen("answer")


def script(call: Call) -> str | RtlangError:
    """Texts that tell forks and choices apart."""
    match call.name:
        case "plan":
            return "go"
        case "tip":
            return "walk" if call.prompt.endswith("tip 0") else "run"
        case "many":
            return f"m{call.choice}"
        case _:
            return "yes" if call.name == "question" else "43" if "again" in call.prompt else "42"


def shown(program: rt.Program, script: Script, *, is_terminal: bool = False) -> str:
    output = StringIO()
    console = Console(
        file=output, width=60, force_terminal=is_terminal, color_system="standard" if is_terminal else None
    )
    with FakeTarget(script) as target:
        labels = Labels(target)
        run_and_show(program.stream(runtime=labels, on_error="result"), console, labels)
    return output.getvalue()


def labels_for(*names: str | None, n: int = 1) -> Labels:
    """Labels that know a graph with one node per name, with ids from 1."""
    nodes = [Generate(i, 0, name, SamplingParams(n=n)) for i, name in enumerate(names, 1)]
    labels = Labels(FakeTarget())
    labels.note([Text(0, None, ("x",)), *nodes])
    return labels


def test_texts_stand_under_their_names_and_forks_under_their_places() -> None:
    output = shown(tips, script)
    lines = output.splitlines()
    assert lines[0] == "plan: go"
    assert sorted(lines[1:]) == ["many[0]: m0", "many[1]: m1", "tip[0]: walk", "tip[1]: run"]
    assert "\x1b" not in output


def test_a_terminal_gets_a_colour_per_text() -> None:
    output = shown(tips, script, is_terminal=True)
    assert len({line.split("m")[0] for line in output.splitlines()}) > 2
    assert "\x1b[1;36mplan: \x1b[0mgo" in output


def test_long_lines_are_not_broken_and_markup_is_text() -> None:
    text = "[bold]x[/] :smile: " * 20
    assert f"plan: {text}" in shown(tips, by_name({"plan": text, "many": ["a", "b"]}))


def test_the_foreground_text_appears_as_it_comes_and_others_wait_for_their_turn() -> None:
    output = StringIO()
    shower = EventPrinter(Console(file=output, width=60), labels_for("a", "b"))
    shower.show(TextEvent("b", "one ", 2))
    assert output.getvalue() == "b: one "
    shower.show(TextEvent("a", "other", 1))
    shower.show(TextEvent("b", "two", 2))
    assert output.getvalue() == "b: one two"
    shower.show(ErrorEvent("b", ConstraintError("no way on"), 2))
    assert output.getvalue() == "b: one two[failed: no way on]\na: other"


@pytest.mark.parametrize(
    ("names", "n", "key", "label"),
    [
        (("a", "b"), 1, (2, 0), "b"),
        (("a", "b", "a"), 1, (3, 0), "a[1]"),
        ((None, None), 1, (2, 0), "(unnamed)[1]"),
        (("a",), 3, (1, 2), "a[2]"),
        (("a", "a"), 2, (2, 1), "a[1][1]"),
    ],
)
def test_labels(names: tuple[str | None, ...], n: int, key: tuple[int, int], label: str) -> None:
    name = names[key[0] - 1]
    assert labels_for(*names, n=n).label(name, key) == label


def test_labels_pass_graphs_and_their_extensions_on() -> None:
    output = shown(looks, script)
    assert output.splitlines()[0] == "question: yes"
    assert sorted(output.splitlines()[1:]) == ["answer[0]: 42", "answer[1]: 43"]


def test_a_graph_through_labels_can_be_cancelled() -> None:
    events: list[object] = []
    with FakeTarget() as target:
        target.hold("a")
        run = Labels(target).submit(
            RequestGraph((Generate(0, None, "a", SamplingParams()),)), events.append, RunOptions(is_open=True)
        )
        assert run.graph_id >= 0
        run.cancel()
        run.close()
    assert "GraphFailed" in type(events[-1]).__name__


def test_values_are_those_that_did_not_fail() -> None:
    with FakeTarget(by_name({"plan": "go", "tip": ConstraintError("no"), "many": ["x", "y"]})) as target:
        result = tips.run(runtime=target, on_error="result")
    assert result.error is not None
    values, problems = values_of(result)
    assert problems == []
    assert values["plan"] == "go"
    assert "tip" not in values


class Sheet(pydantic.BaseModel):
    name: str
    born: datetime.date


@dataclasses.dataclass
class Point:
    x: int


def test_values_of_any_type_have_a_json_form() -> None:
    value = {"sheet": Sheet(name="Ada", born=datetime.date(1815, 12, 10)), "points": [Point(1)], "odd": object}
    form = json.loads(to_json(plain(value, "it")))
    assert form["sheet"] == {"name": "Ada", "born": "1815-12-10"}
    assert form["points"] == [{"x": 1}]
    assert isinstance(form["odd"], str)


@pytest.mark.parametrize(
    "value", [b"\xff", float("nan"), [float("inf")], 10**5000], ids=["bytes", "nan", "inf", "digits"]
)
def test_values_without_a_json_form_are_refused_by_name(value: object) -> None:
    with pytest.raises(CommandError, match="the value of x cannot be written as JSON"):
        plain(value, "the value of x")


def test_half_a_character_is_written_as_an_escape() -> None:
    assert to_json({"a": "\ud800"}, indent=None) == '{"a": "\\ud800"}'
    assert to_json({"a": "é"}, indent=None) == '{"a": "é"}'


def test_control_characters_of_a_text_do_not_reach_the_terminal() -> None:
    text = "ab\x1b[2J\x07\r\x9b31m\u202ec"
    output = shown(tips, by_name({"plan": text, "tip": text, "many": text}), is_terminal=True)
    assert output.count("ab\\x1b[2J\\x07\\x0d\\x9b31m\\u202ec") == 5
    assert "\x1b[2J" not in output
    assert not set(output) & set("\x07\r\x9b\u202e")
    assert to_json({"a": text}) == '{\n  "a": "ab\\u001b[2J\\u0007\\r\\u009b31m\\u202ec"\n}'


def test_the_usage_line_has_tokens_and_speed() -> None:
    line = usage_line(Usage(prompt_tokens=72, cached_tokens=30, completion_tokens=50), 2.0)
    assert line == "72 prompt tokens (30 cached), 50 generated in 2.00 s, 25 tok/s"
    assert "0 tok/s" in usage_line(Usage(), 0.0)


def test_a_budget_reaches_the_target_behind_labels() -> None:
    with ScriptedRuntime({"tip": "x" * 50}) as runtime:
        result = tips.run(runtime=Labels(runtime), budget=rt.Budget(tokens=3), on_error="result")
    assert result.usage.completion_tokens <= 3
    assert isinstance(result.error, rt.SpentError)
