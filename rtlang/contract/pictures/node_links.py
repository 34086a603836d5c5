"""What lies before a node of a recorded run, and which nodes depend on which, by the paths of nodes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from rtlang.contract.graph.nodes import (
    Node,
    Part,
    Ref,
    Repeat,
    Switch,
    Text,
    all_nodes,
    blocks_of,
    dependencies,
    last_id,
    parent_of,
)
from rtlang.contract.pictures.run_record import RunRecord


class NodeLinks:
    """The nodes of a run that have paths, and what connects them; made when it is asked for.

    Ids are those under which nodes ran: turns of loops have ids of their own.
    """

    def __init__(self, record: RunRecord) -> None:
        self._record = record
        self._outer = {node.node_id: node for node in record.recorded}
        self._written = {run_id: node_id for node_id, ran in record.copies.items() for run_id in ran}

    @cached_property
    def ids(self) -> dict[str, int]:
        """The nodes by their paths."""
        return {path: node_id for node_id, path in sorted(self._record.node_paths.items())}

    @cached_property
    def _inner(self) -> dict[int, Node]:
        return {node.node_id: node for node in all_nodes(self._record.recorded) if node.node_id not in self._outer}

    def node(self, node_id: int) -> Node:
        """A node by the id under which it ran."""
        found = self._outer.get(node_id)
        return self._inner[self._written.get(node_id, node_id)] if found is None else found

    def control_of(self, node_id: int) -> int | None:
        """The outermost branch or loop around a node; None if there is none."""
        if node_id in self._outer:
            return None
        return next(
            (
                each.node_id
                for each in self._outer.values()
                if blocks_of(each) and each.node_id < node_id <= last_id(each)
            ),
            None,
        )

    def parts_before(self, node_id: int) -> list[Part]:
        """The parts of the sequence that a node continues; empty for a node that continues none."""
        control = self.control_of(node_id)
        if control is None:
            return self._parts_to(parent_of(self._outer[node_id]))
        added = list(self._record.paths.get(control, ()))
        own = next((at for at, part in enumerate(added) if isinstance(part, Ref) and part.node_id == node_id), 0)
        return self._parts_to(parent_of(self._outer[control])) + added[:own]

    def _parts_to(self, node_id: int | None) -> list[Part]:
        found: list[tuple[Part, ...]] = []
        while node_id is not None:
            node = self._outer[node_id]
            if isinstance(node, Text):
                found.append(node.parts)
            elif isinstance(node, (Switch, Repeat)):
                found.append(self._record.paths.get(node_id, ()))
            else:
                found.append((Ref(node_id),))
            node_id = parent_of(node)
        return [part for parts in reversed(found) for part in parts]

    def parents_of(self, node_id: int) -> tuple[int, ...]:
        """The nodes with paths on which a node builds directly: the one before it in its sequence, and values in the text between."""
        found: dict[int, None] = {}
        todo, seen = list(self._needs(node_id)), {node_id}
        while todo:
            each = todo.pop()
            if each in seen:
                continue
            seen.add(each)
            if each in self._record.node_paths:
                found[each] = None
            elif each in self._outer or self._written.get(each, each) in self._inner:
                todo.extend(self._needs(each))
        return tuple(sorted(found))

    def dependants_of(self, node_id: int) -> tuple[int, ...]:
        """The nodes with paths that build on a node directly."""
        return self._dependants.get(node_id, ())

    @cached_property
    def _dependants(self) -> dict[int, tuple[int, ...]]:
        found: dict[int, list[int]] = {}
        for node_id in sorted(self._record.node_paths):
            for parent in self.parents_of(node_id):
                found.setdefault(parent, []).append(node_id)
        return {node_id: tuple(users) for node_id, users in found.items()}

    def _needs(self, node_id: int) -> Iterator[int]:
        """The ids of the nodes that a node needs; of a turn of a loop, those of the same turn."""
        node = self.node(node_id)
        shift = node_id - node.node_id
        control = self.control_of(node_id)
        for each in sorted(dependencies(node)):
            if each == control:  # the sequence at entry
                parent = parent_of(self._outer[each])
                if parent is not None:
                    yield parent
            else:
                yield each if each in self._outer else each + shift
        if control is None and isinstance(node, (Switch, Repeat)):
            for inner in self._written:
                if node_id < inner <= last_id(node):
                    yield inner
