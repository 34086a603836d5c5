"""Which nodes of branches and loops ran, found from the outcomes of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rtlang.contract.blocks import chosen_block, placed, placed_until
from rtlang.contract.events import NodeFinished
from rtlang.contract.graph.pure_functions import apply
from rtlang.contract.graph.value_text import text_of_plain
from rtlang.contract.request_graph import (
    Apply,
    Arg,
    Block,
    Const,
    Node,
    Operand,
    Part,
    Ref,
    Repeat,
    RoleEnd,
    RoleStart,
    Switch,
    Text,
    TokenIds,
    parent_of,
)


def path_parts(
    control: Switch | Repeat, nodes: Mapping[int, Node], finished: Callable[[int], NodeFinished]
) -> list[Part]:
    """The parts that a finished branch or loop has added to its sequence. Refs are to nodes by the ids under which they ran.

    Args:
        nodes: the nodes outside of the blocks.
        finished: the final event of a node.
    """
    return [part for piece in path_pieces(control, nodes, finished) for part in piece]


def path_pieces(
    control: Switch | Repeat, nodes: Mapping[int, Node], finished: Callable[[int], NodeFinished]
) -> list[Sequence[Part]]:
    """`path_parts`, divided by the nodes that added them."""
    return _Path(nodes, finished).of(control)


class _Path:
    def __init__(self, nodes: Mapping[int, Node], finished: Callable[[int], NodeFinished]) -> None:
        self._nodes, self._finished = dict(nodes), finished

    def of(self, control: Node) -> list[Sequence[Part]]:
        if isinstance(control, Switch):
            block = chosen_block(control, self._value(control.on))
            assert block is not None
            return self._block(placed(block, control.node_id, control.parent), control.parent)
        assert isinstance(control, Repeat)
        pieces: list[Sequence[Part]] = []
        entry = control.parent
        for iteration in range(control.at_most):
            offset = iteration * control.stride
            block = placed(control.body, control.node_id, entry, offset, iteration)
            pieces += self._block(block, entry)
            if self._value(placed_until(control, offset)):
                break
            entry = entry if block.end is None else block.end
        return pieces

    def _block(self, block: Block, entry: int | None) -> list[Sequence[Part]]:
        self._nodes.update((node.node_id, node) for node in block.nodes)
        found: list[Sequence[Sequence[Part]]] = []
        at = entry if block.end is None else block.end
        while at is not None and at != entry:
            node = self._nodes[at]
            match node:
                case Text():
                    found.append([[self._part(part) for part in node.parts]])
                case Switch() | Repeat():
                    found.append(self.of(node))
                case _:
                    found.append([(Ref(at),)])
            at = parent_of(node)
        return [piece for pieces in reversed(found) for piece in pieces]

    def _part(self, part: Part) -> Part:
        if isinstance(part, (str, RoleStart, RoleEnd, Arg, TokenIds)):
            return part
        return text_of_plain(self._value(part))

    def _value(self, operand: Operand) -> Any:
        match operand:
            case Const():
                return operand.value
            case Ref():
                node = self._nodes[operand.node_id]
                if isinstance(node, Apply):
                    return apply(node.function, [self._value(each) for each in node.args])
                end = self._finished(operand.node_id)
                return end.completions[operand.choice].text if end.completions else end.value
        raise AssertionError("a graph of a run has no inputs")
