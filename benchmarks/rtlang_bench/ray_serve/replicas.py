"""What a comparison on Ray Serve needs on both ends: replicas that tell what they computed, and a target that sends them graphs.

Importable by its name, since replicas import it too. It imports Ray.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterable
from typing import Any

from rtlang.contract.errors import RtlangError, internal_error
from rtlang.contract.events import Event, GraphFailed, NodeFinished
from rtlang.contract.request_graph import RequestGraph, Text, TokenIds
from rtlang.contract.runs.run_options import DEFAULT_OPTIONS, Ability, RunOptions
from rtlang.contract.service.target import Listener
from rtlang.fleet.ray.serve_router import ProgramEngine

CALL_TIMEOUT_S = 120.0

logger = logging.getLogger(__name__)


class GraphRequest(dict[str, Any]):
    """A graph in its plain form, as the argument of a request.

    Attributes:
        prompt: its texts, tokens as numbers, by which Ray Serve's prefix affinity compares requests.
    """

    def __init__(self, graph: RequestGraph) -> None:
        super().__init__(graph.to_plain())
        parts = [part for node in graph.nodes if isinstance(node, Text) for part in node.parts]
        self.prompt = "".join(
            part if isinstance(part, str) else " ".join(map(str, part.ids))
            for part in parts
            if isinstance(part, (str, TokenIds))
        )


class MeasuredEngine(ProgramEngine):
    """An engine that returns the ends of all nodes, and whose cache can be emptied."""

    async def measure(self, request: GraphRequest) -> list[Event]:
        """Run a graph; returns the ends of its nodes, and its own at the end.

        Raises:
            RtlangError: the graph failed.
        """
        ends: list[Event] = []

        def listen(event: Event) -> None:
            if isinstance(event, NodeFinished):
                ends.append(event)

        last = await self.finish(dict(request), listener=listen)
        return [*ends, last]

    def clear_cache(self) -> None:
        """See `Runtime.clear_cache`."""
        self._runtime.clear_cache()


class ServeTarget:
    """Sends each graph as a request to a deployment of `MeasuredEngine`. A context manager.

    Args:
        handle: of the deployment.
    """

    tool_format = None
    is_alive = True
    abilities: frozenset[Ability] = frozenset()

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="requests", daemon=True)
        self._thread.start()

    def __enter__(self) -> ServeTarget:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def submit(self, graph: RequestGraph, listener: Listener, options: RunOptions = DEFAULT_OPTIONS) -> Any:
        """See `Target.submit`: the events come at the end, together. Options are ignored, and the run cannot be changed."""
        del options
        return asyncio.run_coroutine_threadsafe(self._request(graph, listener), self._loop)

    def warm_up(self, graphs: Iterable[RequestGraph]) -> None:
        """Run graphs on every replica, one after the other, then empty the caches.

        Raises:
            TimeoutError: a replica takes longer than CALL_TIMEOUT_S for one of them.
        """
        for graph in graphs:
            self._handle.broadcast("measure", GraphRequest(graph)).results(timeout_s=CALL_TIMEOUT_S)
        self._handle.broadcast("clear_cache").results(timeout_s=CALL_TIMEOUT_S)

    def close(self) -> None:
        """See `Target.close`."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _request(self, graph: RequestGraph, listener: Listener) -> None:
        try:
            events: list[Event] = await self._handle.measure.remote(GraphRequest(graph))
        except RtlangError as error:
            events = [GraphFailed(0, error)]
        except Exception as error:  # of Ray: a replica has died
            events = [GraphFailed(0, internal_error(logger, "a request", error))]
        for event in events:
            listener(event)
