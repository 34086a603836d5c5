"""Random valid request graphs with every kind of node, from a seed."""

from __future__ import annotations

from random import Random
from typing import Any

from rtlang.contract.graph.nodes import POLICIES
from rtlang.contract.params import Constraint, ConstraintKind, SamplingParams, SelectMethod
from rtlang.contract.request_graph import (
    LIFETIMES,
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
    Ref,
    Repeat,
    RequestGraph,
    RoleEnd,
    RoleStart,
    Select,
    Switch,
    Text,
    choices_of,
    last_id,
)

TEXTS = ("", "Hello", " world", "\n", "é", "😀", "a b c", '{"x": 1}')
VALUES: tuple[Any, ...] = (None, True, 3, -2.5, "red", [1, "two"], {"a": {"b": []}})
INPUTS = ("question",)


class GraphMaker:
    """Makes nodes with increasing ids. `sequences` are nodes that may be continued, `values` nodes that have a text or value."""

    def __init__(self, random: Random, *, most_tokens: int = 4, kinds: tuple[type, ...] | None = None) -> None:
        self._random, self._most_tokens = random, most_tokens
        self._kinds = kinds or (Text, Generate, Select, Apply, Call, Switch, Repeat, Decide)
        self._next_id = 0
        self.sequences: list[int | None] = [None]
        self.values: list[tuple[int, int]] = []  # node id, number of choices

    def nodes(self, count: int, depth: int = 2) -> list[Node]:
        """At least `count` nodes, the first a text."""
        found: list[Node] = []
        for _ in range(count):
            node = self._node(depth)
            found.append(node)
            self._learn(node)
        return found

    def _learn(self, node: Node) -> None:
        self._next_id = max(self._next_id, last_id(node) + 1)
        if not isinstance(node, (Apply, Call, Decide)) and choices_of(node) <= 1:
            self.sequences.append(node.node_id)
        if not isinstance(node, Text):
            self.values.append((node.node_id, choices_of(node)))

    def _id(self) -> int:
        self._next_id += 1 + (self._random.random() < 0.2)
        return self._next_id - 1

    def _parent(self) -> int | None:
        return self._random.choice(self.sequences[-3:])

    def _operand(self) -> Operand:
        kind = self._random.random()
        if self.values and kind < 0.7:
            node_id, num_choices = self._random.choice(self.values)
            return Ref(node_id, self._random.randrange(num_choices))
        return Arg(INPUTS[0]) if kind < 0.8 else Const(self._random.choice(VALUES))

    def _operands(self, most: int = 3, least: int = 0) -> tuple[Operand, ...]:
        return tuple(self._operand() for _ in range(self._random.randint(least, most)))

    def _name(self) -> str | None:
        return self._random.choice((None, "a", "b", "some.name"))

    def _node(self, depth: int) -> Node:
        random = self._random
        kinds = self._kinds if depth else tuple(kind for kind in self._kinds if kind not in (Switch, Repeat))
        kind = Text if self.sequences == [None] else random.choice(kinds)
        if kind is Text:
            pieces = [
                random.choice(TEXTS),
                *(operand for operand in self._operands(2) if not isinstance(operand, Const)),
            ]
            if random.random() < 0.2:
                pieces = [RoleStart(random.choice(("user", "assistant"))), *pieces, RoleEnd()]
            return Text(self._id(), self._parent(), tuple(pieces), self._marks())
        if kind is Generate:
            n = random.choice((1, 1, 1, 2, 3))
            params = SamplingParams(max_tokens=random.randint(1, self._most_tokens), n=n, seed=random.choice((None, 5)))
            constraint = Constraint(ConstraintKind.REGEX, "[ab]{1,2}") if random.random() < 0.2 else None
            return Generate(self._id(), self._parent(), self._name(), params, constraint, self._marks())
        if kind is Select:
            choices = tuple(random.sample(("red", "green", "blue"), random.randint(1, 3)))
            method = random.choice(list(SelectMethod))
            return Select(self._id(), self._parent(), self._name(), choices, method, self._marks())
        if kind is Apply:
            function, args = random.choice(
                (
                    ("str", (self._operand(),)),
                    ("list", self._operands()),
                    ("item", (self._operand(), Const(0))),
                    ("upper", (self._operand(),)),
                )
            )
            return Apply(self._id(), function, args, self._name())
        if kind is Call:
            policy = random.choice(POLICIES)
            return Call(self._id(), random.choice(("search", "lookup")), self._operands(), self._name(), policy=policy)
        if kind is Decide:
            return self._decide()
        return self._switch(depth) if kind is Switch else self._repeat(depth)

    def _marks(self) -> Marks:
        if self._random.random() < 0.5:
            return Marks()
        return Marks(self._random.randrange(9), self._random.choice(LIFETIMES), is_urgent=False)

    def _decide(self) -> Node:
        of = self._operands(4, least=1)
        how: Any = self._random.choice(("first", "vote", "best"))
        need = self._random.choice((None, self._random.randint(1, len(of)))) if how == "vote" else None
        by = tuple(Const(self._random.random()) for _ in of) if how == "best" else None
        return Decide(self._id(), how, of, need, by, self._name())

    def _switch(self, depth: int) -> Node:
        node_id, parent, on = self._id(), self._parent(), self._operand()
        keys = self._random.sample(("red", "green", "Hello", 1, True, None), self._random.randint(1, 3))
        cases = tuple((key, self._block(node_id, depth)) for key in keys)
        default = self._block(node_id, depth) if self._random.random() < 0.7 else None
        return Switch(node_id, parent, on, cases, default, self._name())

    def _repeat(self, depth: int) -> Node:
        node_id, parent = self._id(), self._parent()
        maker = self._inner(node_id)
        body = maker._body(node_id, depth)
        until = maker._operand()
        stride = max(maker._next_id - 1 - node_id, 1)
        return Repeat(node_id, parent, body, until, self._random.randint(1, 3), stride, self._name())

    def _inner(self, node_id: int) -> GraphMaker:
        maker = GraphMaker(self._random, most_tokens=self._most_tokens, kinds=self._kinds)
        maker._next_id, maker.sequences = max(self._next_id, node_id + 1), [node_id]
        maker.values = list(self.values)
        return maker

    def _block(self, node_id: int, depth: int) -> Block:
        maker = self._inner(node_id)
        block = maker._body(node_id, depth)
        self._next_id = maker._next_id
        return block

    def _body(self, node_id: int, depth: int) -> Block:
        nodes = self.nodes(self._random.randint(0, 3), depth - 1)
        end = self._random.choice(self.sequences)
        value = self._operand() if self._random.random() < 0.7 else None
        return Block(tuple(nodes), None if end == node_id else end, value)


def random_graph(seed: int, *, most_nodes: int = 12, **options: Any) -> RequestGraph:
    """A valid graph with the input "question"; the same for the same seed."""
    random = Random(seed)
    maker = GraphMaker(random, **options)
    nodes = maker.nodes(random.randint(1, most_nodes))
    outputs = random.choice((None, tuple(node.node_id for node in nodes if random.random() < 0.5)))
    return RequestGraph(tuple(nodes), INPUTS, outputs)
