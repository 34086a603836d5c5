"""Request graphs: what a program asks for, as plain data.

A node says which sequence it continues (`parent`); two nodes with one parent are a fork. Text nodes append text, generate and
select nodes append what the model makes, and a `Ref` inside text stands for the text of an earlier node. A graph crosses the wire
as MessagePack or JSON, and everything about it is validated once, with the node and the field named in the error.
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
ROLES = ("system", "user", "assistant", "tool")


@dataclass(frozen=True, slots=True)
class Ref:
    """The text of an earlier generate or select node; of its choice `choice` where it has several."""

    node_id: int
    choice: int = 0


@dataclass(frozen=True, slots=True)
class Arg:
    """The text of an input, given when the graph is submitted."""

    name: str


@dataclass(frozen=True, slots=True)
class RoleStart:
    """A chat message of `role` begins; the text comes from the model's chat template."""

    role: str


@dataclass(frozen=True, slots=True)
class RoleEnd:
    """The open chat message ends."""


Part = str | Ref | Arg | RoleStart | RoleEnd


@dataclass(frozen=True, slots=True)
class Text:
    """Append text to the sequence of `parent` (None: an empty sequence)."""

    node_id: int
    parent: int | None
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Generate:
    """Generate from the sequence of `parent`. With params.n > 1 the node has no children: the texts are side branches."""

    node_id: int
    parent: int | None
    name: str | None
    params: SamplingParams
    constraint: Constraint | None = None


@dataclass(frozen=True, slots=True)
class Select:
    """Append the one of `choices` that the model finds likeliest, by `method`."""

    node_id: int
    parent: int | None
    name: str | None
    choices: tuple[str, ...]
    method: SelectMethod = SelectMethod.TOKEN_LENGTH_NORMALIZED


Node = Text | Generate | Select


@dataclass(frozen=True, slots=True)
class RequestGraph:
    """Nodes in an order where parents and references come first, and the names of the inputs they use."""

    nodes: tuple[Node, ...] = ()
    inputs: tuple[str, ...] = ()

    def validate(self, known: Mapping[int, Node] | None = None) -> None:
        """Check every rule of the format; `known` holds the nodes of a running graph that these extend.

        Raises:
            GraphError: names the node and the field.
        """
        seen: dict[int, Node] = dict(known or {})
        if len(seen) + len(self.nodes) > MAX_NODES:
            raise GraphError(None, "nodes", f"at most {MAX_NODES} nodes are allowed")
        for name in self.inputs:
            if not isinstance(name, str) or not name:
                raise GraphError(None, "inputs", f"names are non-empty strings, not {name!r}")
        last_id = max(seen, default=-1)
        for node in self.nodes:
            _check_node(node, seen, last_id, self.inputs)
            seen[node.node_id] = node
            last_id = node.node_id

    def to_plain(self) -> dict[str, Any]:
        """Maps, lists and scalars only."""
        return {"nodes": [_node_to_plain(node) for node in self.nodes], "inputs": list(self.inputs)}

    def to_msgpack(self) -> bytes:
        """The plain form in MessagePack."""
        return bytes(msgpack.packb(self.to_plain()))

    @classmethod
    def from_plain(cls, plain: object) -> RequestGraph:
        """The inverse of `to_plain`. Checks types; `validate` checks the rules.

        Raises:
            GraphError: names the node and the field.
        """
        if not isinstance(plain, dict):
            raise GraphError(None, "graph", "a map is allowed")
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
    """How many texts a node has: n of a generate node, 1 of a select, 0 of text."""
    match node:
        case Generate():
            return node.params.n
        case Select():
            return 1
        case Text():
            return 0


def num_requests(node: Node) -> int:
    """How many requests the engine makes of a node: n of a generate node, one or two for each choice of a select, 0 of text."""
    match node:
        case Generate():
            return node.params.n
        case Select():
            return len(node.choices) * (2 if node.method is SelectMethod.UNCONDITIONAL_LIKELIHOOD_NORMALIZED else 1)
        case Text():
            return 0


def dependencies(node: Node) -> set[int]:
    """Ids of the nodes whose text must be there before this one can start."""
    needed = set() if node.parent is None else {node.parent}
    if isinstance(node, Text):
        needed.update(part.node_id for part in node.parts if isinstance(part, Ref))
    return needed


def _check_node(node: Node, seen: Mapping[int, Node], last_id: int, inputs: Sequence[str]) -> None:
    node_id = node.node_id
    if isinstance(node_id, bool) or not isinstance(node_id, int) or not 0 <= node_id < 1 << 53:
        raise GraphError(None, "node_id", f"non-negative integers are allowed, not {node_id!r}")
    if node_id <= last_id:
        raise GraphError(node_id, "node_id", f"ids must rise; the one before was {last_id}")
    if node.parent is not None:
        parent = seen.get(node.parent)
        if parent is None:
            raise GraphError(node_id, "parent", f"no earlier node has the id {node.parent!r}")
        if choices_of(parent) > 1:
            raise GraphError(node_id, "parent", f"node {node.parent} has several texts (n > 1) and cannot be continued")
    match node:
        case Text():
            _check_parts(node, seen, inputs)
        case Generate():
            _check_name(node_id, node.name)
            if not isinstance(node.params, SamplingParams):
                raise GraphError(node_id, "params", "sampling parameters are allowed")
            if node.constraint is not None and not isinstance(node.constraint, Constraint):
                raise GraphError(node_id, "constraint", "a constraint or none is allowed")
        case Select():
            _check_name(node_id, node.name)
            if not node.choices or len(node.choices) > MAX_SELECT_CHOICES:
                raise GraphError(node_id, "choices", f"1 to {MAX_SELECT_CHOICES} choices are allowed")
            if not all(isinstance(choice, str) and choice for choice in node.choices):
                raise GraphError(node_id, "choices", "non-empty strings are allowed")
            if len(set(node.choices)) != len(node.choices):
                raise GraphError(node_id, "choices", "choices must differ")


def _check_name(node_id: int, name: object) -> None:
    if name is not None and (not isinstance(name, str) or not name or len(name) > 256):
        raise GraphError(node_id, "name", "none or a string of 1 to 256 characters is allowed")


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
                        node.node_id, "parts", "text holds a lone surrogate, which no encoding has"
                    ) from None
            case Ref():
                target = seen.get(part.node_id)
                if target is None or isinstance(target, Text):
                    raise GraphError(node.node_id, "parts", f"no earlier node {part.node_id!r} has a text to refer to")
                if not 0 <= part.choice < choices_of(target):
                    raise GraphError(node.node_id, "parts", f"node {part.node_id} has no choice {part.choice}")
            case Arg():
                if part.name not in inputs:
                    raise GraphError(node.node_id, "parts", f"{part.name!r} is not among the graph's inputs")
            case RoleStart():
                if part.role not in ROLES:
                    raise GraphError(node.node_id, "parts", f"role {part.role!r}: allowed are {', '.join(ROLES)}")
            case RoleEnd():
                pass
            case _:
                raise GraphError(node.node_id, "parts", f"{type(part).__name__} is not a part")
    if num_chars > MAX_TEXT_CHARS:
        raise GraphError(node.node_id, "parts", f"at most {MAX_TEXT_CHARS} characters are allowed")


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
        raise GraphError(None, "nodes", f"a node is a map, not {type(item).__name__}")
    node_id = item.get("id")
    if isinstance(node_id, bool) or not isinstance(node_id, int):
        raise GraphError(None, "id", f"an integer is allowed, not {node_id!r}")
    parent = item.get("parent")
    if parent is not None and (isinstance(parent, bool) or not isinstance(parent, int)):
        raise GraphError(node_id, "parent", f"an integer or none is allowed, not {parent!r}")
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
            raise GraphError(node_id, "method", f"allowed are {', '.join(SelectMethod)}") from None
        return Select(node_id, parent, item.get("name"), tuple(_list(item.get("choices"), node_id, "choices")), method)
    raise GraphError(node_id, "kind", f"text, generate or select is allowed, not {kind!r}")


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
    raise GraphError(node_id, "parts", f"text or a map with ref, arg or role is allowed, not {part!r}")


def _params(plain: object, node_id: int) -> SamplingParams:
    if not isinstance(plain, dict):
        raise GraphError(node_id, "params", "a map is allowed")
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
        raise GraphError(node_id, field, f"a list is allowed, not {type(value).__name__}")
    return list(value)
