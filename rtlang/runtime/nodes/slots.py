"""Slots: the values and ends of nodes that other nodes wait for."""

from __future__ import annotations

from collections.abc import Iterable

from rtlang.contract.errors import AbortedError
from rtlang.contract.request_graph import (
    Node,
    Operand,
    Ref,
    operands_of,
    parent_of,
)

Slot = tuple[int, int | None]
"""The value of a choice of a node, or (with None) the end of the node with all its choices."""

CANCELLED = "it was cancelled, because a decision was made without it"
"""The message of `cancellation`."""


def operand_slots(operands: Iterable[Operand | None]) -> set[Slot]:
    """The choices that operands refer to."""
    return {(each.node_id, each.choice) for each in operands if isinstance(each, Ref)}


def slots_of(node: Node) -> set[Slot]:
    """The slots that a node waits for before it starts: the end of its parent, and its operands."""
    slots = operand_slots(operands_of(node))
    parent = parent_of(node)
    if parent is not None:
        slots.add((parent, None))
    return slots


def cancellation() -> AbortedError:
    """The error of a node that a decision ended."""
    return AbortedError(CANCELLED)
