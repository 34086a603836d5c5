"""Copies of the blocks of control nodes, with the ids and parents that they have when they run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rtlang.contract.graph.node_paths import at_turn
from rtlang.contract.request_graph import (
    Apply,
    Block,
    Call,
    Const,
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
    blocks_of,
    path_of,
)


def placed(block: Block, control_id: int, entry: int | None, offset: int = 0, turn: int | None = None) -> Block:
    """A copy of a block, see `BlockPlacement`."""
    placement = BlockPlacement(control_id, entry, offset, turn)
    nodes = tuple(node for node in placement.nodes(block) if node is not None)
    return Block(nodes, placement.end(block), placement.value(block))


class BlockPlacement:
    """Copies the nodes of a block of the node `control_id` for one run after the node `entry`.

    Args:
        entry: the node whose sequence is that at entry; None for an empty sequence.
        offset: is added to the ids of the block, those of nested blocks included.
        turn: the number of the turn if the block is the body of a loop, for the paths of its nodes and for references to the loop.
    """

    def __init__(self, control_id: int, entry: int | None, offset: int = 0, turn: int | None = None) -> None:
        self._control_id, self._entry, self._offset, self._turn = control_id, entry, offset, turn

    def nodes(self, block: Block) -> Iterator[Node | None]:
        """The copies, made one by one; None stands for one of a nested block, so that the caller can pause after any of them."""
        for node in block.nodes:
            if not isinstance(node, (Switch, Repeat)):
                yield self._node(node)
                continue
            inner: list[Block] = []
            for each in blocks_of(node):
                nodes: list[Node] = []
                for copy in self.nodes(each):
                    if copy is not None:
                        nodes.append(copy)
                    yield None
                inner.append(Block(tuple(nodes), self.end(each), self.value(each)))
            yield self._control(node, inner)

    def end(self, block: Block) -> int | None:
        """The id of the node with whose sequence the copy ends."""
        return None if block.end is None else self._id(block.end)

    def value(self, block: Block) -> Operand | None:
        """The value of the copy."""
        return None if block.value is None else self.operand(block.value)

    def operand(self, operand: Operand) -> Operand:
        """An operand of the copy."""
        if not isinstance(operand, Ref):
            return operand
        return Const(self._turn) if self._is_turn(operand) else self._ref(operand)

    def _is_turn(self, ref: Ref) -> bool:
        return self._turn is not None and ref.node_id == self._control_id

    def _id(self, node_id: int) -> int:
        return node_id + self._offset if node_id > self._control_id else node_id

    def _parent(self, node_id: int | None) -> int | None:
        if node_id is None:
            return None
        return self._entry if node_id == self._control_id else self._id(node_id)

    def _ref(self, ref: Ref) -> Ref:
        return Ref(self._id(ref.node_id), ref.choice)

    def _part(self, part: Part) -> Part:
        if not isinstance(part, Ref):
            return part
        return str(self._turn) if self._is_turn(part) else self._ref(part)

    def _operands(self, operands: tuple[Operand, ...]) -> tuple[Operand, ...]:
        return tuple(map(self.operand, operands))

    def _path(self, node: Node) -> str | None:
        path = path_of(node)
        return path if path is None or self._turn is None else at_turn(path, self._turn)

    def _node(self, node: Node) -> Node:
        node_id = self._id(node.node_id)
        match node:
            case Text():
                return replace(
                    node, node_id=node_id, parent=self._parent(node.parent), parts=tuple(map(self._part, node.parts))
                )
            case Generate() | Select():
                return replace(node, node_id=node_id, parent=self._parent(node.parent), path=self._path(node))
            case Apply():
                return replace(node, node_id=node_id, args=self._operands(node.args))
            case Call():
                return replace(node, node_id=node_id, args=self._operands(node.args), path=self._path(node))
            case Decide():
                by = None if node.by is None else self._operands(node.by)
                return replace(node, node_id=node_id, of=self._operands(node.of), by=by, path=self._path(node))
            case _:
                raise AssertionError("control nodes have blocks")

    def _control(self, node: Switch | Repeat, blocks: list[Block]) -> Node:
        """The copy of a control node with the copies of its blocks, in the order of `blocks_of`."""
        node_id, parent, path = self._id(node.node_id), self._parent(node.parent), self._path(node)
        if isinstance(node, Repeat):
            until = self.operand(node.until)
            return replace(node, node_id=node_id, parent=parent, body=blocks[0], until=until, path=path)
        cases = tuple((key, block) for (key, _), block in zip(node.cases, blocks, strict=False))
        default = None if node.default is None else blocks[-1]
        on = self.operand(node.on)
        return replace(node, node_id=node_id, parent=parent, on=on, cases=cases, default=default, path=path)


def placed_until(node: Repeat, offset: int) -> Operand:
    """The operand `until` of the iteration whose ids are `offset` above those of the body."""
    return BlockPlacement(node.node_id, None, offset, offset // node.stride).operand(node.until)


def chosen_block(node: Switch, value: object) -> Block | None:
    """The block of the case that equals `value`, or the default; None if there is neither. True and 1 are different cases."""
    for key, block in node.cases:
        if type(key) is type(value) and key == value:
            return block
    for key, block in node.cases:  # 1 and 1.0 are the same number
        if key == value and not isinstance(key, bool) and not isinstance(value, bool):
            return block
    return node.default
