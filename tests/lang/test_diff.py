"""`rt.diff` of results and batches, and the files of runs."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rtlang as rt
from rtlang.contract.errors import ParameterError
from rtlang.lang.diff import diff_rows, read_runs, saved_runs
from rtlang.testing import ScriptedRuntime


@pytest.fixture
def scripted() -> Iterator[ScriptedRuntime]:
    with ScriptedRuntime(default=lambda prompt: f"<{prompt[-9:]}>") as found:
        yield found


@rt.program
def prompts(s: Any, x: str) -> None:
    s += x + rt.gen("plan")
    for index, fork in enumerate(s.fork(2)):
        fork += f" {index} " + rt.gen("tip")


def paths(found: Any, change: str) -> list[str]:
    return [node.path for node in found.of(change)]


def test_an_edit_is_seen_with_what_follows_from_it(scripted: ScriptedRuntime) -> None:
    result = prompts.run("q", runtime=scripted)
    edited = result.at("plan").edit(text="other")
    found = rt.diff(result, edited)
    assert paths(found, "changed") == ["plan", "fork[0]/tip", "fork[1]/tip"]
    assert [node.is_reused for node in found.nodes] == [True, False, False]
    assert found.num_tokens == edited.usage.completion_tokens
    same = rt.diff(result, prompts.run("q", runtime=scripted, base=pickle.loads(pickle.dumps(result))))
    assert same.is_same
    assert not same.computed
    assert "rt-graph" in found.to_html()


def test_an_edited_program_adds_and_removes_paths(scripted: ScriptedRuntime) -> None:
    def edited(s: Any, x: str) -> None:
        s += x + rt.gen("plan")
        (fork,) = s.fork(1)
        fork += " 0 " + rt.gen("tip") + rt.gen("more")

    found = rt.diff(prompts.run("q", runtime=scripted), rt.program(edited).run("q", runtime=scripted))
    assert paths(found, "same") == ["plan", "fork[0]/tip"]
    assert paths(found, "added") == ["fork[0]/more"]
    assert paths(found, "removed") == ["fork[1]/tip"]


def test_rows_are_compared_by_their_arguments(scripted: ScriptedRuntime) -> None:
    rows = [{"x": str(number)} for number in range(4)]
    first = prompts.run_batch(rows, runtime=scripted)
    second = prompts.run_batch([*rows[:0:-1], {"x": "new"}, {"x": "newer"}], runtime=scripted, base=first)
    found = rt.diff(first, second)
    assert (found.num_rows, found.rows_added, found.rows_removed) == (3, 2, 1)
    assert len(found.of("same")) == len(found.nodes) == 9
    third = prompts.run_batch([rows[0], {"x": "new"}, *rows[2:]], runtime=scripted)
    found = rt.diff(first, third)
    assert (found.num_rows, found.rows_added, found.rows_removed) == (4, 0, 0)
    assert {node.row for node in found.of("changed")} == {1}  # a row that is new is compared with the one at its index


def test_saved_runs_have_the_same_differences(scripted: ScriptedRuntime, tmp_path: Path) -> None:
    first = prompts.run_batch([{"x": "a"}, {"x": "b"}], runtime=scripted)
    second = [first[1], first[0].at("plan").edit(text="c")]
    files = []
    for number, results in enumerate((first, second)):
        files.append(tmp_path / str(number))
        files[-1].write_text(saved_runs(results), encoding="utf-8")
    read = diff_rows(*map(read_runs, files))
    assert read.to_plain() == rt.diff(first, second).to_plain()
    assert paths(read, "changed") == ["plan", "fork[0]/tip", "fork[1]/tip"]


def test_what_is_no_result_is_refused(scripted: ScriptedRuntime, tmp_path: Path) -> None:
    result = prompts.run("q", runtime=scripted)
    for before, after in ((result, [result]), (result, None), (["x"], ["x"])):
        with pytest.raises(ParameterError, match="expected a result, or a list of results on both sides"):
            rt.diff(before, after)  # type: ignore[arg-type]
    for text in ("", "[]", "{}", '{"format": "other", "rows": []}', '{"format": "rtlang-run 1", "rows": [1]}'):
        (tmp_path / "x").write_text(text)
        with pytest.raises(ParameterError, match="expected a file of saved runs"):
            read_runs(tmp_path / "x")
