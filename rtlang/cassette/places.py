"""Places of nodes in a run: what a journal knows them by, however the program records and submits them.

The place of a node is its path. Texts, pure functions, and nodes of graphs without paths have none: their places are their keys, digests of
their own content and of everything that they build on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgpack

from rtlang.contract.graph.node_paths import at_turn
from rtlang.contract.request_graph import Node, Repeat, Switch, blocks_of, nodes_to_plain, path_of
from rtlang.contract.runs.node_keys import Keys
from rtlang.protocol.plain_values import value_to_wire

KEY_MARK = "="
"""Begins the places that are keys."""

_LEFT_OUT = frozenset(("id", "marks", "path", "policy"))


@dataclass(frozen=True, slots=True)
class PlacedNode:
    """A node outside of blocks, as a journal keeps it.

    Attributes:
        place: see above.
        key: the digest of its content and of what it builds on.
        content: its plain form; places stand for the ids of other nodes.
    """

    place: str
    key: bytes
    content: dict[str, Any]

    @property
    def shown(self) -> str:
        """The node for messages."""
        kind = self.content["kind"]
        return f"a {kind}" if self.place.startswith(KEY_MARK) else f"{self.place!r}, a {kind}"


class Places:
    """The places of the nodes of one run, by the ids under which they run.

    Args:
        keys: makes the keys.
    """

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._places: dict[int, str] = {}
        self._key_of: dict[int, bytes] = {}

    def add(self, nodes: Sequence[Node]) -> list[tuple[Node, PlacedNode]]:
        """Place nodes and the nodes of their blocks, which follow those added before. A node that builds on an unknown one has no place."""
        found = []
        for node in nodes:
            added = self._keys.add([node])
            paths = dict(paths_of(node))
            for node_id, own_key in added.items():
                path = paths.get(node_id)
                self._places[node_id] = f"{KEY_MARK}{own_key.hex()}" if path is None else path
            self._key_of.update(added)
            key = added.get(node.node_id)
            if key is not None:
                found.append((node, PlacedNode(self._places[node.node_id], key, self._content(node))))
        return found

    def of(self, node_id: int) -> tuple[str, bytes] | None:
        """The place and the key of a node that runs; None if nothing is known of it."""
        place = self._places.get(node_id)
        return None if place is None else (place, self._key_of[node_id])

    def move(self, node_id: int, place: str) -> None:
        """Give a node another place: that of an equal node of an earlier run."""
        self._places[node_id] = place

    def of_block(self, node_ids: range) -> Iterator[tuple[int, str, bytes]]:
        """The placed nodes with these ids."""
        for node_id in node_ids:
            if node_id in self._places:
                yield node_id, self._places[node_id], self._key_of[node_id]

    def _content(self, node: Node) -> dict[str, Any]:
        (plain,) = nodes_to_plain([node])
        kept = {name: value for name, value in plain.items() if name not in _LEFT_OUT}
        found: dict[str, Any] = plain_data(self._without_ids(kept))
        return found

    def _without_ids(self, plain: Any) -> Any:
        if isinstance(plain, dict):
            found = {}
            for name, value in plain.items():
                if name in ("ref", "parent", "end", "id") and isinstance(value, int) and value in self._places:
                    found[name] = self._places[value]
                elif name == "value":
                    found[name] = value  # data of the program
                elif name == "marks":
                    continue
                else:
                    found[name] = self._without_ids(value)
            return found
        if isinstance(plain, (list, tuple)):
            return [self._without_ids(each) for each in plain]
        return plain


def paths_of(node: Node) -> Iterator[tuple[int, str]]:
    """The paths of a node and of the nodes of its blocks, by the ids under which they run."""
    path = path_of(node)
    if path is not None:
        yield node.node_id, path
    inner = [pair for block in blocks_of(node) for each in block.nodes for pair in paths_of(each)]
    if isinstance(node, Repeat):
        for turn in range(node.at_most):
            for node_id, found in inner:
                yield node_id + turn * node.stride, at_turn(found, turn)
    elif isinstance(node, Switch):
        yield from inner


def plain_data(value: Any) -> Any:
    """Plain data as it is read from a file."""
    return msgpack.unpackb(
        msgpack.packb(value_to_wire(value), unicode_errors="surrogatepass"), unicode_errors="surrogatepass"
    )


def difference(
    before: PlacedNode, now: PlacedNode, old: Mapping[str, PlacedNode], new: Mapping[str, PlacedNode]
) -> tuple[PlacedNode, str, str, str]:
    """Where a node differs from the recorded one: the node, the field, and both values.

    A node that is equal itself builds on one that is not: a text, or a pure function.

    Args:
        old, new: the nodes of the recorded run and of this one, by place.
    """
    todo, seen = [(before, now)], set[str]()
    while todo:
        one, other = todo.pop(0)
        for name in dict.fromkeys((*one.content, *other.content)):
            first, second = one.content.get(name), other.content.get(name)
            if _unkeyed(first) != _unkeyed(second):
                return other, name, f"{first!r:.300}", f"{second!r:.300}"
            for left, right in zip(_keyed(first), _keyed(second), strict=False):
                if left != right and right not in seen and left in old and right in new:
                    seen.add(right)
                    todo.append((old[left], new[right]))
    return now, "what it builds on", "other content", "this content"


def _unkeyed(plain: Any) -> Any:
    """Plain data without the keys in it."""
    if isinstance(plain, dict):
        return {name: _unkeyed(value) for name, value in plain.items()}
    if isinstance(plain, list):
        return [_unkeyed(each) for each in plain]
    return KEY_MARK if _is_key(plain) else plain


def _keyed(plain: Any) -> Iterator[str]:
    """The keys in plain data, in order."""
    if _is_key(plain):
        yield plain
    elif isinstance(plain, (dict, list)):
        for each in plain.values() if isinstance(plain, dict) else plain:
            yield from _keyed(each)


def _is_key(plain: Any) -> bool:
    return isinstance(plain, str) and len(plain) == 33 and plain.startswith(KEY_MARK)
