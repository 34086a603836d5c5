"""Tracks which nodes of a graph use which, as nodes are added and end, so that a decision examines only its own neighborhood."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from rtlang.contract.request_graph import (
    Apply,
    Node,
    Repeat,
    Switch,
    Text,
    all_nodes,
    blocks_of,
    choices_of,
)
from rtlang.runtime.nodes.slots import Slot, operand_slots, slots_of

MAX_SEARCHED = 200_000
"""Nodes that the searches of one graph may look at, about 4 us each; later searches end at `LEAST_SEARCHED`."""
LEAST_SEARCHED = 1_000


class Uses:
    """The uses of the nodes that have not ended. Used on the engine thread only.

    Attributes:
        running: the nodes that have not ended, by id.
        num_searched: nodes that all searches have looked at.
    """

    def __init__(self) -> None:
        self.running: dict[int, Node] = {}
        self.num_searched = 0
        self._slots: dict[int, set[Slot]] = {}
        self._users: dict[int, set[int]] = {}  # by the node that they use
        self._of_blocks: dict[int, set[Slot]] = {}  # of control nodes that are on their way

    def prepared(self, nodes: Iterable[Node | None]) -> Iterator[Node | None]:
        """The same nodes, with None before a control node for each part of the work to find out what its blocks use."""
        for node in nodes:
            if isinstance(node, (Switch, Repeat)):
                slots = self._of_blocks[node.node_id] = set()
                for each in all_nodes([node]):
                    slots |= _own_uses(each)
                    yield None
            yield node

    def add(self, node: Node) -> None:
        """A node has been added."""
        node_id = node.node_id
        slots = self._of_blocks.pop(node_id, None)
        if slots is None:
            slots = set[Slot]().union(*map(_own_uses, all_nodes([node]))) if blocks_of(node) else _own_uses(node)
        slots = {slot for slot in slots if slot[0] != node_id}
        self.running[node_id], self._slots[node_id] = node, slots
        for used, _ in slots:
            self._users.setdefault(used, set()).add(node_id)

    def add_parts(self, control_id: int, node_ids: Iterable[int]) -> None:
        """A control node needs the nodes of the block that it has started."""
        for node_id in node_ids:
            self._slots[control_id].add((node_id, None))
            self._users.setdefault(node_id, set()).add(control_id)

    def end(self, node_id: int) -> None:
        """A node has ended. Idempotent."""
        if self.running.pop(node_id, None) is not None:
            for used, _ in self._slots.pop(node_id):
                users = self._users.get(used)
                if users is not None:
                    users.discard(node_id)

    def used_by(self, nodes: Iterable[Node]) -> set[int]:
        """The nodes that some of the nodes that have not ended use."""
        return {used for node in nodes for used, _ in self._slots.get(node.node_id, ())}

    def needless(
        self,
        lost: Iterable[Slot],
        is_output: Callable[[int], bool],
        decision: int | None = None,
        kept_operands: Collection[Slot] = (),
    ) -> tuple[set[int], set[tuple[int, int]]]:
        """The running nodes, and single choices of them, that only the lost operands of a decision needed: none if that takes too long to
        find out.

        Args:
            lost: the operands that did not win.
            is_output: whether a node is needed in any case.
            decision: the decision, if it has not ended; it needs `kept_operands` only.
        """
        most = max(LEAST_SEARCHED, MAX_SEARCHED - self.num_searched)
        search = _Search(self, is_output, decision, kept_operands, most)
        try:
            return search.run(lost)
        except _TooLong:
            return set(), set()
        finally:
            self.num_searched += search.num_seen


class _TooLong(Exception):
    """A search has looked at too many nodes."""


class _Search:
    def __init__(
        self,
        uses: Uses,
        is_output: Callable[[int], bool],
        decision: int | None,
        kept_operands: Collection[Slot],
        most: int,
    ) -> None:
        self._most = most
        self._running, self._all_slots, self._all_users = uses.running, uses._slots, uses._users
        self._is_output, self._decision, self._kept_operands = is_output, decision, kept_operands
        self._operand_ids = {node_id for node_id, _ in kept_operands}
        self._candidates: set[int] = set()
        self._is_needed: dict[int, bool] = {}

    @property
    def num_seen(self) -> int:
        """The nodes that were looked at."""
        return len(self._candidates) + len(self._is_needed)

    def run(self, lost: Iterable[Slot]) -> tuple[set[int], set[tuple[int, int]]]:
        lost_choices = self._find_candidates(lost)
        kept, kept_choices = self._kept(lost_choices)
        ended = self._candidates - kept
        single = {
            slot
            for slot in lost_choices
            if slot[0] in kept and slot not in kept_choices and (slot[0], None) not in kept_choices
        }
        self._end_behind(ended, single)
        return ended, single

    def _slots(self, node_id: int) -> Collection[Slot]:
        return self._kept_operands if node_id == self._decision else self._all_slots[node_id]

    def _users(self, node_id: int) -> Iterator[int]:
        """The users of a node that are no candidates."""
        for user in self._all_users.get(node_id, ()):
            if user in self._candidates or (user == self._decision and node_id not in self._operand_ids):
                continue
            if user in self._running:
                yield user

    def _find_candidates(self, lost: Iterable[Slot]) -> set[tuple[int, int]]:
        """Collect everything that the lost operands use. Returns the choices of it that they use."""
        found: set[tuple[int, int]] = set()
        pending = list(lost)
        while pending:
            node_id, choice = pending.pop()
            node = self._running.get(node_id)
            if node is None:
                continue
            found.update((node_id, each) for each in (range(choices_of(node)) if choice is None else (choice,)))
            if node_id not in self._candidates:
                self._candidates.add(node_id)
                self._check()
                pending.extend(self._slots(node_id))
        return found

    def _check(self) -> None:
        if self.num_seen > self._most:
            raise _TooLong

    def _kept(self, lost_choices: set[tuple[int, int]]) -> tuple[set[int], set[Slot]]:
        """The candidates that others need, and the slots of them."""
        needed: list[Slot] = []
        for node_id in self._candidates:
            choices = range(choices_of(self._running[node_id]))
            if self._is_output(node_id):
                needed.append((node_id, None))
            needed.extend((node_id, each) for each in choices if (node_id, each) not in lost_choices)
            for user in self._users(node_id):
                if self._needed(user):
                    used = [slot for slot in self._slots(user) if slot[0] == node_id]
                    needed += used
                    if len(choices) == 1 or (node_id, None) in used:  # all of it is needed
                        break
        kept: set[int] = set()
        kept_choices: set[Slot] = set()
        while needed:
            slot = needed.pop()
            node_id = slot[0]
            if node_id not in self._candidates or slot in kept_choices:
                continue
            kept_choices.add(slot)
            if node_id not in kept:
                kept.add(node_id)
                needed.extend(self._slots(node_id))
        return kept, kept_choices

    def _needed(self, start: int) -> bool:
        """Whether a node that is no candidate is needed: text and nameless values only if something behind them is."""
        known = self._is_needed.get(start)
        if known is not None:
            return known
        seen, pending = {start}, [start]
        while pending:
            node_id = pending.pop()
            if self._is_output(node_id) or _matters(self._running[node_id]) or self._is_needed.get(node_id):
                self._is_needed[start] = True
                return True
            following = [user for user in self._users(node_id) if user not in seen]
            seen.update(following)
            pending += following
            if len(seen) > self._most:
                raise _TooLong
        self._is_needed.update(dict.fromkeys(seen, False))
        self._check()
        return False

    def _end_behind(self, ended: set[int], single: set[tuple[int, int]]) -> None:
        """Add the text and the nameless values behind what ends, which nothing needs."""
        pending = [*ended, *(node_id for node_id, _ in single)]
        while pending:
            node_id = pending.pop()
            for user in self._users(node_id):
                if user in ended or self._needed(user):
                    continue
                if any(slot[0] in ended or slot in single for slot in self._slots(user)):
                    ended.add(user)
                    pending.append(user)


def _own_uses(node: Node) -> set[Slot]:
    """The nodes that a node uses, without those of its blocks."""
    operands = [block.value for block in blocks_of(node)]
    if isinstance(node, Repeat):
        operands.append(node.until)
    return slots_of(node) | operand_slots(operands)


def _matters(node: Node) -> bool:
    return not isinstance(node, Text) and not (isinstance(node, Apply) and node.name is None)
