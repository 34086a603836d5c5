"""Results of an earlier run of a graph, in messages: outcomes of ended nodes, and the tokens of unfinished generations.

`known` is an array of `event` messages without `t` and `s`, each the end of a node. `continue_from` is an array of maps: `n`, a node, and
`ids`, for each of its choices an array of token ids.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from rtlang.contract.errors import ProtocolError
from rtlang.contract.events import NodeFailed, NodeFinished
from rtlang.contract.runs.known import ContinueFrom, Known, KnownOutcome
from rtlang.protocol.event_codec import event_from_wire, event_to_wire
from rtlang.protocol.field_checks import MAX_ID, check_int, check_ints, check_list, optional


def continuation_to_wire(
    known: Known, continue_from: ContinueFrom, node_ids: Collection[int] | None = None
) -> dict[str, Any]:
    """The fields `known` and `continue_from` of a message, for some nodes or for all; without those that would be empty."""
    ends = []
    for node_id, outcome in known.items():
        if node_ids is None or node_id in node_ids:
            end = outcome.end
            event = end if isinstance(end, NodeFinished) else NodeFailed(0, node_id, None, end)
            wire = event_to_wire(1, event)
            ends.append({name: value for name, value in wire.items() if name not in ("t", "s")} | {"n": node_id})
    given = [
        {"n": node_id, "ids": [list(ids) for ids in choices]}
        for node_id, choices in continue_from.items()
        if node_ids is None or node_id in node_ids
    ]
    return ({"known": ends} if ends else {}) | ({"continue_from": given} if given else {})


def known_from_wire(message: Mapping[str, Any]) -> dict[int, KnownOutcome]:
    """The outcomes in a message; none if the field is missing.

    Raises:
        ProtocolError: the field is malformed; names it.
    """
    known = {}
    for item in optional(check_list, message, "known") or ():
        if not isinstance(item, dict) or item.get("e") not in ("end", "error"):
            raise ProtocolError("known contains something other than the end of a node", param="known")
        event = event_from_wire(item | {"t": "event"}, 0)
        if isinstance(event, NodeFinished):
            known[event.node_id] = KnownOutcome(event, is_replayed=event.is_replayed)
        elif isinstance(event, NodeFailed):
            known[event.node_id] = KnownOutcome(event.error)
    return known


def continue_from_from_wire(message: Mapping[str, Any]) -> dict[int, list[tuple[int, ...]]]:
    """The tokens of unfinished generations in a message; none if the field is missing.

    Raises:
        ProtocolError: the field is malformed; names it.
    """
    found = {}
    for item in optional(check_list, message, "continue_from") or ():
        if not isinstance(item, dict):
            raise ProtocolError("continue_from contains something other than maps", param="continue_from")
        node_id = check_int(item, "n", 0, MAX_ID)
        found[node_id] = [check_ints({"ids": ids}, "ids") for ids in check_list(item, "ids")]
    return found
