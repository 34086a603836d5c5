"""Seconds by principal and kind, for a bounded number of names."""

from __future__ import annotations

import pytest

from rtlang.work.work_account import MAX_PRINCIPALS, OTHERS, RequestWork, WorkAccount, WorkKind


def test_seconds_add_up_by_principal_and_kind() -> None:
    account = WorkAccount()
    for _ in range(3):
        account.add("a", WorkKind.PARSE, 0.5)
    account.add("a", WorkKind.REPLY, 1.0)
    account.add("b", WorkKind.PARSE, 2.0)
    assert account.snapshot() == {"a": {"parse": 1.5, "reply": 1.0}, "b": {"parse": 2.0}}


def test_many_names_share_one_entry_and_no_second_is_lost() -> None:
    account = WorkAccount()
    for number in range(2 * MAX_PRINCIPALS):
        account.add(f"key {number}", WorkKind.READ, 1.0)
    account.add("key 0", WorkKind.READ, 1.0)
    found = account.snapshot()
    assert len(found) == MAX_PRINCIPALS + 1
    assert found["key 0"] == {"read": 2.0}
    assert found[OTHERS] == {"read": MAX_PRINCIPALS}


def test_the_work_of_a_request_has_its_waits() -> None:
    work = RequestWork()
    work.add(WorkKind.PARSE, 0.1, 0.5)
    work.add(WorkKind.PARSE, 0.2, 0.25)
    assert work.seconds == {"parse": pytest.approx(0.3)}
    assert work.waited_s == 0.75
