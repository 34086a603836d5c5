"""Computes what a graph should give, node by node and without any concurrency, on plain text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from rtlang.contract.errors import ApplyError
from rtlang.contract.graph.pure_functions import apply
from rtlang.contract.request_graph import (
    Apply,
    Arg,
    Block,
    Call,
    Const,
    Decide,
    Generate,
    Node,
    Operand,
    Ref,
    Repeat,
    RequestGraph,
    RoleEnd,
    RoleStart,
    Select,
    Switch,
    Text,
)


class Failed(Exception):
    """A node, or something that it depends on, failed."""


class GraphOracle:
    """The values of all nodes that run, by the id under which they run.

    Args:
        texts: the texts of a generation or select for its prompt; raises Failed.
        calls: the value of a host call; raises Failed.
        winners: the index that each decision chose; that the choice was right is asserted.

    Attributes:
        values: a list of texts, or a list with the value, or None for a node that failed.
    """

    def __init__(
        self,
        graph: RequestGraph,
        inputs: Mapping[str, str],
        texts: Callable[[Generate | Select, str], list[str]],
        calls: Callable[[str, list[Any]], Any],
        winners: Mapping[int, int],
    ) -> None:
        self.values: dict[int, list[Any] | None] = {}
        self._inputs, self._texts, self._calls, self._winners = inputs, texts, calls, winners
        self._sequences: dict[int, str] = {}
        self._run(graph.nodes, {}, 0)

    def _run(self, nodes: tuple[Node, ...], ids: dict[int, int], offset: int) -> None:
        """Run nodes whose ids are `offset` larger than written; `ids` maps ids in the text of the graph to those that run."""
        for node in nodes:
            ids[node.node_id] = node.node_id + offset
            at = ids[node.node_id]
            try:
                self._node(node, at, ids, offset)
            except (Failed, ApplyError):
                self.values[at] = None
                self._sequences.pop(at, None)

    def _value(self, operand: Operand, ids: Mapping[int, int]) -> Any:
        match operand:
            case Const():
                return operand.value
            case Arg():
                return self._inputs[operand.name]
            case Ref():
                found = self.values[ids[operand.node_id]]
                if found is None:
                    raise Failed
                return found[operand.choice]

    def _before(self, parent: int | None, ids: Mapping[int, int]) -> str:
        if parent is None or (at := ids[parent]) == -1:
            return ""
        if at not in self._sequences:
            raise Failed
        return self._sequences[at]

    def _node(self, node: Node, at: int, ids: dict[int, int], offset: int) -> None:
        match node:
            case Text():
                pieces = [self._before(node.parent, ids)]
                for part in node.parts:
                    match part:
                        case str():
                            pieces.append(part)
                        case RoleStart() | RoleEnd():
                            raise AssertionError("chat messages have a format of their own")
                        case _:
                            pieces.append(str(self._value(part, ids)))
                self.values[at], self._sequences[at] = [], "".join(pieces)
            case Generate() | Select():
                before = self._before(node.parent, ids)
                texts = self._texts(node, before)
                self.values[at] = list(texts)
                self._sequences[at] = before + texts[0]
            case Apply():
                self.values[at] = [apply(node.function, [self._value(each, ids) for each in node.args])]
            case Call():
                self.values[at] = [self._calls(node.function, [self._value(each, ids) for each in node.args])]
            case Decide():
                self.values[at] = [self._decide(node, at, ids)]
            case Switch():
                self._before(node.parent, ids)
                on = self._value(node.on, ids)
                exact = [block for key, block in node.cases if type(key) is type(on) and key == on]
                block = exact[0] if exact else node.default
                if block is None:
                    raise Failed
                self._finish(
                    at, *self._block(block, node, {**ids, node.node_id: self._entry(node.parent, ids)}, offset)
                )
            case Repeat():
                self._before(node.parent, ids)
                entry = self._entry(node.parent, ids)
                for iteration in range(node.at_most):
                    inner = {**ids, node.node_id: entry}
                    result, entry = self._block(node.body, node, inner, offset + iteration * node.stride)
                    if self._value(node.until, inner):
                        break
                self._finish(at, result, entry)

    def _entry(self, parent: int | None, ids: Mapping[int, int]) -> int:
        return -1 if parent is None else ids[parent]

    def _finish(self, at: int, value: Any, end: int) -> None:
        self.values[at] = [value]
        self._sequences[at] = "" if end == -1 else self._sequences[end]

    def _block(self, block: Block, node: Switch | Repeat, ids: dict[int, int], offset: int) -> tuple[Any, int]:
        self._run(block.nodes, ids, offset)
        end = ids[node.node_id] if block.end is None else ids[block.end]
        if end != -1 and end not in self._sequences:
            raise Failed
        return None if block.value is None else self._value(block.value, ids), end

    def _decide(self, node: Decide, at: int, ids: Mapping[int, int]) -> list[Any]:
        known: dict[int, Any] = {}
        for index, operand in enumerate(node.of):
            try:
                known[index] = self._value(operand, ids)
                if node.by is not None:
                    self._value(node.by[index], ids)
            except Failed:
                known.pop(index, None)
        if not known:
            raise Failed
        winner = self._winners.get(at)
        if winner is None:  # it was cancelled
            raise Failed
        assert winner in known
        if node.by is not None:
            rates = {index: self._value(node.by[index], ids) for index in known}
            assert winner == max(known, key=lambda index: (rates[index], -index))
        if node.how == "vote":
            votes = Counter(repr(value) for value in known.values())
            mine = votes[repr(known[winner])]
            if node.need is None or mine < node.need:
                firsts = {repr(value): index for index, value in reversed(known.items())}
                assert repr(known[winner]) == max(votes, key=lambda key: (votes[key], -firsts[key]))
        return [winner, known[winner]]
