"""Programs for a small real fleet: trees and chats that share documents, with outputs of fixed lengths."""

from __future__ import annotations

from dataclasses import dataclass

from rtlang.bench.workloads.text import Encoder, TextMaker
from rtlang.bench.workloads.workload import Workload, fixed_generation
from rtlang.contract.request_graph import Node, RequestGraph, Text


@dataclass(frozen=True, slots=True)
class ProgramSizes:
    """Sizes in tokens and counts. The defaults give two engines so many programs that the steps of each still have many rows.

    Attributes:
        num_programs: in each workload; program i reads document i modulo `num_documents`.
        num_levels, num_branches: of trees.
        num_turns: of chats.
    """

    num_programs: int = 64
    num_documents: int = 16
    document_tokens: int = 384
    message_tokens: int = 24
    output_tokens: int = 24
    num_levels: int = 2
    num_branches: int = 3
    num_turns: int = 4


QUICK = ProgramSizes(4, 2, 48, 8, 4, 2, 2, 2)


def trees(encoder: Encoder, sizes: ProgramSizes, seed: int) -> Workload:
    """Trees of thoughts: every thought is continued by several others."""
    maker = TextMaker(encoder, seed)
    documents = [maker.text(sizes.document_tokens, is_start=True) for _ in range(sizes.num_documents)]
    graphs = []
    for number in range(sizes.num_programs):
        nodes: list[Node] = [Text(0, None, (documents[number % sizes.num_documents],))]
        level = [0]
        for _ in range(sizes.num_levels):
            thoughts = []
            for parent in level:
                for _ in range(sizes.num_branches):
                    thoughts.append(_add_call(nodes, parent, maker.text(sizes.message_tokens), sizes.output_tokens))
            level = thoughts
        graphs.append(RequestGraph(tuple(nodes)))
    calls = (len(graphs[0].nodes) - 1) // 2
    return Workload("tree", f"{len(graphs)} trees of {calls} thoughts, {_about(sizes)}", tuple(graphs))


def chats(encoder: Encoder, sizes: ProgramSizes, seed: int) -> Workload:
    """Conversations: every turn continues the one before."""
    maker = TextMaker(encoder, seed)
    documents = [maker.text(sizes.document_tokens, is_start=True) for _ in range(sizes.num_documents)]
    graphs = []
    for number in range(sizes.num_programs):
        nodes: list[Node] = [Text(0, None, (documents[number % sizes.num_documents],))]
        last = 0
        for _ in range(sizes.num_turns):
            last = _add_call(nodes, last, maker.text(sizes.message_tokens), sizes.output_tokens)
        graphs.append(RequestGraph(tuple(nodes)))
    return Workload("chat", f"{len(graphs)} chats of {sizes.num_turns} turns, {_about(sizes)}", tuple(graphs))


def _add_call(nodes: list[Node], parent: int, message: str, num_output: int) -> int:
    """Add a message and a generation behind `parent`; returns the id of the generation."""
    nodes.append(Text(len(nodes), parent, (message,)))
    nodes.append(fixed_generation(len(nodes), len(nodes) - 1, num_output))
    return len(nodes) - 1


def _about(sizes: ProgramSizes) -> str:
    return (
        f"{sizes.num_documents} documents of {sizes.document_tokens} tokens, each call {sizes.message_tokens} tokens and "
        f"{sizes.output_tokens} out"
    )
