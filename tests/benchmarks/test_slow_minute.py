"""The key that makes a minute slow is named by log lines alone and by metrics alone."""

from __future__ import annotations

import json

from rtlang_bench.slow_minute import CAUSES, judge_lines, judge_metrics, play_all
from tests.support.long_tests import sized


def line(principal: str, **work_s: float) -> str:
    return json.dumps({"logger": "rtlang.requests", "principal": principal, "work_s": work_s})


def test_lines_add_up_and_other_lines_do_not_count() -> None:
    lines = [
        line("a", steps=1.0),
        line("b", steps=0.4),
        line("b", tokenize=0.8),
        "no JSON",
        '{"logger": "other"}',
        "[]",
    ]
    assert judge_lines(lines) == ("b", "tokenize")
    assert judge_lines([line("a")]) is None


def test_only_what_was_added_between_two_readings_counts() -> None:
    name = "rtlang_engine_principal_work_seconds_total"
    before = f'{name}{{kind="steps",principal="a"}} 100\n'
    after = before.replace("100", "101") + f'{name}{{kind="constraint",principal="b"}} 2\n'
    assert judge_metrics(before, after) == ("b", "constraint")
    assert judge_metrics(after, after) is None


def test_the_guilty_key_of_a_real_server_is_found() -> None:
    causes = [*CAUSES][: sized(len(CAUSES), usual=1)]
    verdicts = list(play_all(0.5 if len(causes) == 1 else 5.0, 7, causes))
    assert [str(verdict) for verdict in verdicts if not verdict.is_right] == []
    assert len(verdicts) == len(causes)
