"""Keys at a running server: graphs carry the principal of their key, and removed keys lose their connections."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from rtlang.client.connect import connect
from rtlang.contract.errors import ConnectionLostError
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Generate, RequestGraph
from rtlang.contract.runs.principal import Principal, PrincipalLimits
from rtlang.serve import server
from tests.support.servers.serving import Serving, serving
from tests.support.servers.wire_client import WireClient
from tests.support.waiting import wait_until

GRAPH = RequestGraph((Generate(0, None, "x", SamplingParams(max_tokens=3)),))
ANA = {"name": "ana", "weight": 2.0, "limits": {"max_places": 7}}


def write(path: Path, *entries: dict[str, object]) -> None:
    keys = [each | {"sha256": hashlib.sha256(f"key of {each['name']}".encode()).hexdigest()} for each in entries]
    path.with_suffix(".new").write_text(json.dumps({"keys": keys}))
    os.replace(path.with_suffix(".new"), path)


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    path = tmp_path / "keys.json"
    write(path, ANA, {"name": "bo"})
    return path


@pytest.fixture
def running(keys: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serving]:
    monkeypatch.setattr(server, "KEYS_INTERVAL_S", 0.02)
    with serving(keys_file=str(keys)) as found:
        yield found


def test_graphs_carry_the_principal_of_their_key(running: Serving) -> None:
    with connect(running.url, api_key="key of ana") as ana, connect(running.url, api_key="key of bo") as bo:
        for remote in (ana, bo, ana):
            remote.submit(GRAPH, lambda event: None)
        running.target.wait_for(3)
        first, second, third = (run.principal for run in running.target.runs)
    assert first is not None
    assert second is not None
    assert first == third
    assert first == Principal("ana", 2.0, "ana", PrincipalLimits(max_places=7), client=first.client)
    assert (second.name, second.namespace) == ("bo", "bo")
    assert first.client != second.client
    for key in (None, "key of cy"):
        with pytest.raises(ConnectionLostError):
            connect(running.url, api_key=key)


def test_new_limits_hold_from_the_next_graph_and_a_removed_key_ends_its_connections(
    running: Serving, keys: Path
) -> None:
    with connect(running.url, api_key="key of ana") as ana, connect(running.url, api_key="key of bo") as bo:
        bo.submit(GRAPH, lambda event: None)
        write(keys, ANA | {"limits": {"max_places": 9}}, {"name": "cy"})
        while bo.is_alive:
            pass
        with connect(running.url, api_key="key of cy") as cy:
            cy.submit(GRAPH, lambda event: None)
        ana.submit(GRAPH, lambda event: None)
        running.target.wait_for(3)
        principal = running.target.runs[-1].principal
        assert principal is not None
        assert principal.limits.max_places == 9
        assert running.target.runs[0].was_cancelled


def test_connections_of_one_principal_are_limited(keys: Path) -> None:
    write(keys, ANA | {"limits": {"max_connections": 2}}, {"name": "bo"})
    with serving(keys_file=str(keys)) as server:
        ana, bo = "key of ana", "key of bo"
        with connect(server.url, api_key=ana), connect(server.url, api_key=bo):
            with (
                connect(server.url, api_key=ana),
                WireClient(server.url, headers={"Authorization": f"Bearer {ana}"}) as more,
            ):
                more.send(t="hello", v=1)
                code, (refusal,) = more.close_code()
                assert (code, refusal["t"], refusal["fatal"]) == (4429, "error", True)
                assert "ana already has 2 connections" in refusal["message"]
            wait_until(lambda: server.count("ws_connections") == 2)
            with connect(server.url, api_key=ana):
                pass
