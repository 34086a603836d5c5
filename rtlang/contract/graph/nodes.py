"""The nodes of a request graph, as plain data.

Sequence nodes (`Text`, `Generate`, `Select`, `Switch`, `Repeat`) continue the sequence of their `parent`. Value nodes (`Apply`, `Call`,
`Decide`) only compute a value from their operands. The values of a graph are plain data: None, bool, int, float, str, lists, and dicts
with text keys.

A `path` names a node within its run, however the run is recorded and submitted (`node_paths`): the seeds of generations follow from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from sys import getsizeof
from typing import Any, Literal

from rtlang.contract.graph.value_size import Measured, measured
from rtlang.contract.params import Constraint, SamplingParams, SelectMethod

Plain = Any
"""A value of a graph: None, bool, int, float, str, list or dict with text keys, nested."""


@dataclass(frozen=True, slots=True)
class Ref:
    """The text of an earlier generate or select node (or of one of its choices), or the value of any other node."""

    node_id: int
    choice: int = 0


@dataclass(frozen=True, slots=True)
class Arg:
    """The text of an input, passed when the graph is submitted."""

    name: str


@dataclass(frozen=True, slots=True)
class Const:
    """A plain value. Its size is found once and remembered."""

    value: Plain
    _measured: Measured | None = field(default=None, init=False, repr=False, compare=False)

    def measured(self) -> Measured:
        """The value with its size.

        Raises:
            ValueError, TypeError: it is not plain data of allowed size.
        """
        if self._measured is None:
            object.__setattr__(self, "_measured", measured(self.value))
        assert self._measured is not None
        return self._measured

    def __hash__(self) -> int:
        return hash(repr(self.value))


Operand = Ref | Arg | Const


NODE_BYTES = 700
"""Of a node in the tables of a graph that runs; a node that waits for others has a few hundred more."""
OPERAND_BYTES = 50
PAIR_BYTES = 150
"""Of a token and a number."""


@dataclass(frozen=True, slots=True)
class RoleStart:
    """Start of a chat message of `role`, rendered by the chat template of the model.

    Attributes:
        tools: the tools of the conversation as JSON text (see `tool_list`); only with its first message.
        template_options: options of the chat template for the conversation as JSON text (see `template_options`); only with its first
            message.
    """

    role: str
    tools: str | None = None
    template_options: str | None = None


@dataclass(frozen=True, slots=True)
class RoleEnd:
    """End of the open chat message."""


@dataclass(frozen=True, slots=True)
class TokenIds:
    """Tokens of the model, appended as they are. At the start of a sequence no start token is put before them.

    Attributes:
        text: their text, where the program knows it; for reading only, it is not sent with the graph.
    """

    ids: tuple[int, ...]
    text: str = field(default="", compare=False, repr=False)


Part = str | Ref | Arg | RoleStart | RoleEnd | TokenIds


Lifetime = Literal["unknown", "part", "program"]
LIFETIMES: tuple[Lifetime, ...] = ("unknown", "part", "program")


@dataclass(frozen=True, slots=True)
class Marks:
    """Hints of the compiler about a node. The result never depends on them.

    Attributes:
        remaining_tokens: estimated tokens on the longest path behind the node.
        lifetime: the nodes that may continue the node's sequence: only those that were submitted with it ("part"), or also nodes that are
            added to the graph later ("program"). Its pages are kept so long. "unknown": nothing is kept.
        is_constant: the text depends on no input and no generated value.
        is_urgent: a caller waits for it.
    """

    remaining_tokens: int = 0
    lifetime: Lifetime = "unknown"
    is_constant: bool = False
    is_urgent: bool = True


NO_MARKS = Marks()


@dataclass(frozen=True, slots=True)
class Text:
    """Append text to the sequence of `parent`, or to an empty sequence if it is None."""

    node_id: int
    parent: int | None
    parts: tuple[Part, ...]
    marks: Marks = NO_MARKS


@dataclass(frozen=True, slots=True)
class Generate:
    """Generate from the sequence of `parent`. With params.n > 1 the completions are side branches and the node has no children."""

    node_id: int
    parent: int | None
    name: str | None
    params: SamplingParams
    constraint: Constraint | None = None
    marks: Marks = NO_MARKS
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Select:
    """Append the most likely of `choices`, as scored by `method`."""

    node_id: int
    parent: int | None
    name: str | None
    choices: tuple[str, ...]
    method: SelectMethod = SelectMethod.TOKEN_LENGTH_NORMALIZED
    marks: Marks = NO_MARKS
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Apply:
    """Compute a pure function (`pure_functions.FUNCTIONS`) of the operands."""

    node_id: int
    function: str
    args: tuple[Operand, ...]
    name: str | None = None


Policy = Literal["once", "retry", "ask", "pure"]
POLICIES: tuple[Policy, ...] = ("once", "retry", "ask", "pure")


@dataclass(frozen=True, slots=True)
class Call:
    """Ask the client for the value of its function for the operands (`events.CallRequested`).

    Attributes:
        policy: what a durable run does with a call that began before a crash and has no recorded outcome: "once" fails, "retry" calls
            again with the same idempotency key, "ask" lets a person decide. A "pure" call has no effect: it may run twice or not at all.
        variant: tells pure functions of one name apart: a digest of their code and of the values around it.
    """

    node_id: int
    function: str
    args: tuple[Operand, ...]
    name: str | None = None
    path: str | None = None
    policy: Policy = "once"
    variant: str | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """The body of a control node.

    Its nodes' ids follow that of the control node. Within it, the control node's id as a parent means the sequence at entry. It may refer
    to all earlier nodes; nodes outside refer only to the control node.

    Attributes:
        end: the node whose sequence is the result; None for the sequence at entry.
        value: the value of the block; None for no value.
    """

    nodes: tuple[Node, ...]
    end: int | None = None
    value: Operand | None = None


@dataclass(frozen=True, slots=True)
class Switch:
    """Run the block whose key equals the value of `on`, else `default`. Its sequence and value are those of the chosen block."""

    node_id: int
    parent: int | None
    on: Operand
    cases: tuple[tuple[Plain, Block], ...]
    default: Block | None = None
    name: str | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Repeat:
    """Run the body until the value of `until`, an operand of the body, is true, at most `at_most` times.

    Copy `i` (from 0) of the body node with the id `b` has the id `b + i * stride`; the body has ids from `node_id + 1` to
    `node_id + stride`, and those up to `node_id + at_most * stride` are reserved. Sequence and value are those of the last iteration.
    Within the body, a `Ref` to the node itself is the number of the iteration, from 0.
    """

    node_id: int
    parent: int | None
    body: Block
    until: Operand
    at_most: int
    stride: int
    name: str | None = None
    path: str | None = None


How = Literal["first", "vote", "best"]


@dataclass(frozen=True, slots=True)
class Decide:
    """Choose one of the operands as early as possible; the value is [index, value]. Requests that only losers need are cancelled.

    Attributes:
        how: "first": the operand that is known first; "vote": the most frequent value, the earliest at a tie; "best": the operand with
            the largest `by`.
        need: for a vote, the number of equal values that decides it.
        by: for "best", one number per operand.
    """

    node_id: int
    how: How
    of: tuple[Operand, ...]
    need: int | None = None
    by: tuple[Operand, ...] | None = None
    name: str | None = None
    path: str | None = None


SequenceNode = Text | Generate | Select | Switch | Repeat
ValueNode = Apply | Call | Decide
Node = SequenceNode | ValueNode


_VALUE_NODES = frozenset((Apply, Call, Decide))


def parent_of(node: Node) -> int | None:
    """The node whose sequence a node continues; None for the first node of a sequence, and for value nodes."""
    return None if type(node) in _VALUE_NODES else node.parent  # type: ignore[union-attr]


def name_of(node: Node) -> str | None:
    """The variable of a node; None for text and unnamed nodes."""
    return None if isinstance(node, Text) else node.name


def path_of(node: Node) -> str | None:
    """The path of a node (`node_paths`); None for text, pure functions, and nodes of graphs that were made without paths."""
    return None if isinstance(node, (Text, Apply)) else node.path


def choices_of(node: Node) -> int:
    """Number of values that a node has: n for a generate node, 0 for text, 1 for the others."""
    match node:
        case Generate():
            return node.params.n
        case Text():
            return 0
        case _:
            return 1


def num_requests(node: Node) -> int:
    """Number of engine requests of a node: n or best_of of a generation, one or two per choice of a select, else 0, without blocks."""
    match node:
        case Generate():
            return max(node.params.n, node.params.best_of)
        case Select():
            return len(node.choices) * (2 if node.method is SelectMethod.UNCONDITIONAL_LIKELIHOOD_NORMALIZED else 1)
        case _:
            return 0


def blocks_of(node: Node) -> tuple[Block, ...]:
    """The blocks of a control node; none for the others."""
    match node:
        case Switch():
            blocks = tuple(block for _, block in node.cases)
            return blocks if node.default is None else (*blocks, node.default)
        case Repeat():
            return (node.body,)
        case _:
            return ()


def operands_of(node: Node) -> tuple[Operand, ...]:
    """The operands that a node reads before it starts. Those within blocks, and `until` of a loop, are not among them."""
    match node:
        case Text():
            return tuple(part for part in node.parts if isinstance(part, (Ref, Arg)))
        case Apply() | Call():
            return node.args
        case Switch():
            return (node.on,)
        case Decide():
            return node.of if node.by is None else (*node.of, *node.by)
        case _:
            return ()


def node_bytes(node: Node) -> int:
    """Bytes in memory of a node that runs, without its texts and values and without the nodes of its blocks."""
    return NODE_BYTES + OPERAND_BYTES * (len(node.parts) if isinstance(node, Text) else len(operands_of(node)))


def held_data(node: Node) -> Iterator[tuple[object, int]]:
    """What a node holds besides its texts and constants: names, choices, constraints, options; with the bytes of each."""
    held: list[str | None] = [] if isinstance(node, Text) else [node.name, path_of(node)]
    match node:
        case Text():
            for part in node.parts:
                if isinstance(part, RoleStart):
                    held += [part.tools, part.template_options]
        case Generate():
            params = node.params
            held += [*params.stop, *params.stop_regex, *params.thought_marks, params.x_fault]
            yield params.logit_bias, PAIR_BYTES * len(params.logit_bias)
            yield params.stop_token_ids, OPERAND_BYTES * len(params.stop_token_ids)
            if node.constraint is not None:
                held.append(node.constraint.source)
                if (indentation := node.constraint.indentation) is not None:
                    held += [*indentation.open, *indentation.close]
        case Select():
            held += node.choices
        case Apply() | Call():
            held.append(node.function)
    yield from ((text, getsizeof(text)) for text in held if text is not None)


def dependencies(node: Node) -> set[int]:
    """Ids of the nodes that must finish before this node can start. A decision starts at once; these are the nodes that it waits for."""
    if type(node) is Generate or type(node) is Select:  # most nodes, and this is called several times for each
        return set() if node.parent is None else {node.parent}
    if type(node) is Text:
        needed = {part.node_id for part in node.parts if type(part) is Ref}
        if node.parent is not None:
            needed.add(node.parent)
        return needed
    needed = {operand.node_id for operand in operands_of(node) if isinstance(operand, Ref)}
    parent = parent_of(node)
    if parent is not None:
        needed.add(parent)
    if blocks_of(node):
        needed |= block_dependencies(node)
    return needed


def block_dependencies(node: Node) -> set[int]:
    """Ids of the nodes outside of a control node that its blocks refer to."""
    inside = {node.node_id}
    needed: set[int] = set()
    for block in blocks_of(node):
        for inner in block.nodes:
            inside.add(inner.node_id)
            needed |= dependencies(inner)
        if isinstance(block.value, Ref):
            needed.add(block.value.node_id)
    if isinstance(node, Repeat) and isinstance(node.until, Ref):
        needed.add(node.until.node_id)
    return needed - inside


def last_id(node: Node) -> int:
    """The largest id that a node occupies: its own, or the largest of its blocks; a loop reserves the ids of all iterations."""
    if type(node) is not Switch and type(node) is not Repeat:  # the only nodes with blocks
        return node.node_id
    if type(node) is Repeat:
        return node.node_id + node.at_most * node.stride
    return max((last_id(inner) for block in blocks_of(node) for inner in block.nodes), default=node.node_id)


def all_nodes(nodes: Sequence[Node]) -> Iterator[Node]:
    """The nodes and those of their blocks, in the order of their ids."""
    for node in nodes:
        yield node
        for block in blocks_of(node):
            yield from all_nodes(block.nodes)
