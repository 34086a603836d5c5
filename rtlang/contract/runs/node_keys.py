"""Keys of nodes: digests of everything that determines their outcomes.

The outcome of a greedy or seeded node follows from the model and from the nodes that it builds on. So its key is a digest of its own
parameters and of the keys of these nodes, and is known before anything runs. Ids, names and hints are left out: nodes that are added
elsewhere change no key. A generation that samples without a seed of its own has one from the run and from its path, which are part of its
key then. Host calls, and the first of several values, may differ from run to run: their keys have the seed of the run and the path, too.

After an edit of the program such a node may be in another place, for example because its variable was renamed. Its `Content`, the key
without the path, tells which recorded node it was before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgpack

from rtlang.contract.graph.node_paths import without_name
from rtlang.contract.graph.nodes import (
    Call,
    Decide,
    Generate,
    Node,
    Repeat,
    Switch,
    all_nodes,
    dependencies,
    last_id,
    path_of,
)
from rtlang.contract.graph.plain_form import nodes_to_plain

KEY_BYTES = 16
_UNNEEDED = frozenset(("id", "parent", "name", "marks", "path", "policy"))
_UNNEEDED_PARAMS = frozenset(("priority", "deadline_s"))
"""Options that no text depends on."""


@dataclass(frozen=True, slots=True)
class Content:
    """A node whose outcome depends on its run.

    Attributes:
        path: its path.
        key: its key without its path.
        in_place: a digest of `key` and of the path without the name of the variable: it stays when the variable is renamed.
    """

    path: str
    key: bytes
    in_place: bytes


class Keys:
    """The keys of the nodes of one run.

    Args:
        inputs: the texts of the inputs of the graph.
        seed: the seed of the run; None if it was given none.
    """

    def __init__(self, inputs: Mapping[str, str], seed: int | None) -> None:
        self._inputs, self._seed = inputs, b"" if seed is None else seed.to_bytes(8, "big")
        self._keys: dict[int, bytes] = {}
        self._places: dict[int, str | int] = {}
        self._contents: dict[int, Content] = {}
        self._inner: dict[int, bytes] = {}  # of nodes that control nodes may start

    def copy(self) -> Keys:
        """The same keys; what is added to the copy is not added here."""
        copy = Keys(self._inputs, None)
        copy._seed = self._seed
        copy._keys, copy._places = dict(self._keys), dict(self._places)
        return copy

    def add(self, nodes: Sequence[Node]) -> dict[int, bytes]:
        """The keys of these nodes, which follow those added before; for control nodes also of the nodes that they may start."""
        added: dict[int, bytes] = {}
        for node in nodes:
            key = self._key(node)
            if key is not None:
                added.update(self.set(node, key))
        return added

    def set(self, node: Node, key: bytes) -> dict[int, bytes]:
        """Give a node this key, on which those of later nodes depend; returns it, for a control node with those of its nodes."""
        self._keys[node.node_id] = key
        place = self._places[node.node_id] = _place(node)
        added = {node.node_id: key}
        if isinstance(node, (Switch, Repeat)):
            for node_id in range(node.node_id + 1, last_id(node) + 1):
                added[node_id] = digest([key, node_id - node.node_id])
                self._places[node_id] = f"{place}+{node_id - node.node_id}"
            self._inner.update((node_id, each) for node_id, each in added.items() if node_id != node.node_id)
        return added

    def key_of(self, node_id: int) -> bytes | None:
        """The key of a node that was added, or that a control node may start; None if there is none."""
        return self._keys.get(node_id) or self._inner.get(node_id)

    def place_of(self, node_id: int) -> str | int:
        """A text that tells a node from others with the same key: its path, or its id if it has none."""
        return self._places.get(node_id, node_id)

    def content_of(self, node_id: int) -> Content | None:
        """The content of a node whose outcome depends on the run; None if it does not, or if the node has no path."""
        return self._contents.get(node_id)

    def _key(self, node: Node) -> bytes | None:
        needed = dependencies(node)
        if any(node_id not in self._keys for node_id in needed):
            return None
        (plain,) = nodes_to_plain([node])
        made = [self._content(plain, node.node_id), self._reference(plain.get("parent"), node.node_id)]
        places = [_place(each) for each in all_nodes([node]) if _depends_on_run(each)]
        if places:
            path = path_of(node)
            if path is not None:
                key = digest([made, self._seed])
                in_place = digest([key, *without_name(path)])
                self._contents[node.node_id] = Content(path, key, in_place)
            first = places[0] if isinstance(places[0], str) else node.node_id
            made.append([self._seed, [place if isinstance(place, str) else first for place in places]])
        return digest(made)

    def of_run(self, node_id: int) -> bytes:
        """The key of an outcome that may differ in another run, such as the failure of a call."""
        return digest([self._seed, self._places.get(node_id, node_id), "run"])

    def _reference(self, node_id: int | None, start: int) -> Any:
        """Stands for a node: its key, or for a node of the blocks of `start` its distance."""
        if node_id is None or node_id >= start:
            return None if node_id is None else node_id - start
        return self._keys[node_id]

    def _content(self, plain: Mapping[str, Any], start: int) -> dict[str, Any]:
        """The plain form of a node without ids and names; `start` is the id of the outermost node."""
        found: dict[str, Any] = {}
        for name, value in plain.items():
            if name in _UNNEEDED:
                continue
            match name:
                case "parts" | "args" | "of" | "by":
                    value = [self._operand(each, start) for each in value]
                case "on" | "until":
                    value = self._operand(value, start)
                case "params":
                    value = {key: each for key, each in value.items() if key not in _UNNEEDED_PARAMS}
                case "body" | "default":
                    value = self._block(value, start)
                case "cases":
                    value = [[key, self._block(block, start)] for key, block in value]
            found[name] = value
        return found

    def _block(self, plain: Mapping[str, Any], start: int) -> list[Any]:
        nodes = [
            [each["id"] - start, self._content(each, start), self._reference(each.get("parent"), start)]
            for each in plain["nodes"]
        ]
        value = plain.get("value")
        end = self._reference(plain["end"], start)
        return [nodes, end, None if value is None else self._operand(value, start)]

    def _operand(self, plain: Any, start: int) -> Any:
        """A part or an operand, with keys in place of ids and texts in place of inputs."""
        if isinstance(plain, dict):
            if "ref" in plain:
                return {"ref": self._reference(plain["ref"], start), "choice": plain.get("choice", 0)}
            if "arg" in plain:
                return self._inputs.get(plain["arg"], "")
        return plain


def _place(node: Node) -> str | int:
    path = path_of(node)
    return node.node_id if path is None else path


def _depends_on_run(node: Node) -> bool:
    if isinstance(node, Generate):
        return node.params.depends_on_run_seed(node.constraint)
    return isinstance(node, Call) or (isinstance(node, Decide) and (node.how == "first" or node.need is not None))


def digest(value: Any) -> bytes:
    """A digest of plain data that keeps the order of maps. Texts may hold lone surrogates, as names of files do."""
    packed = msgpack.packb(value, default=str, unicode_errors="surrogatepass")
    return hashlib.blake2b(packed, digest_size=KEY_BYTES).digest()
