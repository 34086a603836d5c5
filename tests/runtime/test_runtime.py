"""A runtime from submission to final event, on a runner without a model. Threads wait for events, never for time."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import threading
import weakref
from typing import Any

import pytest

from rtlang.contract.errors import (
    AbortedError,
    ConfigError,
    DeadlineError,
    EngineDeadError,
    GraphError,
    ModelLoadError,
    OverloadError,
    ParameterError,
)
from rtlang.contract.events import Event, GraphFailed, GraphFinished, NodeFinished, TextDelta
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Arg, Generate, RequestGraph, Text
from rtlang.contract.runs.known import KnownOutcome
from rtlang.contract.runs.run_options import RunOptions
from rtlang.runtime import runtime as runtime_module
from rtlang.runtime.process import process_settings
from rtlang.runtime.process.fork_guard import ForkGuard
from rtlang.runtime.process.loop import EngineLoop
from rtlang.runtime.runtime import Runtime
from tests.support.engine.fake_runner import FakeRunner, FakeTokenizer, naive_generate
from tests.support.servers.html_check import read_html

LIMIT_S = 30.0


class SlowRunner(FakeRunner):
    """A fake runner that loads, and whose steps wait while `gate` is closed."""

    def __init__(self, config: Any, **settings: Any) -> None:
        super().__init__(config.num_pages or 400, config.page_size, **settings)
        self.gate = threading.Event()
        self.gate.set()
        self.in_step = threading.Event()
        self.broken = False

    def load(self) -> None:
        pass

    def launch(self, step: Any) -> Any:
        self.in_step.set()
        assert self.gate.wait(LIMIT_S)
        if self.broken:
            raise RuntimeError("the device is gone")
        return super().launch(step)


def engine_threads() -> set[threading.Thread]:
    """Other tests may have left some."""
    return {thread for thread in threading.enumerate() if thread.name == "rtlang-engine"}


class Listener:
    def __init__(self) -> None:
        self.events: list[Event] = []
        self.done = threading.Event()
        self.first = threading.Event()

    def __call__(self, event: Event) -> None:
        assert not self.done.is_set()
        self.events.append(event)
        self.first.set()
        if isinstance(event, GraphFinished | GraphFailed):
            self.done.set()

    def last(self) -> Event:
        assert self.done.wait(LIMIT_S)
        return self.events[-1]


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> list[SlowRunner]:
    made: list[SlowRunner] = []

    def make(config: Any, on_death: Any, num_pages: int | None) -> SlowRunner:
        made.append(SlowRunner(config, eos_every=10**9))
        return made[-1]

    class NoConstraints:
        def __init__(self, *args: Any, **options: Any) -> None:
            pass

        def close(self) -> None:
            pass

    monkeypatch.setattr(runtime_module, "new_runner", make)
    monkeypatch.setattr(runtime_module, "ConstraintCompiler", NoConstraints)
    return made


def graph(max_tokens: int = 5, text: Any = "hi") -> RequestGraph:
    inputs = (text.name,) if isinstance(text, Arg) else ()
    params = SamplingParams(max_tokens=max_tokens, seed=0)
    return RequestGraph((Text(0, None, (text,)), Generate(1, 0, "a", params)), inputs)


def test_a_graph_runs_to_its_end(runner: list[SlowRunner]) -> None:
    with Runtime(page_size=4) as runtime:
        listener = Listener()
        runtime.submit(graph(text=Arg("who")), listener, RunOptions(inputs={"who": "you"}))
        last = listener.last()
    expected = FakeTokenizer().decode(
        naive_generate([1, *FakeTokenizer().encode("you", is_start=True)], 5, eos_every=10**9)
    )
    assert isinstance(last, GraphFinished)
    assert last.values == {"a": expected}


def test_the_account_counts_what_was_computed_and_no_known_outcome(runner: list[SlowRunner]) -> None:
    with Runtime(page_size=4) as runtime:
        first, again = Listener(), Listener()
        runtime.submit(graph(text="you"), first, RunOptions(seed=1))
        whole = first.last().account
        end = next(event for event in first.events if isinstance(event, NodeFinished))
        known = {end.node_id: KnownOutcome(end, is_replayed=False)}
        runtime.submit(graph(text="you"), again, RunOptions(seed=1, known=known))
        repeated = again.last().account
    assert whole is not None
    assert (whole.finish_reasons, whole.tokens["output"]) == ({"length": 1}, 5)
    assert end.account is not None
    assert end.account.tokens == whole.tokens, "it comes with the end of the node"
    assert repeated is not None
    assert (repeated.finish_reasons, repeated.tokens, repeated.first_token_s) == ({}, {}, None)


def test_generate_takes_token_ids_as_they_are(runner: list[SlowRunner]) -> None:
    with Runtime(page_size=4) as runtime:
        params = SamplingParams(max_tokens=5, seed=0)
        generation = runtime.generate(token_ids=[7, 8, 9], params=params)
        expected = naive_generate([7, 8, 9], 5, eos_every=10**9)
        assert list(generation.result(LIMIT_S).completions[0].token_ids) == expected
        assert [each for piece in generation for each in piece.token_ids] == expected
        with pytest.raises(ParameterError, match="token_ids = 259: expected ids from 0 to 258"):
            runtime.generate(token_ids=[7, 259], params=params).result(LIMIT_S)


def test_an_open_graph_is_extended_and_closed(runner: list[SlowRunner]) -> None:
    with Runtime(page_size=4) as runtime:
        listener = Listener()
        run = runtime.submit(graph(), listener, RunOptions(is_open=True))
        run.extend([Generate(2, 1, "b", SamplingParams(max_tokens=2, seed=0))])
        run.close()
        run.close()
        assert isinstance(listener.last(), GraphFinished)
        assert [e.name for e in listener.events if isinstance(e, NodeFinished)] == ["a", "b"]
        with pytest.raises(GraphError, match="closed"):
            run.extend([])


def test_a_bad_extension_leaves_the_graph_as_it_was(runner: list[SlowRunner]) -> None:
    with Runtime(page_size=4) as runtime:
        listener = Listener()
        run = runtime.submit(graph(), listener, RunOptions(is_open=True))
        with pytest.raises(GraphError, match="node 2, parent"):
            run.extend([Generate(2, 77, "b", SamplingParams())])
        run.close()
        assert isinstance(listener.last(), GraphFinished)


@pytest.mark.parametrize(
    ("inputs", "match"),
    [
        ({}, "'who' is missing or not a string"),
        ({"who": 3}, "missing or not a string"),
        ({"who": "a", "x": "b"}, "unknown input 'x'"),
    ],
)
def test_wrong_inputs_are_refused_where_they_are_given(
    runner: list[SlowRunner], inputs: dict[str, Any], match: str
) -> None:
    with Runtime(page_size=4) as runtime, pytest.raises(GraphError, match=match):
        runtime.submit(graph(text=Arg("who")), Listener(), RunOptions(inputs=inputs))


def test_cancel_ends_a_running_graph_and_frees_its_pages(runner: list[SlowRunner]) -> None:
    with Runtime(page_size=4) as runtime:
        listener = Listener()
        runner[0].gate.clear()
        run = runtime.submit(graph(max_tokens=1000), listener)
        assert runner[0].in_step.wait(LIMIT_S)
        run.cancel()
        run.cancel()
        runner[0].gate.set()
        last = listener.last()
        assert isinstance(last, GraphFailed)
        assert isinstance(last.error, AbortedError)
        other = Listener()
        runtime.submit(graph(), other)
        assert isinstance(other.last(), GraphFinished)
        assert runtime.stats()["num_pages_in_use"] == 0


def test_a_deadline_ends_a_graph(runner: list[SlowRunner]) -> None:
    with Runtime(page_size=4) as runtime:
        listener = Listener()
        runtime.submit(graph(), listener, RunOptions(is_open=True, deadline_s=0.01))
        last = listener.last()
        assert isinstance(last, GraphFailed)
        assert isinstance(last.error, DeadlineError)
        with pytest.raises(ParameterError):
            runtime.submit(graph(), listener, RunOptions(deadline_s=0))


def test_a_listener_that_raises_loses_its_graph_and_nobody_elses(runner: list[SlowRunner]) -> None:
    with Runtime(page_size=4) as runtime:
        raised = threading.Event()

        def bad(event: Event) -> None:
            raised.set()
            raise ValueError("a bug of the client")

        runtime.submit(graph(), bad)
        listener = Listener()
        runtime.submit(graph(), listener)
        assert isinstance(listener.last(), GraphFinished)
        assert raised.is_set()


def test_a_closed_runtime_lets_go_of_its_engine(runner: list[SlowRunner]) -> None:
    with Runtime(page_size=4) as runtime:
        runtime.submit(graph(), listener := Listener())
        listener.last()
        assert runtime._loop is not None
        engine = weakref.ref(runtime._loop.engine)
    gc.collect()
    assert engine() is None
    runtime.close()


def test_the_process_is_set_up_while_a_runtime_runs(runner: list[SlowRunner]) -> None:
    before = sys.getswitchinterval(), gc.get_threshold()
    with Runtime(page_size=4) as runtime:
        assert sys.getswitchinterval() <= 0.001
        assert gc.get_threshold()[2] >= process_settings.FULL_AFTER
        assert gc.get_freeze_count() > 0
    runtime.close()
    assert (sys.getswitchinterval(), gc.get_threshold()) == before
    Runtime(page_size=4).close()  # one that never began
    assert (sys.getswitchinterval(), gc.get_threshold()) == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # of Python 3.12 and later: other threads run
def test_in_a_fork_a_runtime_says_that_it_does_not_run_there(runner: list[SlowRunner]) -> None:
    gc.unfreeze()  # what `conftest.py` has set aside, whose number changes
    before = sys.getswitchinterval(), gc.get_threshold(), gc.get_freeze_count()
    with Runtime(page_size=4) as runtime:
        ours, theirs = os.pipe()
        child = os.fork()
        if not child:
            said = []
            for act in (
                lambda: runtime.submit(graph(), Listener()),
                runtime.start,
                runtime.stats,
                runtime.clear_cache,
                runtime.close,
            ):
                try:
                    act()
                    said.append("done")
                except EngineDeadError as error:
                    said.append(error.message)
            was_put_back = (sys.getswitchinterval(), gc.get_threshold(), gc.get_freeze_count()) == before
            os.write(theirs, json.dumps([said, runtime.is_alive, was_put_back]).encode())
            os._exit(0)
        os.close(theirs)
        with os.fdopen(ours) as pipe:
            said, is_alive, was_put_back = json.loads(pipe.read())
        os.waitpid(child, 0)
        assert all(f"pid {os.getpid()}" in each for each in said[:4])
        assert said[4] == "done"
        assert not is_alive
        assert was_put_back
        runtime.submit(graph(), listener := Listener())
        assert isinstance(listener.last(), GraphFinished)


def interrupted_start(self: EngineLoop) -> None:
    if self._thread.ident is None:
        self._thread.start()
    raise KeyboardInterrupt  # while it waits for the engine


def test_an_interrupt_while_a_runtime_starts_ends_its_thread(
    runner: list[SlowRunner], monkeypatch: pytest.MonkeyPatch
) -> None:
    before, others = (sys.getswitchinterval(), gc.get_threshold()), engine_threads()
    gate = threading.Event()
    monkeypatch.setattr(SlowRunner, "load", lambda self: gate.wait(LIMIT_S))
    runtime = Runtime(page_size=4)
    with monkeypatch.context() as patch:
        patch.setattr(EngineLoop, "start", interrupted_start)
        with pytest.raises(KeyboardInterrupt), runtime:
            pytest.fail("it cannot have started")
    (thread,) = engine_threads() - others
    runtime.close()
    with pytest.raises(EngineDeadError, match="closed"):
        runtime.start()
    gate.set()
    thread.join(LIMIT_S)
    assert not thread.is_alive()
    assert runtime._runner is None
    assert (sys.getswitchinterval(), gc.get_threshold()) == before


@pytest.mark.parametrize("has_loaded", [False, True])
@pytest.mark.parametrize("interrupts", [1, 3])
def test_a_runtime_whose_start_was_interrupted_starts_again(
    has_loaded: bool, interrupts: int, runner: list[SlowRunner], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model that is still being loaded is used; one whose thread has ended is loaded again."""
    others = engine_threads()
    gate = threading.Event()
    load = SlowRunner.load

    def slow_load(self: SlowRunner) -> None:
        assert gate.wait(LIMIT_S)
        load(self)

    monkeypatch.setattr(SlowRunner, "load", slow_load)
    runtime = Runtime(page_size=4)
    with monkeypatch.context() as patch:
        patch.setattr(EngineLoop, "start", interrupted_start)
        for _ in range(interrupts):
            with pytest.raises(KeyboardInterrupt):
                runtime.submit(graph(), Listener())
    assert runtime.is_alive
    (thread,) = engine_threads() - others
    gate.set()
    if has_loaded:
        thread.join(LIMIT_S)
        assert runtime._runner is None  # nobody has waited for it
    with runtime:
        runtime.submit(graph(), listener := Listener())
        assert isinstance(listener.last(), GraphFinished)
        assert len(runner) >= 1 + has_loaded
    assert not engine_threads() - others
    assert runtime._runner is None


def test_an_interrupt_once_the_model_is_there_frees_it(
    runner: list[SlowRunner], monkeypatch: pytest.MonkeyPatch
) -> None:
    before, others = (sys.getswitchinterval(), gc.get_threshold()), engine_threads()

    def interrupt(self: ForkGuard) -> None:
        raise KeyboardInterrupt  # while garbage is collected, say

    runtime = Runtime(page_size=4)
    with monkeypatch.context() as patch:
        patch.setattr(ForkGuard, "begin", interrupt)
        with pytest.raises(KeyboardInterrupt):
            runtime.start()
    for thread in engine_threads() - others:
        thread.join(LIMIT_S)
        assert not thread.is_alive()
    assert runner
    assert runtime._runner is None
    assert (sys.getswitchinterval(), gc.get_threshold()) == before
    with runtime:
        runtime.submit(graph(), listener := Listener())
        assert isinstance(listener.last(), GraphFinished)
    assert (sys.getswitchinterval(), gc.get_threshold()) == before


def test_an_interrupt_while_a_runtime_closes_leaves_the_process_as_it_was(
    runner: list[SlowRunner], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sys.getswitchinterval(), gc.get_threshold()
    runtime = Runtime(page_size=4).start()
    loop = runtime._loop
    assert loop is not None

    def interrupt(timeout: float | None = None) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(loop._thread, "join", interrupt)
        with pytest.raises(KeyboardInterrupt):
            runtime.close()
    assert (sys.getswitchinterval(), gc.get_threshold()) == before
    runtime.close()
    assert (sys.getswitchinterval(), gc.get_threshold()) == before
    assert runtime._runner is None


def test_closing_ends_every_graph_once(runner: list[SlowRunner]) -> None:
    runtime = Runtime(page_size=4).start()
    listeners = [Listener() for _ in range(5)]
    for listener in listeners:
        runtime.submit(graph(), listener, RunOptions(is_open=True))
    assert runtime.is_alive
    runtime.close()
    runtime.close()
    assert not runtime.is_alive
    for listener in listeners:
        last = listener.last()
        assert isinstance(last, GraphFailed | GraphFinished)
    assert any(isinstance(listener.last(), GraphFailed) for listener in listeners)
    with pytest.raises(EngineDeadError):
        runtime.submit(graph(), Listener())


def test_a_dead_engine_tells_everyone(runner: list[SlowRunner], monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(self: Runtime) -> Any:
        raise RuntimeError("the device is gone")

    with Runtime(page_size=4, max_rows=1) as runtime:
        monkeypatch.setattr(Runtime, "_new_runner", gone)  # so that the runner cannot be replaced
        runner[0].gate.clear()
        listeners = [Listener() for _ in range(5)]
        for listener in listeners:
            runtime.submit(graph(), listener)
        assert runner[0].in_step.wait(LIMIT_S)
        runner[0].broken = True
        runner[0].gate.set()
        told = [listener.last() for listener in listeners]
        assert all(isinstance(event, GraphFailed | GraphFinished) for event in told)
        dead = [event for event in told if isinstance(event, GraphFailed)]
        assert dead
        assert all(isinstance(event.error, EngineDeadError) for event in dead)
        assert not runtime.is_alive
        with pytest.raises(EngineDeadError, match="device is gone"):
            runtime.submit(graph(), Listener())


def test_a_full_queue_refuses_and_says_when_to_come_back(runner: list[SlowRunner]) -> None:
    with Runtime(page_size=4, max_waiting=1) as runtime:
        runner[0].gate.clear()
        listener = Listener()
        runtime.submit(graph(), listener)
        assert runner[0].in_step.wait(LIMIT_S)
        with pytest.raises(OverloadError) as refused:
            runtime.submit(graph(), Listener())
        assert refused.value.retry_after_s > 0
        runner[0].gate.set()
        assert isinstance(listener.last(), GraphFinished)


def wide(first_id: int, parent: int | None, count: int, n: int) -> tuple[Generate, ...]:
    params = SamplingParams(max_tokens=5, seed=0, n=n, temperature=1.0)
    return tuple(Generate(first_id + index, parent, None, params) for index in range(count))


def test_the_requests_that_nodes_make_are_counted_before_they_are_made(runner: list[SlowRunner]) -> None:
    with Runtime(page_size=4, max_waiting=40) as runtime:
        runner[0].gate.clear()
        with pytest.raises(GraphError, match=r"41 requests.*max_waiting = 40"):
            runtime.submit(RequestGraph((Text(0, None, ("hi",)), *wide(1, 0, 41, 1))), Listener())
        with pytest.raises(GraphError, match="2560000 requests"):
            runtime.submit(RequestGraph(wide(0, None, 20_000, 128)), Listener())
        first, second = Listener(), Listener()
        one = runtime.submit(RequestGraph((Text(0, None, ("hi",)), *wide(1, 0, 4, 5))), first, RunOptions(is_open=True))
        two = runtime.submit(RequestGraph(wide(0, None, 10, 1)), second, RunOptions(is_open=True))
        for run in (one, two):
            with pytest.raises(OverloadError, match="30 requests are unfinished and the nodes need 11 more"):
                run.extend(wide(50, None, 1, 11))
        two.extend(wide(50, None, 1, 10))  # what was refused left the graph and its numbers as they were
        with pytest.raises(OverloadError):
            runtime.submit(RequestGraph(wide(0, None, 1, 1)), Listener())
        two.cancel()
        runner[0].gate.set()
        assert isinstance(second.last(), GraphFailed)
        one.extend(wide(50, 0, 1, 20))
        one.close()
        assert isinstance(first.last(), GraphFinished)
        again = Listener()
        runtime.submit(RequestGraph(wide(0, None, 8, 5)), again)
        assert isinstance(again.last(), GraphFinished)


def test_unknown_and_wrong_settings_are_named() -> None:
    with pytest.raises(ConfigError, match="page_sise"):
        Runtime(page_sise=4)
    with pytest.raises(ConfigError, match="policy"):
        Runtime(policy="lottery")


def test_a_model_that_does_not_load_raises_where_it_is_started(tmp_path: Any) -> None:
    with pytest.raises(ModelLoadError):
        Runtime(model=str(tmp_path / "nowhere")).start()


def test_clear_cache_drops_what_nobody_uses(runner: list[SlowRunner]) -> None:
    with Runtime(page_size=4) as runtime:
        listener = Listener()
        runtime.submit(graph(max_tokens=20), listener)
        listener.last()
        assert runtime.stats()["num_pages_cached"] > 0
        runtime.clear_cache()
        assert runtime.stats()["num_pages_cached"] == 0


def test_a_snapshot_shows_the_engine_from_any_thread_and_loads_nothing(runner: list[SlowRunner]) -> None:
    runtime = Runtime(page_size=4)
    assert runtime.snapshot() is None
    assert not runner
    with runtime:
        assert runtime.snapshot() is not None
        listener = Listener()
        runner[0].gate.clear()
        runtime.submit(graph(max_tokens=20), listener)
        assert runner[0].in_step.wait(LIMIT_S)
        found: list[Any] = []
        thread = threading.Thread(target=lambda: found.append(runtime.snapshot()))
        thread.start()
        runner[0].gate.set()
        thread.join(LIMIT_S)
        listener.last()
        [during], after = found, runtime.snapshot()
        assert after is not None
        assert during.num_requests == 1
        assert after.num_requests == 0
        assert after.num_cached_pages == sum(each.num_pages for each in after.prefixes) > 0
        assert [step.number for step in after.steps] == list(range(1, after.num_steps + 1))
        assert runtime.snapshot(after_step=after.num_steps).steps == ()  # type: ignore[union-attr]
        inside = runtime._running_loop().run(runtime.snapshot)
        assert inside is not None
    with pytest.raises(EngineDeadError):
        runtime.snapshot()


@pytest.mark.parametrize(
    "options", [{"deadline_s": 0}, {"deadline_s": "soon"}, {"priority": "high"}, {"priority": None}]
)
def test_wrong_options_of_a_run_are_refused_where_they_are_given(
    runner: list[SlowRunner], options: dict[str, Any]
) -> None:
    with Runtime() as runtime, pytest.raises(ParameterError, match=next(iter(options))):
        runtime.submit(graph(), Listener(), RunOptions(**options))


@pytest.mark.parametrize("deadline_s", [1e300, float("inf"), 10**400], ids=["1e300", "inf", "digits"])
def test_a_deadline_in_the_far_future_is_no_deadline(runner: list[SlowRunner], deadline_s: float) -> None:
    with Runtime() as runtime:
        for _ in range(2):  # the thread waits for the timer between the two
            listener = Listener()
            runtime.submit(graph(), listener, RunOptions(deadline_s=deadline_s))
            assert isinstance(listener.last(), GraphFinished)


def test_a_listener_may_close_the_runtime_and_clear_its_cache(runner: list[SlowRunner]) -> None:
    runtime = Runtime().start()
    runner[0].gate.clear()
    others = [Listener() for _ in range(5)]

    class Closing(Listener):
        def __call__(self, event: Event) -> None:
            super().__call__(event)
            if isinstance(event, TextDelta):
                runtime.clear_cache()
                for other in others:
                    runtime.submit(graph(), other)
                runtime.close()

    closing = Closing()
    runtime.submit(graph(), closing)
    runner[0].gate.set()
    for listener in (closing, *others):
        event = listener.last()
        assert isinstance(event, GraphFailed)
        assert isinstance(event.error, AbortedError)


def test_whatever_a_listener_raises_stays_with_its_graph(runner: list[SlowRunner]) -> None:
    def leave(event: Event) -> None:
        raise SystemExit(1)

    with Runtime() as runtime:
        runtime.submit(graph(), leave)
        listener = Listener()
        runtime.submit(graph(), listener)
        assert isinstance(listener.last(), GraphFinished)


def test_the_view_of_a_runtime_loads_nothing_and_shows_its_load() -> None:
    runtime = Runtime("rtlang:tiny", num_threads=1)
    assert repr(runtime) == "<Runtime rtlang:tiny on cpu, not loaded yet>"
    assert "not loaded yet" in read_html(runtime._repr_html_()).words
    with runtime:
        assert repr(runtime) == "<Runtime rtlang:tiny on cpu, running>"
        words = read_html(runtime._repr_html_()).words
        assert f"of {runtime.stats()['num_pages']}" in words
        assert "0 running, 0 waiting" in words
    assert repr(runtime) == "<Runtime rtlang:tiny on cpu, closed>"
    assert "closed" in read_html(runtime._repr_html_()).words


EXITS_WITHIN_A_RUN = """
import threading
import rtlang as rt

@rt.program
def endless(s):
    s += "Once" + rt.gen("story", max_tokens=1500, ignore_eos=True)

graph, has_begun = endless.graph(), threading.Semaphore(0)
rt.Runtime().submit(graph, lambda event: has_begun.release())
for _ in range(20):
    has_begun.acquire()
print("left")
"""


@pytest.mark.parametrize("attempt", range(2))
def test_a_process_that_leaves_a_runtime_busy_exits_quietly(attempt: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", EXITS_WITHIN_A_RUN], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "left\n", "")
