"""Slots that nodes wait for, and errors of nodes whose work a decision has ended; `uses.py` finds that work."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from rtlang.contract.errors import AbortedError, DependencyError, RtlangError
from rtlang.contract.graph import (
    Node,
    Operand,
    Ref,
    operands_of,
    parent_of,
)

Slot = tuple[int, int | None]
"""A choice of a node, or (with None) the end of the node with all its choices."""

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


def cause_of(
    slots: Iterable[Slot], errors: Mapping[int, RtlangError], lost_choices: Collection[tuple[int, int]]
) -> DependencyError | None:
    """The error of a node that waited for these slots, if one of them failed or was cancelled."""
    for node_id, choice in sorted(slots, key=lambda slot: (slot[0], slot[1] or 0)):
        error = errors.get(node_id)
        if isinstance(error, DependencyError):
            return DependencyError(error.node_id, error.cause_code, error.cause_message)
        if error is None and choice is not None and (node_id, choice) in lost_choices:
            error = cancellation()
        if error is not None:
            return DependencyError(node_id, error.code, error.message)
    return None
