"""The caches of all replicas as one: explanations and pins of the replica that holds most of a prompt, lists of all."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from rtlang.contract.errors import EngineDeadError
from rtlang.contract.graph.nodes import Part
from rtlang.contract.runs.principal import Principal
from rtlang.contract.service.cache_report import CacheExplanation
from rtlang.contract.service.cache_service import CacheService, PinGrant

PATIENCE_S = 1.0
"""Seconds to wait for further replicas after the first answer."""

MAX_UNANSWERED = 8
"""Calls that a replica may have left unanswered; until it answers, further ones pass over it."""

_T = TypeVar("_T")


class FleetCacheService:
    """The `CacheService` of a fleet. Limits of pins hold for each replica; a pin ends with the engine that keeps it.

    Args:
        services: returns the cache services of the replicas that are ready, by name.
    """

    def __init__(self, services: Callable[[], Mapping[str, CacheService]]) -> None:
        self._services = services
        self._lock = threading.Lock()
        self._num_unanswered: Counter[str] = Counter()  # by replica

    def explain(self, parts: Sequence[Part], principal: Principal) -> CacheExplanation:
        """See `CacheService.explain`; of the replica that holds most of the prompt."""
        return self._fullest(parts, principal)[1]

    def pin(self, parts: Sequence[Part], ttl_s: float, principal: Principal) -> PinGrant:
        """See `CacheService.pin`; at the replica that holds most of the prompt, where programs that begin with it go."""
        return self._fullest(parts, principal)[0].pin(parts, ttl_s, principal)

    def pins(self, principal: Principal) -> list[PinGrant]:
        """See `CacheService.pins`.

        Raises:
            EngineDeadError: a replica does not answer.
        """
        found = self._of_all(lambda each: each.pins(principal), needs_all=True)
        return [grant for grants in found.values() for grant in grants]

    def unpin(self, pin_id: str, principal: Principal) -> bool:
        """See `CacheService.unpin`.

        Raises:
            EngineDeadError: a replica does not answer, and no other has the pin.
        """
        answers = self._answers(lambda each: each.unpin(pin_id, principal), needs_all=True)
        return any(was_pinned for _, was_pinned in answers)

    def tree(self, max_nodes: int, principal: Principal) -> list[dict[str, Any]]:
        """See `CacheService.tree`. Each node has the field `replica` as well, and ids are unique in the fleet."""
        trees = self._of_all(lambda each: each.tree(max_nodes, principal))
        share, count = max(1, max_nodes // len(trees)), len(trees)
        return [
            _renumbered(node, index, count) | {"replica": name}
            for index, (name, nodes) in enumerate(trees.items())
            for node in nodes[:share]
        ]

    def _fullest(self, parts: Sequence[Part], principal: Principal) -> tuple[CacheService, CacheExplanation]:
        found = self._of_all(lambda each: (each, each.explain(parts, principal))).values()
        return max(found, key=lambda each: each[1].num_cached_tokens)

    def _of_all(self, call: Callable[[CacheService], _T], *, needs_all: bool = False) -> dict[str, _T]:
        """The results of a call to every replica, in the order of their names; see `_answers`."""
        return dict(sorted(self._answers(call, needs_all=needs_all), key=lambda each: each[0]))

    def _answers(self, call: Callable[[CacheService], _T], *, needs_all: bool = False) -> Iterator[tuple[str, _T]]:
        """Call every replica at the same time; yields the results of those that do not end, as they come, until PATIENCE_S after the first.

        Args:
            needs_all: whether it is an error if a replica has not answered until then.
        Raises:
            EngineDeadError: no replica has answered, or not all that are needed.
        """
        with self._lock:
            ready = self._services()
            services = {name: each for name, each in ready.items() if self._num_unanswered[name] < MAX_UNANSWERED}
            self._num_unanswered.update(list(services))
        answers: SimpleQueue[tuple[str, Future[_T]]] = SimpleQueue()

        def ask(name: str, service: CacheService) -> None:
            answer: Future[_T] = Future()
            try:
                answer.set_result(call(service))
            except BaseException as error:
                answer.set_exception(error)
            answers.put((name, answer))
            with self._lock:
                self._num_unanswered[name] -= 1

        for name, service in services.items():
            threading.Thread(target=ask, args=(name, service), name=f"cache of {name}", daemon=True).start()
        until: float | None = None
        is_silent = len(services) < len(ready)
        for _ in services:
            try:
                name, answer = answers.get(timeout=None if until is None else max(0.0, until - time.monotonic()))
                result = answer.result()
            except EngineDeadError:
                continue
            except Empty:
                is_silent = True
                break
            if until is None:
                until = time.monotonic() + PATIENCE_S
            yield name, result
        if until is None:
            raise EngineDeadError("no replica is ready; try again later")
        if needs_all and is_silent:
            raise EngineDeadError("a replica does not answer; try again later")


def _renumbered(node: dict[str, Any], index: int, count: int) -> dict[str, Any]:
    parent = node["parent"]
    return node | {"id": node["id"] * count + index, "parent": None if parent is None else parent * count + index}
