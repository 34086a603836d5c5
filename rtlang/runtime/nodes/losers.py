"""Finds the work that a decision has made needless."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from rtlang.contract.errors import AbortedError, DependencyError, RtlangError
from rtlang.contract.graph import (
    Apply,
    Node,
    Operand,
    Ref,
    Repeat,
    Text,
    all_nodes,
    blocks_of,
    choices_of,
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


def needless(
    lost: Iterable[Slot],
    running: Mapping[int, Node],
    parts: Mapping[int, Collection[int]],
    outputs: Collection[int],
) -> tuple[set[int], set[tuple[int, int]]]:
    """The running nodes, and single choices of them, that only the lost operands of a decision needed.

    Args:
        lost: the operands that did not win.
        running: all nodes that have not ended, without the decision.
        parts: the nodes of the blocks that each running control node has started.
        outputs: nodes that are needed in any case.
    """
    uses = {node_id: _uses(node, parts.get(node_id, ())) for node_id, node in running.items()}
    lost_choices: set[tuple[int, int]] = set()
    candidates: set[int] = set()
    pending = list(lost)
    while pending:
        node_id, choice = pending.pop()
        if node_id not in running:
            continue
        choices = range(choices_of(running[node_id])) if choice is None else (choice,)
        lost_choices.update((node_id, each) for each in choices)
        if node_id not in candidates:
            candidates.add(node_id)
            pending.extend(uses[node_id])
    kept: set[int] = set()
    kept_choices: set[Slot] = set()
    needed: list[Slot] = [
        (node_id, None)
        for node_id, node in running.items()
        if node_id in outputs or (node_id not in candidates and _matters(node))
    ]
    for node_id in candidates:  # choices that nobody voted on stay
        others = range(choices_of(running[node_id]))
        needed.extend((node_id, each) for each in others if (node_id, each) not in lost_choices)
    while needed:
        slot = needed.pop()
        node_id, choice = slot
        if node_id not in running or slot in kept_choices:
            continue
        kept_choices.add(slot)
        if node_id not in kept:
            kept.add(node_id)
            needed.extend(uses[node_id])
    ended = candidates - kept
    single = {
        slot
        for slot in lost_choices
        if slot[0] in kept and slot not in kept_choices and (slot[0], None) not in kept_choices
    }
    while True:  # text and nameless values behind them, which nothing needs
        behind = {
            node_id
            for node_id in running.keys() - kept - ended
            if any(slot[0] in ended or slot in single for slot in uses[node_id])
        }
        if not behind:
            break
        ended |= behind
    return ended, single


def _uses(node: Node, parts: Collection[int]) -> set[Slot]:
    slots = slots_of(node) | {(part, None) for part in parts}
    for each in all_nodes([node]):  # what the blocks refer to outside of them
        slots |= slots_of(each)
        operands = [block.value for block in blocks_of(each)]
        if isinstance(each, Repeat):
            operands.append(each.until)
        slots |= operand_slots(operands)
    return {slot for slot in slots if slot[0] != node.node_id}


def _matters(node: Node) -> bool:
    return not isinstance(node, Text) and not (isinstance(node, Apply) and node.name is None)


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
