"""A program that goes on: nodes are found by their paths in any order, and effects take place once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rtlang as rt
from rtlang.cassette.journal_file import MAGIC, JournalFile
from rtlang.cassette.records import decode_records
from rtlang.contract.errors import JournalError

LOG: list[tuple[Any, ...]] = []
KEYS: list[str] = []


@pytest.fixture(scope="module")
def runtime() -> Iterator[rt.Runtime]:
    with rt.Runtime(dtype="float32", num_pages=256, num_threads=1) as runtime:
        yield runtime


@pytest.fixture(autouse=True)
def cleared() -> None:
    LOG.clear()
    KEYS.clear()


def pay(amount: int, to: str = "") -> str:
    LOG.append((amount, to))
    KEYS.append(rt.idempotency_key())
    return f"paid {amount}"


def run(path: Path, runtime: Any, body: Callable[..., Any], *args: Any, **options: Any) -> rt.Result[Any]:
    keywords = {name: options.pop(name) for name in ("ask",) if name in options}
    with rt.journal(path, runtime, **options) as durable:
        return rt.program(body).run(*args, runtime=durable, **keywords)  # type: ignore[no-any-return]


def num_outcomes(path: Path) -> int:
    with contextlib.closing(JournalFile(path)) as file:
        assert file.is_finished
        return len(file.known)


def cut_after(path: Path, kind: str, count: int = 1) -> None:
    """Let the file end with the n-th record of a kind, as if the process had been killed then."""
    data = path.read_bytes()
    ends = [end for body, end in decode_records(data, MAGIC, "", JournalError) if body[0] == kind]
    path.write_bytes(data[: ends[count - 1]])


def letters(s: rt.State, order: str, shows: bool = False) -> dict[str, str]:
    forks = s.fork(3)
    for fork, name in zip(forks, "abc", strict=True):
        fork += f"Letter {name}:"
    for name in order:
        forks["abc".index(name)].__iadd__(rt.gen(name, max_tokens=6, temperature=1.0, ignore_eos=True))
        if shows:
            print(str(forks["abc".index(name)][name]))
    return {name: str(forks["abc".index(name)][name]) for name in "abc"}


def test_a_program_that_records_and_reads_in_another_order_goes_on(runtime: rt.Runtime, tmp_path: Path) -> None:
    path = tmp_path / "journal"
    first = run(path, runtime, letters, "abc")
    for order, shows in (("cab", False), ("bca", True), ("abc", True)):
        again = run(path, None, letters, order, shows)
        assert again.value == first.value
    cut_after(path, "end", 1)
    again = run(path, runtime, letters, "cba", True)
    assert again.value == first.value


async def gathered(s: rt.State, delays: list[float]) -> list[str]:
    async def one(number: int, fork: rt.State) -> str:
        await asyncio.sleep(delays[number])
        fork += f"Number {number}:"
        fork += rt.gen("n", max_tokens=5, temperature=1.0, ignore_eos=True)
        rt.call(pay, number, fork["n"], on_unknown="retry")
        await asyncio.sleep(delays[number])
        fork += " and"
        fork += rt.gen("n", max_tokens=5, temperature=1.0, ignore_eos=True)
        return str(await fork["n"])

    return await asyncio.gather(*(one(number, fork) for number, fork in enumerate(s.fork(3))))


def test_gathered_tasks_go_on_in_any_order(runtime: rt.Runtime, tmp_path: Path) -> None:
    path = tmp_path / "journal"
    first = run(path, runtime, gathered, [0, 0.02, 0.04])
    paid = sorted(LOG)
    assert len(paid) == 3
    cut_after(path, "answer", 2)
    again = run(path, runtime, gathered, [0.04, 0.02, 0], on_change="error")
    assert again.value == first.value
    assert len(LOG) == 4
    assert set(LOG) == set(paid)
    assert len(set(KEYS)) == 3


def test_a_change_is_an_error_or_computed_again(runtime: rt.Runtime, tmp_path: Path) -> None:
    path = tmp_path / "journal"

    def chain(s: rt.State, second: str = "two", extra: bool = False, called: str = "y") -> str:
        s += "one"
        s += rt.gen("x", max_tokens=8, ignore_eos=True)
        rt.call(pay, 5, s["x"])
        s += second
        s += rt.gen(called, max_tokens=8, ignore_eos=True)
        if extra:
            s += rt.gen("z", max_tokens=8, ignore_eos=True)
        return str(s[called])

    first, before = run(path, runtime, chain), num_outcomes(path)
    with pytest.raises(
        JournalError, match=r"'y', a generate, which builds on a text that differs in parts: .*two.*three"
    ):
        run(path, runtime, chain, "three")
    changed = run(path, runtime, chain, "three", on_change="recompute")
    assert changed["x"] == first["x"]
    assert len(LOG) == 1
    assert num_outcomes(path) == before + 1, "one generation was computed"
    for options in ({"extra": True}, {"called": "other"}):
        with rt.journal(path, runtime, on_change="recompute") as durable:
            again = rt.program(chain).run("three", runtime=durable, **options)
        assert (again["x"], again.value) == (changed["x"], changed.value)
    assert len(LOG) == 1
    back = run(path, runtime, chain, on_change="recompute")
    assert back.value == first.value


def test_an_effect_with_other_arguments_is_always_an_error(runtime: rt.Runtime, tmp_path: Path) -> None:
    path = tmp_path / "journal"

    def shop(s: rt.State, amount: int, prompt: str = "A") -> str:
        s += prompt
        s += rt.gen("x", max_tokens=4, ignore_eos=True)
        return str(rt.call(pay, amount, s["x"]))

    run(path, runtime, shop, 3)
    for change in ("error", "recompute"):
        with pytest.raises(JournalError) as found:
            run(path, runtime, shop, 4, on_change=change)
        assert found.value.place == "pay()"
    assert "was made with arguments" in str(found.value)
    assert "[3, " in str(found.value.before)
    assert "[4, " in str(found.value.now)
    assert len(LOG) == 1


def paying(s: rt.State, policy: str) -> str:
    s += "Pay:"
    s += rt.gen("x", max_tokens=4, ignore_eos=True)
    paid = rt.call(pay, 7, "Ada", on_unknown=policy)
    s += rt.text(" ", paid)
    s += rt.gen("y", max_tokens=4, ignore_eos=True)
    return str(paid)


def test_a_call_without_an_outcome_fails_by_default_and_says_what_to_do(runtime: rt.Runtime, tmp_path: Path) -> None:
    path = tmp_path / "journal"
    first = run(path, runtime, paying, "once")
    cut_after(path, "intent")
    for _ in range(2):  # it stays unknown
        with pytest.raises(
            rt.UnknownOutcomeError,
            match=r"pay\(7, 'Ada'\) at 'pay\(\)' is unknown: .*`rtlang answer \S+ 'pay\(\)' OUTCOME`",
        ) as found:
            run(path, runtime, paying, "once")
        assert (found.value.function, found.value.path) == ("pay", "pay()")
        assert len(LOG) == 1
    again = run(path, runtime, paying, "retry")
    assert again.value == first.value
    assert [KEYS[0]] * 2 == KEYS, "both attempts have one key"
    cut_after(path, "intent")
    Path(f"{path}.answers").write_text('{"path": "pay()", "answer": {"outcome": "done", "value": "paid 7"}}\n')
    known = run(path, runtime, paying, "once")
    assert (known.value, known["y"]) == (first.value, first["y"])
    assert len(LOG) == 2


@pytest.mark.parametrize("outcome", ["done", "retry", "fail"])
def test_a_person_decides_about_a_call_without_an_outcome(runtime: rt.Runtime, tmp_path: Path, outcome: str) -> None:
    path = tmp_path / "journal"
    run(path, runtime, paying, "ask")
    cut_after(path, "intent")
    asked: list[rt.Question] = []

    def decide(question: rt.Question) -> Any:
        asked.append(question)
        return {"outcome": outcome} | ({"value": "it was paid"} if outcome == "done" else {})

    with pytest.raises(rt.UnansweredError, match="rtlang answer"):
        run(path, runtime, paying, "ask", wait_s=0)
    if outcome == "fail":
        for _ in range(2):
            with pytest.raises(rt.CallError, match="a person let it fail"):
                run(path, runtime, paying, "ask", ask=decide)
    else:
        found = run(path, runtime, paying, "ask", ask=decide)
        assert found.value == ("it was paid" if outcome == "done" else "paid 7")
    assert len(LOG) == (2 if outcome == "retry" else 1)
    (question,) = asked
    assert question.is_unknown
    assert question.call == "pay(7, 'Ada')"
    assert question.path == "pay()"


def test_keys_belong_to_one_call_of_one_run(runtime: rt.Runtime, tmp_path: Path) -> None:
    def twice(s: rt.State) -> None:
        s += "A"
        s += rt.gen("x", max_tokens=1)
        rt.call(pay, 1)
        rt.call(pay, 1)

    for name in ("one", "other"):
        run(tmp_path / name, runtime, twice, seed=7)
    rt.program(twice).run(runtime=runtime, seed=7)
    assert len(set(KEYS)) == 6
    with pytest.raises(rt.TraceError, match="inside a call"):
        rt.idempotency_key()


def test_pure_calls_leave_no_intent_and_may_be_made_again(runtime: rt.Runtime, tmp_path: Path) -> None:
    path = tmp_path / "journal"

    def double(x: int) -> int:
        LOG.append((x,))
        return 2 * x

    def body(s: rt.State, x: int) -> str:
        s += "A"
        s += rt.gen("x", max_tokens=1)
        return str(rt.call(double, x, pure=True))

    assert run(path, runtime, body, 3).value == "6"
    assert run(path, None, body, 3).value == "6"
    assert LOG == [(3,)]
    assert run(path, runtime, body, 4, on_change="recompute").value == "8"
    with contextlib.closing(JournalFile(path)) as file:
        assert (file.intents, file.answers) == ({}, {})


def test_effects_in_loops_of_the_graph_take_place_once_each_turn(runtime: rt.Runtime, tmp_path: Path) -> None:
    path = tmp_path / "journal"

    def loop(s: rt.State) -> str:
        s += "Go:"

        def step(inner: rt.State) -> None:
            inner += rt.gen("w", max_tokens=3, ignore_eos=True)
            inner += rt.text(" ", rt.call(pay, 1, inner["w"]))

        rt.repeat(step, at_most=4)
        return str(s.text())

    first = run(path, runtime, loop)
    paid = list(LOG)
    assert len(paid) == len(set(KEYS)) == 4
    for count in (1, 3):
        before = len(LOG)
        cut_after(path, "answer", count)
        assert run(path, runtime, loop).value == first.value
        assert LOG[before:] == paid[count:]
    assert set(KEYS) == set(KEYS[:4]), "a repeated attempt has the key of its turn"


async def named(s: rt.State, delays: list[float]) -> list[str]:
    async def one(number: int, fork: rt.State) -> str:
        await asyncio.sleep(delays[number])
        return str(await rt.call(pay, number, state=fork, on_unknown="retry"))

    s += "A"
    s += rt.gen("x", max_tokens=2)
    return await asyncio.gather(*(one(number, fork) for number, fork in enumerate(s.fork(3))))


def test_calls_without_values_belong_to_the_state_that_is_given(runtime: rt.Runtime, tmp_path: Path) -> None:
    path = tmp_path / "journal"
    first = run(path, runtime, named, [0, 0.02, 0.04])
    assert first.value == ["paid 0", "paid 1", "paid 2"]
    for count in (1, 2):
        cut_after(path, "answer", count)
        assert run(path, runtime, named, [0.04, 0.02, 0]).value == first.value
    assert len(set(KEYS)) == 3
    assert len(LOG) == 3 + 2 + 1
