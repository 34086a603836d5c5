"""Outcomes of nodes that are known before a graph runs, from an earlier run of it.

A runtime that is given the outcome of a node sends its events and goes on with its token ids, and computes nothing for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rtlang.contract.errors import RtlangError
from rtlang.contract.events import NodeFinished, TextDelta


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
