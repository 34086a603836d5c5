"""Snapshots as plain maps: nothing is lost on the way, and a map that is none is refused by field."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from rtlang.contract.runs.principal import LOCAL, Principal
from rtlang.contract.service.snapshot import (
    Prefix,
    StepRow,
    WatchedRequest,
    WatchedSession,
    WatchedStep,
    plain_snapshot,
    read_snapshot,
    seen_by,
)
from tests.support.programs.snapshots import some_snapshot


def test_a_snapshot_is_the_same_after_json() -> None:
    snapshot = replace(
        some_snapshot(),
        prefixes=(Prefix(1, None, 32, 2, 3, False, 2, 9, "Once"), Prefix(2, 1, 5, 1, 0, True, 0, 4, " upon\x1b")),
        requests=(WatchedRequest(7, "running", "team", 40, 32, 3, 64, 3, True, 0, 0.5),),
        sessions=(WatchedSession(3, None, "team", "calling", 4, 1, 90, 60, 45, "evicted", 7.5, True, "0badcafe"),),
        steps=(WatchedStep(11, 1.5, 0.01, (StepRow(7, 8, 32, 32, True, False),)), WatchedStep(12, 1.6, 0.01, ())),
    )
    assert read_snapshot(json.loads(json.dumps(plain_snapshot(snapshot)))) == snapshot


def test_fields_of_a_later_version_are_ignored() -> None:
    snapshot = some_snapshot()
    assert read_snapshot(plain_snapshot(snapshot) | {"news": [1]}) == snapshot


@pytest.mark.parametrize(
    ("field", "value"),
    [("num_steps", "3"), ("num_steps", True), ("num_steps", 1.5), ("model", None), ("taken_s", "x"), ("steps", 3)],
)
def test_a_field_of_another_type_is_named(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"^{field} = "):
        read_snapshot(plain_snapshot(some_snapshot()) | {field: value})


def test_a_missing_field_and_another_value_are_refused() -> None:
    plain = plain_snapshot(some_snapshot())
    del plain["num_pages"]
    with pytest.raises(ValueError, match="num_pages"):
        read_snapshot(plain)
    with pytest.raises(ValueError, match="EngineSnapshot"):
        read_snapshot([])  # type: ignore[arg-type]
    for row in (3, [1, 2], [1, 2, 3, 4, 0, 0, ""], {}):
        step = {"number": 1, "started_s": 0.0, "duration_s": 0.1, "rows": [row]}
        with pytest.raises(ValueError, match=r"rows: .*request_id, num_tokens"):
            read_snapshot(plain_snapshot(some_snapshot()) | {"steps": [step]})
    with pytest.raises(ValueError, match="Prefix"):
        read_snapshot(plain_snapshot(some_snapshot()) | {"prefixes": [3]})


def test_a_principal_sees_its_own_prefixes_and_requests_and_an_operator_all_requests() -> None:
    def prefix(number: int, namespace: str) -> Prefix:
        return Prefix(number, None, 16, 1, 1, False, 0, 1, f"secret of {namespace}", namespace)

    def public(number: int) -> Prefix:
        return Prefix(number, None, 16, 1, 2, False, 2, 1, "public prompt", "")

    def row(number: int, principal: str) -> StepRow:
        return StepRow(number, 1, 8, 0, False, False, principal)

    def request(number: int, principal: str) -> WatchedRequest:
        return WatchedRequest(number, "running", principal, 8, 0, 1, 8, 1, False, 0, 0.0)

    whole = replace(
        some_snapshot(),
        prefixes=(public(4), prefix(1, "a"), prefix(2, "b"), prefix(3, ""), replace(prefix(5, "a"), parent_id=4)),
        requests=(request(1, "ana"), request(2, "bob"), request(3, "ada")),
        steps=(WatchedStep(1, 0.0, 0.1, (row(1, "ana"), row(2, "bob"), row(3, "ada"))),),
    )
    seen = seen_by(whole, Principal("ana", namespace="a"))
    assert [each.prefix_id for each in seen.prefixes] == [4, 1, 5], "5 continues a public prompt"
    assert [each.request_id for each in seen.requests] == [1], "ada shares the namespace, but not the requests"
    assert [each.request_id for each in seen.steps[0].rows] == [1]
    assert "bob" not in str(seen)
    assert "secret of b" not in str(seen)
    assert "secret of '" not in str(seen)
    assert replace(seen, prefixes=(), requests=(), steps=()) == replace(whole, prefixes=(), requests=(), steps=())
    operator = seen_by(whole, LOCAL)
    assert [each.prefix_id for each in operator.prefixes] == [4, 3]
    assert operator.requests == whole.requests
    assert operator.steps == whole.steps


def test_the_hit_rate_is_a_share() -> None:
    assert some_snapshot().hit_rate == 0.75
    assert replace(some_snapshot(), num_queried_tokens=0, num_hit_tokens=0).hit_rate == 0.0


def test_a_principal_sees_its_own_sessions_and_an_operator_all() -> None:
    sessions = tuple(
        WatchedSession(number, None, name, "running", 1, 0, 9, 8, 6, "", 1.0, False)
        for number, name in enumerate(("a", "b", "a"))
    )
    snapshot = replace(some_snapshot(), sessions=sessions, num_returning_tokens=8, num_cached_returning_tokens=6)
    assert [each.session_id for each in seen_by(snapshot, Principal("a", namespace="n")).sessions] == [0, 2]
    assert seen_by(snapshot, LOCAL).sessions == sessions
    assert snapshot.returning_hit_rate == 0.75
    assert some_snapshot().returning_hit_rate == 0.0
