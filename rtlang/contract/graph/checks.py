"""The rules that the nodes of a request graph keep. Errors name the node and the field."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence
from typing import NoReturn, get_args

from rtlang.contract.errors import GraphError, ParameterError
from rtlang.contract.graph.node_paths import MAX_PATH_CHARS
from rtlang.contract.graph.nodes import (
    POLICIES,
    Apply,
    Arg,
    Block,
    Call,
    Const,
    Decide,
    Generate,
    How,
    Node,
    Operand,
    Ref,
    Repeat,
    RoleEnd,
    RoleStart,
    Select,
    Switch,
    Text,
    TokenIds,
    blocks_of,
    choices_of,
    last_id,
    parent_of,
    path_of,
)
from rtlang.contract.graph.pure_functions import FUNCTIONS
from rtlang.contract.graph.template_options import TemplateOptions
from rtlang.contract.graph.tool_list import tools_from_text
from rtlang.contract.graph.value_size import check_plain
from rtlang.contract.params import MAX_TOKEN_ID, Constraint, SamplingParams

MAX_NODES = 20_000
MAX_SELECT_CHOICES = 1_024
MAX_TEXT_CHARS = 4_000_000
MAX_TEXT_TOKENS = 1_000_000
MAX_NAME_CHARS = 32_768
MAX_OPERANDS = 4_096
MAX_PARTS = 32_768
"""Parts of a text: three for a message of a chat."""
MAX_CASES = 256
MAX_ITERATIONS = 10_000
MAX_NESTING = 32
"""Number of control nodes within each other."""

MAX_ID = (1 << 53) - 1
ROLES = ("system", "user", "assistant", "tool")


class NodeChecks:
    """Checks the nodes of a graph as they are added. The cost of adding nodes depends on these nodes, not on the graph.

    Args:
        seen: the nodes so far, by id; grows.
        inputs: names of the inputs of the graph.
    """

    def __init__(self, seen: dict[int, Node], inputs: Sequence[str]) -> None:
        self._seen, self._inputs = seen, inputs
        self._last_id = -1
        self._depth = 0
        self._loops: set[int] = set()  # whose bodies are being checked
        self._reserved: list[tuple[int, int]] = []  # ids within control nodes, ascending; they do not overlap
        self._reserve(seen.values())

    def add(self, nodes: Sequence[Node]) -> None:
        """Check nodes and add them; none of them is added if one is refused.

        Raises:
            GraphError: names the node and the field.
        """
        num_nodes = len(self._seen) + _num_nodes(nodes)
        if num_nodes > MAX_NODES:
            raise GraphError(None, "nodes", f"expected at most {MAX_NODES} nodes, not {num_nodes}")
        self._last_id = -1
        num_checked = 0
        try:
            for node in nodes:
                self.check(node)
                num_checked += 1
        except BaseException:
            self._remove(nodes[:num_checked])
            raise
        self._reserve(nodes)

    def remove(self, nodes: Sequence[Node]) -> None:
        """Undo the last `add`."""
        self._remove(nodes)
        for node in nodes:
            if isinstance(node, (Switch, Repeat)):
                self._reserved.remove((node.node_id, last_id(node)))

    def _remove(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            del self._seen[node.node_id]

    def take_no_more_inputs(self) -> None:
        """Nodes that are added from now on refer to no input."""
        self._inputs = ()

    def _reserve(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            if isinstance(node, (Switch, Repeat)):
                insort(self._reserved, (node.node_id, last_id(node)))

    def check(self, node: Node) -> None:
        """Check a node and add it.

        Raises:
            GraphError: names the node and the field.
        """
        self._check_id(node)
        self._check_parent(node)
        match node:
            case Text():
                self._check_parts(node)
            case Generate():
                if not isinstance(node.params, SamplingParams):
                    _fail(node, "params", f"expected SamplingParams, not {type(node.params).__name__}")
                if node.constraint is not None and not isinstance(node.constraint, Constraint):
                    _fail(node, "constraint", f"expected a Constraint or None, not {type(node.constraint).__name__}")
            case Select():
                _check_choices(node)
            case Apply():
                if node.function not in FUNCTIONS:
                    _fail(node, "function", f"{node.function!r:.80}: expected one of {', '.join(FUNCTIONS)}")
                self._check_operands(node, "args", node.args)
            case Call():
                if not isinstance(node.function, str) or not 0 < len(node.function) <= MAX_NAME_CHARS:
                    _fail(node, "function", f"expected a string of 1 to {MAX_NAME_CHARS} characters")
                if node.policy not in POLICIES:
                    _fail(node, "policy", f"{node.policy!r:.80}: expected one of {', '.join(POLICIES)}")
                if node.variant is not None and not (isinstance(node.variant, str) and len(node.variant) <= 64):
                    _fail(node, "variant", f"{node.variant!r:.80}: expected a string of at most 64 characters, or None")
                self._check_operands(node, "args", node.args)
            case Decide():
                self._check_decide(node)
            case Switch():
                self._check_switch(node)
            case Repeat():
                self._check_repeat(node)
        if not isinstance(node, Text):
            _check_name(node.node_id, node.name)
            _check_path(node.node_id, path_of(node))
        self._seen[node.node_id] = node
        self._last_id = last_id(node)

    def _check_id(self, node: Node) -> None:
        node_id = node.node_id
        if isinstance(node_id, bool) or not isinstance(node_id, int) or not 0 <= node_id <= MAX_ID:
            raise GraphError(None, "node_id", f"expected a non-negative integer, not {node_id!r}")
        if node_id in self._seen and node_id != self._last_id:
            _fail(node, "node_id", f"{node_id} is the id of a node submitted before")
        if node_id <= self._last_id:
            _fail(node, "node_id", f"{node_id} follows {self._last_id}; ids must increase")
        at = bisect_left(self._reserved, (node_id,))
        if at and node_id <= self._reserved[at - 1][1]:
            first, last = self._reserved[at - 1]
            _fail(node, "node_id", f"{node_id} is reserved by node {first}, for the ids up to {last}")

    def _check_parent(self, node: Node) -> None:
        parent_id = parent_of(node)
        if parent_id is None:
            return
        parent = self._seen.get(parent_id)
        if parent is None:
            _fail(node, "parent", f"no earlier node has the id {parent_id!r}")
        elif isinstance(parent, (Apply, Call, Decide)):
            _fail(node, "parent", f"node {parent_id} has a value but no sequence")
        elif choices_of(parent) > 1:
            _fail(node, "parent", f"node {parent_id} has n > 1 completions and cannot be continued")

    def _check_operands(self, node: Node, field: str, operands: object, least: int = 0) -> None:
        if not isinstance(operands, tuple) or not least <= len(operands) <= MAX_OPERANDS:
            _fail(node, field, f"expected {least} to {MAX_OPERANDS} operands")
        for operand in operands:
            self._check_operand(node, field, operand)

    def _check_operand(self, node: Node, field: str, operand: object) -> None:
        match operand:
            case Ref():
                self._check_ref(node, field, operand)
            case Arg():
                self._check_arg(node, field, operand)
            case Const():
                try:
                    operand.measured()
                except (ValueError, TypeError) as error:
                    _fail(node, field, str(error))
            case _:
                _fail(node, field, f"expected Ref, Arg or Const, not {type(operand).__name__}")

    def _check_ref(self, node: Node, field: str, ref: Ref) -> None:
        target = self._seen.get(ref.node_id)
        if ref.node_id in self._loops and ref.choice == 0:  # the number of the iteration
            return
        if target is None or isinstance(target, Text):
            _fail(node, field, f"ref {ref.node_id!r}: no earlier node with a text or value has this id")
        elif not 0 <= ref.choice < choices_of(target):
            _fail(node, field, f"ref {ref.node_id}, choice {ref.choice}: expected 0 to {choices_of(target) - 1}")

    def _check_arg(self, node: Node, field: str, arg: Arg) -> None:
        if arg.name not in self._inputs:
            known = ", ".join(self._inputs) or "none"
            _fail(node, field, f"arg {arg.name!r} is not an input; expected one of {known}")

    def _check_parts(self, node: Text) -> None:
        num_chars = num_tokens = 0
        if len(node.parts) > MAX_PARTS:
            _fail(node, "parts", f"expected at most {MAX_PARTS} parts, not {len(node.parts)}")
        for part in node.parts:
            match part:
                case str():
                    num_chars += len(part)
                    try:
                        part.encode()
                    except UnicodeEncodeError:
                        _fail(node, "parts", "text contains a lone surrogate, which cannot be encoded")
                case Ref():
                    self._check_ref(node, "parts", part)
                case Arg():
                    self._check_arg(node, "parts", part)
                case RoleStart():
                    if part.role not in ROLES:
                        _fail(node, "parts", f"role {part.role!r}: expected one of {', '.join(ROLES)}")
                    if part.tools is not None:
                        try:
                            tools_from_text(part.tools)
                        except ValueError as error:
                            _fail(node, "parts", f"tools: {error}")
                    if part.template_options is not None:
                        try:
                            TemplateOptions.from_text(part.template_options)
                        except ParameterError as error:
                            _fail(node, "parts", str(error))
                case RoleEnd():
                    pass
                case TokenIds():
                    num_tokens += len(part.ids)
                    _check_token_ids(node, part.ids)
                case _:
                    _fail(node, "parts", f"expected str, Ref, Arg, TokenIds or a role, not {type(part).__name__}")
        if num_chars > MAX_TEXT_CHARS:
            _fail(node, "parts", f"expected at most {MAX_TEXT_CHARS} characters, not {num_chars}")
        if num_tokens > MAX_TEXT_TOKENS:
            _fail(node, "parts", f"expected at most {MAX_TEXT_TOKENS} token ids, not {num_tokens}")

    def _check_decide(self, node: Decide) -> None:
        if node.how not in get_args(How):
            _fail(node, "how", f"{node.how!r:.80}: expected one of {', '.join(get_args(How))}")
        self._check_operands(node, "of", node.of, least=1)
        if node.need is not None and (node.how != "vote" or not _is_int(node.need, 1, len(node.of))):
            _fail(node, "need", f"{node.need!r:.80}: expected an integer from 1 to {len(node.of)}, for a vote only")
        if node.how == "best":
            self._check_operands(node, "by", node.by)
        if (node.by is not None) != (node.how == "best") or (node.by is not None and len(node.by) != len(node.of)):
            _fail(node, "by", f"expected {len(node.of)} operands for best, and none for first and vote")

    def _check_switch(self, node: Switch) -> None:
        self._check_operand(node, "on", node.on)
        if len(node.cases) > MAX_CASES or not (node.cases or node.default is not None):
            _fail(node, "cases", f"expected 1 to {MAX_CASES} cases, or a default")
        keys: set[object] = set()
        for key, _ in node.cases:
            problem = check_plain(key)
            if problem is not None:
                _fail(node, "cases", problem)
            kept = type(key), _hashable(key)  # comparing large keys one by one would take seconds
            if kept in keys:
                _fail(node, "cases", f"the key {key!r:.80} is given twice")
            keys.add(kept)
        before = node.node_id
        for _, block in node.cases:
            before = self._check_block(node, block, before, None)
        if node.default is not None:
            self._check_block(node, node.default, before, None)

    def _check_repeat(self, node: Repeat) -> None:
        if not _is_int(node.at_most, 1, MAX_ITERATIONS):
            _fail(node, "at_most", f"expected an integer from 1 to {MAX_ITERATIONS}, not {node.at_most!r:.80}")
        if not _is_int(node.stride, 1, MAX_ID) or last_id(node) > MAX_ID:
            _fail(node, "stride", f"expected a positive integer with all ids up to {MAX_ID}, not {node.stride!r:.80}")
        last = self._check_block(node, node.body, node.node_id, node.until)
        if last > node.node_id + node.stride:
            _fail(
                node,
                "stride",
                f"{node.stride}: the body has ids up to {last}, which is {last - node.node_id} behind the node's own",
            )

    def _check_block(self, node: Switch | Repeat, block: Block, before: int, until: Operand | None) -> int:
        """Check the nodes of a block whose ids follow `before`; returns its largest id. They are unknown outside of it."""
        if self._depth >= MAX_NESTING:
            _fail(node, "nodes", f"expected at most {MAX_NESTING} control nodes within each other")
        if not isinstance(block, Block):
            _fail(node, "nodes", f"expected a Block, not {type(block).__name__}")
        outer_id = self._last_id
        # The control node stands for the sequence at entry; it has no value yet.
        self._seen[node.node_id] = Text(node.node_id, None, ())
        self._last_id = before
        self._depth += 1
        if isinstance(node, Repeat):
            self._loops.add(node.node_id)
        added = [node.node_id]
        try:
            for inner in block.nodes:
                self.check(inner)
                added.append(inner.node_id)
            self._check_end(node, block)
            if block.value is not None:
                self._check_operand(node, "value", block.value)
            if until is not None:
                self._check_operand(node, "until", until)
            return self._last_id
        finally:
            self._depth -= 1
            self._loops.discard(node.node_id)
            self._last_id = outer_id
            for inner_id in added:
                del self._seen[inner_id]

    def _check_end(self, node: Node, block: Block) -> None:
        if block.end is None:
            return
        end = self._seen.get(block.end)
        if end is None or block.end <= node.node_id or isinstance(end, (Apply, Call, Decide)):
            _fail(node, "end", f"{block.end!r:.80}: expected none, or a node of the block with a sequence")
        if choices_of(end) > 1:
            _fail(node, "end", f"node {block.end} has n > 1 completions and cannot be continued")


def _hashable(value: object) -> object:
    """A form of a plain value that can be an element of a set; equal for equal values."""
    if isinstance(value, dict):
        return frozenset((key, _hashable(item)) for key, item in value.items())
    return tuple(map(_hashable, value)) if isinstance(value, (list, tuple)) else value


def _check_choices(node: Select) -> None:
    if not node.choices or len(node.choices) > MAX_SELECT_CHOICES:
        _fail(node, "choices", f"expected 1 to {MAX_SELECT_CHOICES} choices, not {len(node.choices)}")
    if not all(isinstance(choice, str) and choice for choice in node.choices):
        _fail(node, "choices", "expected non-empty strings")
    if len(set(node.choices)) != len(node.choices):
        _fail(node, "choices", "expected distinct choices")


def _check_name(node_id: int, name: object) -> None:
    if name is not None and (not isinstance(name, str) or not 0 < len(name) <= MAX_NAME_CHARS):
        raise GraphError(
            node_id, "name", f"expected a string of 1 to {MAX_NAME_CHARS} characters or none, not {name!r:.80}"
        )


def _num_nodes(nodes: Sequence[Node]) -> int:
    """The number of nodes with those of their blocks."""
    return sum(1 + sum(_num_nodes(block.nodes) for block in blocks_of(node)) for node in nodes)


def _is_int(value: object, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _fail(node: Node, field: str, reason: str) -> NoReturn:
    raise GraphError(node.node_id, field, reason)


def _check_path(node_id: int, path: object) -> None:
    if path is not None and (not isinstance(path, str) or not 0 < len(path) <= MAX_PATH_CHARS):
        raise GraphError(
            node_id, "path", f"expected a string of 1 to {MAX_PATH_CHARS} characters or none, not {path!r:.80}"
        )


def check_inputs(names: Sequence[str], given: Mapping[str, object]) -> None:
    """Check the texts that are given for the inputs of a graph.

    Raises:
        GraphError: one is missing, is no string, or is no input.
    """
    for name in names:
        if not isinstance(given.get(name), str):
            raise GraphError(None, "inputs", f"input {name!r} is missing or not a string")
    for name in given:
        if name not in names:
            raise GraphError(None, "inputs", f"unknown input {name!r}; the graph has {', '.join(names) or 'none'}")


def check_outputs(outputs: tuple[int, ...] | None, seen: Mapping[int, Node]) -> None:
    """Check the outputs of a graph.

    Raises:
        GraphError: an output is no node.
    """
    for node_id in outputs or ():
        if node_id not in seen:
            raise GraphError(None, "outputs", f"no node has the id {node_id!r:.80}")


def _check_token_ids(node: Node, ids: tuple[int, ...]) -> None:
    if not ids or (
        set(map(type, ids)) == {int} and min(ids) >= 0 and max(ids) <= MAX_TOKEN_ID
    ):  # fast for long prompts
        return
    for token_id in ids:
        if not _is_int(token_id, 0, MAX_TOKEN_ID):
            _fail(node, "parts", f"token id {token_id!r:.80}: expected an integer from 0 to {MAX_TOKEN_ID}")
