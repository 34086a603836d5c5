"""Compile seconds: who is charged, and when a principal is refused."""

from __future__ import annotations

import pytest

from rtlang.contract.errors import OverloadError
from rtlang.contract.runs.principal import Principal, PrincipalLimits
from rtlang.engine.constraints.compile_quota import CompileQuota


def test_those_who_wait_share_a_compilation() -> None:
    now = 0.0
    quota = CompileQuota(lambda: now)
    a = Principal("a", limits=PrincipalLimits(compile_seconds_per_minute=2.0))
    b = Principal("b", limits=PrincipalLimits(compile_seconds_per_minute=9.0))
    for each in (a, b, Principal("c")):
        quota.check(each)
    quota.charge(("a", "b", "c"), 9.0)
    quota.check(b)
    quota.check(Principal("c"))
    with pytest.raises(OverloadError, match="compile_seconds_per_minute = 2") as refused:
        quota.check(a)
    assert refused.value.retry_after_s == pytest.approx(30.0, abs=0.1)
    now = 30.1
    quota.check(a)
