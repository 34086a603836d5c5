"""Prompts computed at one replica and continued at another one: the same texts, wherever what ends."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from rtlang.cache.tiers.peers import peer_tier
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ParameterError
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Generate, RequestGraph, Text
from rtlang.contract.runs.run_options import RunOptions
from rtlang.engine.tiers import page_transfers
from rtlang.fleet.engines import engine_link
from rtlang.fleet.host.engine_host import EngineHost
from rtlang.fleet.replicas.fleet import Fleet
from rtlang.fleet.routing.prefill_rule import PrefillRule
from rtlang.runtime.runtime import Runtime
from tests.support.programs.graph_ear import Ear
from tests.support.servers.engine_threads import ThreadLauncher
from tests.support.waiting import wait_until

CONFIG = RuntimeConfig(
    dtype="float32", num_pages=400, num_threads=1, cache_host_bytes=1 << 28, cache_listen="127.0.0.1:0"
)


def program(index: int, num_characters: int = 2300) -> RequestGraph:
    rng = random.Random(index)
    words = " ".join(rng.choice(("river", "stone", "bird", "lamp", "seven")) for _ in range(num_characters // 5))
    params = SamplingParams(max_tokens=10, temperature=1.0, ignore_eos=True)
    return RequestGraph(
        (
            Text(0, None, (words[:num_characters],)),
            Generate(1, 0, "x", params),
            Text(2, 1, (" And then",)),
            Generate(3, 2, "y", SamplingParams(max_tokens=6, ignore_eos=True)),
        )
    )


@pytest.fixture(scope="module")
def expected() -> list[dict[str, object]]:
    """The values of the programs on one runtime without tiers."""
    with Runtime(dtype="float32", num_pages=400, num_threads=1) as runtime:
        ears = [Ear() for _ in range(4)]
        for index, ear in enumerate(ears):
            runtime.submit(program(index), ear, RunOptions(seed=index))
        return [ear.values() for ear in ears]


@pytest.fixture(scope="module")
def hosts() -> Iterator[dict[str, EngineHost]]:
    hosts = {name: EngineHost() for name in ("p", "d")}
    yield hosts
    for host in hosts.values():
        host.close()


@pytest.fixture
def launchers(hosts: dict[str, EngineHost], monkeypatch: pytest.MonkeyPatch) -> dict[str, ThreadLauncher]:
    monkeypatch.setattr(engine_link, "MAX_PAUSE_S", 0.05)
    monkeypatch.setattr(page_transfers, "SETTLE_S", 60.0)
    for name in ("ANSWER_S", "PAGE_S"):
        monkeypatch.setattr(peer_tier, name, 60.0)
    return {name: ThreadLauncher(host, name) for name, host in hosts.items()}


@pytest.fixture
def fleet(launchers: dict[str, ThreadLauncher], hosts: dict[str, EngineHost]) -> Iterator[Fleet]:
    with Fleet(launchers.values(), CONFIG, prefill=("p",)) as fleet:
        assert all(fleet.wait_until_ready(name, 60.0) for name in launchers)
        fleet._programs._rule = PrefillRule(
            gain=0.0
        )  # by the measured times it does not pay for a model that is this small
        wait_until(lambda: runtime_of(hosts["d"]).stats()["num_peers_connected"] == 1)
        transfers = runtime_of(hosts["d"])._engine.transfers  # type: ignore[union-attr]
        assert transfers is not None
        transfers._compute_s = lambda num_before, num_tokens: None  # so it fetches whatever that takes
        yield fleet


def runtime_of(host: EngineHost) -> Runtime:
    assert host._runtime is not None
    return host._runtime


def num_moved(fleet: Fleet) -> dict[str, int]:
    return {replica.name: replica.num_moved for replica in fleet.fleet_report().replicas}


def test_a_long_prompt_is_computed_at_one_replica_and_its_program_goes_on_at_another(
    fleet: Fleet, hosts: dict[str, EngineHost], expected: list[dict[str, object]]
) -> None:
    ear = Ear()
    fleet.submit(program(0), ear, RunOptions(seed=0))
    assert ear.values() == expected[0]
    assert num_moved(fleet) == {"p": 1, "d": 0}
    assert runtime_of(hosts["d"]).stats()["num_pages_loaded_from_peer"] > 20, "the pages of the prompt"
    assert {replica.name: replica.role for replica in fleet.fleet_report().replicas} == {"p": "prefill", "d": "decode"}
    again = Ear()
    fleet.submit(program(0), again, RunOptions(seed=0))
    assert again.values() == expected[0]
    assert num_moved(fleet) == {"p": 1, "d": 0}, "the prompt is there now"
    short = Ear()
    fleet.submit(program(7, num_characters=400), short, RunOptions(seed=0))
    short.values()
    assert num_moved(fleet) == {"p": 1, "d": 0}


@pytest.mark.parametrize("name", ["p", "d"])
def test_texts_stay_when_a_replica_of_either_role_ends(
    name: str, fleet: Fleet, launchers: dict[str, ThreadLauncher], expected: list[dict[str, object]]
) -> None:
    ears = [Ear() for _ in range(4)]
    runs = [fleet.submit(program(index), ear, RunOptions(seed=index, credit=0)) for index, ear in enumerate(ears)]
    for credit in (1, 3, 100):
        for run in runs:
            run.grant(credit)
        launchers[name].engines[-1].kill()
    assert [ear.values() for ear in ears] == expected
    assert all(len(ear.finals) == 1 for ear in ears)


def test_not_every_replica_may_compute_prompts_only(launchers: dict[str, ThreadLauncher]) -> None:
    for prefill in (("p", "d"), ("x",)):
        with pytest.raises(ParameterError, match="prefill"):
            Fleet(launchers.values(), CONFIG, prefill=prefill)
