"""The work of one request."""

from __future__ import annotations

import pytest

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.work.work_account import RequestWork


def test_the_work_of_a_request_has_its_waits() -> None:
    work = RequestWork()
    work.add(WorkKind.PARSE, 0.1, 0.5)
    work.add(WorkKind.PARSE, 0.2, 0.25)
    assert work.seconds == {"parse": pytest.approx(0.3)}
    assert work.waited_s == 0.75
