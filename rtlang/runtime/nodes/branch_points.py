"""Finds the positions of a prompt at which other sequences are expected to leave it, from the graph and its messages.

A model with states goes on only from positions whose states were kept, and the policy (`rtlang.engine.checkpoints`) keeps few of them. The
graph knows more than the tokens: where several nodes continue one sequence, which sequences later parts of the program may continue, and
how much of a prompt is the same in every run. Positions are hints: a wrong one costs a state, and no result depends on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from rtlang.contract.request_graph import Generate, Node, Repeat, Select, Switch, Text, num_requests, parent_of
from rtlang.runtime.nodes.node_table import NodeTable
from rtlang.runtime.texts.borders import chosen_ends
from rtlang.runtime.texts.token_sequence import TokenSequence

MAX_NODES_BACK = 256
"""Nodes before a generation that are looked at."""
MAX_POINTS = 32
"""Positions of one prompt, the last ones; the policy takes few of them anyway."""


class BranchPoints:
    """The branch points of the prompts of one graph. Used on the engine thread only.

    Args:
        table: the state of the nodes.
    """

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._num_sequences: Counter[int] = Counter()  # by the node that they continue

    def add(self, nodes: Iterable[Node]) -> None:
        """Nodes were added to the graph."""
        for node in nodes:
            parent = parent_of(node)
            if parent is None or isinstance(node, (Switch, Repeat)):  # the nodes of its block continue the parent
                continue
            num_sequences = 1 if isinstance(node, Text) else num_requests(node)
            self._num_sequences[parent] += num_sequences

    def find(
        self, node: Generate | Select, before: TokenSequence, num_prompt_tokens: int, start: int = 0
    ) -> tuple[int, ...]:
        """The branch points of a node's prompt, ascending.

        Args:
            before: the sequence that the prompt is made of.
            num_prompt_tokens: of the prompt, to which the choices of a select do not belong.
            start: tokens at the start of the sequence that were cut off.
        """
        found = chosen_ends(before.ends)
        if (
            before.num_constant < start + num_prompt_tokens
        ):  # else it is the end of the prompt, where the policy keeps a state anyway
            found.add(before.num_constant)
        found.update(self._of_nodes(node, before))
        if num_requests(node) > 1:  # scores and samples need the logits of the last token, so it is computed again
            found.add(start + num_prompt_tokens - 1)
        inside = sorted(position - start for position in found if 0 < position - start <= num_prompt_tokens)
        return tuple(inside[:1] + inside[1:][-(MAX_POINTS - 1) :])

    def _of_nodes(self, node: Generate | Select, before: TokenSequence) -> Iterable[int]:
        """The ends of earlier nodes that several sequences continue, or later nodes may continue."""
        ends = {len(piece): piece.own_ids for piece in before.pieces() if piece.own_ids}
        at, num_own = parent_of(node), num_requests(node)
        for _ in range(MAX_NODES_BACK):
            if at is None:
                return
            earlier = self._table.nodes[at]
            if self._num_sequences[at] > num_own or _may_go_on(earlier):
                yield _num_common(self._table.sequences.get(at), ends)
            at = self._table.block_ends[at] if at in self._table.block_ends else parent_of(earlier)
            num_own = 1


def _may_go_on(node: Node) -> bool:
    return isinstance(node, (Text, Generate, Select)) and node.marks.lifetime == "program"


def _num_common(sequence: TokenSequence | None, ends: Mapping[int, Sequence[int]]) -> int:
    """The number of tokens with which a sequence and a later one begin, in whole parts.

    They differ in the last part if the template has written messages anew. Equal parts are the same objects.

    Args:
        ends: the own tokens of each part of the later sequence, by position of their end.
    """
    while sequence is not None:
        if sequence.own_ids and ends.get(len(sequence)) is sequence.own_ids:
            return len(sequence)
        sequence = sequence.before
    return 0
