"""A fleet on a Ray cluster of two nodes: texts survive a killed engine, and the fleet survives its frontends."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import rtlang as rt
from rtlang.contract.errors import ConfigError, ConnectionLostError
from rtlang.contract.events import GraphFailed, NodeFinished
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Generate, RequestGraph, Text
from rtlang.contract.runs.run_options import RunOptions
from tests.support.programs.graph_ear import Ear
from tests.support.servers.ray_cluster import ray_cluster
from tests.support.waiting import wait_until

pytest.importorskip("ray")

SETTINGS = {"dtype": "float32", "num_pages": 400, "num_threads": 1}
NAME = "tests"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with ray_cluster(2) as address:
        yield address


@pytest.fixture(scope="module")
def options(address: str) -> Any:
    from rtlang.fleet.ray.directory import FleetOptions
    from rtlang.fleet.replicas.scaling import Scaling

    return FleetOptions(SETTINGS, Scaling(2, 2))


@pytest.fixture(scope="module")
def fleet(address: str, options: Any) -> Iterator[Any]:
    from rtlang.fleet.ray.frontend import RayFleet

    with RayFleet(address, NAME, options) as fleet:
        assert all(fleet.wait_until_ready(name, 300.0) for name in ("r1", "r2"))
        yield fleet


def pids() -> dict[str, tuple[int, str]]:
    """The process and the node of each engine."""
    import ray

    from rtlang.fleet.ray.directory import fleet_status

    status = fleet_status(NAME)
    assert status is not None
    found = {}
    for name in status.roster.used:
        actor = ray.get_actor(f"{NAME}/{name}", namespace="rtlang")
        address = ray.get(actor.address.remote(), timeout=60)
        found[name] = address.pid, address.node_id
    return found


def story(index: int) -> RequestGraph:
    params = SamplingParams(max_tokens=16, temperature=1.0, ignore_eos=True)
    return RequestGraph(
        (
            Text(0, None, (f"Story {index}:",)),
            Generate(1, 0, "x", params),
            Text(2, 1, (" And then",)),
            Generate(3, 2, "y", SamplingParams(max_tokens=12, temperature=1.0, n=2, stop=("the end",))),
        )
    )


def submit(fleet: Any, count: int, credit: int | None = None) -> tuple[list[Ear], list[Any]]:
    ears = [Ear() for _ in range(count)]
    runs = [fleet.submit(story(index), ear, RunOptions(seed=index, credit=credit)) for index, ear in enumerate(ears)]
    return ears, runs


@pytest.fixture(scope="module")
def undisturbed(fleet: Any) -> list[Ear]:
    ears, _ = submit(fleet, 8)
    for ear in ears:
        ear.values()
    return ears


def wait_for(condition: Callable[[], bool]) -> None:
    """`wait_until`, for as long as engines take to start."""
    pause = threading.Event()
    while not condition():
        pause.wait(0.1)


def same(ears: list[Ear], others: list[Ear]) -> bool:
    return [(ear.token_ids, ear.text) for ear in ears] == [(ear.token_ids, ear.text) for ear in others]


def test_engines_are_spread_over_the_nodes(fleet: Any) -> None:
    assert len({node for _, node in pids().values()}) == 2


def test_a_killed_engine_loses_no_program_and_changes_no_text(
    fleet: Any, undisturbed: list[Ear], caplog: pytest.LogCaptureFixture
) -> None:
    before = pids()
    ears, runs = submit(fleet, 8, credit=5)
    wait_until(lambda: all(ear.num_tokens == 5 for ear in ears))
    victim = next(each.name for each in fleet.fleet_report().replicas if each.num_programs)
    os.kill(before[victim][0], signal.SIGKILL)
    for run in runs:
        run.grant(1000)
    for ear in ears:
        ear.values()
    assert same(ears, undisturbed)
    assert all(sum(isinstance(event, NodeFinished) for event in ear.events) == 2 for ear in ears)
    assert fleet.wait_until_ready(victim, 300.0)  # Ray starts it again, and the link finds it
    assert pids()[victim][0] != before[victim][0]
    assert f"{victim}: its process cannot be reached any more" in caplog.text, "and no graph is blamed for that"


def test_frontends_share_the_engines_and_end_alone(fleet: Any, address: str, undisturbed: list[Ear]) -> None:
    from rtlang.fleet.ray.directory import fleet_names

    before = pids()
    second: Any = rt.connect(f"ray://{address}/{NAME}")
    ears, _ = submit(second, 8)
    assert [ear.values() for ear in ears] == [ear.values() for ear in submit(fleet, 8)[0]]
    held, runs = submit(fleet, 8, credit=3)
    wait_until(lambda: all(ear.num_tokens == 3 for ear in held))
    second.close()
    for run in runs:
        run.grant(1000)
    for ear in held:
        ear.values()
    assert same(held, undisturbed)
    assert (pids(), fleet_names()) == (before, [NAME])


@rt.program
def greet(s: rt.State, name: str, size: int) -> str:
    s += f"Hello {name}, "
    s += rt.gen("text", max_tokens=size)
    return s["text"].strip()


def test_batches_of_ray_data_run_on_the_fleet(fleet: Any, address: str) -> None:
    url = f"ray://{address}/{NAME}"
    made: Any = rt.map_batches(greet, runtime=url, arguments={"name": "who", "size": "n"})
    mapped = made()
    found = mapped({"who": ["Ann", "Bob"], "n": [4, -1]})
    assert [bool(each) for each in found["value"]] == [True, False]
    assert [each and each.split(":")[0] for each in found["error"]] == [None, "parameter"]


@pytest.mark.long
def test_a_rolling_update_replaces_every_engine_under_load(fleet: Any, undisturbed: list[Ear]) -> None:
    from rtlang.fleet.ray.directory import fleet_status, replace_fleet

    before = pids()
    ears, runs = submit(fleet, 8, credit=4)
    wait_until(lambda: all(ear.num_tokens == 4 for ear in ears))
    assert replace_fleet(NAME)

    def is_replaced() -> bool:
        status = fleet_status(NAME)
        return status is not None and not status.is_replacing and not status.roster.draining

    wait_for(is_replaced)
    for run in runs:
        run.grant(1000)
    for ear in ears:
        ear.values()
    assert same(ears, undisturbed)
    after = pids()
    assert len(after) == 2
    assert not set(after) & set(before)


def test_an_orphaned_fleet_is_found_again_and_can_be_stopped(
    fleet: Any, address: str, caplog: pytest.LogCaptureFixture
) -> None:
    from rtlang.fleet.ray.directory import end_fleet, fleet_names
    from rtlang.fleet.ray.frontend import RayFleet

    before = pids()
    fleet.close()
    with RayFleet(address, NAME) as found:
        assert submit(found, 1)[0][0].values()
        assert pids() == before
        (held,), _ = submit(found, 1, credit=1)
        wait_until(lambda: held.num_tokens == 1)
        assert end_fleet(NAME)
        end = held.end()
        assert isinstance(end, GraphFailed)
        assert str(end.error) == "the fleet was stopped"
        assert (found.is_alive, found.was_stopped) == (False, True)
    assert fleet_names() == []
    assert not end_fleet(NAME)
    assert "class_name" not in caplog.text, "no state of Ray's actors"
    with pytest.raises(ConnectionLostError, match=NAME):
        RayFleet(address, NAME)


@pytest.mark.parametrize("url", ["ray://", "ray://a b", "ray://host/x", "ray://127.0.0.1:1/", "ray://127.0.0.1:1/a/b"])
def test_wrong_addresses_are_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="url"):
        rt.connect(url)


def test_options_of_servers_are_refused() -> None:
    with pytest.raises(ConfigError, match="api_key"):
        rt.connect("ray://a", api_key="k")


def test_options_that_differ_are_named_and_secrets_are_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    from rtlang.fleet.ray.directory import FleetOptions
    from rtlang.fleet.ray.frontend import _check_same_model
    from rtlang.fleet.replicas.scaling import Scaling

    secrets = ["a secret of the fleet", "a secret of nobody else"]
    found, wanted = (
        FleetOptions(SETTINGS | {"num_pages": pages, "cache_secret": secret}, Scaling(1, most), size)
        for pages, most, size, secret in ((400, 4, 1, secrets[0]), (800, 2, 2, secrets[1]))
    )
    _check_same_model("blue", found, found)
    assert not caplog.records
    _check_same_model("blue", found, wanted)
    (record,) = caplog.records
    assert record.getMessage() == (
        "the fleet blue keeps the options of the frontend that created it: "
        "num_pages = 400, not 800, cache_secret, max_replicas = 4, not 2"
    )
