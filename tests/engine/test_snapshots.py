"""Snapshots of an engine on a fake model: what they count, which steps they hold, and that they are bounded."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.runs.principal import Principal
from rtlang.contract.runs.session_options import SessionOptions
from rtlang.contract.service.snapshot import MAX_PREFIXES, MAX_REQUESTS, MAX_STEPS, EngineSnapshot, seen_by
from rtlang.engine.snapshots import WATCH_S, SnapshotTaker
from tests.support.engine.engine_driver import EngineDriver
from tests.support.engine.fake_runner import FakeRunner
from tests.support.engine.state_driver import StateDriver

SHARED = [3 + ord(char) for char in "The shared prompt of all requests. "]  # 35 tokens, one a character


class Watched(EngineDriver):
    """An engine of which snapshots are taken."""

    def __init__(self, num_pages: int = 400, **settings: int) -> None:
        config = replace(RuntimeConfig(page_size=4, max_rows=8, max_step_tokens=64), **settings)  # type: ignore[arg-type]
        super().__init__(FakeRunner(num_pages, eos_every=10**9), config)
        self.taker = SnapshotTaker("fake", self.runner.tokenizer.decode)

    def step(self) -> None:
        started = self.now + 1.0
        super().step()
        self.taker.after_step(self.engine, started, started + 0.25)

    def shot(self, after_step: int = 0) -> EngineSnapshot:
        return self.taker.finish(self.taker.take(self.engine, self.now, after_step))


def test_what_running_requests_share_is_seen() -> None:
    engine = Watched()
    requests = [engine.add([*SHARED, 3 + number, 40, 41, 42], 20) for number in range(3)]
    for _ in range(3):
        engine.step()
    snapshot = engine.shot()
    assert snapshot.num_running == len(requests) == 3
    shared = [each for each in snapshot.prefixes if each.num_users == 3]
    assert [(each.parent_id, each.num_tokens, each.num_children) for each in shared] == [(None, 32, 3)]
    assert shared[0].text == "The shared prompt of all request"
    own = [each for each in snapshot.prefixes if each.parent_id == shared[0].prefix_id]
    assert [each.num_users for each in own] == [1, 1, 1]
    assert snapshot.num_prefixes == len(snapshot.prefixes)
    assert snapshot.num_free_pages + snapshot.num_cached_pages + snapshot.num_used_pages == snapshot.num_pages
    cached = [each.num_cached_tokens for each in snapshot.requests]
    assert cached == [0, 32, 32]
    assert snapshot.num_hit_tokens == 64
    engine.run()
    assert {each.num_users for each in engine.shot().prefixes} == {0}


def test_sessions_are_shown_with_what_they_do() -> None:
    engine = Watched()
    chat = SessionOptions(call_marks=("a", "b", "c", "d", "e"), key="mine")
    first = engine.add([*SHARED, 40], 20, session=chat)
    engine.run()
    engine.add([*first.token_ids, 41], 20, session=chat)
    other = engine.add([*first.token_ids, 41], 20, session=chat, principal=Principal("other", namespace="n"))
    states = {each.principal: each.state for each in engine.shot().sessions}
    assert states["other"] == "waiting"
    engine.step()
    (session,) = [each for each in engine.shot().sessions if each.principal == "other"]
    assert (session.state, session.num_turns, session.parent_id) == ("running", 1, None)
    engine.run()
    assert other in engine.last
    snapshot = engine.shot()
    assert {each.state for each in snapshot.sessions} <= {"calling", "answered"}
    assert {each.key_digest for each in seen_by(snapshot, Principal("other", namespace="n")).sessions} == {
        snapshot.sessions[0].key_digest
    }


def test_each_step_is_in_one_snapshot_with_its_rows() -> None:
    engine = Watched()
    engine.shot()  # someone watches from now on
    engine.add(SHARED, 4)
    engine.add([*SHARED, 9], 4)
    engine.run()
    steps = engine.shot().steps
    assert [step.number for step in steps] == list(range(1, len(steps) + 1))
    assert all(step.duration_s == 0.25 for step in steps)
    rows = [row for step in steps for row in step.rows]
    of_first = [row for row in rows if row.request_id == 1]
    assert [(row.num_tokens, row.num_computed_tokens, row.is_prompt) for row in of_first] == [
        (35, 0, True), (1, 35, False), (1, 36, False), (1, 37, False),
    ]  # fmt: skip
    of_second = [row for row in rows if row.request_id == 2]
    assert of_second[0].num_computed_tokens == of_second[0].num_cached_tokens == 32
    assert engine.shot(after_step=steps[-2].number).steps == steps[-1:]


def test_requests_and_rows_name_their_principal() -> None:
    engine = Watched()
    engine.shot()
    engine.add(SHARED, 4, principal=Principal("ana"))
    engine.add([*SHARED, 9], 4)
    for _ in range(3):
        engine.step()
    snapshot = engine.shot()
    assert {each.request_id: each.principal for each in snapshot.requests} == {1: "ana", 2: "local"}
    rows = [row for step in snapshot.steps for row in step.rows]
    assert {(row.request_id, row.principal) for row in rows} == {(1, "ana"), (2, "local")}


def test_prefixes_have_the_namespace_that_may_use_them_and_readable_texts() -> None:
    engine = Watched()
    for name in ("ana", "bob"):
        engine.add(SHARED, 2, principal=Principal(name, namespace=name))
    engine.add(SHARED, 2)
    engine.run()
    prefixes = engine.shot().prefixes
    tops = {each.namespace: each for each in prefixes if each.parent_id is None}
    assert set(tops) == {"ana", "bob", ""}
    assert {each.text for each in tops.values()} == {"The shared prompt of all request"}
    assert len({each.prefix_id for each in prefixes}) == len(prefixes)
    for name in ("ana", "bob"):
        seen = seen_by(engine.shot(), Principal(name, namespace=name)).prefixes
        assert {each.namespace for each in seen} == {name}


def test_steps_are_recorded_only_while_someone_watches() -> None:
    engine = Watched()
    engine.add(SHARED, 60)
    engine.step()
    assert engine.shot().steps == ()
    engine.step()
    assert len(engine.shot().steps) == 1
    engine.now += WATCH_S + 1
    engine.step()
    assert engine.shot().steps == ()
    for _ in range(3):
        engine.step()
    assert [step.number for step in engine.shot().steps] == [4, 5, 6]


def test_a_snapshot_is_bounded() -> None:
    engine = Watched(num_pages=4000, max_rows=32)
    engine.shot()
    for number in range(700):
        engine.add([3 + number % 97, 3 + number // 97, 5, 6, 7, 8, 9, 10], 3)
    for _ in range(30):
        engine.step()
        engine.shot()
    snapshot = engine.shot()
    assert snapshot.num_requests > len(snapshot.requests) == MAX_REQUESTS
    assert [each.state for each in snapshot.requests[: snapshot.num_running]] == ["running"] * snapshot.num_running
    assert snapshot.requests[-1].state == "waiting"
    while engine.engine.has_work:
        engine.step()
        engine.shot()
    snapshot = engine.shot()
    assert snapshot.num_prefixes > MAX_PREFIXES >= len(snapshot.prefixes) > 0
    assert len(snapshot.steps) == MAX_STEPS


def test_numbers_of_steps_rise_also_when_a_step_fails() -> None:
    engine = Watched()
    engine.runner.fail_at = {2, 4}
    engine.shot()
    requests = [engine.add([*SHARED, 3 + number], 6) for number in range(3)]
    engine.run()
    assert len(engine.last) == len(requests)
    numbers = [step.number for step in engine.shot().steps]
    assert numbers == sorted(set(numbers))
    assert len(numbers) >= 6


def test_preempted_requests_are_seen_as_such() -> None:
    engine = Watched(num_pages=24)
    for number in range(6):
        engine.add([3 + number] * 8, 60)
    states: set[str] = set()
    for _ in range(400):
        if not engine.engine.has_work:
            break
        engine.step()
        states |= {each.state for each in engine.shot().requests}
    assert {"running", "preempted"} <= states
    assert engine.shot().num_preemptions > 0


def test_texts_are_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Watched()
    engine.add(SHARED, 2)
    engine.run()
    first = engine.shot()
    monkeypatch.setattr(engine.taker, "_decode", None)
    assert engine.shot().prefixes == first.prefixes


def test_prefixes_and_requests_name_their_namespace_and_principal() -> None:
    driver = EngineDriver(FakeRunner(64, 4), RuntimeConfig(page_size=4, num_pages=64))
    for name in ("", "ana"):
        driver.add([1, *[90] * 9], 4, principal=Principal(name or "local", namespace=name))
    driver.step()
    taker = SnapshotTaker("m", lambda ids: str(list(ids)))
    found = taker.finish(taker.take(driver.engine, 1.0))
    assert sorted((each.namespace, each.text) for each in found.prefixes) == [
        (name, str([1, *[90] * 7])) for name in ("", "ana")
    ]
    assert {each.principal for each in found.requests} == {"local", "ana"}


def test_states_are_counted() -> None:
    driver = StateDriver(8, 200, eos_every=10**9)
    taker = SnapshotTaker("fake", driver.runner.tokenizer.decode)
    for last in (5, 6):
        driver.add([*SHARED, last], 2)
        driver.run()
    running = driver.add([*SHARED, 9, 9, 9, 9, 9], 20)
    driver.step()
    snapshot = taker.finish(taker.take(driver.engine, driver.now))
    assert (snapshot.num_states, snapshot.num_used_states) == (8, 1)
    assert (
        snapshot.num_kept_states == 4
    )  # at token 32 (twice the same), behind two texts and at the end of the third prompt
    assert running.stats.num_cached_tokens == 32
    assert [each.num_replayed_tokens for each in snapshot.requests] == [0]
    driver.run()
