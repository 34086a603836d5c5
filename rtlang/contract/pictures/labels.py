"""The words in pictures: labels of nodes, and text that fits into a given width and can be put into any document."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rtlang.contract.graph.nodes import (
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
    blocks_of,
    name_of,
)
from rtlang.contract.params import SamplingParams, SelectMethod

MAX_TEXT_CHARS = 400
"""Longer texts are cut in the middle before they are measured."""

_REPLACED: dict[int, str | int | None] = {
    **{
        code: f"‹U+{code:04X}›"
        for code in (
            *range(9),
            *range(0x0B, 0x20),
            *range(0x202A, 0x202F),
            *range(0x2066, 0x206A),
            0x7F,
            0x200E,
            0x200F,
            0x061C,
        )
    },
    **dict.fromkeys((*range(0x80, 0xA0), *range(0xD800, 0xE000), *range(0xFDD0, 0xFDF0), 0xFFFE, 0xFFFF), 0xFFFD),
}


@dataclass(frozen=True, slots=True)
class Label:
    """The words about a node.

    Attributes:
        kind: the kind of node: text, gen, select, apply, call, switch, repeat, first, vote or best.
        title: its name, or what takes the place of one.
        text: its content.
        notes: options that differ from the default.
        marks: the hints of the compiler.
    """

    kind: str
    title: str
    text: str
    notes: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()


def printable(text: str) -> str:
    """The text without characters that a document cannot hold or that change the direction of the text around them."""
    return text.translate(_REPLACED)


_UNNAMED = re.compile(r"(^|/)gen(#\d+)?(\[\d+\])?$")


def names_of(nodes: Iterable[Node]) -> dict[int, str]:
    """The names of nodes by id, those in blocks included: the function of a value without a name, the path of a part of a generation."""
    found: dict[int, str] = {}
    todo = list(nodes)
    while todo:
        node = todo.pop()
        name = name_of(node)
        if name is not None:
            found[node.node_id] = name
        elif isinstance(node, Generate) and node.path is not None and not _UNNAMED.search(node.path):
            found[node.node_id] = node.path  # a candidate, an attempt, or reasoning
        elif isinstance(node, (Apply, Call)):
            found[node.node_id] = node.function
        elif isinstance(node, (Switch, Repeat, Decide)):
            found[node.node_id] = node.how if isinstance(node, Decide) else type(node).__name__.lower()
        for block in blocks_of(node):
            todo.extend(block.nodes)
    return found


def label_of(node: Node, names: Mapping[int, str]) -> Label:
    """The label of a node. `names`: see `names_of`."""
    match node:
        case Text():
            roles = [part.role for part in node.parts if isinstance(part, RoleStart)]
            words = "".join(_of_part(part, names) for part in node.parts)
            return Label("text", " › ".join(roles) or "text", words, (), _of_marks(node.marks))
        case Generate():
            notes = (*_of_constraint(node), *_of_params(node.params))
            return Label("gen", node.name or names.get(node.node_id, "(unnamed)"), "", notes, _of_marks(node.marks))
        case Select():
            is_usual = node.method is SelectMethod.TOKEN_LENGTH_NORMALIZED
            notes = () if is_usual else (str(node.method.value).replace("_", " "),)
            return Label("select", node.name or "(unnamed)", " | ".join(node.choices), notes, _of_marks(node.marks))
        case Apply() | Call():
            words = f"{node.function}({', '.join(of_operand(each, names) for each in node.args)})"
            kind = "apply" if isinstance(node, Apply) else "call"
            return Label(kind, node.name or node.function, words)
        case Switch():
            return Label("switch", node.name or "switch", f"on {of_operand(node.on, names)}")
        case Repeat():
            return Label(
                "repeat", node.name or "repeat", f"until {of_operand(node.until, names)}", (f"≤ {node.at_most} times",)
            )
        case Decide():
            of = ", ".join(of_operand(each, names) for each in node.of)
            by = "" if node.by is None else f" by {', '.join(of_operand(each, names) for each in node.by)}"
            notes = () if node.need is None else (f"needs {node.need} equal",)
            return Label(node.how, node.name or node.how, f"of {of}{by}", notes)


def titled_blocks(node: Node, names: Mapping[int, str]) -> list[tuple[str, Block]]:
    """The blocks of a control node and their titles."""
    match node:
        case Switch():
            found = [(_of_plain(key), block) for key, block in node.cases]
            return found if node.default is None else [*found, ("otherwise", node.default)]
        case Repeat():
            return [("each time", node.body)]
        case _:
            return []


def of_operand(operand: Operand, names: Mapping[int, str]) -> str:
    """An operand: the name of a node or input in braces, or a constant."""
    match operand:
        case Ref():
            name = names.get(operand.node_id, f"#{operand.node_id}")
            return "{" + name + (f"[{operand.choice}]" if operand.choice else "") + "}"
        case Arg():
            return "{" + operand.name + "}"
        case Const():
            return _of_plain(operand.value)


def shortened(text: str, limit: int) -> str:
    """The text, cut in the middle if it has more than `limit` characters."""
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    return f"{text[:head]}…{text[-(limit - head - 1) :]}"


def width_of(text: str, size: float) -> float:
    """A generous estimate of the width of a line in a font without serifs of this size, in the same unit."""
    return sum(map(_width, text)) * size


def fitted(text: str, size: float, width: float) -> str:
    """The text on one line, cut at the end to the width."""
    line = " ".join(printable(text[: MAX_TEXT_CHARS + 1]).split())
    if width_of(line, size) <= width:
        return line
    room = width - width_of("…", size)
    end = 0
    for end, character in enumerate(line):  # noqa: B007 - the end is what is looked for
        room -= _width(character) * size
        if room < 0:
            break
    return line[:end].rstrip() + "…"


def wrapped(text: str, size: float, width: float, most: int) -> list[str]:
    """The text in at most `most` lines of this width, broken at spaces where possible; the last is cut."""
    rest = " ".join(printable(shortened(text, MAX_TEXT_CHARS)).split())
    lines: list[str] = []
    while rest and len(lines) < most - 1 and width_of(rest, size) > width:
        room, end = width, 0
        for end, character in enumerate(rest):  # noqa: B007
            room -= _width(character) * size
            if room < 0:
                break
        space = rest.rfind(" ", 0, end + 1)
        at = space if space > end // 2 else max(end, 1)
        lines.append(rest[:at].rstrip())
        rest = rest[at:].lstrip()
    if rest:
        lines.append(fitted(rest, size, width))
    return lines


def _width(character: str) -> float:
    if character in "iljtfI.,:;'|!()[] ‹›":
        return 0.36
    if character.isascii():
        return 0.94 if character in "mwMW@%" else 0.7 if character.isupper() or character in "<>=+~#{}&" else 0.63
    if unicodedata.combining(character):
        return 0.0
    return 1.1 if unicodedata.east_asian_width(character) in "WF" else 0.68


def _of_part(part: Part, names: Mapping[int, str]) -> str:
    match part:
        case str():
            return part
        case RoleStart() | RoleEnd():
            return " "
        case TokenIds():
            return part.text or f"[{len(part.ids)} tokens]"
        case _:
            return of_operand(part, names)


def _of_constraint(node: Generate) -> tuple[str, ...]:
    if node.constraint is None:
        return ()
    kind = str(node.constraint.kind.value).replace("_", " ")
    return (kind,)


def _of_params(params: SamplingParams) -> tuple[str, ...]:
    notes = [f"≤ {params.max_tokens} tokens"]
    if params.n > 1:
        notes.append(f"n = {params.n}")
    if params.best_of > 1:
        notes.append(f"best of {params.best_of}")
    if params.temperature:
        notes.append(f"temperature {params.temperature:g}")
    if params.seed is not None:
        notes.append(f"seed {params.seed}")
    if params.stop:
        notes.append("stop " + " ".join(json.dumps(each, ensure_ascii=False) for each in params.stop))
    return tuple(notes)


def _of_marks(marks: Marks) -> tuple[str, ...]:
    notes = []
    if marks.is_constant:
        notes.append("constant")
    if marks.lifetime == "program":
        notes.append("kept while the program is open")
    if not marks.is_urgent:
        notes.append("not urgent")
    return tuple(notes)


def _of_plain(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)
