"""The plain form of nodes: maps, lists and scalars, as they are sent and stored.

Reading checks types; `RequestGraph.validate` checks the rules.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import fields
from typing import Any, NoReturn

from rtlang.contract.errors import GraphError, ParameterError
from rtlang.contract.field_names import check_fields
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
    Marks,
    Node,
    Operand,
    Part,
    Ref,
    Repeat,
    RoleEnd,
    RoleStart,
    Select,
    Switch,
    Text,
    TokenIds,
    parent_of,
    path_of,
)
from rtlang.contract.graph.template_options import TemplateOptions
from rtlang.contract.graph.tool_list import tools_to_text
from rtlang.contract.params import Constraint, SamplingParams, SelectMethod
from rtlang_grammars import GrammarError

_FIELDS = {
    "text": ("parent", "parts", "marks"),
    "generate": ("parent", "name", "params", "constraint", "marks", "path"),
    "select": ("parent", "name", "choices", "method", "marks", "path"),
    "apply": ("name", "function", "args"),
    "call": ("name", "function", "args", "path", "policy", "variant"),
    "switch": ("parent", "name", "on", "cases", "default", "path"),
    "repeat": ("parent", "name", "body", "until", "at_most", "stride", "path"),
    "decide": ("name", "how", "of", "need", "by", "path"),
}
KINDS = tuple(_FIELDS)
_CONSTRAINT_FIELDS = (
    *("kind", "source", "whitespace", "order", "numbers", "item_separator", "key_separator", "indent"),
    *("lexer", "indentation"),
)
_OPERAND_FIELDS = (("ref", "choice"), ("arg",), ("value",))
_PART_FIELDS = (("role", "tools", "template_options"), ("ref", "choice"), ("arg",), ("tokens",))
_MAX_DEPTH = 40
"""Blocks within each other that are read; `graph_checks.MAX_NESTING` is what is allowed."""


def nodes_to_plain(nodes: Sequence[Node]) -> list[dict[str, Any]]:
    """The plain form of nodes, as in an `extend` message."""
    return [_node_to_plain(node) for node in nodes]


def nodes_from_plain(items: Iterable[object]) -> list[Node]:
    """Nodes from their plain form, as in an `extend` message.

    Raises:
        GraphError: names the node and the field.
    """
    return [_node_from_plain(item, 0) for item in items]


def list_from_plain(value: object, node_id: int | None, field: str) -> list[Any]:
    """A list in a plain form.

    Raises:
        GraphError: the value is no list.
    """
    if not isinstance(value, (list, tuple)):
        raise GraphError(node_id, field, f"expected a list, not {type(value).__name__}")
    return list(value)


# Writing


def _node_to_plain(node: Node) -> dict[str, Any]:
    plain: dict[str, Any] = {"id": node.node_id, "kind": type(node).__name__.lower()}
    if not isinstance(node, (Apply, Call, Decide)):
        plain["parent"] = parent_of(node)
    if not isinstance(node, Text):
        plain["name"] = node.name
        path = path_of(node)
        if path is not None:
            plain["path"] = path
    if isinstance(node, (Text, Generate, Select)) and node.marks != NO_MARKS:
        plain["marks"] = _marks_to_plain(node.marks)
    match node:
        case Text():
            plain["parts"] = [_part_to_plain(part) for part in node.parts]
        case Generate():
            plain["params"] = node.params.to_plain()
            if node.constraint is not None:
                plain["constraint"] = node.constraint.to_plain()
        case Select():
            plain |= {"choices": list(node.choices), "method": str(node.method)}
        case Apply() | Call():
            plain |= {"function": node.function, "args": _operands_to_plain(node.args)}
            if isinstance(node, Call) and node.policy != "once":
                plain["policy"] = node.policy
            if isinstance(node, Call) and node.variant is not None:
                plain["variant"] = node.variant
        case Switch():
            plain |= {
                "on": _operand_to_plain(node.on),
                "cases": [[key, _block_to_plain(block)] for key, block in node.cases],
            }
            if node.default is not None:
                plain["default"] = _block_to_plain(node.default)
        case Repeat():
            plain |= {
                "body": _block_to_plain(node.body),
                "until": _operand_to_plain(node.until),
                "at_most": node.at_most,
                "stride": node.stride,
            }
        case Decide():
            plain |= {"how": node.how, "of": _operands_to_plain(node.of)}
            if node.need is not None:
                plain["need"] = node.need
            if node.by is not None:
                plain["by"] = _operands_to_plain(node.by)
    return plain


def _part_to_plain(part: Part) -> Any:
    match part:
        case str():
            return part
        case RoleStart():
            texts = {"tools": part.tools, "template_options": part.template_options}
            return {"role": part.role} | {name: json.loads(text) for name, text in texts.items() if text is not None}
        case RoleEnd():
            return {"role": None}
        case TokenIds():
            return {"tokens": list(part.ids)}
        case _:
            return _operand_to_plain(part)


def _operand_to_plain(operand: Operand) -> dict[str, Any]:
    match operand:
        case Ref():
            return {"ref": operand.node_id, "choice": operand.choice} if operand.choice else {"ref": operand.node_id}
        case Arg():
            return {"arg": operand.name}
        case Const():
            return {"value": operand.value}


def _operands_to_plain(operands: Sequence[Operand]) -> list[dict[str, Any]]:
    return [_operand_to_plain(operand) for operand in operands]


def _block_to_plain(block: Block) -> dict[str, Any]:
    plain: dict[str, Any] = {"nodes": nodes_to_plain(block.nodes), "end": block.end}
    if block.value is not None:
        plain["value"] = _operand_to_plain(block.value)
    return plain


def _marks_to_plain(marks: Marks) -> dict[str, Any]:
    return {field.name: value for field in fields(Marks) if (value := getattr(marks, field.name)) != field.default}


# Reading


def _node_from_plain(item: object, depth: int) -> Node:
    if not isinstance(item, dict):
        raise GraphError(None, "nodes", f"expected a map, not {type(item).__name__}")
    node_id = item.get("id")
    if isinstance(node_id, bool) or not isinstance(node_id, int):
        raise GraphError(None, "id", f"expected an integer, not {node_id!r:.80}")
    parent = item.get("parent")
    if parent is not None and (isinstance(parent, bool) or not isinstance(parent, int)):
        _fail(node_id, "parent", f"expected an integer or none, not {parent!r:.80}")
    name, kind, path = item.get("name"), item.get("kind"), item.get("path")
    if isinstance(kind, str) and kind in _FIELDS:
        check_fields(item, ("id", "kind", *_FIELDS[kind]), f"a {kind} node", node_id)
    match kind:
        case "text":
            parts = tuple(_part_from_plain(part, node_id) for part in _list(item, node_id, "parts"))
            return Text(node_id, parent, parts, _marks(item, node_id))
        case "generate":
            params = _params(item.get("params", {}), node_id)
            return Generate(node_id, parent, name, params, _constraint(item, node_id), _marks(item, node_id), path)
        case "select":
            choices = tuple(_list(item, node_id, "choices"))
            return Select(node_id, parent, name, choices, _method(item, node_id), _marks(item, node_id), path)
        case "apply":
            return Apply(node_id, _text(item, node_id, "function"), _operands(item, node_id, "args"), name)
        case "call":
            policy: Any = item.get("policy", "once")
            args, variant = _operands(item, node_id, "args"), item.get("variant")
            return Call(node_id, _text(item, node_id, "function"), args, name, path, policy, variant)
        case "switch":
            on, cases = _operand(item.get("on"), node_id, "on"), _cases(item, node_id, depth)
            default = item.get("default")
            block = None if default is None else _block(default, node_id, "default", depth)
            return Switch(node_id, parent, on, cases, block, name, path)
        case "repeat":
            body, until = (
                _block(item.get("body"), node_id, "body", depth),
                _operand(item.get("until"), node_id, "until"),
            )
            at_most, stride = _int(item, node_id, "at_most"), _int(item, node_id, "stride")
            return Repeat(node_id, parent, body, until, at_most, stride, name, path)
        case "decide":
            need = None if item.get("need") is None else _int(item, node_id, "need")
            by = None if item.get("by") is None else _operands(item, node_id, "by")
            how: Any = _text(item, node_id, "how")
            return Decide(node_id, how, _operands(item, node_id, "of"), need, by, name, path)
    raise GraphError(node_id, "kind", f"expected one of {', '.join(KINDS)}, not {kind!r:.80}")


def _fail(node_id: int, field: str, reason: str) -> NoReturn:
    raise GraphError(node_id, field, reason)


def _list(item: dict[str, Any], node_id: int, field: str) -> list[Any]:
    return list_from_plain(item.get(field), node_id, field)


def _text(item: dict[str, Any], node_id: int, field: str) -> str:
    value = item.get(field)
    if not isinstance(value, str):
        _fail(node_id, field, f"expected text, not {type(value).__name__}")
    return value


def _int(item: dict[str, Any], node_id: int, field: str) -> int:
    value = item.get(field)
    if isinstance(value, bool) or not isinstance(value, int):
        _fail(node_id, field, f"expected an integer, not {value!r:.80}")
    return value


def _operands(item: dict[str, Any], node_id: int, field: str) -> tuple[Operand, ...]:
    return tuple(_operand(each, node_id, field) for each in _list(item, node_id, field))


def _operand(plain: object, node_id: int, field: str) -> Operand:
    if isinstance(plain, dict):
        known = next((fields for fields in _OPERAND_FIELDS if fields[0] in plain), None)
        if known is not None:
            check_fields(plain, known, "an operand", node_id)
        if isinstance(ref := plain.get("ref"), int) and isinstance(choice := plain.get("choice", 0), int):
            return Ref(ref, choice)
        if isinstance(name := plain.get("arg"), str):
            return Arg(name)
        if "value" in plain:
            found = Const(plain["value"])
            # Measured here, since large graphs are read beside the event loop. `NodeChecks` refuses values that cannot be measured.
            with suppress(ValueError, TypeError):
                found.measured()
            return found
    _fail(node_id, field, f"expected a map with ref, arg or value, not {plain!r:.80}")


def _tools(plain: object, node_id: int) -> str | None:
    if plain is None:
        return None
    try:
        return tools_to_text(list_from_plain(plain, node_id, "parts"))
    except ValueError as error:
        raise GraphError(node_id, "parts", f"tools: {error}") from None


def _template_options(plain: object, node_id: int) -> str | None:
    try:
        return None if plain is None else TemplateOptions.from_plain(plain).text
    except ParameterError as error:
        raise GraphError(node_id, "parts", str(error)) from None


def _part_from_plain(part: object, node_id: int) -> Part:
    if isinstance(part, str):
        return part
    if isinstance(part, dict):
        known = next((fields for fields in _PART_FIELDS if fields[0] in part), None)
        if known is not None:
            check_fields(part, known, "a part", node_id)
    if isinstance(part, dict) and "role" in part:
        if part["role"] is None:
            return RoleEnd()
        options = _template_options(part.get("template_options"), node_id)
        return RoleStart(part["role"], _tools(part.get("tools"), node_id), options)
    if isinstance(part, dict) and "tokens" in part:
        return TokenIds(tuple(list_from_plain(part["tokens"], node_id, "parts")))
    if isinstance(part, dict) and ("ref" in part or "arg" in part):
        operand = _operand(part, node_id, "parts")
        if not isinstance(operand, Const):
            return operand
    _fail(node_id, "parts", f"expected a string or a map with ref, arg, role or tokens, not {part!r:.80}")


def _cases(item: dict[str, Any], node_id: int, depth: int) -> tuple[tuple[Any, Block], ...]:
    cases = []
    for case in _list(item, node_id, "cases"):
        if not isinstance(case, (list, tuple)) or len(case) != 2:
            _fail(node_id, "cases", "expected pairs of a key and a block")
        cases.append((case[0], _block(case[1], node_id, "cases", depth)))
    return tuple(cases)


def _block(plain: object, node_id: int, field: str, depth: int) -> Block:
    if depth >= _MAX_DEPTH:
        _fail(node_id, field, f"blocks are nested more than {_MAX_DEPTH} levels deep")
    if not isinstance(plain, dict):
        _fail(node_id, field, f"expected a map with nodes, end and value, not {type(plain).__name__}")
    check_fields(plain, ("nodes", "end", "value"), "a block", node_id)
    end = plain.get("end")
    if end is not None and (isinstance(end, bool) or not isinstance(end, int)):
        _fail(node_id, f"{field}.end", f"expected an integer or none, not {end!r:.80}")
    nodes = tuple(
        _node_from_plain(each, depth + 1) for each in list_from_plain(plain.get("nodes"), node_id, f"{field}.nodes")
    )
    value = plain.get("value")
    return Block(nodes, end, None if value is None else _operand(value, node_id, f"{field}.value"))


def _marks(item: dict[str, Any], node_id: int) -> Marks:
    plain = item.get("marks")
    if plain is None:
        return NO_MARKS
    if not isinstance(plain, dict):
        _fail(node_id, "marks", f"expected a map, not {type(plain).__name__}")
    values: dict[str, Any] = {}
    for field in fields(Marks):
        if field.name in plain:
            value = plain[field.name]
            kind = type(getattr(NO_MARKS, field.name))
            if kind is str and value not in LIFETIMES:
                _fail(node_id, f"marks.{field.name}", f"expected one of {', '.join(LIFETIMES)}, not {value!r:.80}")
            if kind is not str and (type(value) is not kind or value < 0):
                _fail(node_id, f"marks.{field.name}", f"expected a non-negative {kind.__name__}, not {value!r:.80}")
            values[field.name] = value
    return Marks(**values)  # unknown hints of newer compilers are ignored


def _params(plain: object, node_id: int) -> SamplingParams:
    if not isinstance(plain, dict):
        _fail(node_id, "params", f"expected a map, not {type(plain).__name__}")
    try:
        return SamplingParams.from_plain(plain)
    except ParameterError as error:
        raise GraphError(node_id, f"params.{error.field}", error.message) from error


def _constraint(item: dict[str, Any], node_id: int) -> Constraint | None:
    plain = item.get("constraint")
    if plain is None:
        return None
    for name in plain if isinstance(plain, dict) else ():
        if name not in _CONSTRAINT_FIELDS:
            _fail(node_id, f"constraint.{name!s:.40}", f"unknown field; expected only {', '.join(_CONSTRAINT_FIELDS)}")
    try:
        return Constraint.from_plain(plain)
    except GrammarError as error:
        field = f"constraint.{error.location}" if error.location else "constraint"
        raise GraphError(node_id, field, error.reason) from None


def _method(item: dict[str, Any], node_id: int) -> SelectMethod:
    try:
        return SelectMethod(item.get("method", SelectMethod.TOKEN_LENGTH_NORMALIZED))
    except ValueError:
        _fail(node_id, "method", f"expected one of {', '.join(SelectMethod)}, not {item.get('method')!r:.80}")
