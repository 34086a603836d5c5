"""The work of a program as a router sees it: digests of the text that it starts with, and an estimate of its tokens.

No tokenizer is needed: text is cut into blocks of 256 characters, each digested together with all before it, and counted at as many
characters a token as earlier texts had, four at first. The prefix is the longest text that is known before anything is generated: system
text, inputs and chat messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b

from rtlang.contract.node_work import CHARS_PER_TOKEN, OUTPUT_WEIGHT, NodeWork, node_work
from rtlang.contract.request_graph import (
    Arg,
    Generate,
    Node,
    Part,
    Ref,
    RequestGraph,
    RoleEnd,
    RoleStart,
    Text,
    TokenIds,
    num_requests,
    parent_of,
)
from rtlang.fleet.routing.router import ProgramWork

BLOCK_CHARS = 256
MAX_BLOCKS = 4096
"""Blocks that are digested at most; prefixes that differ only after a million characters count as equal."""
_FIRST_TOKENS = 256.0
"""Weight, in tokens, of the characters per token that are assumed at first."""
_MOST_TOKENS = 1e6


class WorkEstimator:
    """Estimates the work of programs from measurements of the model and the machine. One thread at a time may call `learn`; others may
    estimate meanwhile.

    Attributes:
        chars_per_token: of the texts so far.
        output_weight: tokens of a prompt that take as long as one output token.
    """

    def __init__(self) -> None:
        self.chars_per_token, self.output_weight = CHARS_PER_TOKEN, OUTPUT_WEIGHT
        self._num_tokens = _FIRST_TOKENS
        self._num_chars = CHARS_PER_TOKEN * _FIRST_TOKENS

    def estimate(self, graph: RequestGraph, inputs: Mapping[str, str], namespace: str = "") -> ProgramWork:
        """The work of a graph; see `program_work`."""
        return program_work(
            graph,
            inputs,
            namespace=namespace,
            chars_per_token=self.chars_per_token,
            output_weight=self.output_weight,
        )

    def learn(self, nodes: Mapping[int, Node], node_id: int, inputs: Mapping[str, str], num_prompt_tokens: int) -> None:
        """A generation with this prompt has ended. Ignored unless all its prompt is known text and it has one request."""
        node = nodes.get(node_id)
        if not isinstance(node, Generate) or num_requests(node) != 1 or num_prompt_tokens < 1:
            return
        num_chars = 0
        while (parent := parent_of(node)) is not None:
            node = nodes[parent]
            if not isinstance(node, Text) or any(isinstance(part, TokenIds) for part in node.parts):
                return
            text, is_whole = _known_text(node.parts, inputs)
            if not is_whole:
                return
            num_chars += len(text)
        if num_chars:
            self._num_chars += num_chars
            self._num_tokens += num_prompt_tokens
        if self._num_tokens > _MOST_TOKENS:  # old texts count less
            self._num_chars, self._num_tokens = self._num_chars / 2, self._num_tokens / 2
        self.chars_per_token = self._num_chars / self._num_tokens


def program_work(
    graph: RequestGraph,
    inputs: Mapping[str, str] | None = None,
    *,
    namespace: str = "",
    chars_per_token: float = CHARS_PER_TOKEN,
    output_weight: float = OUTPUT_WEIGHT,
) -> ProgramWork:
    """The work of a graph.

    Args:
        inputs: the text of each input.
        namespace: graphs of different namespaces share no blocks, as their pages are not shared.
        chars_per_token: of the model's tokenizer.
        output_weight: tokens of a prompt that take as long as one output token.
    """
    return work_of(
        graph.nodes,
        inputs or {},
        namespace=namespace,
        chars_per_token=chars_per_token,
        output_weight=output_weight,
    )


def work_of(
    nodes: Sequence[Node],
    inputs: Mapping[str, str],
    *,
    namespace: str = "",
    chars_per_token: float = CHARS_PER_TOKEN,
    output_weight: float = OUTPUT_WEIGHT,
) -> ProgramWork:
    """The work of nodes; see `program_work`."""
    prefix = longest_prefix(nodes, inputs)
    total = NodeWork()
    for node in nodes:
        total = total.plus(node_work(node, inputs, chars_per_token))
    compute = max(total.weighted(output_weight), len(prefix) / chars_per_token)
    digests = block_digests(prefix, namespace)
    return ProgramWork(digests, BLOCK_CHARS / chars_per_token, compute, total.output, output_weight)


def block_digests(text: str, namespace: str = "") -> tuple[int, ...]:
    """Chained digests of the whole blocks of a text, of 64 bits each. 1 us a block."""
    digest = blake2b(namespace.encode(), digest_size=8)
    digests = []
    for start in range(0, min(len(text) // BLOCK_CHARS, MAX_BLOCKS) * BLOCK_CHARS, BLOCK_CHARS):
        digest.update(text[start : start + BLOCK_CHARS].encode("utf-8", "surrogatepass"))
        digests.append(int.from_bytes(digest.digest(), "little"))
    return tuple(digests)


def longest_prefix(nodes: Sequence[Node], inputs: Mapping[str, str]) -> str:
    """The longest text from the start of a sequence that is known before anything is generated; the first of equally long ones.

    The starts and ends of chat messages are written as control characters and the role.
    """
    texts: dict[int, tuple[int | None, str]] = {}  # of known nodes: their parents and their own text
    sizes: dict[int | None, int] = {None: 0}  # of sequences that are known whole
    longest, longest_size = None, 0
    for node in nodes:
        if type(node) is not Text or node.parent not in sizes:
            continue
        text, is_whole = _known_text(node.parts, inputs)
        texts[node.node_id] = node.parent, text
        size = sizes[node.parent] + len(text)
        if is_whole:
            sizes[node.node_id] = size
        if size > longest_size:
            longest, longest_size = node.node_id, size
    pieces = []
    while longest is not None:
        longest, text = texts[longest]
        pieces.append(text)
    return "".join(reversed(pieces))


def _known_text(parts: Sequence[Part], inputs: Mapping[str, str]) -> tuple[str, bool]:
    """The text of parts up to the first generated value, and whether there is none."""
    known: list[str] = []
    for part in parts:
        if type(part) is str:
            known.append(part)
        elif isinstance(part, Arg):
            known.append(inputs.get(part.name, ""))
        elif isinstance(part, RoleStart):
            known.append(f"\x02{part.role}\x03{part.tools or ''}{part.template_options or ''}")
        elif isinstance(part, RoleEnd):
            known.append("\x04")
        elif isinstance(part, Ref):
            return "".join(known), False
        else:  # token ids
            known.append(f"\x05{part!r}")
    return "".join(known), True
