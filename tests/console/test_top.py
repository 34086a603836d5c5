"""`rtlang top`: what the table says, and what happens when there is nothing to watch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console
from typer.testing import CliRunner

from rtlang.__main__ import app
from rtlang.console import top
from rtlang.console.top import Rates, rates_between, view
from rtlang.contract.service.principal_loads import busiest, loads_between, read_loads
from rtlang.contract.service.snapshot import EngineSnapshot, WatchedRequest, WatchedSession, read_snapshot
from tests.support.programs.scripted_target import ScriptedTarget
from tests.support.programs.snapshots import WatchedTarget, some_snapshot
from tests.support.servers.serving import Serving, serving


def request(request_id: int, state: str = "running", principal: str = "", **facts: int) -> WatchedRequest:
    defaults = WatchedRequest(request_id, state, principal, 40, 32, 5, 64, 3, False, 0, 1.25)
    return replace(defaults, **facts)  # type: ignore[arg-type]


def shown(
    snapshot: EngineSnapshot,
    rates: Rates | None = None,
    num_rows: int = 20,
    notice: str = "",
    rows: top.PrincipalRows | None = None,
) -> list[str]:
    output = StringIO()
    Console(file=output, width=140, color_system=None).print(view(snapshot, rates, num_rows, notice, rows))
    return [" ".join(line.split()) for line in output.getvalue().splitlines()]


def test_the_summary_has_the_figures_of_the_snapshot() -> None:
    lines = shown(some_snapshot(), Rates(20.0, 1500.0, 0.5))
    assert "model some:model" in lines
    assert "rows 1 running (at most 64), 3 waiting, 1 preemptions" in lines
    assert "speed 1,500 tokens/s, 20 steps/s, 50 tokens generated since the start" in lines
    assert "hit rate 75% of 400 prompt tokens since the start, 50% now" in lines
    assert any(line.endswith("10 in use, 30 cached, 60 free of 100") and "###=========....." in line for line in lines)
    assert "memory 256 MiB in the process of the engine" in lines


def test_states_have_a_line_where_the_model_has_any() -> None:
    assert not any(line.startswith("states") for line in shown(some_snapshot()))
    snapshot = replace(
        some_snapshot(),
        num_states=48,
        num_used_states=8,
        num_kept_states=30,
        num_evicted_states=5,
        num_replayed_tokens=28,
    )
    assert "states 8 in use, 30 kept of 48, 5 evicted, 28 tokens replayed" in shown(snapshot)


def test_requests_have_a_line_each_up_to_a_limit() -> None:
    snapshot = replace(some_snapshot(), requests=(request(7), request(8, "waiting", num_cached_tokens=0)))
    lines = shown(snapshot)
    assert "7 running 40 32 5 64 3 1.2" in lines
    assert "8 waiting 40 0 5 64 3 1.2" in lines
    assert "2 more" in lines
    lines = shown(snapshot, num_rows=1)
    assert not any(line.startswith("8 ") for line in lines)
    assert "3 more" in lines
    assert not any("more" in line for line in shown(snapshot, num_rows=0))


METRICS = """
rtlang_engine_principal_tokens_total{kind="output",principal="a"} %d
rtlang_engine_principal_tokens_total{kind="output",principal="a",replica="2"} 10
rtlang_engine_principal_work_seconds_total{kind="steps",principal="a"} 1.5
rtlang_server_principal_work_seconds_total{kind="tokenize",principal="b"} %f
rtlang_engine_principal_wait_seconds_total{cause="row",principal="b"} 4.0
rtlang_principal_open_requests{principal="b"} 3.0
rtlang_other_total 9
"""


def test_sessions_have_a_line_each_up_to_a_limit() -> None:
    first = WatchedSession(3, None, "team", "calling", 4, 1, 900, 600, 450, "evicted", 10.0, True, "0badcafe")
    fork = replace(first, session_id=4, parent_id=3, num_returning_tokens=0, last_miss="", is_held=False, key_digest="")
    snapshot = replace(
        some_snapshot(), sessions=(first, fork), num_returning_tokens=800, num_cached_returning_tokens=792
    )
    lines = shown(replace(snapshot, num_suspended_sessions=2))
    assert "sessions 99.0% of 800 returning tokens cached, 2 times suspended" in lines
    assert "3 calling team 4 1 900 75% evicted 2.5 yes 0badcafe" in lines
    assert "4 calling team 3 4 1 900 2.5" in lines
    assert not any(line.startswith("4 calling") for line in shown(snapshot, num_rows=1))


def test_principals_have_a_line_each_the_busiest_first() -> None:
    requests = (request(1, principal="a"), request(2, "waiting", "a"), request(3, principal="c\x1b"), request(4))
    rows = top.PrincipalRows(read_loads(METRICS % (20, 7.0)))
    lines = shown(replace(some_snapshot(), requests=requests), rows=rows)
    at = next(index for index, line in enumerate(lines) if line.startswith("principal"))
    assert lines[at + 1 : at + 5] == [
        "b 0 0 3 0 0 0 0 7.00 tokenize 4.00 row",
        "a 1 1 0 0 0 30 6 1.50 steps 0.00",
        "(others) 1 0 0 0 0 0 3 0.00 0.00",
        "c\\x1b 1 0 0 0 0 0 3 0.00 0.00",
    ]
    assert not any(line.startswith("principal") for line in shown(replace(some_snapshot(), requests=(request(4),))))


def test_loads_are_differences_per_second() -> None:
    before, now = read_loads(METRICS % (20, 7.0)), read_loads(METRICS % (60, 8.0))
    lines = shown(some_snapshot(), rows=top.PrincipalRows(loads_between(before, now), 2.0))
    assert any(line.startswith("principal running waiting open prompt/s") for line in lines)
    assert "b 0 0 3 0 0 0 0 0.50 tokenize 0.00" in lines
    assert "a 0 0 0 0 0 20 0 0.00 0.00" in lines
    assert busiest(loads_between(before, now)) == ("b", "tokenize")
    assert busiest(loads_between(now, now)) is None
    assert busiest(loads_between(now, before)) is None, "an engine that begins anew has done nothing"


def test_rates_are_differences_of_one_engine() -> None:
    before = some_snapshot()
    now = replace(
        before, taken_s=14.5, num_steps=32, num_generated_tokens=150, num_queried_tokens=500, num_hit_tokens=325
    )
    assert rates_between(before, now) == Rates(10.0, 50.0, 0.25)
    assert rates_between(before, replace(before, taken_s=13.5)) == Rates(0.0, 0.0, None)
    assert rates_between(before, before) is None
    assert rates_between(before, replace(now, num_steps=1)) is None


def test_a_notice_is_at_the_end() -> None:
    assert shown(some_snapshot(), notice="gone\x07; trying again")[-1] == "gone\\x07; trying again"


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with serving(WatchedTarget(), api_key="secret") as found:
        yield found


def test_the_command_prints_the_table_once_into_a_pipe(server: Serving) -> None:
    result = CliRunner().invoke(app, ["top", server.url], env={"RTLANG_API_KEY": "secret"})
    assert result.exit_code == 0, result.output
    assert "some:model" in result.stdout
    assert "\x1b" not in result.stdout


def test_ctrl_c_is_the_usual_end(server: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    updates: list[float] = []

    def sleep(seconds: float) -> None:
        updates.append(seconds)
        if len(updates) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(top.time, "sleep", sleep)
    monkeypatch.setattr(top.sys, "stdout", TerminalOut())
    top.top(server.url, "secret", interval_s=0.5)
    assert updates == [0.5] * 3
    assert "some:model" in top.sys.stdout.getvalue()


class TerminalOut(StringIO):
    def isatty(self) -> bool:
        return True


def test_the_snapshot_as_json(server: Serving) -> None:
    result = CliRunner().invoke(app, ["top", server.url, "--json", "--api-key", "secret"])
    assert read_snapshot(json.loads(result.stdout)) == some_snapshot()


def test_a_wrong_key_and_other_mistakes_end_in_one_line(server: Serving) -> None:
    with serving(ScriptedTarget()) as other:
        for arguments, told in (
            ([server.url, "--api-key", "wrong"], "HTTP status 401"),
            ([other.url], "no engine to watch"),
            (["http://127.0.0.1:1"], "not reachable"),
            (["ftp://x"], "expected ws://host:port"),
        ):
            result = CliRunner().invoke(app, ["top", *arguments])
            assert result.exit_code == 1
            [line] = result.stderr.splitlines()
            assert line.startswith("error: ")
            assert told in line
