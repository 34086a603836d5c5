"""An engine on a fake model, and graphs that run on it step by step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.events import Event, GraphFailed, GraphFinished, NodeFinished
from rtlang.contract.request_graph import Node, RequestGraph
from rtlang.contract.runs.run_options import RunOptions
from rtlang.engine.engine import Engine, LoadedModel
from rtlang.engine.program_pages import ProgramPages
from rtlang.engine.requests.program_account import ProgramAccount
from rtlang.engine.requests.request import Request, RequestSpec
from rtlang.runtime.executors.host import Host
from rtlang.runtime.graph_execution import GraphExecution
from rtlang.runtime.nodes.node_table import NodeTable
from tests.support.engine.fake_runner import FakeRunner, FakeTokenizer
from tests.support.engine.open_constraint import OpenCompiler

TOKENIZER = FakeTokenizer()


class World:
    """An engine and the events of the graphs on it. The next step begins when `step` is called, one second after the last."""

    def __init__(self, num_pages: int = 400, runner: FakeRunner | None = None, **settings: Any) -> None:
        self.runner = runner or FakeRunner(num_pages, 4)
        config = RuntimeConfig(page_size=4, num_pages=num_pages, max_step_tokens=32, **settings)
        fake: Any = self.runner
        compiler: Any = OpenCompiler()
        self.engine = Engine(config, LoadedModel(fake), compiler, lambda: None, check_every_step=True)
        self.now = 0.0
        self.events: dict[int, list[Event]] = {}
        self.num_ended = 0
        self.tables: list[NodeTable] = []
        self.specs: list[RequestSpec] = []  # of all requests, in order
        self.timers: list[tuple[float, Callable[[], None]]] = []

    def call_at(self, when: float, act: Callable[[], None]) -> Callable[[], None]:
        timer = (when, act)
        self.timers.append(timer)
        return lambda: self.timers.remove(timer) if timer in self.timers else None

    def submit(
        self, nodes: list[Node], inputs: Mapping[str, str] | None = None, *, is_open: bool = False, **others: Any
    ) -> GraphExecution:
        """Start a graph. `others`: further options of the run."""
        RequestGraph(tuple(nodes), tuple(inputs or ())).validate()
        graph_id = len(self.events)
        told = self.events[graph_id] = []

        def tell(event: Event) -> None:
            assert not told or not isinstance(told[-1], GraphFinished | GraphFailed), "nothing follows the final event"
            told.append(event)

        def end() -> None:
            self.num_ended += 1

        program = ProgramAccount(self.now)

        def add(spec: RequestSpec) -> Request:
            self.specs.append(spec)
            return self.engine.add(replace(spec, program=program), self.now)

        host = Host(
            self.runner.tokenizer,
            self.runner.max_model_len,
            add,
            self.engine.abort,
            lambda: self.now,
            pages=ProgramPages(self.engine.cache, program.arrival_time),
            call_at=self.call_at,
            has_states=self.runner.num_states > 0,
        )
        options = RunOptions(inputs or {}, is_open, **others)
        state = GraphExecution(graph_id, options, host, tell, end)
        self.tables.append(state.table)
        state.add_nodes(nodes)
        return state

    def step(self) -> None:
        self.now += 1.0
        for timer in [timer for timer in self.timers if timer[0] <= self.now]:
            if timer in self.timers:  # else its graph has ended meanwhile
                self.timers.remove(timer)
                timer[1]()
        for output in self.engine.step(self.now):
            output.request.spec.listener(output)
        for table in self.tables:
            table.check()

    def run(self) -> None:
        for _ in range(5000):
            if not self.engine.has_work:
                break
            self.step()
        assert not self.engine.has_work
        cache = self.engine.cache
        assert cache.num_in_use == 0
        if self.num_ended == len(self.events):
            assert cache.num_held == len(cache.retention) == 0, "pages are kept for programs that have ended"

    def finished(self, graph_id: int) -> dict[int, NodeFinished]:
        return {event.node_id: event for event in self.events[graph_id] if isinstance(event, NodeFinished)}
