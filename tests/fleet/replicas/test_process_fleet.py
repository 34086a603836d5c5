"""A fleet of this process grows while tokens wait and shrinks afterwards; engines are threads here, launched at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Generate, RequestGraph, Text
from rtlang.contract.runs.run_options import RunOptions
from rtlang.fleet.engines.engine_run import EngineRun
from rtlang.fleet.host.engine_host import EngineHost
from rtlang.fleet.replicas import process_fleet
from rtlang.fleet.replicas.process_fleet import ProcessFleet
from rtlang.fleet.replicas.scaling import Scaling
from tests.support.programs.graph_ear import Ear
from tests.support.servers.engine_threads import ThreadLauncher
from tests.support.waiting import wait_until

LONG = RequestGraph((Text(0, None, ("a",)), Generate(1, 0, "x", SamplingParams(max_tokens=400, ignore_eos=True))))


@pytest.fixture(scope="module")
def host() -> Iterator[EngineHost]:
    host = EngineHost()
    yield host
    host.close()


def test_the_size_follows_the_queue(host: EngineHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_fleet, "process_launchers", lambda *_: lambda name: ThreadLauncher(host, name))
    monkeypatch.setattr(process_fleet, "INTERVAL_S", 0.01)
    scaling = Scaling(1, 2, queue_tokens=100.0, up_after_s=0.01, down_after_s=0.05)

    def size() -> int:
        return len(fleet.fleet_report().replicas)

    with ProcessFleet(RuntimeConfig(num_pages=400), scaling) as fleet:
        assert size() == 1
        ear = Ear()
        run = fleet.submit(LONG, ear, RunOptions(credit=1))  # its other tokens wait for credit
        wait_until(lambda: size() == 2)
        run.grant(1000)
        assert ear.values()
        wait_until(lambda: size() == 1)
        ear = Ear()
        fleet.submit(LONG, ear)
        assert ear.values()


def test_a_replica_that_ends_while_the_fleet_grows_loses_no_program(
    host: EngineHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    launchers: dict[str, ThreadLauncher] = {}

    def launcher(name: str) -> ThreadLauncher:
        return launchers.setdefault(name, ThreadLauncher(host, name))

    monkeypatch.setattr(process_fleet, "process_launchers", lambda *_: launcher)
    monkeypatch.setattr(process_fleet, "INTERVAL_S", 0.01)
    scaling = Scaling(1, 3, queue_tokens=100.0, up_after_s=0.01, down_after_s=0.05)
    with ProcessFleet(RuntimeConfig(dtype="float32", num_pages=400), scaling) as fleet:

        def submitted(credit: int | None) -> tuple[list[Ear], list[EngineRun]]:
            ears = [Ear() for _ in range(4)]
            return ears, [fleet.submit(LONG, ear, RunOptions(seed=7, credit=credit)) for ear in ears]

        expected = [ear.values() for ear in submitted(None)[0]]
        wait_until(lambda: len(fleet.fleet_report().replicas) == 1)
        (first,) = [replica.name for replica in fleet.fleet_report().replicas]
        ears, runs = submitted(3)
        wait_until(lambda: all(ear.num_tokens == 3 for ear in ears))
        wait_until(lambda: len(fleet.fleet_report().replicas) > 1)
        launchers[first].engines[-1].kill()
        for run in runs:
            run.grant(1000)
        assert [ear.values() for ear in ears] == expected
        assert all(len(ear.finals) == 1 for ear in ears)
        wait_until(lambda: len(fleet.fleet_report().replicas) == 1)


def test_a_rolling_update_is_not_undone_by_the_roster(host: EngineHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_fleet, "process_launchers", lambda *_: lambda name: ThreadLauncher(host, name))
    monkeypatch.setattr(process_fleet, "INTERVAL_S", 0.01)
    with ProcessFleet(RuntimeConfig(num_pages=400), Scaling(2, 2)) as fleet:
        ear = Ear()
        run = fleet.submit(LONG, ear, RunOptions(credit=1))
        before = fleet._plan.roster
        follow = fleet._follower.follow_once
        fleet.replace()
        for _ in range(3):
            follow()
        names = {replica.name: replica.state for replica in fleet.fleet_report().replicas}
        assert names == {"r1~2": "ready", "r2~2": "ready"}
        assert before.used == ("r1", "r2")
        assert fleet._plan.roster.used == ("r1~2", "r2~2")
        run.grant(1000)
        assert ear.values()


def test_the_first_replicas_compute_prompts_and_all_exchange_pages() -> None:
    fleet = ProcessFleet(RuntimeConfig(), Scaling(3, 3), num_prefill=1)
    roles = [replica.role for replica in fleet.fleet_report().replicas]
    assert sorted(roles) == ["decode", "decode", "prefill"]
    assert fleet.config.cache_listen == "127.0.0.1:0"
    assert fleet.config.cache_secret is not None
    plain = ProcessFleet(RuntimeConfig(), Scaling(2, 2))
    assert {replica.role for replica in plain.fleet_report().replicas} == {"any"}
    assert plain.config.cache_listen is None


def test_a_fleet_with_a_spare_survives_a_death_with_its_size(host: EngineHost, monkeypatch: pytest.MonkeyPatch) -> None:
    launchers: dict[str, ThreadLauncher] = {}

    def launcher(name: str) -> ThreadLauncher:
        return launchers.setdefault(name, ThreadLauncher(host, name))

    monkeypatch.setattr(process_fleet, "process_launchers", lambda *_: launcher)
    monkeypatch.setattr(process_fleet, "INTERVAL_S", 0.01)

    def states() -> list[str]:
        return sorted(replica.state for replica in fleet.fleet_report().replicas)

    with ProcessFleet(RuntimeConfig(num_pages=400), Scaling(1, 1, num_spares=1)) as fleet:
        wait_until(lambda: states() == ["ready", "spare"])
        ear = Ear()
        run = fleet.submit(LONG, ear, RunOptions(credit=1))
        wait_until(lambda: ear.num_tokens == 1)
        (victim,) = [replica.name for replica in fleet.fleet_report().replicas if replica.state == "ready"]
        launchers[victim].engines[-1].kill()
        wait_until(
            lambda: fleet.fleet_report().replicas[0].num_deaths + fleet.fleet_report().replicas[1].num_deaths == 1
        )
        wait_until(lambda: states() == ["ready", "spare"])
        follow = fleet._follower.follow_once
        for _ in range(3):
            follow()
        assert states() == ["ready", "spare"]
        run.grant(1000)
        assert ear.values()
