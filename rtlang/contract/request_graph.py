"""Request graphs: the calls of a program as plain data.

Sequence nodes continue the sequence of their `parent`; two nodes with the same parent form a fork. Value nodes compute plain values.
A `Ref` stands for the text or value of an earlier node. Graphs are serialized as MessagePack or JSON and validated once; errors name
the node and the field.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgpack

from rtlang.contract.errors import GraphError
from rtlang.contract.field_names import check_fields
from rtlang.contract.graph.checks import (
    MAX_NAME_CHARS,
    MAX_NODES,
    MAX_SELECT_CHOICES,
    MAX_TEXT_CHARS,
    MAX_TEXT_TOKENS,
    ROLES,
    NodeChecks,
    check_outputs,
)
from rtlang.contract.graph.nodes import (
    LIFETIMES,
    NO_MARKS,
    Apply,
    Arg,
    Block,
    Call,
    Const,
    Decide,
    Generate,
    How,
    Lifetime,
    Marks,
    Node,
    Operand,
    Part,
    Plain,
    Ref,
    Repeat,
    RoleEnd,
    RoleStart,
    Select,
    SequenceNode,
    Switch,
    Text,
    TokenIds,
    ValueNode,
    all_nodes,
    blocks_of,
    choices_of,
    dependencies,
    held_data,
    last_id,
    name_of,
    node_bytes,
    num_requests,
    operands_of,
    parent_of,
    path_of,
)
from rtlang.contract.graph.plain_form import list_from_plain, nodes_from_plain, nodes_to_plain
from rtlang.contract.graph_running import Runs, run_graph

__all__ = [
    "LIFETIMES",
    "MAX_NAME_CHARS",
    "MAX_NODES",
    "MAX_SELECT_CHOICES",
    "MAX_TEXT_CHARS",
    "MAX_TEXT_TOKENS",
    "NO_MARKS",
    "ROLES",
    "Apply",
    "Arg",
    "Block",
    "Call",
    "Const",
    "Decide",
    "Generate",
    "How",
    "Lifetime",
    "Marks",
    "Node",
    "Operand",
    "Part",
    "Plain",
    "Ref",
    "Repeat",
    "RequestGraph",
    "RoleEnd",
    "RoleStart",
    "Select",
    "SequenceNode",
    "Switch",
    "Text",
    "TokenIds",
    "ValueNode",
    "all_nodes",
    "blocks_of",
    "choices_of",
    "dependencies",
    "held_data",
    "last_id",
    "name_of",
    "node_bytes",
    "nodes_from_plain",
    "nodes_to_plain",
    "num_requests",
    "operands_of",
    "parent_of",
    "path_of",
]


@dataclass(frozen=True, slots=True)
class RequestGraph:
    """Nodes in topological order (parents and references first), the names of their inputs, and the nodes that are needed.

    Attributes:
        outputs: ids of the nodes that are needed; None for every named node.
    """

    nodes: tuple[Node, ...] = ()
    inputs: tuple[str, ...] = ()
    outputs: tuple[int, ...] | None = None

    def validate(self, known: Mapping[int, Node] | None = None) -> NodeChecks:
        """Check all rules of the format.

        Args:
            known: the nodes of the running graph that these nodes extend, by id.
        Returns:
            The checks for nodes that are added later.
        Raises:
            GraphError: names the node and the field.
        """
        seen: dict[int, Node] = dict(known or {})
        for name in self.inputs:
            if not isinstance(name, str) or not name:
                raise GraphError(None, "inputs", f"expected non-empty strings, not {name!r}")
        checks = NodeChecks(seen, self.inputs)
        checks.add(self.nodes)
        check_outputs(self.outputs, seen)
        checks.take_no_more_inputs()
        return checks

    def to_plain(self) -> dict[str, Any]:
        """The graph as maps, lists and scalars."""
        plain: dict[str, Any] = {"nodes": nodes_to_plain(self.nodes), "inputs": list(self.inputs)}
        if self.outputs is not None:
            plain["outputs"] = list(self.outputs)
        return plain

    def to_msgpack(self) -> bytes:
        """The plain form, encoded as MessagePack."""
        return bytes(msgpack.packb(self.to_plain()))

    @classmethod
    def from_plain(cls, plain: object) -> RequestGraph:
        """The inverse of `to_plain`. Checks types; `validate` checks the rules.

        Raises:
            GraphError: names the node and the field.
        """
        if not isinstance(plain, dict):
            raise GraphError(None, "graph", f"expected a map, not {type(plain).__name__}")
        check_fields(plain, ("nodes", "inputs", "outputs"), "a graph")
        nodes = list_from_plain(plain.get("nodes", []), None, "nodes")
        inputs = list_from_plain(plain.get("inputs", []), None, "inputs")
        outputs = plain.get("outputs")
        if outputs is not None:
            outputs = tuple(list_from_plain(outputs, None, "outputs"))
            for node_id in outputs:
                if isinstance(node_id, bool) or not isinstance(node_id, int):
                    raise GraphError(None, "outputs", f"expected integers, not {node_id!r:.80}")
        return cls(tuple(nodes_from_plain(nodes)), tuple(inputs), outputs)

    @classmethod
    def from_msgpack(cls, data: bytes) -> RequestGraph:
        """The inverse of `to_msgpack`.

        Raises:
            GraphError: the bytes are not a graph.
        """
        try:
            plain = msgpack.unpackb(data, strict_map_key=True)
        except (ValueError, msgpack.UnpackException) as error:
            raise GraphError(None, "graph", f"not MessagePack: {error}") from None
        return cls.from_plain(plain)

    def run(
        self,
        runtime: Runs,
        inputs: Mapping[str, str] | None = None,
        *,
        functions: Mapping[str, Callable[..., Any]] | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Run the graph and wait for its values.

        Args:
            runtime: an `rt.Runtime` or `rt.connect(...)`.
            inputs: the text of each input.
            functions: the functions of the host calls, by name; each is called in a thread of its own.
            options: priority, deadline_s and seed, as for `Target.submit`.
        Returns:
            The text or value of each name; a list where a node has n > 1 or several nodes share the name.
        Raises:
            GraphError: the graph is malformed, or an input is missing. RtlangError: the error of the first node that failed.
        """
        return run_graph(self, runtime, inputs, functions or {}, **options)

    def to_mermaid(self) -> str:
        """The graph as the text of a Mermaid flowchart: a node `n<id>` for each node, solid arrows for sequences, dashed for values."""
        from rtlang.contract.pictures.mermaid import mermaid

        return mermaid(self.nodes)

    def to_html(self, title: str = "request graph") -> str:
        """A self-contained HTML page with a picture of the graph, which also shows without scripts."""
        from rtlang.contract.pictures.page import graph_page

        return graph_page(self.nodes, title)

    def _repr_pretty_(self, printer: Any, is_cycle: bool) -> None:
        """One line for IPython, instead of all nodes."""
        printer.text(f"<RequestGraph {len(self.nodes)} nodes, inputs {list(self.inputs)}>")

    def _repr_html_(self) -> str:
        """The picture of the graph for a notebook."""
        from rtlang.contract.pictures.page import graph_fragment

        return graph_fragment(self.nodes)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the graph to a file: as JSON if its name ends with `.json`, else as MessagePack."""
        is_json = os.fspath(path).endswith(".json")
        data = json.dumps(self.to_plain(), indent=1).encode() if is_json else self.to_msgpack()
        with open(path, "wb") as file:
            file.write(data)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> RequestGraph:
        """Read and validate a graph that `save` wrote.

        Raises:
            OSError: the file cannot be read. GraphError: it holds no valid graph; names the node and the field.
        """
        with open(path, "rb") as file:
            data = file.read()
        if data.lstrip()[:1] == b"{":
            try:
                graph = cls.from_plain(json.loads(data))
            except (ValueError, RecursionError) as error:
                raise GraphError(None, "graph", f"{os.fspath(path)} is not JSON: {error}") from None
        else:
            graph = cls.from_msgpack(data)
        if not graph.nodes:
            raise GraphError(
                None, "nodes", f"{os.fspath(path)} has none; expected a graph that RequestGraph.save wrote"
            )
        graph.validate()
        return graph
