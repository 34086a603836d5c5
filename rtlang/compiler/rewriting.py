"""Changes the nodes that nodes refer to, in blocks too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from rtlang.contract.graph.frozen_copies import changed
from rtlang.contract.request_graph import (
    Apply,
    Block,
    Call,
    Decide,
    Node,
    Ref,
    Repeat,
    Switch,
    Text,
    dependencies,
    parent_of,
)

_Item = TypeVar("_Item")


def renamed(node: Node, aliases: Mapping[int, int]) -> Node:
    """The node with every reference to a key of `aliases` turned into one to its value; the same node if there is none."""
    if isinstance(node, (Switch, Repeat)):
        return _renamed_control(node, aliases)
    values: dict[str, Any] = {}
    parent = parent_of(node)
    if parent is not None and parent in aliases:
        values["parent"] = aliases[parent]
    if aliases.keys() & dependencies(node):
        match node:
            case Text():
                values["parts"] = _items(node.parts, aliases)
            case Apply() | Call():
                values["args"] = _items(node.args, aliases)
            case Decide():
                values["of"] = _items(node.of, aliases)
                values["by"] = None if node.by is None else _items(node.by, aliases)
    return changed(node, **values) if values else node


def with_blocks(node: Switch | Repeat, change: Callable[[Block], Block]) -> Switch | Repeat:
    """The control node with changed blocks."""
    if isinstance(node, Repeat):
        return changed(node, body=change(node.body))
    cases = tuple((key, change(block)) for key, block in node.cases)
    return changed(node, cases=cases, default=None if node.default is None else change(node.default))


def renamed_block(block: Block, aliases: Mapping[int, int]) -> Block:
    """The block with renamed references of its nodes, its end and its value."""
    nodes = tuple(renamed(node, aliases) for node in block.nodes)
    end = block.end if block.end is None else aliases.get(block.end, block.end)
    return Block(nodes, end, _item(block.value, aliases))


def _renamed_control(node: Switch | Repeat, aliases: Mapping[int, int]) -> Node:
    parent = node.parent if node.parent is None else aliases.get(node.parent, node.parent)
    made = changed(with_blocks(node, lambda block: renamed_block(block, aliases)), parent=parent)
    if isinstance(made, Repeat):
        return changed(made, until=_item(made.until, aliases))
    return changed(made, on=_item(made.on, aliases))


def _items(items: Sequence[_Item], aliases: Mapping[int, int]) -> tuple[_Item, ...]:
    return tuple(_item(item, aliases) for item in items)


def _item(item: _Item, aliases: Mapping[int, int]) -> _Item:
    if isinstance(item, Ref) and item.node_id in aliases:
        return Ref(aliases[item.node_id], item.choice)  # type: ignore[return-value]
    return item
