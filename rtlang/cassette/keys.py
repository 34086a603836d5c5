"""Keys of nodes: digests of everything that determines their outcomes.

The outcome of a greedy or seeded node follows from the model and from the nodes that it builds on. So its key is a digest of its own
parameters and of the keys of these nodes, and is known before anything runs. Names and hints are left out. A generation that samples
without a seed of its own has one from the run and from its id, which are part of its key then. Host calls, and the first of several
values, may differ from run to run, so that the seed of the run is part of their keys; equal calls of a run are numbered in their order.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgpack

from rtlang.contract.request_graph import (
    Call,
    Decide,
    Generate,
    Node,
    Repeat,
    RequestGraph,
    Switch,
    all_nodes,
    dependencies,
    last_id,
    nodes_to_plain,
)

KEY_BYTES = 16
_UNNEEDED = ("id", "parent", "name", "marks")


class Keys:
    """The keys of the nodes of one run.

    Args:
        inputs: the texts of the inputs of the graph.
        seed: the seed of the run.
    """

    def __init__(self, inputs: Mapping[str, str], seed: int) -> None:
        self._inputs, self._seed = inputs, seed
        self._keys: dict[int, bytes] = {}
        self._num_calls: Counter[bytes] = Counter()

    def add(self, nodes: Sequence[Node]) -> dict[int, bytes]:
        """The keys of these nodes, which follow those added before; for control nodes also of the nodes that they may start."""
        added: dict[int, bytes] = {}
        for node in nodes:
            key = self._key(node)
            if key is None:
                continue
            self._keys[node.node_id] = added[node.node_id] = key
            if isinstance(node, (Switch, Repeat)):
                for node_id in range(node.node_id + 1, last_id(node) + 1):
                    added[node_id] = digest([key, node_id - node.node_id])
        return added

    def _key(self, node: Node) -> bytes | None:
        needed = dependencies(node)
        if any(node_id not in self._keys for node_id in needed):
            return None
        (plain,) = nodes_to_plain([node])
        if isinstance(node, (Switch, Repeat)):
            body: Any = [
                plain,
                node.node_id,
                sorted((node_id, self._keys[node_id]) for node_id in needed),
                self._inputs,
            ]
        else:
            body = self._resolved({name: value for name, value in plain.items() if name not in _UNNEEDED})
        parent = plain.get("parent")
        made: list[Any] = [body, None if parent is None else self._keys[parent]]
        if isinstance(node, Call):
            which = digest(made)
            made.append([self._seed.to_bytes(8, "big"), self._num_calls[which]])
            self._num_calls[which] += 1
        else:
            depends = any(map(_depends_on_run, all_nodes([node])))
            made.append([self._seed.to_bytes(8, "big"), node.node_id] if depends else None)
        return digest(made)

    def of_run(self, node_id: int) -> bytes:
        """The key of an outcome that may differ in another run, such as the failure of a call."""
        return digest([self._seed.to_bytes(8, "big"), node_id, "run"])

    def _resolved(self, plain: Any) -> Any:
        """A plain form with keys in place of ids and texts in place of inputs."""
        if isinstance(plain, dict):
            if isinstance(ref := plain.get("ref"), int):
                return {"ref": self._keys[ref], "choice": plain.get("choice", 0)}
            if set(plain) == {"arg"}:
                return self._inputs.get(plain["arg"], "")
            return {name: self._resolved(value) for name, value in plain.items()}
        if isinstance(plain, (list, tuple)):
            return [self._resolved(each) for each in plain]
        return plain


def _depends_on_run(node: Node) -> bool:
    if isinstance(node, Generate):
        return depends_on_run_seed(node)
    return isinstance(node, Call) or (isinstance(node, Decide) and (node.how == "first" or node.need is not None))


def depends_on_run_seed(node: Generate) -> bool:
    """Whether a generation depends on the seed of its run."""
    params = node.params
    return params.seed is None and (params.temperature > 0 or params.n > 1 or node.constraint is not None)


def digest(value: Any) -> bytes:
    """A digest of plain data that keeps the order of maps."""
    return hashlib.blake2b(msgpack.packb(value, default=str), digest_size=KEY_BYTES).digest()


def graph_digest(graph: RequestGraph, inputs: Mapping[str, str]) -> bytes:
    """A digest of a graph and its inputs."""
    return digest([nodes_to_plain(graph.nodes), sorted(inputs.items())])
