"""The comparison with another server, which is a second server of ours here."""

from __future__ import annotations

import sys

import pytest

from rtlang.bench.server_process import ServerProcess
from rtlang_bench.frontend import comparison
from rtlang_bench.frontend.comparison import Case
from rtlang_bench.frontend.load_client import Report
from rtlang_bench.frontend.null_server import MODULE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the client needs epoll")


def test_a_server_is_measured_at_each_concurrency_greedy_and_sampled() -> None:
    with ServerProcess("--rate", "100", command=(MODULE,)) as server:
        found = comparison.measured(server, (Case(1, 2, 5), Case(3, 1, 5)))
    assert list(found) == ["1_greedy", "1_sampled", "3_greedy", "3_sampled"]
    assert [each.num_tokens for each in found.values()] == [10, 10, 15, 15], "tokens without text count"
    assert not any(each.failures for each in found.values())


def test_ratios_are_ours_over_theirs() -> None:
    ours = Report([0.01, 0.02, 0.03], num_tokens=100, seconds=1.0, cpu_s=0.01)
    theirs = Report([0.02, 0.04, 0.06], num_tokens=100, seconds=2.0, cpu_s=0.04)
    cpu, first = comparison._ratios("1_greedy", ours, theirs)
    assert (cpu.value, first.value) == (0.25, 0.5)
    assert cpu.note == "100 us a token and 400; 100 tokens/s and 50"
    theirs.failures.append("no model")
    (failed,) = comparison._ratios("1_greedy", ours, theirs)
    assert not failed.is_met
