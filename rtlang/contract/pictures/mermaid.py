"""A request graph as the text of a Mermaid flowchart."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from rtlang.contract.graph.nodes import Node, Ref, Repeat, operands_of, parent_of
from rtlang.contract.pictures.labels import Label, label_of, names_of, printable, shortened, titled_blocks

MAX_LABEL_CHARS = 80

_SHAPES = {
    "text": ("[", "]"),
    "gen": ("([", "])"),
    "select": ("{{", "}}"),
    "apply": ("[/", "/]"),
    "call": ("[[", "]]"),
    "switch": ("{", "}"),
    "repeat": ("[(", ")]"),
    "first": (">", "]"),
    "vote": (">", "]"),
    "best": (">", "]"),
}
_ESCAPES = {
    **{code: f"#{code};" for code in range(0x20, 0x7F) if not chr(code).isalnum() and chr(code) not in " .,_+-=()…"},
    **dict.fromkeys((0x0A, 0x2028, 0x2029), "⏎"),
    0x09: " ",
}
# Mermaid reads these even where they are escaped: a new line, a formula, an icon. A space without width behind them prevents it.
_SPECIAL = re.compile(r"\\(?=n)|\$(?=\$)|fa[a-z]?:(?=\S)")


def mermaid(nodes: Sequence[Node]) -> str:
    """A flowchart from top to bottom.

    A node `n<id>` for each node. Solid arrows continue a sequence, dashed arrows pass a value. Each block of a branch or loop is a
    subgraph; a node in it that continues the sequence at entry has a solid arrow from the control node.
    """
    names = names_of(nodes)
    lines = ["flowchart TD"]
    arrows: list[str] = []
    _add(nodes, names, lines, arrows, "    ")
    return "\n".join([*lines, *arrows]) + "\n"


def _add(nodes: Sequence[Node], names: Mapping[int, str], lines: list[str], arrows: list[str], indent: str) -> None:
    for node in nodes:
        lines.append(indent + _node(node.node_id, label_of(node, names)))
        parent = parent_of(node)
        if parent is not None:
            arrows.append(f"    n{parent} --> n{node.node_id}")
        arrows.extend(f"    n{each} -.-> n{node.node_id}" for each in value_sources(node))
        for number, (title, block) in enumerate(titled_blocks(node, names)):
            if not block.nodes:
                continue
            lines.append(f'{indent}subgraph b{node.node_id}_{number}["{_escaped(title)}"]')
            _add(block.nodes, names, lines, arrows, indent + "    ")
            lines.append(f"{indent}end")


def value_sources(node: Node) -> list[int]:
    """Ids of the nodes whose values a node reads itself, those that its blocks read not included, each once."""
    operands = operands_of(node)
    if isinstance(node, Repeat):
        operands = (node.until,)
    return list(dict.fromkeys(each.node_id for each in operands if isinstance(each, Ref)))


def _node(node_id: int, label: Label) -> str:
    left, right = _SHAPES[label.kind]
    text = _escaped(label.text)
    notes = _escaped(", ".join((*label.notes, *label.marks)))
    body = "<br/>".join(each for each in (f"<b>{_escaped(label.title)}</b>", text, notes) if each.strip())
    return f'n{node_id}{left}"{body}"{right}'


def _escaped(text: str) -> str:
    line = printable(shortened(text.strip(" "), MAX_LABEL_CHARS))
    return _SPECIAL.sub("\\g<0>\u200b", line).translate(_ESCAPES)
