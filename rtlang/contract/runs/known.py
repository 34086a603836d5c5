"""Results of an earlier run of a graph, given to the next one: outcomes of nodes, and the tokens of unfinished generations.

A runtime that is given the outcome of a node sends its events and goes on with its token ids, and computes nothing for it. A generation
that is given the tokens of its output so far computes them in one pass and goes on behind them; its text is the one that it would have had.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from sys import getsizeof

from rtlang.contract.errors import GraphError, RtlangError
from rtlang.contract.events import NodeFinished, TextDelta
from rtlang.contract.graph.nodes import Generate, Node, Select, choices_of
from rtlang.contract.graph.value_size import Measured, measured

_TOKEN_BYTES = 40  # an integer and its place in a tuple


@dataclass(frozen=True, slots=True)
class KnownOutcome:
    """The end of a node.

    Attributes:
        end: the event, or the error.
        chunks: for each piece of text that was streamed, its choice, number of characters and number of tokens, in order. Empty: one
            piece for each completion.
        is_replayed: whether it comes from an earlier run.
    """

    end: NodeFinished | RtlangError
    chunks: tuple[tuple[int, int, int], ...] = ()
    is_replayed: bool = True
    _measured: Measured | None = field(default=None, init=False, repr=False, compare=False)

    def measured(self) -> Measured:
        """The value of the node with its size, which is found once.

        Raises:
            ValueError, TypeError: it is not plain data of allowed size.
        """
        if self._measured is None:
            object.__setattr__(
                self, "_measured", measured(None if isinstance(self.end, RtlangError) else self.end.value)
            )
        assert self._measured is not None
        return self._measured

    @property
    def num_bytes(self) -> int:
        """Bytes of memory, as an upper estimate."""
        completions = () if isinstance(self.end, RtlangError) else self.end.completions
        texts = sum(getsizeof(each.text) + _TOKEN_BYTES * len(each.token_ids) for each in completions)
        return self.measured().measure.num_bytes + texts

    def deltas(self, graph_id: int, node_id: int) -> list[TextDelta]:
        """The pieces of text, as they were streamed."""
        if isinstance(self.end, RtlangError):
            return []
        completions = self.end.completions
        if not self.chunks:
            return [
                TextDelta(graph_id, node_id, choice, each.text, each.token_ids)
                for choice, each in enumerate(completions)
                if each.text or each.token_ids
            ]
        deltas = []
        at = [(0, 0)] * len(completions)
        for choice, num_chars, num_tokens in self.chunks:
            chars, tokens = at[choice]
            at[choice] = (chars + num_chars, tokens + num_tokens)
            each = completions[choice]
            text, token_ids = each.text[chars : chars + num_chars], each.token_ids[tokens : tokens + num_tokens]
            deltas.append(TextDelta(graph_id, node_id, choice, text, token_ids))
        return deltas

    def event(self, graph_id: int, node_id: int, name: str | None) -> NodeFinished:
        """The final event of a node that did not fail."""
        assert isinstance(self.end, NodeFinished)
        return replace(self.end, graph_id=graph_id, node_id=node_id, name=name, is_replayed=self.is_replayed)


Known = Mapping[int, KnownOutcome]
"""Known outcomes by node id."""

ContinueFrom = Mapping[int, Sequence[Sequence[int]]]
"""By node id, for each choice of a generation the token ids of its output so far: those of its `TextDelta` events."""


def check_continue_from(continue_from: ContinueFrom, nodes: Iterable[Node]) -> None:
    """Check the tokens with which generations go on, as far as their nodes are known. Token ids are checked when the generation starts.

    Raises:
        GraphError: a node is no generation, has `best_of`, or has fewer choices; or a token id is no integer from 0 on.
    """
    for node in nodes:
        given = continue_from.get(node.node_id)
        if given is None:
            continue
        if not isinstance(node, Generate) or node.params.best_of > 1:
            raise GraphError(node.node_id, "continue_from", "only a generation without best_of can be continued")
        if len(given) > node.params.n:
            reason = f"{len(given)} choices are given, and the generation has {node.params.n}"
            raise GraphError(node.node_id, "continue_from", reason)
    for node_id, given in continue_from.items():
        for token_ids in given:
            if not all(type(token_id) is int and token_id >= 0 for token_id in token_ids):
                raise GraphError(node_id, "continue_from", "expected lists of token ids")


def check_known(node: Node, end: NodeFinished, vocab_size: int) -> None:
    """Check the known outcome of a node against the node and the vocabulary.

    Raises:
        GraphError: the number of completions differs, or a token is not in the vocabulary.
    """
    if not isinstance(node, (Generate, Select)):
        return
    num_choices = choices_of(node)
    if len(end.completions) != num_choices and not end.is_cancelled:
        reason = f"{len(end.completions)} completions are given for {num_choices} choices"
        raise GraphError(node.node_id, "known", reason)
    for completion in end.completions:
        for token_id in completion.token_ids:
            if not 0 <= token_id < vocab_size:
                raise GraphError(node.node_id, "known", f"the token {token_id} is not below {vocab_size}")
