"""Recording and replaying: what is recorded is not computed again, and results are equal to the last bit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

import rtlang as rt
from rtlang.cassette.file import MAGIC, MAKER
from rtlang.cassette.recorder import graph_digest
from rtlang.cassette.records import decode_records
from rtlang.contract.errors import CassetteError, OverloadError
from rtlang.contract.request_graph import Arg, Generate, RequestGraph, Text
from rtlang.contract.runs.run_options import RunOptions

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def runtime() -> Iterator[rt.Runtime]:
    with rt.Runtime() as started:
        yield started


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "run.cassette")


@rt.program
def everything(s: Any, x: str) -> Any:
    s += rt.user("Hello ", x)
    s += rt.assistant(rt.gen("greeting", max_tokens=6, temperature=0.9, logprobs=2))
    if len(str(s["greeting"])) >= 0:  # a graph break
        forks = s.fork(2)
        for number, fork in enumerate(forks):
            fork += rt.user("Word ", number)
            fork += rt.assistant(rt.gen("words", n=2, max_tokens=4, temperature=1.0))
        forks.join()
    s += rt.user("Which?")
    s += rt.select("choice", ["yes", "no"])
    s += rt.gen("number", type=int, max_tokens=5)
    s += rt.gen("kind", type=Literal["a", "bb"], max_tokens=5)
    return s["number"]


def facts(result: Any) -> Any:
    """All that a caller can see, but the marks of a replay."""
    metas = []
    for name in ("greeting", "choice", "number", "kind"):
        meta = result.meta(name)
        metas.append((meta.token_ids, meta.logprobs, meta.probabilities, meta.usage, meta.timing, meta.finish_reason))
    return result.value, [result[name] for name in ("greeting", "words", "choice", "kind")], result.messages, metas


def test_a_second_run_computes_nothing_and_equals_the_first(runtime: rt.Runtime, path: str) -> None:
    inputs = [{"x": str(number)} for number in range(6)]  # equal rows may take each other's outcomes
    with rt.record(path, runtime) as recorder:
        first = everything.run_batch(inputs)
        assert recorder.num_recorded > 0
    before = runtime.stats()
    with rt.record(path, runtime) as recorder:
        again = everything.run_batch(inputs)
        assert recorder.num_recorded == 0
        assert recorder.num_replayed > 0
    after = runtime.stats()
    assert {name: after[name] for name in before if "steps" in name} == {
        name: before[name] for name in before if "steps" in name
    }
    assert [facts(each) for each in again] == [facts(each) for each in first]
    assert again[0].meta("greeting").is_replayed
    assert not first[0].meta("greeting").is_replayed
    with rt.replay(path):
        replayed = everything.run_batch(inputs)
    assert [facts(each) for each in replayed] == [facts(each) for each in first]


def test_streams_replay_piece_by_piece(runtime: rt.Runtime, path: str) -> None:
    with rt.record(path, runtime):
        first = [event.text for event in everything.stream(x="a") if isinstance(event, rt.TextEvent)]
    with rt.replay(path):
        again = [event.text for event in everything.stream(x="a") if isinstance(event, rt.TextEvent)]
    assert sorted(again) == sorted(first)
    assert len(again) > 5


def test_equal_runs_have_different_seeds_that_the_recording_fixes(runtime: rt.Runtime, path: str) -> None:
    @rt.program
    def draw(s: Any) -> None:
        s += "A word:"
        s += rt.gen("word", max_tokens=12, temperature=2.0)

    with rt.record(path, runtime):
        first = [draw.run()["word"] for _ in range(4)]
    assert len(set(first)) > 1
    with rt.replay(path):
        assert [draw.run()["word"] for _ in range(4)] == first


def test_a_miss_names_the_generation_and_the_file(runtime: rt.Runtime, path: str) -> None:
    with rt.record(path, runtime):
        everything.run(x="a")
    with rt.replay(path), pytest.raises(CassetteError, match=r"run\.cassette.*'greeting'"):
        everything.run(x="b")


def test_a_constraint_error_is_replayed_and_an_overload_is_not(path: str) -> None:
    @rt.program
    def short(s: Any, tokens: int) -> None:
        s += "Say:"
        s += rt.gen("x", schema={"const": "a long text that needs many tokens"}, max_tokens=tokens)

    @rt.program
    def many(s: Any) -> None:
        s += "Say:"
        s += rt.gen("x", n=9, temperature=1.0, max_tokens=2)

    with rt.Runtime(max_waiting=8) as small, rt.record(path, small) as recorder:
        error = short.run(tokens=1, on_error="result").error
        assert isinstance(error, rt.BudgetError)
        assert recorder.num_recorded == 1
        with pytest.raises(rt.GraphError):
            many.run()
        assert recorder.num_recorded == 1
    with rt.Runtime() as runtime, rt.record(path, runtime) as recorder:
        assert isinstance(short.run(tokens=1, on_error="result").error, rt.BudgetError)
        assert (recorder.num_replayed, recorder.num_recorded) == (1, 0)
    with rt.replay(path):
        again = short.run(tokens=1, on_error="result").error
        assert isinstance(again, rt.BudgetError)
        assert again.message == error.message
        assert again.max_tokens == 1


def test_a_refused_submit_keeps_its_seed(path: str) -> None:
    class Busy:
        """Refuses every second submit."""

        model_identity = "busy"
        tool_format = None
        is_alive = True

        def __init__(self, refuses: bool) -> None:
            self.seeds: list[int | None] = []
            self.refuses, self.number = refuses, 0

        def submit(self, graph: Any, listener: Any, options: RunOptions) -> Any:
            self.number += 1
            if self.refuses and self.number % 2:
                raise OverloadError("full", 0.01)
            self.seeds.append(options.seed)
            return None

        def close(self) -> None: ...

    graph = rt.RequestGraph((Generate(0, None, "x", rt.SamplingParams(temperature=1.0)),))
    seeds = []
    for refuses in (False, True):
        busy = Busy(refuses)
        with rt.record(path, busy) as recorder:  # type: ignore[arg-type]
            for _ in range(3):
                try:
                    recorder.submit(graph, print)
                except OverloadError:
                    recorder.submit(graph, print)
        seeds.append(busy.seeds)
    assert seeds[0] == seeds[1]
    assert len(set(seeds[0])) == 3


def test_a_recording_belongs_to_one_model(runtime: rt.Runtime, path: str) -> None:
    with rt.record(path, runtime):
        everything.run(x="a")
    with (
        rt.Runtime(weights="dummy") as other,
        rt.record(path, other),
        pytest.raises(CassetteError, match="one file per model"),
    ):
        everything.run(x="a")


BATCH = """
import sys, json
import rtlang as rt

@rt.program
def row(s, x):
    s += "Row " + x + ":"
    s += rt.gen("word", max_tokens=3, temperature=1.0)
    if x.endswith("7"):
        str(s["word"])
    s += " Then"
    s += rt.gen("n", type=int, max_tokens=3)

with rt.Runtime() as runtime, rt.record(sys.argv[1], runtime) as recorder:
    results = row.run_batch([{"x": str(i)} for i in range(1000)])
    print(json.dumps([[each["word"], each["n"]] for each in results]))
    print(recorder.num_replayed, recorder.num_recorded)
"""


@pytest.mark.long
def test_a_batch_that_was_killed_goes_on_and_ends_equal(tmp_path: Path) -> None:
    path = tmp_path / "batch.cassette"
    script = tmp_path / "batch.py"
    script.write_text(BATCH)
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(str(ROOT / part) for part in (".", "kernels", "grammars"))
    }
    killed = subprocess.Popen(
        [sys.executable, str(script), str(path)], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 300
        while (not path.exists() or path.stat().st_size < 120_000) and killed.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        assert killed.poll() is None, "it ended before it could be killed"
    finally:
        killed.send_signal(signal.SIGKILL)
        killed.wait()
    with path.open("ab") as file:  # and the kill fell into the middle of a write
        file.write(b"\0\0\1\0abc")

    def run() -> tuple[str, int, int]:
        done = subprocess.run(
            [sys.executable, str(script), str(path)], env=environment, capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, done.stderr
        values, counts = done.stdout.splitlines()
        replayed, recorded = map(int, counts.split())
        return values, replayed, recorded

    values, replayed, recorded = run()
    assert 100 < replayed < 1900
    assert replayed + recorded == 2000
    # An uninterrupted run that draws from the same seed: the recording with its first record alone.
    head = path.read_bytes()[:200]
    _, end = next(decode_records(head, MAGIC, MAKER, AssertionError))
    path.write_bytes(head[:end])
    fresh, replayed, recorded = run()
    assert (replayed, recorded) == (0, 2000)
    assert fresh == values


def test_a_recording_without_outcomes_can_be_replayed(tmp_path: Path, runtime: rt.Runtime) -> None:
    @rt.program
    def plain(s: Any, text: str) -> Any:
        s += text
        return s.text()

    @rt.program
    def generates(s: Any) -> None:
        s += "a" + rt.gen("x")

    with rt.record(tmp_path / "run", runtime) as recorder:
        assert plain.run("a", runtime=recorder).value == "a"
    with rt.replay(tmp_path / "run") as replay:
        assert plain.run("a", runtime=replay).value == "a"
        with pytest.raises(CassetteError, match="no outcome of 'x'"):
            generates.run(runtime=replay)


def test_graphs_without_an_identity_are_told_apart_by_their_inputs() -> None:
    graph = RequestGraph((Text(0, None, (Arg("q"),)),), ("q",))
    assert graph_digest(graph, {"q": "a"}) != graph_digest(graph, {"q": "b"})
