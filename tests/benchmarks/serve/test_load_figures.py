"""The figures of a server, small, on a server without a model. No timing decides."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from rtlang.contract.config import ServeConfig
from rtlang.serve.server import running_server
from rtlang.testing import ScriptedRuntime
from rtlang_bench.serve import hostile, load_figures


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    with (
        ScriptedRuntime(default="some text", checks=False) as runtime,
        running_server(runtime, ServeConfig(port=0, slow_timeout_s=0.5)) as url,
    ):
        http_url = url.replace("ws", "http", 1)
        yield SimpleNamespace(
            url=url, http_url=http_url, pid=os.getpid(), is_running=True, num_resident_bytes=lambda: 0
        )


@pytest.mark.skipif(sys.platform != "linux", reason="the client of server-sent events needs epoll")
def test_streams_are_counted_at_both_doors(server: Any) -> None:
    failed, index, sse_failed, sse_index = load_figures.stream_figures(server, 12, 9)
    assert (failed.name, failed.value, failed.is_met) == ("streams_failed", 0, True)
    assert (sse_failed.name, sse_failed.value, sse_failed.is_met) == ("streams_sse_failed", 0, True), sse_failed.note
    assert 0 < index.value <= 1
    assert 0 < sse_index.value <= 1


def test_bombs_are_answered_beside_a_canary(server: Any) -> None:
    found = {each.name: each for each in load_figures.bomb_figures(server, 2)}
    assert found.keys() == {
        "bombs_slowest_answer", "bombs_canary_gap", "bombs_other_constraint", "bombs_memory", "bombs_crashes",
    }  # fmt: skip
    assert found["bombs_crashes"].is_met
    assert found["bombs_slowest_answer"].note.startswith("6 bombs")


def test_the_memory_of_schemas_and_the_gap_beside_a_reader_are_figures(server: Any) -> None:
    assert load_figures.schema_figure(server, 3).value == 0
    assert load_figures.reader_figure(server, 0.05).bound == 1.5


def test_a_flood_is_cancelled_behind_the_figure(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hostile, "constraints", list)
    monkeypatch.setattr(load_figures, "_fresh_bomb", lambda number: None)
    monkeypatch.setattr(load_figures.sys, "executable", "true")
    found = list(load_figures.flood_figures(server, places=300, detached=4))
    assert [each.name for each in found] == ["flood_of_places", "flood_of_constraints", "flood_of_detached"]
    assert all(each.value > 0 for each in found)
