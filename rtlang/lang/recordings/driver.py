"""Runs the nodes of a recording: the interface of a session, and its stand-in when a graph is recorded ahead of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rtlang.contract.errors import RtlangError, TraceError
from rtlang.contract.events import NodeFinished
from rtlang.contract.service.target import Target
from rtlang.lang.lazy_values.values import user_location

Outcome = NodeFinished | RtlangError


class Driver(Protocol):
    """Submits nodes and waits for them, on behalf of a recording."""

    @property
    def is_async(self) -> bool:
        """Whether the body is a coroutine, which must await instead of block."""

    @property
    def target(self) -> Target | None:
        """The runtime; None ahead of time."""

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

    def wait(self, node_ids: Sequence[int]) -> None:
        """Submit recorded nodes and block until all these nodes have an outcome."""

    async def wait_async(self, node_ids: Sequence[int]) -> None:
        """`wait` for coroutines."""


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

    def wait(self, node_ids: Sequence[int]) -> None:
        raise AssertionError("the recording refuses graph breaks before it waits")

    async def wait_async(self, node_ids: Sequence[int]) -> None:
        raise AssertionError("the recording refuses graph breaks before it waits")
