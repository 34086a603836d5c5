"""Copies of the blocks of control nodes, with the ids and parents that they have when they run."""

from __future__ import annotations

from dataclasses import replace

from rtlang.contract.graph import (
    Apply,
    Block,
    Call,
    Decide,
    Generate,
    Node,
    Operand,
    Part,
    Ref,
    Repeat,
    Select,
    Switch,
    Text,
)


def placed(block: Block, control_id: int, entry: int | None, offset: int = 0) -> Block:
    """A copy of a block of the node `control_id` that runs after the node `entry`.

    Args:
        entry: the node whose sequence is that at entry; None for an empty sequence.
        offset: is added to the ids of the block, those of nested blocks included.
    """
    return _Placing(control_id, entry, offset).block(block)


class _Placing:
    def __init__(self, control_id: int, entry: int | None, offset: int) -> None:
        self._control_id, self._entry, self._offset = control_id, entry, offset

    def block(self, block: Block) -> Block:
        end = None if block.end is None else self._id(block.end)
        value = None if block.value is None else self.operand(block.value)
        return Block(tuple(map(self._node, block.nodes)), end, value)

    def operand(self, operand: Operand) -> Operand:
        return self._ref(operand) if isinstance(operand, Ref) else operand

    def _id(self, node_id: int) -> int:
        return node_id + self._offset if node_id > self._control_id else node_id

    def _parent(self, node_id: int | None) -> int | None:
        if node_id is None:
            return None
        return self._entry if node_id == self._control_id else self._id(node_id)

    def _ref(self, ref: Ref) -> Ref:
        return Ref(self._id(ref.node_id), ref.choice)

    def _part(self, part: Part) -> Part:
        return self._ref(part) if isinstance(part, Ref) else part

    def _operands(self, operands: tuple[Operand, ...]) -> tuple[Operand, ...]:
        return tuple(map(self.operand, operands))

    def _node(self, node: Node) -> Node:
        node_id = self._id(node.node_id)
        match node:
            case Text():
                return replace(
                    node, node_id=node_id, parent=self._parent(node.parent), parts=tuple(map(self._part, node.parts))
                )
            case Generate() | Select():
                return replace(node, node_id=node_id, parent=self._parent(node.parent))
            case Apply() | Call():
                return replace(node, node_id=node_id, args=self._operands(node.args))
            case Decide():
                by = None if node.by is None else self._operands(node.by)
                return replace(node, node_id=node_id, of=self._operands(node.of), by=by)
            case Switch():
                return replace(
                    node,
                    node_id=node_id,
                    parent=self._parent(node.parent),
                    on=self.operand(node.on),
                    cases=tuple((key, self.block(block)) for key, block in node.cases),
                    default=None if node.default is None else self.block(node.default),
                )
            case Repeat():
                return replace(
                    node,
                    node_id=node_id,
                    parent=self._parent(node.parent),
                    body=self.block(node.body),
                    until=self.operand(node.until),
                )


def placed_until(node: Repeat, offset: int) -> Operand:
    """The operand `until` of the iteration whose ids are `offset` above those of the body."""
    return _Placing(node.node_id, None, offset).operand(node.until)


def chosen_block(node: Switch, value: object) -> Block | None:
    """The block of the case that equals `value`, or the default; None if there is neither. True and 1 are different cases."""
    for key, block in node.cases:
        if type(key) is type(value) and key == value:
            return block
    for key, block in node.cases:  # 1 and 1.0 are the same number
        if key == value and not isinstance(key, bool) and not isinstance(value, bool):
            return block
    return node.default
