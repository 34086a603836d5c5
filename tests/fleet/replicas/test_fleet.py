"""A target over several engines: programs move behind what they gave, and nothing that a listener saw changes or comes twice."""

from __future__ import annotations

import random
import threading
from collections.abc import Collection, Iterator

import pytest

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import AbortedError, EngineDeadError, ModelLoadError, ParameterError
from rtlang.contract.events import CallRequested, GraphFailed, GraphFinished, NodeFinished, TextDelta
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Call, Const, Generate, RequestGraph, Text
from rtlang.contract.runs.principal import Principal
from rtlang.contract.runs.run_options import RunOptions
from rtlang.fleet.engines import engine_link
from rtlang.fleet.engines.crash_suspects import SUSPECT_STRIKES
from rtlang.fleet.engines.engine_link import EngineState
from rtlang.fleet.engines.engine_run import EngineRun
from rtlang.fleet.host.engine_host import EngineHost
from rtlang.fleet.replicas.fleet import Fleet
from rtlang.fleet.routing.router import ProgramWork, Router
from tests.support.programs.graph_ear import Ear
from tests.support.servers.engine_threads import ThreadLauncher
from tests.support.servers.scripted_engines import ScriptedLauncher
from tests.support.waiting import wait_until

CONFIG = RuntimeConfig(dtype="float32", num_pages=400)
NAMES = ("a", "b", "c")


@pytest.fixture(scope="module")
def host() -> Iterator[EngineHost]:
    host = EngineHost()
    yield host
    host.close()


@pytest.fixture
def launchers(host: EngineHost, monkeypatch: pytest.MonkeyPatch) -> dict[str, ThreadLauncher]:
    monkeypatch.setattr(engine_link, "MAX_PAUSE_S", 0.05)
    return {name: ThreadLauncher(host, name) for name in NAMES}


@pytest.fixture
def fleet(launchers: dict[str, ThreadLauncher]) -> Iterator[Fleet]:
    with Fleet(launchers.values(), CONFIG) as fleet:
        assert all(fleet.wait_until_ready(name, 60.0) for name in NAMES)
        yield fleet


def story(index: int) -> RequestGraph:
    params = SamplingParams(max_tokens=12, temperature=1.0, ignore_eos=True)
    return RequestGraph(
        (
            Text(0, None, (f"Story {index}:",)),
            Generate(1, 0, "x", params),
            Text(2, 1, (" And then",)),
            Generate(3, 2, "y", SamplingParams(max_tokens=12, temperature=1.0, n=2, stop=("the end",))),
        )
    )


def submit(fleet: Fleet, count: int, credit: int | None = None) -> tuple[list[Ear], list[EngineRun]]:
    ears = [Ear() for _ in range(count)]
    runs = [fleet.submit(story(index), ear, RunOptions(seed=index, credit=credit)) for index, ear in enumerate(ears)]
    return ears, runs


def places(fleet: Fleet) -> dict[str, int]:
    return {replica.name: replica.num_programs for replica in fleet.fleet_report().replicas}


def test_programs_go_on_elsewhere_when_engines_die_at_random_moments(
    fleet: Fleet, launchers: dict[str, ThreadLauncher]
) -> None:
    undisturbed, _ = submit(fleet, 6)
    expected = [ear.values() for ear in undisturbed]
    rng = random.Random(5)
    for _ in range(4):
        ears, runs = submit(fleet, 6, credit=0)
        for credit in (1, 4, 8, 100):
            for run in runs:
                run.grant(rng.randrange(credit + 1) if credit < 100 else credit)
            launchers[rng.choice(NAMES)].engines[-1].kill()
        assert [ear.values() for ear in ears] == expected
        assert [ear.token_ids for ear in ears] == [ear.token_ids for ear in undisturbed]
        assert [ear.text for ear in ears] == [ear.text for ear in undisturbed]
        assert all(sum(isinstance(event, NodeFinished) for event in ear.events) == 2 for ear in ears)
        assert all(len(ear.finals) == 1 for ear in ears), "one final event each"
    report = fleet.fleet_report()
    assert report.num_programs == 0
    assert sum(replica.num_deaths for replica in report.replicas) > 0


def test_a_program_moves_behind_what_it_gave_and_takes_its_answers_along(fleet: Fleet) -> None:
    (undisturbed,), _ = submit(fleet, 1)
    expected = undisturbed.values()
    (ear,), (run,) = submit(fleet, 1, credit=5)
    wait_until(lambda: ear.num_tokens == 5)
    (here,) = [name for name, count in places(fleet).items() if count]
    there, third = [name for name in NAMES if name != here]
    fleet.move(run.graph_id, there)
    assert places(fleet) == {here: 0, there: 1, third: 0}
    fleet.move(run.graph_id, third)
    run.grant(100)
    assert ear.values() == expected
    assert ear.text == undisturbed.text
    fleet.move(run.graph_id, there)  # it has ended
    asked = Ear()
    run = fleet.submit(
        RequestGraph((Call(0, "f", (Const(1),)), Call(1, "f", (Const(2),)))), asked, RunOptions(is_open=True)
    )
    wait_until(lambda: sum(isinstance(event, CallRequested) for event in asked.events) == 2)
    run.resolve(0, "first")
    for name in NAMES:
        fleet.move(run.graph_id, name)
    run.extend((Call(2, "f", (Const(3),)),))
    run.close()
    wait_until(lambda: sum(isinstance(event, CallRequested) for event in asked.events) == 3)
    run.resolve(1, "second")
    run.resolve(2, "third")
    assert isinstance(asked.end(), GraphFinished)
    answers = {event.node_id: event.value for event in asked.events if isinstance(event, NodeFinished)}
    assert answers == {0: "first", 1: "second", 2: "third"}


def test_a_rolling_update_replaces_every_engine_while_programs_run(
    fleet: Fleet, launchers: dict[str, ThreadLauncher]
) -> None:
    undisturbed, _ = submit(fleet, 6)
    expected = [ear.values() for ear in undisturbed]
    ears, runs = submit(fleet, 6, credit=4)
    wait_until(lambda: all(ear.num_tokens == 4 for ear in ears))
    states: list[EngineState] = []
    fleet.watch(states.append)
    fleet.replace()
    assert [replica.name for replica in fleet.fleet_report().replicas] == ["a~2", "b~2", "c~2"]
    assert [len(launcher.engines) for launcher in launchers.values()] == [2, 2, 2]
    assert sum(places(fleet).values()) == 6
    for run in runs:
        run.grant(100)
    assert [ear.values() for ear in ears] == expected
    assert states == [], "clients notice nothing"
    fleet.replace(starts_first=False)
    assert [replica.name for replica in fleet.fleet_report().replicas] == ["a~3", "b~3", "c~3"]
    assert states == []


def test_a_rolling_update_during_which_the_fleet_is_closed_says_so(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    def close(name: str, timeout_s: float) -> bool:
        fleet.close()
        return False

    monkeypatch.setattr(fleet, "wait_until_ready", close)
    with pytest.raises(EngineDeadError, match="the fleet was closed before a~2 was ready"):
        fleet.replace()


def test_a_rolling_update_passes_over_a_replica_that_leaves(fleet: Fleet) -> None:
    _, runs = submit(fleet, 6, credit=0)
    leaving = next(name for name, count in places(fleet).items() if count)
    removal = threading.Thread(target=fleet.remove, args=(leaving,), kwargs={"timeout_s": 60.0})
    removal.start()
    wait_until(lambda: fleet._pool.engines[leaving].is_leaving)
    fleet.replace()
    stay = [f"{name}~2" for name in NAMES if name != leaving]
    assert [replica.name for replica in fleet.fleet_report().replicas] == [leaving, *stay]
    for run in runs:
        run.cancel()
    removal.join(60)
    assert [replica.name for replica in fleet.fleet_report().replicas] == stay


def test_a_rolling_update_whose_engines_do_not_start_leaves_the_old_ones(fleet: Fleet) -> None:
    fleet._links["a"].launcher = ScriptedLauncher("a", num_failed=99)
    with pytest.raises(ModelLoadError):
        fleet.replace()
    assert [replica.name for replica in fleet.fleet_report().replicas] == list(NAMES)
    (ear,), _ = submit(fleet, 1)
    ear.values()


def test_replicas_come_and_go(fleet: Fleet, host: EngineHost) -> None:
    assert fleet.add(ThreadLauncher(host, "d")) == "d"
    assert fleet.wait_until_ready("d", 60.0)
    with pytest.raises(ParameterError, match="d"):
        fleet.add(ThreadLauncher(host, "d"))
    ears, runs = submit(fleet, 4, credit=1)
    for name in NAMES:
        fleet.remove(name)
    assert places(fleet) == {"d": 4}
    for run in runs:
        run.grant(100)
    for ear in ears:
        ear.values()
    with pytest.raises(ParameterError, match="only one"):
        fleet.remove("d")
    with pytest.raises(ParameterError, match="expected one of d"):
        fleet.remove("a")
    with pytest.raises(ParameterError, match="expected one of d"):
        fleet.move(1, "a")


def test_programs_with_the_same_beginning_go_where_it_was_sent(fleet: Fleet) -> None:
    documents = [f"Document {index}. " + "It is about a fox and a dog. " * 40 for index in range(3)]
    graphs = [
        RequestGraph((Text(0, None, (text,)), Generate(1, 0, "x", SamplingParams(max_tokens=1)))) for text in documents
    ]
    places_of: list[list[str]] = []
    for _ in range(2):
        seen: list[str] = []
        runs, ears = [], [Ear() for _ in graphs]
        for graph, ear in zip(graphs, ears, strict=True):
            before = places(fleet)
            runs.append(fleet.submit(graph, ear, RunOptions(credit=0)))
            seen += [name for name, count in places(fleet).items() if count > before[name]]
        places_of.append(seen)
        for run, ear in zip(runs, ears, strict=True):
            run.grant(10)
            ear.values()
    assert places_of[0] == places_of[1]
    assert len(set(places_of[0])) == 3, "they wait for each other least if they are apart"


def test_reports_metrics_and_caches_are_those_of_all_replicas(fleet: Fleet) -> None:
    ana = Principal("ana")
    text = "A story about a fox and a dog who lived in the woods, and about what they ate."
    ear = Ear()
    graph = RequestGraph((Text(0, None, (text,)), Generate(1, 0, "x", SamplingParams(max_tokens=1))))
    fleet.submit(graph, ear, RunOptions(principal=ana))
    ear.values()
    cache = fleet.cache_service
    assert cache.explain([text], ana).num_cached_tokens > 16
    grant = cache.pin([text], 60.0, ana)
    assert grant.num_granted_tokens > 16
    assert grant.pin_id in {each.pin_id for each in cache.pins(ana)}
    assert cache.unpin(grant.pin_id, ana)
    assert not cache.unpin(grant.pin_id, ana)
    nodes = cache.tree(100, ana)
    assert {node["replica"] for node in nodes} == set(NAMES)
    ids = [node["id"] for node in nodes]
    assert len(set(ids)) == len(ids)
    assert {node["parent"] for node in nodes} <= {None, *ids}
    wait_until(lambda: all(replica.num_pages == 400 for replica in fleet.fleet_report().replicas))
    fleet.refresh_metrics()
    rendered = fleet.metrics.render().decode()
    assert all(f'rtlang_engine_steps_total{{replica="{name}"}}' in rendered for name in NAMES)
    assert f'rtlang_replicas{{state="ready"}} {float(len(NAMES))}' in rendered
    assert fleet.text_service.decode(fleet.text_service.encode("Hello there")) == "Hello there"
    snapshot = fleet.snapshot()
    assert snapshot is not None
    fleet.clear_cache()
    assert cache.explain([text], ana).num_cached_tokens == 0


def test_a_replica_that_leaves_while_metrics_are_fetched_leaves_none_behind(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answers(method: str, timeout_s: float) -> dict[str, bytes]:
        fleet.remove("b")
        return dict.fromkeys(NAMES, b"# TYPE steps gauge\nsteps 1.0\n")

    monkeypatch.setattr(fleet, "_ask_all", answers)
    fleet.refresh_metrics()
    rendered = fleet.metrics.render().decode()
    assert [name for name in NAMES if f'steps{{replica="{name}"}}' in rendered] == ["a", "c"]


def test_programs_wait_while_no_engine_is_ready_and_end_when_the_fleet_is_closed(
    fleet: Fleet, launchers: dict[str, ThreadLauncher], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_link, "FIRST_PAUSE_S", 30.0)
    monkeypatch.setattr(engine_link, "MAX_PAUSE_S", 30.0)
    states: list[EngineState] = []
    fleet.watch(states.append)
    for launcher in launchers.values():
        launcher.engines[-1].kill()
    wait_until(lambda: states == [EngineState.RESTARTING])
    assert fleet.is_alive
    (waiting, cancelled), (_, run) = submit(fleet, 2)
    assert fleet.fleet_report().num_unplaced == 2
    fleet.refresh_metrics()
    samples = fleet.metrics.snapshot()
    assert (samples["rtlang_programs_unplaced"], samples["rtlang_replicas{restarting}"]) == (2, len(NAMES))
    run.cancel()
    end = cancelled.end()
    assert isinstance(end, GraphFailed)
    assert isinstance(end.error, AbortedError)
    with pytest.raises(EngineDeadError):
        fleet.text_service.encode("a")
    fleet.close()
    end = waiting.end()
    assert isinstance(end, GraphFailed)
    assert isinstance(end.error, AbortedError)
    with pytest.raises(EngineDeadError):
        submit(fleet, 1)
    assert not fleet._programs._programs, "nothing is kept of a program that was refused"


def test_a_program_is_not_sent_to_an_engine_that_is_dying(
    fleet: Fleet, launchers: dict[str, ThreadLauncher], monkeypatch: pytest.MonkeyPatch
) -> None:
    dying, may_end = launchers["a"].engines[-1], threading.Event()

    def wait(timeout_s: float) -> int:
        may_end.wait(timeout_s)
        return 0

    monkeypatch.setattr(dying, "wait", wait)
    dying.kill()
    link = fleet._links["a"]
    wait_until(lambda: link.state is EngineState.RESTARTING)
    submit(fleet, 6, credit=0)
    assert places(fleet)["a"] == 0
    may_end.set()


def test_a_report_counts_the_calls_that_a_program_has_not_made_yet(fleet: Fleet) -> None:
    params = SamplingParams(max_tokens=40, ignore_eos=True)
    graph = RequestGraph((Text(0, None, ("A story:",)), Generate(1, 0, "x", params), Generate(2, 1, "y", params)))
    ear = Ear()
    run = fleet.submit(graph, ear, RunOptions(credit=0))  # it starts, and waits for credit behind its first tokens
    (busy,) = [name for name, count in places(fleet).items() if count]

    def waiting() -> float:
        reports = {replica.name: replica for replica in fleet.fleet_report().replicas}
        return reports[busy].num_waiting_tokens / fleet._programs.estimator.output_weight

    wait_until(lambda: 80 <= waiting() < 82)
    assert 80 <= fleet._programs.router.waiting(busy) / fleet._programs.estimator.output_weight < 82
    run.grant(200)
    ear.values()
    wait_until(lambda: waiting() == 0)


def test_a_model_that_no_replica_can_load_is_reported_by_start() -> None:
    with pytest.raises(ModelLoadError):
        Fleet([ThreadLauncher(EngineHost(), name) for name in NAMES], RuntimeConfig(model="/nowhere")).start()


def test_names_of_replicas_must_differ(host: EngineHost) -> None:
    for names in ((), ("a", "a")):
        with pytest.raises(ParameterError, match="different names"):
            Fleet([ThreadLauncher(host, name) for name in names])


def test_router_that_is_given_chooses_the_replicas(launchers: dict[str, ThreadLauncher]) -> None:
    class Second(Router):
        def choose(self, work: ProgramWork, among: Collection[str] | None = None) -> str:
            return super().choose(work, {"b"} if among is None or "b" in among else among)

    with Fleet(launchers.values(), CONFIG, router=Second()) as fleet:
        assert all(fleet.wait_until_ready(name, 60.0) for name in NAMES)
        submit(fleet, 3, credit=0)
        assert places(fleet) == {"a": 0, "b": 3, "c": 0}


def test_a_suspect_whose_replica_leaves_is_opened_alone_at_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_link, "MAX_PAUSE_S", 0.01)
    launchers = {name: ScriptedLauncher(name) for name in NAMES}
    with Fleet(launchers.values(), CONFIG) as fleet:
        assert all(fleet.wait_until_ready(name, 60.0) for name in NAMES)
        ear, pool = Ear(), fleet._pool
        run = fleet.submit(story(0), ear)
        graph = pool.graphs[run.graph_id]
        while pool.strikes(run.graph_id) < SUSPECT_STRIKES:
            strikes = pool.strikes(run.graph_id)
            assert all(fleet.wait_until_ready(name, 60.0) for name in NAMES)
            assert graph.engine is not None
            launchers[graph.engine.name].engines[-1].crash()
            wait_until(lambda: pool.strikes(run.graph_id) > strikes and graph.engine is not None)  # noqa: B023
        assert all(fleet.wait_until_ready(name, 60.0) for name in NAMES)
        first = graph.engine
        assert first is not None
        there = next(name for name in NAMES if name != first.name and pool.is_open(name))
        fleet.move(run.graph_id, there)
        assert graph.engine is first, "it would be a danger to others there"
        fleet.remove(first.name)
        second = graph.engine
        assert second is not None
        assert second is not first
        assert not pool.is_open(second.name)
        stream_id = graph.stream_id
        launchers[second.name].engines[-1].tell(stream_id, TextDelta(stream_id, 1, 0, "x", (4,)))
        wait_until(lambda: pool.is_open(second.name))


def test_a_fleet_that_is_stopped_fails_its_programs_with_the_reason_and_starts_nothing(
    fleet: Fleet, launchers: dict[str, ThreadLauncher], caplog: pytest.LogCaptureFixture
) -> None:
    ears, _ = submit(fleet, 4, credit=1)
    wait_until(lambda: all(ear.num_tokens for ear in ears))
    caplog.clear()
    fleet.stop("the fleet was stopped")
    for ear in ears:
        end = ear.end()
        assert isinstance(end, GraphFailed)
        assert isinstance(end.error, EngineDeadError)
        assert str(end.error) == "the fleet was stopped"
    with pytest.raises(EngineDeadError, match="the fleet was stopped"):
        submit(fleet, 1)
    wait_until(lambda: all(link.state is EngineState.DEAD for link in fleet._links.values()))
    assert (fleet.is_alive, fleet.was_stopped, fleet.end_reason) == (False, True, "the fleet was stopped")
    assert [len(launcher.engines) for launcher in launchers.values()] == [1, 1, 1]
    assert not [record for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")]
    assert all(len(ear.finals) == 1 for ear in ears)


def test_a_fleet_that_is_given_up_fails_its_programs_with_the_reason_and_has_failed(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    ears, _ = submit(fleet, 4, credit=1)
    wait_until(lambda: all(ear.num_tokens for ear in ears))
    fleet.stop("the head has not answered for 36 s", is_wanted=False)
    for ear in ears:
        end = ear.end()
        assert isinstance(end, GraphFailed)
        assert str(end.error) == "the head has not answered for 36 s"
    wait_until(lambda: all(link.state is EngineState.DEAD for link in fleet._links.values()))
    assert (fleet.is_alive, fleet.was_stopped, fleet.end_reason) == (False, False, "the head has not answered for 36 s")
    assert "no engine is left" not in caplog.text


def test_a_fleet_that_is_stopped_while_it_starts_does_not_start() -> None:
    fleet = Fleet([ScriptedLauncher("a", num_failed=99)], CONFIG)
    fleet.stop("the fleet was stopped")
    with pytest.raises(EngineDeadError, match="the fleet was stopped"):
        fleet.start()


def test_running_programs_move_to_a_replica_that_is_added_and_keep_their_texts(host: EngineHost, fleet: Fleet) -> None:
    undisturbed, _ = submit(fleet, 8)
    expected = [ear.values() for ear in undisturbed]
    with Fleet([ThreadLauncher(host, "a")], CONFIG) as alone:
        ears, runs = submit(alone, 8, credit=3)
        wait_until(lambda: all(ear.num_tokens == 3 for ear in ears))
        wait_until(lambda: alone.fleet_report().replicas[0].num_waiting_tokens > 0)
        alone.add(ThreadLauncher(host, "b"))
        wait_until(lambda: places(alone).get("b", 0) >= 3)
        assert sum(places(alone).values()) == 8
        assert places(alone)["a"] >= 3
        for run in runs:
            run.grant(100)
        assert [ear.values() for ear in ears] == expected
        assert [ear.token_ids for ear in ears] == [ear.token_ids for ear in undisturbed]
        assert [ear.text for ear in ears] == [ear.text for ear in undisturbed]
        assert all(len(ear.finals) == 1 for ear in ears)


def test_the_age_of_a_report_tells_idle_from_hung(fleet: Fleet, host: EngineHost) -> None:
    def ages() -> list[float]:
        found = [replica.report_age_s for replica in fleet.fleet_report().replicas]
        return [-1.0 if age is None else age for age in found]

    links = fleet._links.values()
    before = [link.last_beat for link in links]
    wait_until(lambda: all(link.last_beat > beat for link, beat in zip(links, before, strict=True)))  # and nothing runs
    assert all(0 <= age < 60 for age in ages())
    hangs, goes_on = threading.Event(), threading.Event()

    def hang() -> None:
        hangs.set()
        goes_on.wait(60)

    assert host._runtime is not None
    host._runtime.post(hang)
    assert hangs.wait(60)
    try:
        wait_until(lambda: min(ages()) > 3.0)  # asked every second, it would be 1 s at most
    finally:
        goes_on.set()
    wait_until(lambda: max(ages()) < 1.0)


def test_a_spare_takes_programs_when_an_engine_ends_and_the_next_engine_is_the_spare(host: EngineHost) -> None:
    launchers = {name: ThreadLauncher(host, name) for name in NAMES}

    def states() -> dict[str, str]:
        return {replica.name: replica.state for replica in fleet.fleet_report().replicas}

    with Fleet(launchers.values(), CONFIG, num_spares=1) as fleet:
        wait_until(lambda: sorted(states().values()) == ["ready", "ready", "spare"])
        (spare,) = [name for name, state in states().items() if state == "spare"]
        undisturbed, _ = submit(fleet, 6)
        expected = [ear.values() for ear in undisturbed]
        ears, runs = submit(fleet, 6, credit=3)
        wait_until(lambda: all(ear.num_tokens == 3 for ear in ears))
        assert places(fleet)[spare] == 0
        with pytest.raises(ParameterError, match=spare):
            fleet.move(runs[0].graph_id, spare)
        victim = next(name for name in NAMES if name != spare)
        launchers[victim].engines[-1].kill()
        wait_until(lambda: states()[victim] == "spare" and states()[spare] == "ready")
        assert places(fleet)[spare] >= 1
        assert places(fleet)[victim] == 0
        for run in runs:
            run.grant(100)
        assert [ear.values() for ear in ears] == expected
        assert [ear.text for ear in ears] == [ear.text for ear in undisturbed]


@pytest.mark.parametrize(("num_spares", "prefill"), [(3, ()), (1, ("a",))])
def test_spares_that_leave_nobody_to_work_are_refused(num_spares: int, prefill: tuple[str, ...]) -> None:
    launchers = [ScriptedLauncher(name) for name in NAMES]
    with pytest.raises(ParameterError, match="num_spares"):
        Fleet(launchers, CONFIG, num_spares=num_spares, prefill=prefill)
