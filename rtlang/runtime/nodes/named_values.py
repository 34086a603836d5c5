"""The values of a finished graph by the names of its nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rtlang.contract.graph import Generate, Node, Select, name_of


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
        num_choices = node.params.n if isinstance(node, Generate) else 1
        default = "" if isinstance(node, (Generate, Select)) else None
        own = [found.get((node_id, choice), default) for choice in range(num_choices)]
        if name in values or num_choices > 1:
            before = values.get(name, [])
            values[name] = [*(before if name in lists or name not in values else [before]), *own]
            lists.add(name)
        else:
            values[name] = own[0]
    return values
