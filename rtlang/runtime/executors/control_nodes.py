"""Runs switch and repeat nodes: adds the nodes of the block that runs, and goes on when the block has ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from rtlang.contract.blocks import BlockPlacement, chosen_block, placed_until
from rtlang.contract.errors import RequestError, SwitchError
from rtlang.contract.graph.value_text import shown
from rtlang.contract.request_graph import MAX_NODES, Block, Node, Operand, Repeat, Switch, node_bytes
from rtlang.runtime.nodes.graph_retention import GraphRetention
from rtlang.runtime.nodes.node_ends import NodeEnds, Stopped
from rtlang.runtime.nodes.node_table import NodeTable
from rtlang.runtime.nodes.slots import operand_slots
from rtlang.runtime.nodes.work_slices import WorkSlices
from rtlang.runtime.texts.token_sequence import TokenSequence

COMPARE_US = 0.03
"""Of an item of a value that is compared with a case."""


@dataclass(slots=True)
class _Running:
    """A running control node: the start time, the node before the current block, and the number of the iteration."""

    started: float
    entry: int | None = None
    iteration: int = 0


class ControlNodes:
    """See `Executor`.

    Args:
        on_expand: called with a control node's id and the nodes of a block before they start.
        add: adds nodes to the graph.
        reserve: see `Host`.
    """

    def __init__(
        self,
        table: NodeTable,
        ends: NodeEnds,
        slices: WorkSlices,
        retention: GraphRetention,
        on_expand: Callable[[int, Sequence[Node]], None],
        add: Callable[[Sequence[Node]], None],
        reserve: Callable[[int], None],
    ) -> None:
        self._table, self._ends, self._slices, self._retention = table, ends, slices, retention
        self._on_expand, self._add, self._reserve = on_expand, add, reserve
        self._running: dict[int, _Running] = {}

    def start(self, node: Switch | Repeat, before: TokenSequence) -> None:
        """See `Executor.start`."""
        if isinstance(node, Repeat):
            self._running[node.node_id] = _Running(self._ends.clock(), node.parent)
            self._iterate(node)
            return
        value = self._table.measured(node.on)
        self._running[node.node_id] = _Running(self._ends.clock(), node.parent)
        price_us = COMPARE_US * value.size * (1 + len(node.cases))
        self._slices.do(
            price_us, partial(chosen_block, node, value.value), partial(self._run_chosen, node, value.value)
        )

    def _run_chosen(self, node: Switch, value: Any, block: Block | Exception | None) -> None:
        """The value was compared with the cases."""

        def run() -> None:
            if isinstance(block, Exception):
                raise block
            if block is None:
                raise SwitchError(shown(value), [shown(key) for key, _ in node.cases])
            self._run_block(node, block)

        self._ends.guard(node, (), run)

    def _iterate(self, node: Repeat) -> None:
        offset = self._running[node.node_id].iteration * node.stride
        self._run_block(node, node.body, offset, placed_until(node, offset))

    def _run_block(self, node: Switch | Repeat, block: Block, offset: int = 0, until: Operand | None = None) -> None:
        control = self._running[node.node_id]
        num_nodes = len(self._table.nodes) + self._slices.num_arriving
        if num_nodes + len(block.nodes) > MAX_NODES:
            raise RequestError(f"the graph has run {num_nodes} nodes; at most {MAX_NODES} are allowed")
        if offset:  # the first block was counted with its control node
            self._reserve(sum(map(node_bytes, block.nodes)))
        turn = control.iteration if isinstance(node, Repeat) else None
        placement = BlockPlacement(node.node_id, control.entry, offset, turn)
        value, end = placement.value(block), control.entry if block.end is None else placement.end(block)
        slots = operand_slots((value, until)) | ({(end, None)} if end is not None else set())
        act = partial(self._ends.guard, node, slots, partial(self._end_block, node, value, end, until))

        def await_block() -> None:
            if node.node_id not in self._table.ended:  # it may have been cancelled meanwhile
                self._retention.run_block(node.node_id, end)
                self._table.wait(slots, act)

        inner = self._table.uses.prepared(placement.nodes(block))
        self._slices.add_later(inner, len(block.nodes), partial(self._add_inner, node.node_id), await_block)

    def _add_inner(self, control_id: int, inner: Sequence[Node]) -> None:
        if control_id not in self._table.ended:
            self._on_expand(control_id, inner)
            self._table.uses.add_parts(control_id, [each.node_id for each in inner])
            self._add(inner)

    def _end_block(self, node: Switch | Repeat, value: Operand | None, end: int | None, until: Operand | None) -> None:
        control = self._running[node.node_id]
        if isinstance(node, Repeat) and until is not None and not self._table.value(until):
            control.iteration += 1
            if control.iteration < node.at_most:
                control.entry = end
                self._iterate(node)
                return
        result = None if value is None else self._table.measured(value)
        if result is not None:
            self._reserve(result.measure.num_bytes)  # it is sent
        sequence = self._table.sequence(end)
        del self._running[node.node_id]
        self._table.block_ends[node.node_id] = end
        self._ends.end_value(node, result, control.started, sequence)

    def stop(self, node: Switch | Repeat, *, is_cancelled: bool = False) -> Stopped:
        """See `Executor.stop`. The nodes of its block end by themselves."""
        self._running.pop(node.node_id, None)
        return Stopped()
