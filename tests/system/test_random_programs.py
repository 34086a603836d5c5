"""Random programs give the same in whatever way they are run: lazily, eagerly, with each compiler pass, pickled, over a socket."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rtlang as rt
from rtlang.compiler.pipeline import PASSES
from rtlang.serve.server import running_server
from tests.support.long_tests import sized
from tests.support.programs.random_programs import edited, performed, random_program

NUM_PROGRAMS = sized(300, usual=20)
PROGRAMS = [random_program(seed) for seed in range(NUM_PROGRAMS)]


@pytest.fixture(scope="module")
def runtime() -> Iterator[rt.Runtime]:
    with rt.Runtime(dtype="float32") as started:
        yield started


@pytest.fixture(scope="module")
def expected(runtime: rt.Runtime) -> list[Any]:
    """The outcomes of eager runs, where control flow and functions of values are plain Python."""
    return outcomes(runtime, is_eager=True)


def outcomes(runtime: rt.Target, *, is_eager: bool = False, programs: Any = PROGRAMS, **options: Any) -> list[Any]:
    inputs = [{"operations": operations, "is_eager": is_eager} for operations in programs]
    return [outcome(result) for result in performed.run_batch(inputs, runtime=runtime, **options)]


def outcome(result: Any) -> Any:
    assert result.error is None, result.error
    return result.value, result.text(), result.messages


def differences(found: list[Any], expected: list[Any]) -> list[int]:
    return [seed for seed, (one, other) in enumerate(zip(found, expected, strict=True)) if one != other]


@pytest.mark.parametrize("passes", [True, False, *(f"-{name}" for name in PASSES)])
def test_lazy_programs_give_what_plain_python_gives(
    runtime: rt.Runtime, expected: list[Any], passes: bool | str
) -> None:
    assert differences(outcomes(runtime, passes=passes), expected) == []


def test_streamed_and_pickled_results_are_equal(runtime: rt.Runtime, expected: list[Any]) -> None:
    found = []
    for operations in PROGRAMS:
        with performed.stream(operations, is_eager=False, runtime=runtime) as events:
            found.append(outcome(pickle.loads(pickle.dumps(events.result()))))
    assert differences(found, expected) == []


def test_a_socket_changes_nothing(runtime: rt.Runtime, expected: list[Any]) -> None:
    with running_server(runtime) as url, rt.connect(url) as remote:
        assert differences(outcomes(remote), expected) == []


@pytest.mark.parametrize("is_remote", [False, True], ids=["local", "socket"])
def test_a_pool_too_small_for_all_programs_changes_nothing(
    expected: list[Any], is_remote: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RTLANG_DEBUG", "1")  # all accounting is checked after each step
    with rt.Runtime(dtype="float32", num_pages=96, page_size=4) as small:
        if is_remote:
            with running_server(small) as url, rt.connect(url) as remote:
                assert differences(outcomes(remote), expected) == []
        else:
            assert differences(outcomes(small), expected) == []
        stats = small.stats()
    assert stats["num_pages_held"] == stats["num_pages_in_use"] == 0


def test_recordings_give_what_was_recorded(runtime: rt.Runtime, expected: list[Any], tmp_path: Path) -> None:
    path = tmp_path / "programs.cassette"
    with rt.record(path, runtime) as recorder:
        assert differences(outcomes(recorder), expected) == []
        assert recorder.num_recorded > NUM_PROGRAMS
    with rt.record(path, runtime) as recorder:
        assert differences(outcomes(recorder), expected) == []
        assert recorder.num_recorded == 0
    with rt.replay(path) as replay:
        assert differences(outcomes(replay), expected) == []


def test_edited_programs_over_a_recording_give_what_they_give_without(runtime: rt.Runtime, tmp_path: Path) -> None:
    changed = [edited(operations, seed) for seed, operations in enumerate(PROGRAMS)]
    fresh = outcomes(runtime, is_eager=True, programs=changed)
    with rt.record(tmp_path / "programs.cassette", runtime) as recorder:
        outcomes(recorder)
        num_first = recorder.num_recorded
        assert differences(outcomes(recorder, programs=changed), fresh) == []
        assert recorder.num_replayed > num_first // 4
        assert recorder.num_recorded < 2 * num_first


def test_recordings_of_a_server_are_not_sent_again(runtime: rt.Runtime, expected: list[Any], tmp_path: Path) -> None:
    path = tmp_path / "programs.cassette"
    with running_server(runtime) as url, rt.connect(url) as remote:
        remote.models = ({"id": "tiny"},)
        with rt.record(path, remote) as recorder:
            assert differences(outcomes(recorder), expected) == []
        steps = runtime.stats()
        with rt.record(path, remote) as recorder:
            assert differences(outcomes(recorder), expected) == []
            assert recorder.num_recorded == 0
        after = runtime.stats()
    assert {name: after[name] for name in after if "steps" in name} == {
        name: steps[name] for name in steps if "steps" in name
    }
