"""The state of a graph's nodes: what they are, how they ended, and the actions that wait for them.

A *slot* is something to wait for: `(node, choice)` is the value of a completion (choice 0 of a node with one value), `(node, None)` the end
of the node. An *action* is a function with the slots that it waits for; most actions start a node. Everything that happens to a node is one
method of `NodeTable`, so that the rules are in this file; executors call it, and `WorkSlices` runs the actions.

The order of release and drain:

1. A slot is filled once: `(node, choice)` when the value is known or lost, all slots of a node when it ends. A filled slot is not waited
   for, so an action whose slots are all filled is ready at once.
2. The end of a node fills `(node, None)` first, and then `(node, 0)`, `(node, 1)`, and so on.
3. An action is ready when the last of its slots is filled. Actions that one slot makes ready are ready in the order in which they were
   added, which is the order of nodes.
4. Ready actions run first in, first out. In a run with a budget the actions that start generations come after all other ready actions,
   first in, first out as well: these generations share what is left, so all of them must be known before the first one starts.
5. A drain runs ready actions until there are none. What an action releases goes to the end of the queue and never runs inside the action.
   An end outside a drain (an output of the engine, the value of a host call) drains before it returns.
6. A drain stops when the turn of the engine thread is full, and goes on in a later turn. Until then no other drain runs anything.
7. Nodes that arrive over several turns are drained when all nodes of their submission are there.
8. When nothing is ready and nothing arrives, a closed graph whose nodes have all ended is finished.

Rules 1 to 4 are in this file, 5 to 8 in `work_slices.py` and `GraphExecution`.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rtlang.contract.errors import DependencyError, RequestError, RtlangError
from rtlang.contract.graph.value_size import Measure, Measured, measure, text_measure
from rtlang.contract.node_work import NO_INPUTS, NodeWork, node_work
from rtlang.contract.request_graph import (
    Apply,
    Arg,
    Const,
    Generate,
    Node,
    Operand,
    Ref,
    Select,
    Text,
    all_nodes,
    choices_of,
    name_of,
    num_requests,
)
from rtlang.runtime.nodes.slots import Slot, cancellation
from rtlang.runtime.nodes.uses import Uses
from rtlang.runtime.texts.token_sequence import TokenSequence


@dataclass(slots=True)
class _Waiting:
    """An action that runs once all slots that it waits for are filled. `node` is the node that it starts."""

    run: Callable[[], None]
    node: Node | None = None
    num_missing: int = 0


class Waits:
    """The waiting and ready actions of one graph.

    Args:
        generations_last: actions that start generations come after all others that are ready.

    Attributes:
        num_ready_requests: requests of the generations that come last and are ready.
    """

    def __init__(self, *, generations_last: bool = False) -> None:
        self.num_ready_requests = 0
        self._generations_last = generations_last
        self._ready: deque[_Waiting] = deque()
        self._generations: deque[_Waiting] = deque()  # ready, after all of `_ready`
        self._by_slot: dict[Slot, list[_Waiting]] = {}

    def add(self, missing: Iterable[Slot], run: Callable[[], None], node: Node | None = None) -> None:
        """Add an action that waits for the slots `missing`, each given once."""
        waiting = _Waiting(run, node)
        for slot in missing:
            waiting.num_missing += 1
            self._by_slot.setdefault(slot, []).append(waiting)
        if not waiting.num_missing:
            self._note_ready(waiting)

    def release(self, slot: Slot) -> None:
        """A slot was filled."""
        for waiting in self._by_slot.pop(slot, ()):
            waiting.num_missing -= 1
            if waiting.num_missing == 0:
                self._note_ready(waiting)

    def _note_ready(self, waiting: _Waiting) -> None:
        node = waiting.node
        if self._generations_last and isinstance(node, Generate):
            self._generations.append(waiting)
            self.num_ready_requests += num_requests(node)
        else:
            self._ready.append(waiting)

    @property
    def is_ready(self) -> bool:
        """Whether an action is ready."""
        return bool(self._ready or self._generations)

    @property
    def next_node(self) -> Node | None:
        """The node that the next ready action starts, if it starts one; there must be a ready action."""
        return (self._ready or self._generations)[0].node

    def take(self) -> Callable[[], None]:
        """Remove and return the next ready action; there must be one."""
        if self._ready:
            return self._ready.popleft().run
        waiting = self._generations.popleft()
        assert isinstance(waiting.node, Generate)
        self.num_ready_requests -= num_requests(waiting.node)
        return waiting.run

    def check(self, is_open: Callable[[Slot], bool]) -> None:
        """Assert the invariants. `is_open`: whether a slot is not filled."""
        assert all(self._by_slot.values()), "a slot without a waiting action is forgotten"
        counts = Counter(id(each) for waiting in self._by_slot.values() for each in waiting)
        for slot, waiting in self._by_slot.items():
            assert is_open(slot), f"actions wait for the slot {slot}, which is filled"
            for each in waiting:
                assert each.num_missing == counts[id(each)], f"an action waits for {each.num_missing} slots"
        assert all(each.num_missing == 0 for each in (*self._ready, *self._generations))
        ready = [each.node for each in self._generations if isinstance(each.node, Generate)]
        assert self.num_ready_requests == sum(map(num_requests, ready))
        assert self._generations_last or not self._generations


class NodeTable:
    """The nodes of one graph, from `add` over `begin` to `end`. Used on the engine thread only.

    Args:
        inputs: the text of each input.
        generations_last: see `Waits`.

    Attributes:
        is_over: whether the graph has ended; nothing happens to a node then.
        nodes: all nodes that were added, by id.
        begun: nodes that have started.
        ended: nodes that have ended, in any way.
        cancelled: nodes that ended because a decision was made without them, or because they depend on such a node.
        sequences: the sequence after each node that ended with one.
        values: texts and values by node and choice. A value may be known before its node ends.
        measures: the sizes of values other than texts, as far as they are known.
        errors: the errors of failed and cancelled nodes.
        lost_choices: completions that a decision ended while others of their node went on.
        uses: which nodes that have not ended use which.
        waits: the actions.
        work_ahead: the estimated work of the nodes that have not begun.
        block_ends: by control node that has ended, the node whose sequence it has; None for an empty sequence.
        truncates: whether a generation sees only the end of its sequence, so that sequences may be longer than the model takes.
    """

    def __init__(self, inputs: Mapping[str, str] = NO_INPUTS, *, generations_last: bool = False) -> None:
        self.inputs, self.is_over = inputs, False
        self.nodes: dict[int, Node] = {}
        self.begun, self.ended, self.cancelled = set[int](), set[int](), set[int]()
        self.sequences: dict[int, TokenSequence] = {}
        self.values: dict[tuple[int, int], Any] = {}
        self.measures: dict[tuple[int, int], Measure] = {}
        self.errors: dict[int, RtlangError] = {}
        self.block_ends: dict[int, int | None] = {}
        self.lost_choices: set[tuple[int, int]] = set()
        self.uses, self.waits = Uses(), Waits(generations_last=generations_last)
        self.work_ahead, self.truncates = NodeWork(), False
        self._works: dict[int, NodeWork] = {}  # of nodes that have not begun

    # -- transitions

    def add(self, node: Node) -> None:
        """A node was added, after the nodes that it refers to."""
        self.nodes[node.node_id] = node
        self.uses.add(node)
        self.truncates = self.truncates or any(map(_truncates, all_nodes((node,))))
        work = node_work(node, self.inputs)
        if any(work):
            self._works[node.node_id] = work
            self.work_ahead = self.work_ahead.plus(work)

    def begin(self, node_id: int) -> None:
        """A node starts."""
        self.begun.add(node_id)
        self._forget_work(node_id)

    def know(self, node_id: int, choice: int, value: Any) -> None:
        """A value of a node is known before the node ends. A `Measured` value is stored with its size."""
        self._store(node_id, choice, value)
        self.waits.release((node_id, choice))

    def lose(self, node_id: int, choice: int) -> None:
        """A decision ended one completion of a node."""
        self.lost_choices.add((node_id, choice))
        self.waits.release((node_id, choice))

    def cancel(self, node_id: int) -> None:
        """A decision was made without a node: nothing starts it any more. `end` follows and releases what waits for it."""
        self.cancelled.add(node_id)
        self.errors[node_id] = cancellation()
        self.ended.add(node_id)
        self.uses.end(node_id)

    def end(
        self,
        node: Node,
        sequence: TokenSequence | None = None,
        values: Sequence[Any] = (),
        error: RtlangError | None = None,
        *,
        is_cancelled: bool = False,
    ) -> None:
        """A node has ended.

        Args:
            sequence: the sequence after it; None if it has none.
            values: its value, or the text of each completion. A `Measured` value is stored with its size.
            error: why it failed or was cancelled.
            is_cancelled: it ended because of a decision.
        """
        node_id = node.node_id
        self.ended.add(node_id)
        self.uses.end(node_id)
        self._forget_work(node_id)
        if sequence is not None:
            self.sequences[node_id] = sequence
        for choice, value in enumerate(values):
            self._store(node_id, choice, value)
        if error is not None:
            self.errors[node_id] = error
        if is_cancelled:
            self.cancelled.add(node_id)
        self.waits.release((node_id, None))
        for choice in range(choices_of(node)):
            self.waits.release((node_id, choice))

    def _store(self, node_id: int, choice: int, value: Any) -> None:
        if isinstance(value, Measured):
            self.values[node_id, choice], self.measures[node_id, choice] = value
        else:
            self.values[node_id, choice] = value

    def _forget_work(self, node_id: int) -> None:
        work = self._works.pop(node_id, None)
        if work is not None:
            self.work_ahead = self.work_ahead.plus(work, -1.0) if self._works else NodeWork()

    # -- waits

    def wait(self, slots: Iterable[Slot], run: Callable[[], None], node: Node | None = None) -> None:
        """Run an action once all slots are filled. `node` is the node that it starts."""
        self.waits.add(self.open_slots(slots), run, node)

    def open_slots(self, slots: Iterable[Slot]) -> list[Slot]:
        """The slots that are not filled."""
        return [slot for slot in slots if self._is_open(slot)]

    def _is_open(self, slot: Slot) -> bool:
        return not (slot[0] in self.ended or slot in self.values or slot in self.lost_choices)

    def cause_of(self, slots: Iterable[Slot]) -> DependencyError | None:
        """The error of a node that waited for these slots, if one of them failed or was cancelled: that of the first node among them."""
        for node_id, choice in sorted(slots, key=lambda slot: (slot[0], slot[1] or 0)):
            error = self.errors.get(node_id)
            if isinstance(error, DependencyError):
                return DependencyError(error.node_id, error.cause_code, error.cause_message)
            if error is None and choice is not None and (node_id, choice) in self.lost_choices:
                error = cancellation()
            if error is not None:
                return DependencyError(node_id, error.code, error.message)
        return None

    @staticmethod
    def is_silent(node: Node) -> bool:
        """Whether a node ends without an event if a decision was made without it, or without a node that it depends on."""
        return isinstance(node, (Text, Apply))

    # -- reading

    def sequence(self, node_id: int | None) -> TokenSequence:
        """The sequence after a node that has ended; an empty one for None."""
        return TokenSequence() if node_id is None else self.sequences[node_id]

    def value(self, operand: Operand) -> Any:
        """The value of an operand whose slot is filled."""
        match operand:
            case Const():
                return operand.value
            case Arg():
                return self.inputs[operand.name]
            case Ref():
                return self.values[operand.node_id, operand.choice]

    def measured(self, operand: Operand) -> Measured:
        """The value of an operand whose slot is filled, with its size. A value that was stored without it is walked once.

        Raises:
            RequestError: it is not plain data of allowed size.
        """
        if isinstance(operand, Const):
            return operand.measured()
        value = self.value(operand)
        if isinstance(value, str):
            return Measured(value, text_measure(value))
        assert isinstance(operand, Ref)
        slot = (operand.node_id, operand.choice)
        found = self.measures.get(slot)
        if found is None:
            try:
                found = self.measures[slot] = measure(value)
            except (ValueError, TypeError) as error:  # the outcome of an earlier run
                raise RequestError(f"node {operand.node_id} has no plain value: {error}") from None
        return Measured(value, found)

    @property
    def num_items(self) -> int:
        """Characters and items of the values other than texts whose sizes are known. A value that several nodes share counts for each."""
        measures = list(self.measures.values())  # a copy, since other threads measure values of texts
        return sum(each.size for each in measures)

    @property
    def has_losses(self) -> bool:
        """Whether a node has failed, or was cancelled in whole or in part: `cause_of` finds nothing before that."""
        return bool(self.errors or self.lost_choices)

    @property
    def is_done(self) -> bool:
        """Whether all nodes have ended."""
        return len(self.nodes) == len(self.ended)

    @property
    def failed(self) -> set[int]:
        """Nodes that failed and were not cancelled."""
        return self.errors.keys() - self.cancelled

    def named_values(self) -> dict[str, Any]:
        """The values of the nodes that did not fail, by name."""
        failed = self.failed
        return named_values({key: node for key, node in self.nodes.items() if key not in failed}, self.values)

    def check(self) -> None:
        """Assert the invariants, which hold between any two transitions, `cancel` and the `end` that follows it taken together."""
        ids = self.nodes.keys()
        assert self.begun <= ids
        assert self.ended <= ids
        assert self.uses.running.keys() == ids - self.ended, "exactly the nodes that have not ended have uses"
        assert self.sequences.keys() <= self.ended, "a sequence is known when its node ends"
        assert self.errors.keys() <= self.ended, "a failed node has ended"
        assert self.cancelled <= self.errors.keys(), "a cancelled node has the error of cancellations"
        for node_id, choice in (*self.values, *self.lost_choices):
            assert 0 <= choice < choices_of(self.nodes[node_id]), (node_id, choice)
        assert not self._works.keys() & (self.begun | self.ended), "the work of a node is ahead until it begins or ends"
        for index, total in enumerate(self.work_ahead):
            assert math.isclose(total, sum(work[index] for work in self._works.values()), abs_tol=1e-6)
        self.waits.check(self._is_open)


def _truncates(node: Node) -> bool:
    return isinstance(node, Generate) and node.params.truncate_prompt_tokens is not None


def named_values(nodes: Mapping[int, Node], found: Mapping[tuple[int, int], Any]) -> dict[str, Any]:
    """The text or value of each name, or a list of them in the order of nodes if n > 1 or several nodes share the name.

    Args:
        found: texts and values by node and choice. Cancelled nodes are missing.
    """
    values: dict[str, Any] = {}
    lists: set[str] = set()
    for node_id, node in sorted(nodes.items()):
        name = name_of(node)
        if name is None:
            continue
        num_choices = choices_of(node)
        default = "" if isinstance(node, (Generate, Select)) else None
        own = [found.get((node_id, choice), default) for choice in range(num_choices)]
        if name in lists:
            values[name].extend(own)
        elif name in values or num_choices > 1:
            values[name] = [*([values[name]] if name in values else []), *own]
            lists.add(name)
        else:
            values[name] = own[0]
    return values
