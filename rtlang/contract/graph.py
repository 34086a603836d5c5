"""Request graphs: the calls of a program as plain data.

Each node continues the sequence of its `parent`; two nodes with the same parent form a fork. Text nodes append text, generate and select
nodes append output of the model, and a `Ref` within text stands for the text of an earlier node. Graphs are serialized as MessagePack or
JSON and validated once; errors name the node and the field.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgpack

from rtlang.contract.errors import GraphError, ParameterError
from rtlang.contract.params import Constraint, SamplingParams, SelectMethod
from rtlang_grammars import GrammarError

MAX_NODES = 20_000
MAX_SELECT_CHOICES = 1_024
MAX_TEXT_CHARS = 4_000_000
MAX_NAME_CHARS = 32_768
ROLES = ("system", "user", "assistant", "tool")


@dataclass(frozen=True, slots=True)
class Ref:
    """The text of an earlier generate or select node, or of one of its choices."""

    node_id: int
    choice: int = 0


@dataclass(frozen=True, slots=True)
class Arg:
    """The text of an input, passed when the graph is submitted."""

    name: str


@dataclass(frozen=True, slots=True)
class RoleStart:
    """Start of a chat message of `role`, rendered by the chat template of the model."""

    role: str


@dataclass(frozen=True, slots=True)
class RoleEnd:
    """End of the open chat message."""


Part = str | Ref | Arg | RoleStart | RoleEnd


@dataclass(frozen=True, slots=True)
class Text:
    """Append text to the sequence of `parent`, or to an empty sequence if it is None."""

    node_id: int
    parent: int | None
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Generate:
    """Generate from the sequence of `parent`. With params.n > 1 the completions are side branches and the node has no children."""

    node_id: int
    parent: int | None
    name: str | None
    params: SamplingParams
    constraint: Constraint | None = None


@dataclass(frozen=True, slots=True)
class Select:
    """Append the most likely of `choices`, as scored by `method`."""

    node_id: int
    parent: int | None
    name: str | None
    choices: tuple[str, ...]
    method: SelectMethod = SelectMethod.TOKEN_LENGTH_NORMALIZED


Node = Text | Generate | Select


@dataclass(frozen=True, slots=True)
class RequestGraph:
    """Nodes in topological order (parents and references first), and the names of their inputs."""

    nodes: tuple[Node, ...] = ()
    inputs: tuple[str, ...] = ()

    def validate(self, known: Mapping[int, Node] | None = None) -> None:
        """Check all rules of the format.

        Args:
            known: the nodes of the running graph that these nodes extend, by id.
        Raises:
            GraphError: names the node and the field.
        """
        seen: dict[int, Node] = dict(known or {})
        if len(seen) + len(self.nodes) > MAX_NODES:
            raise GraphError(None, "nodes", f"expected at most {MAX_NODES} nodes, not {len(seen) + len(self.nodes)}")
        for name in self.inputs:
            if not isinstance(name, str) or not name:
                raise GraphError(None, "inputs", f"expected non-empty strings, not {name!r}")
        last_id = -1
        for node in self.nodes:
            _check_node(node, seen, last_id, self.inputs)
            seen[node.node_id] = node
            last_id = node.node_id

    def to_plain(self) -> dict[str, Any]:
        """The graph as maps, lists and scalars."""
        return {"nodes": [_node_to_plain(node) for node in self.nodes], "inputs": list(self.inputs)}

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
        nodes = _list(plain.get("nodes", []), None, "nodes")
        inputs = _list(plain.get("inputs", []), None, "inputs")
        return cls(tuple(nodes_from_plain(nodes)), tuple(inputs))

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


def nodes_from_plain(items: Iterable[object]) -> list[Node]:
    """Nodes from their plain form, as in an `extend` message.

    Raises:
        GraphError: names the node and the field.
    """
    return [_node_from_plain(item) for item in items]


def nodes_to_plain(nodes: Sequence[Node]) -> list[dict[str, Any]]:
    """The plain form of nodes, as in an `extend` message."""
    return [_node_to_plain(node) for node in nodes]


def choices_of(node: Node) -> int:
    """Number of completions of a node: n for a generate node, 1 for a select, 0 for text."""
    match node:
        case Generate():
            return node.params.n
        case Select():
            return 1
        case Text():
            return 0


def num_requests(node: Node) -> int:
    """Number of engine requests of a node: n for a generate node, one or two per choice for a select, 0 for text."""
    match node:
        case Generate():
            return node.params.n
        case Select():
            return len(node.choices) * (2 if node.method is SelectMethod.UNCONDITIONAL_LIKELIHOOD_NORMALIZED else 1)
        case Text():
            return 0


def dependencies(node: Node) -> set[int]:
    """Ids of the nodes that must finish before this node can start."""
    needed = set() if node.parent is None else {node.parent}
    if isinstance(node, Text):
        needed.update(part.node_id for part in node.parts if isinstance(part, Ref))
    return needed


def _check_node(node: Node, seen: Mapping[int, Node], last_id: int, inputs: Sequence[str]) -> None:
    node_id = node.node_id
    if isinstance(node_id, bool) or not isinstance(node_id, int) or not 0 <= node_id < 1 << 53:
        raise GraphError(None, "node_id", f"expected a non-negative integer, not {node_id!r}")
    if node_id in seen and node_id != last_id:
        raise GraphError(node_id, "node_id", f"{node_id} is the id of a node submitted before")
    if node_id <= last_id:
        raise GraphError(node_id, "node_id", f"{node_id} follows {last_id}; ids must increase")
    if node.parent is not None:
        parent = seen.get(node.parent)
        if parent is None:
            raise GraphError(node_id, "parent", f"no earlier node has the id {node.parent!r}")
        if choices_of(parent) > 1:
            raise GraphError(node_id, "parent", f"node {node.parent} has n > 1 completions and cannot be continued")
    match node:
        case Text():
            _check_parts(node, seen, inputs)
        case Generate():
            _check_name(node_id, node.name)
            if not isinstance(node.params, SamplingParams):
                raise GraphError(node_id, "params", f"expected SamplingParams, not {type(node.params).__name__}")
            if node.constraint is not None and not isinstance(node.constraint, Constraint):
                raise GraphError(
                    node_id, "constraint", f"expected a Constraint or None, not {type(node.constraint).__name__}"
                )
        case Select():
            _check_name(node_id, node.name)
            if not node.choices or len(node.choices) > MAX_SELECT_CHOICES:
                raise GraphError(
                    node_id, "choices", f"expected 1 to {MAX_SELECT_CHOICES} choices, not {len(node.choices)}"
                )
            if not all(isinstance(choice, str) and choice for choice in node.choices):
                raise GraphError(node_id, "choices", "expected non-empty strings")
            if len(set(node.choices)) != len(node.choices):
                raise GraphError(node_id, "choices", "expected distinct choices")


def _check_name(node_id: int, name: object) -> None:
    if name is not None and (not isinstance(name, str) or not 0 < len(name) <= MAX_NAME_CHARS):
        raise GraphError(
            node_id, "name", f"expected a string of 1 to {MAX_NAME_CHARS} characters or none, not {name!r:.80}"
        )


def _check_parts(node: Text, seen: Mapping[int, Node], inputs: Sequence[str]) -> None:
    num_chars = 0
    for part in node.parts:
        match part:
            case str():
                num_chars += len(part)
                try:
                    part.encode()
                except UnicodeEncodeError:
                    raise GraphError(
                        node.node_id, "parts", "text contains a lone surrogate, which cannot be encoded"
                    ) from None
            case Ref():
                target = seen.get(part.node_id)
                if target is None or isinstance(target, Text):
                    raise GraphError(
                        node.node_id, "parts", f"ref {part.node_id!r}: no earlier generate or select node has this id"
                    )
                if not 0 <= part.choice < choices_of(target):
                    raise GraphError(
                        node.node_id,
                        "parts",
                        f"ref {part.node_id}, choice {part.choice}: expected 0 to {choices_of(target) - 1}",
                    )
            case Arg():
                if part.name not in inputs:
                    raise GraphError(
                        node.node_id,
                        "parts",
                        f"arg {part.name!r} is not an input; expected one of {', '.join(inputs) or 'none'}",
                    )
            case RoleStart():
                if part.role not in ROLES:
                    raise GraphError(node.node_id, "parts", f"role {part.role!r}: expected one of {', '.join(ROLES)}")
            case RoleEnd():
                pass
            case _:
                raise GraphError(
                    node.node_id, "parts", f"expected str, Ref, Arg, RoleStart or RoleEnd, not {type(part).__name__}"
                )
    if num_chars > MAX_TEXT_CHARS:
        raise GraphError(node.node_id, "parts", f"expected at most {MAX_TEXT_CHARS} characters, not {num_chars}")


def _part_to_plain(part: Part) -> Any:
    match part:
        case str():
            return part
        case Ref():
            return {"ref": part.node_id, "choice": part.choice} if part.choice else {"ref": part.node_id}
        case Arg():
            return {"arg": part.name}
        case RoleStart():
            return {"role": part.role}
        case RoleEnd():
            return {"role": None}


def _node_to_plain(node: Node) -> dict[str, Any]:
    plain: dict[str, Any] = {"id": node.node_id, "parent": node.parent}
    match node:
        case Text():
            plain |= {"kind": "text", "parts": [_part_to_plain(part) for part in node.parts]}
        case Generate():
            plain |= {"kind": "generate", "name": node.name, "params": node.params.to_plain()}
            if node.constraint is not None:
                plain["constraint"] = node.constraint.to_plain()
        case Select():
            plain |= {
                "kind": "select",
                "name": node.name,
                "choices": list(node.choices),
                "method": str(node.method),
            }
    return plain


def _node_from_plain(item: object) -> Node:
    if not isinstance(item, dict):
        raise GraphError(None, "nodes", f"expected a map, not {type(item).__name__}")
    node_id = item.get("id")
    if isinstance(node_id, bool) or not isinstance(node_id, int):
        raise GraphError(None, "id", f"expected an integer, not {node_id!r}")
    parent = item.get("parent")
    if parent is not None and (isinstance(parent, bool) or not isinstance(parent, int)):
        raise GraphError(node_id, "parent", f"expected an integer or none, not {parent!r}")
    kind = item.get("kind")
    if kind == "text":
        return Text(
            node_id,
            parent,
            tuple(_part_from_plain(part, node_id) for part in _list(item.get("parts"), node_id, "parts")),
        )
    if kind == "generate":
        return Generate(
            node_id,
            parent,
            item.get("name"),
            _params(item.get("params", {}), node_id),
            _constraint(item, node_id),
        )
    if kind == "select":
        try:
            method = SelectMethod(item.get("method", SelectMethod.TOKEN_LENGTH_NORMALIZED))
        except ValueError:
            raise GraphError(
                node_id, "method", f"expected one of {', '.join(SelectMethod)}, not {item.get('method')!r:.80}"
            ) from None
        return Select(node_id, parent, item.get("name"), tuple(_list(item.get("choices"), node_id, "choices")), method)
    raise GraphError(node_id, "kind", f"expected text, generate or select, not {kind!r}")


def _part_from_plain(part: object, node_id: int) -> Part:
    if isinstance(part, str):
        return part
    if isinstance(part, dict):
        if isinstance(ref := part.get("ref"), int) and isinstance(choice := part.get("choice", 0), int):
            return Ref(ref, choice)
        if isinstance(name := part.get("arg"), str):
            return Arg(name)
        if "role" in part:
            role = part["role"]
            return RoleEnd() if role is None else RoleStart(role)
    raise GraphError(node_id, "parts", f"expected a string or a map with ref, arg or role, not {part!r}")


def _params(plain: object, node_id: int) -> SamplingParams:
    if not isinstance(plain, dict):
        raise GraphError(node_id, "params", f"expected a map, not {type(plain).__name__}")
    try:
        return SamplingParams.from_plain(plain)
    except ParameterError as error:
        raise GraphError(node_id, f"params.{error.field}", error.message) from error


def _constraint(item: dict[str, Any], node_id: int) -> Constraint | None:
    plain = item.get("constraint")
    if plain is None:
        return None
    try:
        return Constraint.from_plain(plain)
    except GrammarError as error:
        field = f"constraint.{error.location}" if error.location else "constraint"
        raise GraphError(node_id, field, error.reason) from None


def _list(value: object, node_id: int | None, field: str) -> list[Any]:
    if not isinstance(value, (list, tuple)):
        raise GraphError(node_id, field, f"expected a list, not {type(value).__name__}")
    return list(value)
