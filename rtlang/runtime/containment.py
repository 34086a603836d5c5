"""What others' code raises stays with the graph that it belongs to: listeners, and whatever is done for one graph."""

from __future__ import annotations

import logging
from collections.abc import Callable

from rtlang.contract.errors import RequestError
from rtlang.contract.events import Event
from rtlang.contract.target import Listener
from rtlang.runtime.graph_state import GraphExecution

logger = logging.getLogger(__name__)


def tell(listener: Listener, event: Event) -> bool:
    """Tell an event; whether the listener took it. Whatever a listener raises must not reach the engine."""
    try:
        listener(event)
    except BaseException:
        logger.exception("the listener of graph %d raised; the graph is cancelled", event.graph_id)
        return False
    return True


def contained(state: GraphExecution, act: Callable[[], None]) -> None:
    """Do something for a graph; a bug in it ends that graph, not the engine."""
    try:
        act()
    except Exception as error:
        logger.exception("graph %d failed", state.graph_id)
        state.fail(RequestError(f"{type(error).__name__}: {error}"))
