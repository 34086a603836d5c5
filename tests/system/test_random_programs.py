"""Random programs give the same in whatever way they are run: lazily, eagerly, with each compiler pass, pickled, over a socket."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

import rtlang as rt
from rtlang.compiler.pipeline import PASSES
from rtlang.contract.graph.node_paths import ANY_TURN, is_named_by
from rtlang.contract.request_graph import Generate, all_nodes
from rtlang.serve.server import running_server
from rtlang.testing import ScriptedRuntime, SeenRequest
from tests.support.long_tests import sized
from tests.support.programs.random_programs import edited, performed, random_program

NUM_PROGRAMS = sized(300, usual=12)
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
    if isinstance(result.error, rt.CheckError):  # of a value that no attempt got right
        return result.error.reason
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


def test_edited_programs_over_results_give_what_they_give_without(runtime: rt.Runtime) -> None:
    changed = [edited(operations, seed) for seed, operations in enumerate(PROGRAMS)]
    fresh = outcomes(runtime, programs=changed)
    first = performed.run_batch([{"operations": each, "is_eager": False} for each in PROGRAMS], runtime=runtime)
    inputs = [{"operations": each, "is_eager": False} for each in changed]
    second = performed.run_batch(inputs, runtime=runtime, base=[pickle.loads(pickle.dumps(each)) for each in first])
    assert differences([outcome(each) for each in second], fresh) == []
    num_computed = [sum(each.usage.completion_tokens for each in results) for results in (first, second)]
    assert num_computed[1] < num_computed[0]


def test_an_edited_outcome_gives_what_a_model_that_says_it_gives() -> None:
    """The oracle is a runtime whose answer at this path is the edited text. Whatever was asked again depends on it."""

    def scripted(path: str | None = None) -> ScriptedRuntime:
        def answer(prompt: str, request: SeenRequest) -> str:
            return "an edit" if request.node.path == path else f"{sum(map(ord, prompt)) % 997}"

        return ScriptedRuntime(default=answer, checks=False)

    num_edits = 0
    for seed in range(sized(1000, usual=60)):
        random, inputs = Random(seed), {"operations": random_program(seed), "is_eager": seed % 4 == 0}
        with scripted() as runtime:
            result = performed.run(**inputs, runtime=runtime, on_error="result")
            if result.error is not None:  # no attempt was right
                continue
            nodes = list(all_nodes(result.graph.nodes))
            free = {
                each.path for each in nodes if isinstance(each, Generate) and not each.constraint and each.params.n == 1
            }
            paths = [path for path in result.paths if path in free or is_in_turn(path, free)]
            if not paths:
                continue
            path = random.choice(paths)
            before = len(runtime.requests)
            edited_result = result.at(path).edit(text="an edit")
            asked = {request.node.path for request in runtime.requests[before:]}
        with scripted(path) as runtime:  # an equal node is not edited
            expected = performed.run(**inputs, runtime=runtime, passes="-merge", on_error="result")
        num_edits += 1
        assert outcome(edited_result) == outcome(expected), (seed, path)
        if expected.error is not None:
            continue
        assert edited_result.paths == expected.paths
        assert [edited_result.at(each).text for each in expected.paths] == [
            expected.at(each).text for each in expected.paths
        ], (seed, path)
        if not path.startswith(("repeat", "switch")):
            assert asked <= after(edited_result, path), (seed, path)
    assert num_edits > 15


def is_in_turn(path: str, written: set[str | None]) -> bool:
    """Whether a node is of a turn of a loop, whose path is written for any turn."""
    return any(each is not None and ANY_TURN in each and is_named_by(each, path) for each in written)


def after(result: rt.Result, path: str) -> set[str]:
    """The paths of all nodes that build on one, and of nodes within them."""
    found, todo = set[str](), [path]
    while todo:
        each = todo.pop()
        inner = [other for other in result.paths if other.startswith(f"{each}[")]
        new = {*result.at(each).dependants, *inner} - found
        found |= new
        todo.extend(new)
    return found


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
