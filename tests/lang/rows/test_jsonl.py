"""Results in a file: lines, resumption after every kind of end, values that JSON cannot hold."""

from __future__ import annotations

import asyncio
import fcntl
import json
import math
import os
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

import rtlang as rt
from rtlang.testing import ScriptedRuntime
from tests.lang.rows.test_batch import PROGRAMS, inputs, straight
from tests.support.programs.fake_target import Call, FakeTarget, answer, default_script


def lines_of(path: Path) -> list[dict[str, Any]]:
    text = path.read_bytes()
    assert text == b"" or text.endswith(b"\n")
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("in_order", [False, True])
def test_each_row_has_a_line(program: rt.Program, in_order: bool, target: FakeTarget, tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    summary = program.run_to_jsonl(iter(inputs(20)), path, in_order=in_order)
    assert (summary.num_written, summary.num_skipped, summary.num_failed) == (20, 0, 0)
    lines = lines_of(path)
    if in_order:
        assert [line["index"] for line in lines] == list(range(20))
    for line in lines:
        result = program.run(**inputs(20)[line["index"]])
        assert line["row"] == inputs(20)[line["index"]]
        assert (line["value"], line["error"]) == (result.value, None)
        assert line["variables"] == {name: result[name] for name in result.names}
        assert line["usage"]["completion_tokens"] == result.usage.completion_tokens
    assert summary.usage.completion_tokens == sum(line["usage"]["completion_tokens"] for line in lines)


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_same_call_again_runs_what_the_file_lacks(program: rt.Program, target: FakeTarget, tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    program.run_to_jsonl(inputs(5), path)
    num_runs = len(target.runs)
    summary = program.run_to_jsonl(inputs(8), path)
    assert (summary.num_written, summary.num_skipped) == (3, 5)
    assert len(target.runs) == num_runs + 3
    assert sorted(line["index"] for line in lines_of(path)) == list(range(8))
    assert "3 rows written" in str(summary)


def test_a_file_torn_at_any_byte_is_mended(target: FakeTarget, tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    straight.run_to_jsonl(inputs(3), path, in_order=True)
    whole = path.read_bytes()
    ends = [index + 1 for index, byte in enumerate(whole) if byte == ord("\n")]
    for cut in range(0, len(whole), 7):
        path.write_bytes(whole[:cut])
        summary = straight.run_to_jsonl(inputs(3), path, in_order=True)
        assert summary.num_skipped == sum(end <= cut for end in ends)
        assert path.read_bytes() == whole


def test_rows_that_failed_run_again_and_have_one_line(target: FakeTarget, tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"

    def script(call: Call) -> Any:
        return rt.ConstraintError("bad") if call.prompt.startswith("input 1 ") else default_script(call)

    target.script = script
    assert straight.run_to_jsonl(inputs(4), path).num_failed == 1
    failed = next(line for line in lines_of(path) if line["index"] == 1)
    assert failed["error"]["type"] == "ConstraintError"
    assert "bad" in failed["error"]["message"]
    assert (failed["value"], failed["variables"]) == (None, {})
    kept = straight.run_to_jsonl(inputs(4), path, retry_errors=False)
    assert (kept.num_written, kept.num_skipped) == (0, 4)
    target.script = default_script
    mended = straight.run_to_jsonl(inputs(4), path)
    assert (mended.num_written, mended.num_skipped, mended.num_failed) == (1, 3, 0)
    lines = lines_of(path)
    assert sorted(line["index"] for line in lines) == [0, 1, 2, 3]
    assert all(line["error"] is None for line in lines)
    assert os.listdir(tmp_path) == ["out.jsonl"]


def test_rows_are_known_by_their_contents_in_any_order(target: FakeTarget, tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    rows = [{"x": name} for name in "abcab"]
    straight.run_to_jsonl(rows, path)
    again = straight.run_to_jsonl([{"x": "new"}, *reversed(rows), {"x": "a"}], path)
    assert (again.num_written, again.num_skipped) == (2, 5)
    assert Counter(line["row"]["x"] for line in lines_of(path)) == Counter(["new", *"abcab", "a"])


def test_bound_arguments_and_the_program_are_part_of_the_contents(target: FakeTarget, tmp_path: Path) -> None:
    @rt.program
    def two(s: Any, language: str, x: str) -> None:
        s += language + x + rt.gen("y")

    path = tmp_path / "out.jsonl"
    assert two.bind(language="de").run_to_jsonl([{"x": "a"}], path).num_written == 1
    assert two.bind(language="fr").run_to_jsonl([{"x": "a"}], path).num_written == 1
    assert two.bind("de").run_to_jsonl([{"x": "a"}], path).num_written == 1
    assert straight.run_to_jsonl([{"x": "a"}], path).num_written == 1
    assert two.bind(language="de").run_to_jsonl([{"x": "a"}], path).num_skipped == 1


@pytest.mark.parametrize("key", ["id", lambda row: row["id"]])
def test_a_key_identifies_rows(key: Any, target: FakeTarget, tmp_path: Path) -> None:
    @rt.program
    def known(s: Any, id: int, x: object) -> None:
        s += str(id) + rt.gen("y")

    path = tmp_path / "out.jsonl"
    known.run_to_jsonl([{"id": 1, "x": "a"}, {"id": 2, "x": object()}], path, key=key)
    summary = known.run_to_jsonl([{"id": 2, "x": "b"}, {"id": 3, "x": "c"}], path, key=key)
    assert (summary.num_written, summary.num_skipped) == (1, 1)
    assert [line["key"] for line in lines_of(path)][-1] == "3"


def test_what_identifies_no_row_is_refused(target: FakeTarget, tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with pytest.raises(rt.ParameterError, match=r"rows\[1\].*key="):
        straight.run_to_jsonl([{"x": "a"}, {"x": object()}], path)
    assert len(lines_of(path)) <= 1
    with pytest.raises(rt.ParameterError, match=r"rows\[0\] has no such field"):
        straight.run_to_jsonl([{"x": "a"}], path, key="id")
    with pytest.raises(rt.ParameterError, match=r"rows\[0\]"):
        straight.run_to_jsonl([{"x": "a"}], path, key=lambda row: None)
    with pytest.raises(rt.ParameterError, match="key"):
        straight.run_to_jsonl([], path, key=3)  # type: ignore[arg-type]


def test_sets_are_known_in_another_process(tmp_path: Path) -> None:
    source = """
import sys
import rtlang as rt
from rtlang.testing import ScriptedRuntime

@rt.program
def tagged(s, tags):
    s += rt.gen("y")

with ScriptedRuntime() as runtime:
    print(tagged.run_to_jsonl([{"tags": set("abcdefgh")}], sys.argv[1], runtime=runtime).num_written)
"""
    counts = [
        subprocess.run(
            [sys.executable, "-c", source, str(tmp_path / "out.jsonl")],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2", "3")
    ]
    assert counts == ["1", "0", "0"]


@pytest.mark.parametrize(
    "text", [b"not json\n", b'{"index": 0}\n', b"[1]\n", b'{"key": "a", "index": "b", "error": null}\n']
)
def test_a_file_of_someone_else_stays_as_it_is(text: bytes, target: FakeTarget, tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(text)
    with pytest.raises(rt.ParameterError, match="line 1 is not a result"):
        straight.run_to_jsonl(inputs(2), path)
    assert path.read_bytes() == text
    assert not target.runs


def test_two_writers_are_one_too_many(target: FakeTarget, tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with path.open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(rt.ParameterError, match="another process"):
            straight.run_to_jsonl(inputs(2), path)
    assert straight.run_to_jsonl(inputs(2), path).num_written == 2


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (math.nan, "NaN"),
        (-math.inf, "-Infinity"),
        ("\ud800", "\ud800"),
        (b"\xff\xfe", repr(b"\xff\xfe")),
        ({"a": (1, 2)}, {"a": [1, 2]}),
        ([math.nan, {"a": math.inf}], ["NaN", {"a": "Infinity"}]),
        ([slice(1, 2), 3], ["slice(1, 2, None)", 3]),
    ],
    ids=repr,
)
def test_every_value_has_a_line(value: Any, written: Any, target: FakeTarget, tmp_path: Path) -> None:
    @rt.program
    def given(s: Any) -> Any:
        s += rt.gen("y")
        s.set("z", value)
        return value

    path = tmp_path / "out.jsonl"
    assert given.run_to_jsonl([{}], path).num_failed == 0
    (line,) = lines_of(path)
    assert line["value"] == written
    assert line["variables"]["y"] == answer("", "y")
    assert given.run_to_jsonl([{}], path).num_skipped == 1


def test_an_interruption_keeps_what_has_ended_and_the_call_goes_on(target: FakeTarget, tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"

    def interrupts(done: int, total: int | None) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        straight.run_to_jsonl(inputs(6), path, progress=interrupts)
    assert len(lines_of(path)) == 2
    for run in target.runs:
        assert run.ended.wait(60)
    assert straight.run_to_jsonl(inputs(6), path).num_written == 4


def test_a_killed_process_loses_no_line(tmp_path: Path) -> None:
    source = """
import os, sys
import rtlang as rt
from rtlang.testing import ScriptedRuntime

@rt.program
def ask(s, x):
    s += str(x) + rt.gen("y")

def killed(done, total):
    if done == int(sys.argv[2]):
        os.kill(os.getpid(), 9)

with ScriptedRuntime({"y": "a" * 5000}) as runtime:
    ask.run_to_jsonl([{"x": n} for n in range(40)], sys.argv[1], runtime=runtime, progress=killed)
"""
    path = tmp_path / "out.jsonl"
    for at in (7, 13, 90):
        subprocess.run([sys.executable, "-c", source, str(path), str(at)], capture_output=True, check=False)
    assert sorted(line["index"] for line in lines_of(path)) == list(range(40))


def test_rows_are_read_as_they_are_wanted_and_closed(tmp_path: Path) -> None:
    closed: list[bool] = []
    num_read = 0

    def rows() -> Iterator[dict[str, Any]]:
        nonlocal num_read
        try:
            while True:
                num_read += 1
                yield {"x": str(num_read)}
        finally:
            closed.append(True)

    def stops(done: int, total: int | None) -> None:
        assert num_read <= done + 4 + 1
        if done == 30:
            raise ZeroDivisionError

    with ScriptedRuntime() as runtime, pytest.raises(ZeroDivisionError):
        straight.run_to_jsonl(rows(), tmp_path / "out.jsonl", runtime=runtime, max_in_flight=4, progress=stops)
    assert len(lines_of(tmp_path / "out.jsonl")) == 29


def test_asynchronous_rows(target: FakeTarget, tmp_path: Path) -> None:
    async def rows() -> AsyncIterator[dict[str, Any]]:
        for each in inputs(5):
            await asyncio.sleep(0)
            yield each

    path = tmp_path / "out.jsonl"
    assert straight.run_to_jsonl(rows(), path).num_written == 5
    assert straight.run_to_jsonl(rows(), path).num_skipped == 5
