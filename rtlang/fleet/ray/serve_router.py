"""Programs on Ray Serve: a deployment that holds engines, and the router of whole programs as its `RequestRouter`.

    app = program_deployment(RuntimeConfig(model=...), num_replicas=4)
    handle = serve.run(app)
    values = handle.run.remote(graph.to_plain(), {"question": "..."}).result()

Ray Serve asks the router for a ranking of replicas for each request. It gets the one that `rtlang.fleet.routing.router.Router` chooses, and
the others after it, by their cost, for the case that the first one is full or has died.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ray import serve
from ray.serve.config import RequestRouterConfig
from ray.serve.request_router import FIFOMixin, PendingRequest, RequestRouter, RunningReplica

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import RtlangError
from rtlang.contract.events import Event, GraphFailed, GraphFinished
from rtlang.contract.request_graph import RequestGraph
from rtlang.contract.runs.run_options import RunOptions
from rtlang.contract.service.target import Listener
from rtlang.fleet.ray.engine_actor import resources_of
from rtlang.fleet.routing.program_prefix import program_work
from rtlang.fleet.routing.router import ProgramWork, Router
from rtlang.runtime.runtime import Runtime

logger = logging.getLogger(__name__)

MAX_NOTED = 100_000
"""Requests whose end has not been reported that are remembered at most."""


class ProgramRouter(FIFOMixin, RequestRouter):  # type: ignore[misc]
    """Routes whole programs by the work that waits and the prefixes that replicas have computed.

    Requests without a graph as their first argument go to the replica with the least waiting work.
    """

    def initialize_state(self, seed: int = 0, capacity_tokens: int | None = None) -> None:
        """Called by Ray Serve with `request_router_kwargs`."""
        self._programs = Router(seed=seed, capacity_tokens=capacity_tokens)
        self._noted: OrderedDict[str, tuple[str, ProgramWork]] = OrderedDict()  # by request: where it was sent

    async def choose_replicas(
        self, candidate_replicas: list[RunningReplica], pending_request: PendingRequest | None = None
    ) -> list[list[RunningReplica]]:
        """See `RequestRouter.choose_replicas`."""
        by_name = {replica.replica_id.unique_id: replica for replica in candidate_replicas}
        if pending_request is None or not by_name:
            return [candidate_replicas]
        self._follow({each.unique_id for each in self.curr_replicas} | set(by_name))
        request_id = pending_request.metadata.internal_request_id
        noted = self._noted.pop(request_id, None)
        if noted is not None:  # asked again: the first choice took no more
            self._programs.ended(*noted)
        work = _work_of(pending_request) if noted is None else noted[1]
        name = self._programs.choose(work, among=by_name)
        self._noted[request_id] = name, work
        while len(self._noted) > MAX_NOTED:
            self._programs.ended(*self._noted.popitem(last=False)[1])
        rest = sorted(by_name.keys() - {name}, key=lambda other: self._programs.cost(other, work))
        return [[by_name[name]], *([by_name[other]] for other in rest)]

    def on_request_routed(self, pending_request: PendingRequest, replica_id: Any, result: Any) -> None:
        """See `RequestRouter.on_request_routed`: notes where the request really went."""
        request_id = pending_request.metadata.internal_request_id
        noted = self._noted.get(request_id)
        if noted is not None and noted[0] != replica_id.unique_id:
            self._programs.ended(*noted)
            self._noted[request_id] = self._programs.choose(noted[1], among=(replica_id.unique_id,)), noted[1]

    def on_request_completed(self, replica_id: Any, internal_request_id: str) -> None:
        """See `RequestRouter.on_request_completed`."""
        noted = self._noted.pop(internal_request_id, None)
        if noted is not None:
            self._programs.ended(*noted)

    def _follow(self, names: set[str]) -> None:
        known = set(self._programs.names)
        for name in known - names:
            self._programs.remove(name)
        for name in names - known:
            self._programs.add(name)


def _work_of(request: PendingRequest) -> ProgramWork:
    graph = request.args[0] if request.args else None
    inputs = request.args[1] if len(request.args) > 1 else {}
    if not isinstance(graph, Mapping):
        return ProgramWork((), 1.0, 0.0)
    try:
        return program_work(RequestGraph.from_plain(dict(graph)), inputs or {})
    except RtlangError as error:  # the replica reports the error
        logger.debug("a request has no valid graph: %s", error)
        return ProgramWork((), 1.0, 0.0)


class ProgramEngine:
    """The engine of one replica of Ray Serve.

    Args:
        settings: of its RuntimeConfig.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self._runtime = Runtime(config=RuntimeConfig(**settings)).start()

    async def run(
        self, graph: dict[str, Any], inputs: Mapping[str, str] | None = None, seed: int | None = None
    ) -> dict[str, Any]:
        """Run a graph, in its plain form; returns its values by name.

        Raises:
            RtlangError: the graph failed.
        """
        return dict((await self.finish(graph, inputs, seed)).values)

    async def finish(
        self,
        graph: dict[str, Any],
        inputs: Mapping[str, str] | None = None,
        seed: int | None = None,
        listener: Listener = lambda event: None,
    ) -> GraphFinished:
        """Run a graph as `run` does; returns its last event.

        Args:
            listener: called with every event, on a thread of the runtime.
        Raises:
            RtlangError: the graph failed.
        """
        loop = asyncio.get_running_loop()
        end: asyncio.Future[Event] = loop.create_future()

        def settle(event: Event) -> None:
            if not end.done():
                end.set_result(event)

        def listen(event: Event) -> None:
            listener(event)
            if isinstance(event, (GraphFinished, GraphFailed)):
                loop.call_soon_threadsafe(settle, event)

        run = self._runtime.submit(RequestGraph.from_plain(graph), listen, RunOptions(inputs or {}, seed=seed))
        try:
            event = await end
        finally:
            run.cancel()  # does nothing to a graph that has ended
        if isinstance(event, GraphFailed):
            raise event.error
        assert isinstance(event, GraphFinished)
        return event

    def check_health(self) -> None:
        """Called by Ray Serve, which replaces a replica whose engine has died."""
        if not self._runtime.is_alive:
            raise RuntimeError("the engine has stopped")


def program_deployment(
    config: RuntimeConfig,
    *,
    num_replicas: int = 1,
    seed: int = 0,
    engine: type[ProgramEngine] = ProgramEngine,
    **options: Any,
) -> Any:
    """An application of Ray Serve: engines whose requests are routed as whole programs.

    Args:
        engine: the class of the replicas.
        options: see `ray.serve.deployment`, for example `autoscaling_config` or `ray_actor_options`.
    """
    num_cpus, num_gpus = resources_of(config)
    actor = {"num_cpus": num_cpus, "num_gpus": num_gpus}
    chosen: dict[str, Any] = {
        "name": engine.__name__,
        "num_replicas": num_replicas,
        "ray_actor_options": actor,
        "max_ongoing_requests": config.max_waiting,
        "request_router_config": RequestRouterConfig(
            request_router_class=ProgramRouter, request_router_kwargs={"seed": seed}
        ),
    }
    if "autoscaling_config" in options:
        del chosen["num_replicas"]
    deployment = serve.deployment(engine).options(**(chosen | options))
    return deployment.bind(asdict(config))
