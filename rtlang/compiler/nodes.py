"""Access to nodes that all passes share: what they are, and estimates of tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rtlang.contract.request_graph import (
    Block,
    Generate,
    Node,
    Part,
    Ref,
    Repeat,
    RequestGraph,
    Select,
    Switch,
    Text,
    TokenIds,
    all_nodes,
    blocks_of,
    parent_of,
)

CHARS_PER_TOKEN = 4
"""English text in the vocabularies of current models."""

_CONTROL = frozenset((Switch, Repeat))
_GENERATIONS = frozenset((Generate, Select))


def flat(nodes: Sequence[Node]) -> Iterable[Node]:
    """The nodes, including the nodes of their blocks, in the order of their ids."""
    for node in nodes:
        if type(node) in _CONTROL:
            return all_nodes(nodes)
    return nodes


def estimated_tokens(node: Node) -> int:
    """Tokens that a node adds to its sequence at most (a generation) or about (text); a generated value in text counts as 16."""
    if type(node) is Text:
        return sum(
            [_part_tokens(part) if type(part) is not str else len(part) // CHARS_PER_TOKEN + 1 for part in node.parts]
        )
    match node:
        case Generate():
            return node.params.max_tokens
        case Select():
            return max(map(len, node.choices)) // CHARS_PER_TOKEN + 1
        case Switch() | Repeat():
            longest = max((_block_tokens(block) for block in blocks_of(node)), default=0)
            return longest * (node.at_most if isinstance(node, Repeat) else 1)
        case _:
            return 0


def _block_tokens(block: Block) -> int:
    """Tokens of the sequence of a block."""
    lengths: dict[int | None, int] = {}
    for node in block.nodes:
        lengths[node.node_id] = lengths.get(parent_of(node), 0) + estimated_tokens(node)
    return lengths.get(block.end, 0)


def generated_tokens(node: Node) -> int:
    """Tokens that a node may generate, with all iterations of a loop and the longest case of a branch."""
    if isinstance(node, Generate):
        return node.params.max_tokens * max(node.params.n, node.params.best_of)
    blocks = [sum(map(generated_tokens, block.nodes)) for block in blocks_of(node)]
    return max(blocks, default=0) * (node.at_most if isinstance(node, Repeat) else 1)


def is_generation(node: Node) -> bool:
    """Whether the engine computes this node with the model."""
    return type(node) in _GENERATIONS


def _part_tokens(part: Part) -> int:
    return 16 if type(part) is Ref else len(part.ids) if type(part) is TokenIds else 3


def estimated_prompt_tokens(graph: RequestGraph) -> int:
    """Tokens of the prompts of all generations of a graph, each counted whole, with generations before it at their full length."""
    lengths: dict[int | None, int] = {None: 0}
    total = 0
    for node in graph.nodes:
        before = lengths.get(parent_of(node), 0)
        if is_generation(node):
            total += before * (node.params.n if isinstance(node, Generate) else 1)
        is_side_branch = isinstance(node, Generate) and node.params.n > 1
        lengths[node.node_id] = before + (0 if is_side_branch else estimated_tokens(node))
    return total
