"""The outcomes of recorded nodes: their texts, parsed values, metadata and errors.

An outcome is the event that ended a node, or the error that ended its graph; the driver of the recording has them. Errors are copies that
name the generation at the root of the failure and the line that recorded it. `first_error` skips errors that the body has seen.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from rtlang.contract.errors import (
    AbortedError,
    ApplyError,
    CheckError,
    ConnectionLostError,
    DeadlineError,
    DependencyError,
    EngineDeadError,
    GraphError,
    OverloadError,
    RtlangError,
    SlowConsumerError,
    TraceError,
    ValueParseError,
    rebuild,
)
from rtlang.contract.events import NodeFinished
from rtlang.contract.graph.value_text import text_of_plain
from rtlang.contract.params import FinishReason, Usage
from rtlang.contract.request_graph import (
    Apply,
    Decide,
    Generate,
    Node,
    Part,
    Ref,
    Repeat,
    Select,
    Switch,
    Text,
    dependencies,
    parent_of,
)
from rtlang.lang.lazy_values.values import user_location
from rtlang.lang.output_types.tool_calls import CallRuns, with_origin
from rtlang.lang.partials.shapes import ValueShape
from rtlang.lang.recordings.control_paths import path_parts
from rtlang.lang.recordings.driver import Driver
from rtlang.lang.recordings.error_places import at_generation, rebuilt
from rtlang.lang.recordings.meta import AttemptMeta, Meta
from rtlang.lang.recordings.recorded_nodes import Attempt, RecordedNodes

_RUN_ERRORS = (AbortedError, ConnectionLostError, DeadlineError, EngineDeadError, OverloadError, SlowConsumerError)
"""Errors that end the whole run. They name a generation that had not ended."""


class Outcomes:
    """Reads the outcomes of a recording's nodes.

    Attributes:
        dropped: ids of nodes that were never submitted, because no output needs them.
        seen: the nodes with errors that the body has seen, by the ids under which they run; `num_seen` is their number.
    """

    def __init__(self, nodes: RecordedNodes, driver: Driver, runs: CallRuns) -> None:
        self.dropped: set[int] = set()
        self._nodes, self._driver, self._runs = nodes, driver, runs
        self._values: dict[tuple[int, int], Any] = {}
        self.num_seen = 0
        self._reported: set[int] = set()
        self.seen: set[int] = set()
        self._of_thread = threading.local()
        self._handled: set[int] = set()  # by the ids in the graph

    def release(self, driver: Driver) -> None:
        """Read outcomes from `driver` from now on."""
        self._driver = driver

    # Values

    def finished(self, node_id: int) -> NodeFinished:
        """The final event of a node.

        Raises:
            RtlangError: the error of the node, or for a dependent node the error of its root cause.
        """
        outcome = self._driver.outcome(node_id)
        if isinstance(outcome, NodeFinished):
            return outcome
        if outcome is None:
            raise TraceError(f"{self._nodes.name_of(node_id)!r} was recorded but never run", user_location())
        root_id, error = self._root(node_id, outcome)
        self._report(root_id)
        raise self._located(root_id, error)

    def text_of(self, node_id: int, choice: int) -> str:
        """The text of an ended node. Raises like `finished`."""
        computed = self._nodes.computed.get(node_id)
        if computed is not None:
            return text_of_plain(computed.read())
        end = self.finished(node_id)
        return end.completions[choice].text if end.completions else text_of_plain(end.value)

    def plain_value(self, node_id: int) -> Any:
        """The value of an ended node that computes one. Raises like `finished`."""
        end = self.finished(node_id)
        if end.is_cancelled:
            raise self._located(node_id, AbortedError("cancelled: a decision was made before it was needed"))
        return end.value

    def value_of(self, node_id: int, choice: int) -> Any:
        """The text of an ended node parsed as its type; parsed once.

        Raises:
            ValueParseError: the text does not parse. RtlangError: as for `finished`.
        """
        found = self.read(node_id, choice)
        if isinstance(found, RtlangError):
            self._report(node_id)
            raise self._located(node_id, found)
        return found

    def read(self, node_id: int, choice: int) -> Any:
        """The parsed value of a finished node's text, or the ValueParseError of parsing it."""
        key = (node_id, choice)
        if key not in self._values:
            end = self.finished(node_id)
            if end.is_cancelled or (
                end.completions and end.completions[choice].finish_reason is FinishReason.CANCELLED
            ):
                return None  # a decision did not need it
            text = self.text_of(node_id, choice)
            kind = self._nodes.types[self._nodes.written_id(node_id)]
            try:
                found = kind.read(self._nodes.name_of(node_id), text)
                self._values[key] = found if kind.calls is None else self._with_origin(found, node_id, choice)
            except ValueParseError as error:
                self._values[key] = error
        return self._values[key]

    def _with_origin(self, value: Any, node_id: int, choice: int) -> Any:
        path = self._nodes.path_at(node_id)
        assert path is not None
        return with_origin(value, self._runs, f"{path}[{choice}]" if choice else path)

    def shape_of(self, node_id: int) -> ValueShape | None:
        """The types inside a generation's value; None if its text is not JSON."""
        kind = self._nodes.types.get(self._nodes.written_id(node_id))
        return None if kind is None else kind.shape

    def meta_of(self, node_id: int, choice: int) -> Meta:
        """The metadata of an ended node's text. Raises like `finished`."""
        attempts = self._nodes.attempts_of(node_id)
        if attempts is not None:
            return self._meta_of_attempts(node_id, attempts)
        path = self._nodes.path_at(node_id, choice)
        found = Meta.of(self._nodes.node(node_id), self.finished(node_id), choice, path)
        before = self._nodes.reasoning_of.get(self._nodes.written_id(node_id))
        if before is None:
            return found
        before += node_id - self._nodes.written_id(node_id)
        thought = self.finished(before).completions[0]
        return replace(found, reasoning=self.value_of(before, 0), reasoning_tokens=len(thought.token_ids))

    def _meta_of_attempts(self, node_id: int, attempts: Sequence[Attempt]) -> Meta:
        """The metadata of the last attempt that has ended, with those of all attempts; also if the checks refused all."""
        outcome = self._driver.outcome(node_id)
        if isinstance(outcome, RtlangError) and not isinstance(self._root(node_id, outcome)[1], CheckError):
            self.finished(node_id)  # raises
        ended = [each for each in attempts if isinstance(self._driver.outcome(each.node_id), NodeFinished)]
        if not ended:  # equal to another attempt of the same branch, which was computed instead
            end = self.finished(node_id)
            return Meta(FinishReason.STOP, None, (), Usage(), end.timing)
        metas = [self.meta_of(each.node_id, 0) for each in ended]
        found = []
        for each, meta in zip(ended, metas, strict=True):
            value = self.read(each.node_id, 0)
            value = None if isinstance(value, RtlangError) else value
            text = self.text_of(each.node_id, 0)
            found.append(AttemptMeta(each.path, text, value, self.message_of(each.message), meta.usage))
        return replace(metas[-1], usage=sum((each.usage for each in metas), Usage()), attempts=tuple(found))

    def message_of(self, node_id: int) -> str | None:
        """The message of the checks of an attempt; None if they have accepted it."""
        outcome = self._driver.outcome(node_id)
        if isinstance(outcome, RtlangError):
            root = self._root(node_id, outcome)[1]
            return root.reason if isinstance(root, CheckError) else root.message
        message = None if outcome is None else outcome.value
        return None if message is None else str(message)

    def parts_of(self, node: Node) -> tuple[Part, ...]:
        """The parts that a non-text node adds to its sequence; the node itself for an unfinished branch or loop."""
        if isinstance(node, (Switch, Repeat)):
            outcome = self._driver.outcome(node.node_id)
            if isinstance(outcome, NodeFinished) and not outcome.is_cancelled:
                return tuple(path_parts(node, self._nodes.outer, self.finished))
        return (Ref(node.node_id),)

    # Errors

    @contextmanager
    def unseen(self) -> Iterator[None]:
        """Errors that are raised in the context, in this thread, are not seen by the body."""
        self._of_thread.is_unseen = True
        try:
            yield
        finally:
            self._of_thread.is_unseen = False

    def _report(self, node_id: int) -> None:
        """The error of a node is raised."""
        self._reported.add(node_id)
        if node_id not in self.seen and not getattr(self._of_thread, "is_unseen", False):
            self.seen.add(node_id)
            self.num_seen += 1

    def has_failed(self, node_id: int) -> bool:
        """Whether a node has failed, or cannot run because another one has, with an error that the body has seen.

        A text that contains an unusable value has failed only if the graph cannot compute it.
        """
        if node_id in self.seen:
            return True
        node = self._nodes.outer[node_id]
        needed = [node_id]
        if isinstance(node, Text):
            needed += self._nodes.needs_of([part.node_id for part in node.parts if isinstance(part, Ref)])
        for each in needed:
            outcome = self._driver.outcome(each)
            if isinstance(outcome, RtlangError) and self._root(each, outcome)[0] in self.seen:
                return True
        return False

    def note_handled(self, node_id: int) -> None:
        """Text of this node that does not parse is no error of the run, because the program has handled it."""
        self._handled.add(node_id)

    def root_error(self, node_id: int, error: RtlangError) -> RtlangError:
        """The root cause of a node's `error`."""
        return self._located(*self._root(node_id, error))

    def parse_error(self, node_id: int, error: ValueParseError) -> RtlangError:
        """The error of parsing a node's text, with its place."""
        return self._located(node_id, error)

    def run_error(self, error: RtlangError) -> RtlangError:
        """The error that ended the run, with the place of the generation that it names, or else of the first unfinished one."""
        if isinstance(error, GraphError):
            place = None if error.node_id is None else self._shown_at(error.node_id)
        elif isinstance(error, _RUN_ERRORS):
            outcome = self._driver.outcome
            place = next((each for each in self._nodes.types if outcome(each) is error or outcome(each) is None), None)
        else:
            place = None
        return error if place is None else self._located(place, error)

    def first_error(self) -> RtlangError | None:
        """The first error of a node, or of parsing its text, that the body has not seen."""
        for node_id in self._run_ids():
            node = self._nodes.node(node_id)
            if isinstance(node, Text) or node_id in self.dropped:
                continue
            outcome = self._driver.outcome(node_id)
            if isinstance(node, Apply) and not isinstance(outcome, ApplyError):  # it ends without an event
                continue
            if isinstance(outcome, RtlangError):
                root_id, error = self._root(node_id, outcome)
                if root_id not in self._reported and root_id not in _decided_without(
                    self._nodes.outer, self._driver.outcome
                ):
                    return self._located(root_id, error)
            elif outcome is not None and isinstance(node, (Generate, Select)) and not self._is_handled(node_id):
                for choice in range(len(outcome.completions)):
                    value = self.read(node_id, choice)
                    if isinstance(value, RtlangError):
                        return self._located(node_id, value)
        return None

    def _shown_at(self, node_id: int) -> int | None:
        """The generation that a node is, or the first one that continues it."""
        for each in self._nodes.locations:
            at: int | None = each
            while at is not None and at > node_id:
                at = parent_of(self._nodes.outer[at])
            if at == node_id:
                return each
        return None

    def _run_ids(self) -> list[int]:
        """The nodes outside of blocks, and the nodes of the blocks that ran, by the ids under which they did, in order."""
        outer = self._nodes.outer
        if not self._nodes.inner:
            return list(outer)
        inside = [each for each in self._driver.outcome_ids if each not in outer]
        return sorted([*outer, *inside])

    def _is_handled(self, node_id: int) -> bool:
        """Whether the program knows that the text of a node does not parse as its type."""
        return node_id in self._reported or self._nodes.written_id(node_id) in self._handled

    def _root(self, node_id: int, error: RtlangError) -> tuple[int, RtlangError]:
        """The root cause of a node's error, and where it shows: the failed generation, or the one that continues the failed text."""
        seen, located = {node_id}, node_id
        while isinstance(error, DependencyError):
            cause = self._driver.outcome(error.node_id) if error.node_id not in seen else None
            if not isinstance(cause, RtlangError):
                return located, rebuild(error.cause_code, error.cause_message)
            seen.add(error.node_id)
            if self._nodes.written_id(error.node_id) in self._nodes.locations:
                located = error.node_id
            error = cause
        return located, error

    def _located(self, node_id: int, error: RtlangError) -> RtlangError:
        """A copy of an error, without its traceback, whose message names the generation and the line that recorded it."""
        location = self._nodes.locations.get(self._nodes.written_id(node_id))
        if location is None:
            return rebuilt(error, error.message)
        relation = "unfinished: " if isinstance(error, _RUN_ERRORS) else ""
        is_generation = isinstance(self._nodes.node(node_id), (Generate, Select)) or self._nodes.is_checked(node_id)
        noun = "generation" if is_generation else "value"
        return at_generation(
            error, self._nodes.shown_name(node_id), location, relation + noun, self._nodes.path_at(node_id)
        )


def _decided_without(nodes: Mapping[int, Node], outcome: Callable[[int], object]) -> set[int]:
    """Ids of the nodes that only candidates of decisions need, where every such decision has a winner. Their failures are not reported.

    The rating of a candidate (`by`) is not included: its failure is a mistake of the program.

    Args:
        nodes: by id; a node depends on nodes with smaller ids only.
        outcome: of a node; a NodeFinished if it succeeded.
    """
    users: dict[int, list[int]] = {}  # without decisions that were made
    found: set[int] = set()
    candidates: set[int] = set()
    for node_id in sorted(nodes, reverse=True):
        node = nodes[node_id]
        if isinstance(node, Text) and node_id not in users:  # the end of a message, after which nothing is generated
            continue
        if node_id in users and all(user in found for user in users[node_id]):
            found.add(node_id)
        needed = dependencies(node)
        if isinstance(node, Decide) and isinstance(outcome(node_id), NodeFinished):
            candidates.update(operand.node_id for operand in node.of if isinstance(operand, Ref))
            for each in needed:
                users.setdefault(each, [])
            continue
        if node_id in candidates:
            candidates |= needed
        for each in needed:
            users.setdefault(each, []).append(node_id)
    return found & candidates
