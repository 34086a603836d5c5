"""A journal of a run: it continues after its process was killed, and refuses another program."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import random
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import rtlang as rt
from rtlang.cassette.journal_file import MAGIC, JournalFile
from rtlang.cassette.records import decode_records
from rtlang.contract.errors import JournalError
from rtlang.serve.server import TokenizerInfo, running_server
from rtlang.testing import ScriptedRuntime
from tests.support.servers.serving import serving

PREPARED = multiprocessing.get_context("forkserver")
PREPARED.set_forkserver_preload(["tests.cassette.test_journal", "rtlang.runtime.runtime"])
NUM_KILLS = int(os.environ.get("RTLANG_JOURNAL_KILLS", "2"))
SETTINGS: dict[str, Any] = {"dtype": "float32", "num_pages": 256, "num_threads": 1}


@rt.program
def report(s: rt.State, topic: str, calls: str) -> int:
    """Three generations with a host call between them, and a graph break."""
    s += f"A report about {topic}:"
    s += rt.gen("first", max_tokens=60, temperature=1.0, ignore_eos=True)
    noted = rt.call(note, calls, s["first"], on_unknown="retry")
    s += rt.text("\nNumber ", noted, ". Then:")
    s += rt.gen("both", max_tokens=40, temperature=1.0, n=2, ignore_eos=True)
    length = len(str(s["first"]))
    for part in range(length % 2 + 1):
        s += f"\nPart {part} of {length}:"
        s += rt.gen(f"part{part}", max_tokens=30, temperature=1.0, ignore_eos=True)
        again = rt.call(note, calls, s[f"part{part}"], on_unknown="retry")
        s += rt.text(" noted as ", again)
    return length


def note(calls: str, text: str) -> int:
    """Counts the texts in a file. A call that is made again, because its answer was lost with the process, counts once."""
    with open(calls, "a") as file:
        file.write(json.dumps(text) + "\n")
    return len(set(Path(calls).read_text().splitlines()))


def num_lines(path: str) -> int:
    return len(Path(path).read_text().splitlines()) if os.path.exists(path) else 0


def run_in_child(journal: str, calls: str, out: str) -> None:
    with rt.Runtime(**SETTINGS) as runtime, rt.journal(journal, runtime) as durable:
        pieces: dict[str, str] = {}
        stream = report.stream("foxes", calls, runtime=durable)
        for event in stream:
            if isinstance(event, rt.TextEvent):
                key = f"{event.name} {event.choice}"
                pieces[key] = pieces.get(key, "") + event.text
        result = stream.result()
        values = {name: result[name] for name in result.names}
        Path(out).write_text(json.dumps([values, result.value, pieces]))


@rt.program
def unreadable(s: rt.State, fails: bool) -> None:
    """A host call whose answer, or whose error, has a lone surrogate, as names of files have that are not UTF-8."""
    s += "A"
    s += rt.gen("first", max_tokens=2)
    s += rt.text("n ", rt.call(name_of_file, fails, s["first"]))
    s += rt.gen("second", max_tokens=2)


def name_of_file(fails: bool, text: str) -> str:
    if fails:
        raise OSError("no file \udcff")
    return "\udcff"


def test_answers_with_surrogates_are_kept(tmp_path: Path) -> None:
    with rt.Runtime(**SETTINGS) as runtime:
        for fails in (False, True):
            results = []
            for _ in range(2):  # the second reads the answer
                with rt.journal(tmp_path / str(fails), runtime) as durable:
                    results += unreadable.run_batch([{"fails": fails}], runtime=durable)
            errors = [str(result.error) for result in results]
            assert errors[0] == errors[1]
            assert ("no file \udcff" in errors[0]) == fails
            assert [isinstance(result.error, rt.CallError) for result in results] == [fails] * 2


@pytest.mark.long  # test_journal_kill_trial.py kills at every boundary
def test_a_run_that_is_killed_again_and_again_has_the_values_of_an_undisturbed_one(tmp_path: Path) -> None:
    journal, calls, out = (str(tmp_path / name) for name in ("run.journal", "calls", "out"))
    rng = random.Random(int(os.environ.get("RTLANG_JOURNAL_SEED", "5")))
    num_kills, limit, num_unanswered = 0, 400, 0
    while True:
        child = PREPARED.Process(target=run_in_child, args=(journal, calls, out), daemon=True)
        child.start()
        while child.is_alive() and (not os.path.exists(journal) or os.path.getsize(journal) < limit):
            time.sleep(0.001)
        if child.exitcode is None and num_kills < NUM_KILLS:
            child.kill()
        child.join()
        if child.exitcode == 0:
            break
        assert child.exitcode == -signal.SIGKILL
        num_kills += 1
        with contextlib.closing(JournalFile(journal)) as file:
            num_unanswered += num_lines(calls) - num_unanswered - len(file.answers)
        limit = os.path.getsize(journal) + rng.randrange(50, 3500 // NUM_KILLS)
    assert num_kills >= 1
    values, value, pieces = json.loads(Path(out).read_text())
    made = [json.loads(line) for line in Path(calls).read_text().splitlines()]
    assert pieces["first 0"] == values["first"] == made[0]
    assert [pieces["both 0"], pieces["both 1"]] == values["both"]

    with contextlib.closing(JournalFile(journal)) as file:
        assert file.is_finished
        assert len(made) == len(file.answers) + num_unanswered, "a call with an answer was made again"
        seed = file.head["seed"]
    again = tmp_path / "again"
    with rt.Runtime(**SETTINGS) as runtime, rt.journal(again, runtime, seed=seed):
        undisturbed = report.run("foxes", str(tmp_path / "other calls"))
        assert {name: undisturbed[name] for name in undisturbed.names} == values
        assert undisturbed.value == value
    # A finished journal needs no runtime.
    with rt.journal(journal) as durable:
        assert durable.is_finished
        replayed = report.run("foxes", calls)
        assert {name: replayed[name] for name in replayed.names} == values
    assert num_lines(calls) == len(made)


@pytest.fixture(scope="module")
def runtime() -> Iterator[rt.Runtime]:
    with rt.Runtime(**SETTINGS) as runtime:
        yield runtime


@pytest.fixture(scope="module")
def server(runtime: rt.Runtime) -> Iterator[str]:
    info = TokenizerInfo("rtlang:tiny", identity=runtime.model_identity)
    with running_server(runtime, tokenizer_info=info) as url:
        yield url


def streamed(path: Path, target: Any, calls: str) -> tuple[dict[str, Any], dict[str, str]]:
    """The values of a run, and its streamed text."""
    pieces: dict[str, str] = {}
    with rt.journal(path, target) as durable, report.stream("cats", calls, runtime=durable) as stream:
        for event in stream:
            if isinstance(event, rt.TextEvent):
                key = f"{event.name} {event.choice}"
                pieces[key] = pieces.get(key, "") + event.text
        result = stream.result()
        return {name: result[name] for name in result.names}, pieces


@pytest.mark.parametrize("is_remote", [False, True])
def test_a_journal_that_ends_anywhere_is_continued_to_the_same_values(
    runtime: rt.Runtime, server: str, tmp_path: Path, is_remote: bool
) -> None:
    whole, cut, calls = tmp_path / "whole", tmp_path / "cut", str(tmp_path / "calls")
    values, pieces = streamed(whole, runtime, calls)
    data = whole.read_bytes()
    ends = [end for _, end in decode_records(data, MAGIC, "", JournalError)]
    num_calls = num_lines(calls)
    rng = random.Random(3)
    with rt.connect(server) if is_remote else contextlib.nullcontext(runtime) as target:
        for end in (ends[0], rng.choice(ends), rng.choice(ends) + 5, rng.randrange(ends[1], ends[-1]), ends[-2]):
            cut.write_bytes(data[:end])
            with contextlib.closing(JournalFile(cut)) as file:
                num_left = num_calls - len(file.answers)
            Path(calls).write_text("\n" * len(file.answers))
            assert streamed(cut, target, calls) == (values, pieces)
            assert num_lines(calls) == num_calls == len(file.answers) + num_left
            cut.unlink()


@rt.program
def greeting(s: rt.State, start: str, max_tokens: int = 4, num_others: int = 1) -> None:
    s += start
    s += rt.gen("word", max_tokens=max_tokens, ignore_eos=True)
    for number in range(len(str(s["word"])) * 0 + num_others):
        s += " and "
        s += rt.gen(f"other{number}", max_tokens=4, ignore_eos=True)


def test_a_program_that_does_something_else_is_refused_with_both_texts(runtime: rt.Runtime, tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with rt.journal(path, runtime):
        first = greeting.run("Hello")
    before = path.read_bytes()

    def error_of(*args: Any, **options: Any) -> JournalError:
        with rt.journal(path, runtime, **options) as durable, pytest.raises(JournalError) as found:
            greeting.run(*args, runtime=durable)
        return found.value

    error = error_of("Good day")
    assert (error.path, error.place) == (str(path), "word")
    assert "Hello" in str(error.before)
    assert "Good day" in str(error.now)
    assert re.search(
        "'word', a generate, which builds on a text that differs in parts: .*Hello.* in the journal, .*Good day.* now",
        str(error),
    )
    error = error_of("Hello", 5)
    assert error.place == "word"
    assert "'word', a generate differs in params: {'max_tokens': 4" in str(error)
    assert "ends without 'other0', a generate" in str(error_of("Hello", 4, 0))
    assert "seed: " in str(error_of("Hello", seed=1 << 40))
    assert path.read_bytes() == before
    unfinished = before[: [end for _, end in decode_records(before, MAGIC, "", JournalError)][-2]]
    path.write_bytes(unfinished)
    assert "Good day" in str(error_of("Good day"))
    assert "ends without 'other0'" in str(error_of("Hello", 4, 0))
    with rt.journal(path, runtime) as durable:
        assert greeting.run("Hello")["other0"] == first["other0"]
        with pytest.raises(JournalError, match="one run of one program"):
            greeting.run("Hello", runtime=durable)
    path.write_bytes(before)
    assert "the run is finished, but the program now records 'other1'" in str(error_of("Hello", 4, 2))


def test_other_arguments_models_and_writers_are_refused(runtime: rt.Runtime, tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with rt.journal(path, runtime, program="a.py:x", arguments="{}") as durable:
        assert greeting.run("Hello", deadline_s=1e-9, on_error="result").error is not None, "it is not finished"
        assert not durable.is_finished
        with pytest.raises(JournalError, match="another run writes to it"):
            rt.journal(path, runtime)
    for options in ({"program": "b.py:x"}, {"arguments": '{"a": 1}'}):
        with pytest.raises(JournalError, match=r"in the journal, .* now"):
            rt.journal(path, runtime, **options)
    other = SimpleNamespace(
        model_identity="other@1", submit=runtime.submit, tool_format=None, abilities=runtime.abilities
    )
    with rt.journal(path, other) as durable, pytest.raises(JournalError, match="serves other@1"):  # type: ignore[arg-type]
        greeting.run("Hello", runtime=durable)
    with (
        serving() as plain,
        rt.connect(plain.url) as remote,
        rt.journal(path, remote) as durable,
        pytest.raises(JournalError, match="the ability continue"),
    ):
        greeting.run("Hello", runtime=durable)
    with rt.journal(path, lambda: runtime):
        assert greeting.run("Hello")["other0"] is not None


def test_a_run_ends_when_its_journal_cannot_be_written(
    runtime: rt.Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal"
    write = os.write
    num_deltas = 0

    def full(descriptor: int, data: bytes) -> int:
        nonlocal num_deltas
        num_deltas += b"delta" in data
        if num_deltas > 3:
            raise OSError(28, "No space left on device")
        return write(descriptor, data)

    with rt.journal(path, runtime) as durable:
        monkeypatch.setattr("rtlang.cassette.records.os.write", full)
        with pytest.raises(JournalError, match="No space left"):
            greeting.run("Hello", 20, runtime=durable)
        monkeypatch.undo()
    with rt.journal(path, runtime):
        assert greeting.run("Hello", 20)["other0"] is not None
    with contextlib.closing(JournalFile(path)) as file:
        assert file.is_finished


def test_of_several_rows_at_the_same_time_one_has_the_journal(tmp_path: Path) -> None:
    @rt.program
    def row(s: rt.State, number: int) -> Any:
        s += "x" + rt.gen("a")
        return rt.call(called.append, number)

    called: list[int] = []
    for attempt in range(5):
        path = tmp_path / f"journal{attempt}"
        rows = [{"number": number} for number in range(8)]
        with rt.journal(path, ScriptedRuntime()):
            errors = [result.error for result in row.run_batch(rows)]
        messages = [str(error) for error in errors if error is not None]
        assert len(messages) == 7
        assert all("one run of one program" in message for message in messages)
        (number,) = (index for index, error in enumerate(errors) if error is None)
        assert called == [number]
        with rt.journal(path):
            assert row.run(number).error is None
        assert called == [number]
        called.clear()
