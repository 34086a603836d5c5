"""Runs the nodes of a recording: the interface of a session, and its stand-in when a graph is recorded ahead of time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from rtlang.contract.errors import RtlangError, TraceError
from rtlang.contract.events import GraphFinished, NodeFinished
from rtlang.contract.service.target import Target
from rtlang.lang.lazy_values.values import user_location

Outcome = NodeFinished | RtlangError


def never() -> bool:
    """False."""
    return False


class Driver(Protocol):
    """Submits nodes and waits for them, on behalf of a recording."""

    @property
    def is_async(self) -> bool:
        """Whether the body is a coroutine, which must await instead of block."""

    @property
    def target(self) -> Target | None:
        """The runtime; None ahead of time and after the end."""

    @property
    def tool_format(self) -> str | None:
        """See `Target.tool_format`.

        Raises:
            TraceError: no model is known.
        """

    def outcome(self, node_id: int) -> Outcome | None:
        """The outcome of a node (a failed graph ends all its nodes); None while it is running or not submitted."""

    @property
    def outcome_ids(self) -> Sequence[int]:
        """Ids of the nodes that have ended with an event, under which they ran."""

    def wait(self, node_ids: Sequence[int], or_if: Callable[[], bool] = never) -> None:
        """Submit recorded nodes and block until all these nodes have an outcome, or until `or_if` is true after a `wake`."""

    async def wait_async(self, node_ids: Sequence[int], or_if: Callable[[], bool] = never) -> None:
        """`wait` for coroutines."""

    def wake(self) -> None:
        """Let all that wait look again. From any thread."""


def outcome_at_end(
    node_id: int, final: GraphFinished | RtlangError, outcomes: Mapping[int, Outcome], dropped: Collection[int]
) -> Outcome:
    """The outcome of a node of a graph that has ended: nodes without an outcome of their own share its error.

    Args:
        final: the end of the graph.
        dropped: ids of nodes that were never submitted, because no output needs them.
    """
    found = outcomes.get(node_id)
    if found is not None:
        return found
    if isinstance(final, RtlangError):
        return final
    if node_id in dropped:
        return TraceError(
            "not generated: no output of the run depends on it; name it, and list the name in outputs= if that is given"
        )
    return RtlangError(f"the runtime ended the graph without a result for node {node_id}")


class EndedDriver:
    """The driver of a recording whose graph has ended: it has the outcomes, and nothing else of the session that ran it."""

    __slots__ = ("_dropped", "_final", "_is_async", "_outcomes")

    def __init__(
        self,
        is_async: bool,
        final: GraphFinished | RtlangError,
        outcomes: Mapping[int, Outcome],
        dropped: Collection[int],
    ) -> None:
        self._is_async, self._final, self._outcomes, self._dropped = is_async, final, outcomes, dropped

    @property
    def is_async(self) -> bool:
        return self._is_async

    @property
    def target(self) -> None:
        return None

    @property
    def tool_format(self) -> str | None:
        raise TraceError("the program has ended; its state cannot be appended to", user_location())

    def outcome(self, node_id: int) -> Outcome | None:
        return outcome_at_end(node_id, self._final, self._outcomes, self._dropped)

    @property
    def outcome_ids(self) -> Sequence[int]:
        return tuple(self._outcomes)

    def wait(self, node_ids: Sequence[int], or_if: Callable[[], bool] = never) -> None:
        raise AssertionError("every node has an outcome")

    async def wait_async(self, node_ids: Sequence[int], or_if: Callable[[], bool] = never) -> None:
        raise AssertionError("every node has an outcome")

    def wake(self) -> None:
        """See `Driver`. Nothing waits any more."""


class AheadOfTime:
    """The driver of `Program.graph`: nothing runs, so waiting is impossible."""

    def __init__(self, is_async: bool) -> None:
        self._is_async = is_async

    @property
    def is_async(self) -> bool:
        return self._is_async

    @property
    def target(self) -> None:
        return None

    @property
    def tool_format(self) -> str | None:
        raise TraceError(
            "the format of tool calls depends on the model, which is not known when recording ahead of time; pass format=...",
            user_location(),
        )

    def outcome(self, node_id: int) -> Outcome | None:
        return None

    @property
    def outcome_ids(self) -> Sequence[int]:
        return ()

    def wait(self, node_ids: Sequence[int], or_if: Callable[[], bool] = never) -> None:
        raise AssertionError("the recording refuses graph breaks before it waits")

    async def wait_async(self, node_ids: Sequence[int], or_if: Callable[[], bool] = never) -> None:
        raise AssertionError("the recording refuses graph breaks before it waits")

    def wake(self) -> None:
        """Nothing waits."""
