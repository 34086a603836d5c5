"""The benchmark of two keys on one server, with tiny requests, and its command."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner

import rtlang as rt
from rtlang.contract.config import ServeConfig
from rtlang.serve.server import running_server
from rtlang_bench import neighbour
from rtlang_bench.neighbour import KEYS, Delays, app, loads, measure, small_requests


def test_every_kind_is_measured_beside_every_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbour, "_FILL_S", 0.0)
    with rt.Runtime(num_threads=1) as runtime, running_server(runtime, ServeConfig(port=0, keys=KEYS)) as url:
        http = url.replace("ws://", "http://")
        found = list(measure(http, chosen=("tokenizations",), num_clients=2, num_bytes=1000, rounds=1))
    assert [each.kind for each in found] == [*small_requests()]
    assert all(len(each.alone_s) == len(each.beside_s) == 1 for each in found)


@pytest.mark.parametrize(("beside_s", "code"), [(0.3, 0), (0.9, 1)])
def test_lines_are_printed_and_a_missed_goal_is_an_exit_code(
    monkeypatch: pytest.MonkeyPatch, beside_s: float, code: int
) -> None:
    delays = Delays("a chat", "24 schemas", (0.1, 0.2), (beside_s,), 3)

    def measured(url: str, **sizes: Any) -> Iterator[Delays]:
        assert (url, sizes["num_clients"], sizes["chosen"]) == ("http://here", 7, ("schemas",))
        yield delays

    monkeypatch.setattr(neighbour, "measure", measured)
    monkeypatch.setattr(neighbour, "server_with_keys", lambda config: _Server())
    result = CliRunner().invoke(app, ["--clients", "7", "--only", "schemas"])
    assert result.exit_code == code
    assert result.stdout == f"{delays}\n"
    assert CliRunner().invoke(app, ["--only", "nothing"]).exit_code != 0


class _Server:
    def __enter__(self) -> str:
        return "http://here"

    def __exit__(self, *_: object) -> None:
        pass


def test_requests_of_one_kind_differ() -> None:
    for make in (*small_requests().values(), *loads(1000).values()):
        assert make(1) != make(2)
        assert make(1) == make(1)
