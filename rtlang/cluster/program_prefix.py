"""The work of a program as a router sees it: digests of the text that it starts with, and an estimate of its tokens.

No tokenizer is needed: text is cut into blocks of 256 characters, each digested together with all before it, and counted at four
characters a token. The prefix is the longest text that is known before anything is generated: system text, inputs and chat messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b

from rtlang.cluster.router import ProgramWork
from rtlang.contract.graph import (
    Arg,
    Generate,
    Node,
    Part,
    Ref,
    Repeat,
    RequestGraph,
    RoleEnd,
    RoleStart,
    Select,
    Switch,
    Text,
    TokenIds,
    blocks_of,
    num_requests,
)

BLOCK_CHARS = 256
CHARS_PER_TOKEN = 4.0
MAX_BLOCKS = 4096
"""Blocks that are digested at most; prefixes that differ only behind a million characters count as equal."""

OUTPUT_WEIGHT = 4.0
"""Tokens of a prompt that take as long as one output token."""

EXPECTED_OUTPUT = 0.5
"""Part of `max_tokens` that a generation is taken to use."""

REF_TOKENS = 16
"""Tokens that a generated value in a text is taken to have."""


def program_work(
    graph: RequestGraph,
    inputs: Mapping[str, str] | None = None,
    *,
    namespace: str = "",
    chars_per_token: float = CHARS_PER_TOKEN,
) -> ProgramWork:
    """The work of a graph.

    Args:
        inputs: the text of each input.
        namespace: graphs of different namespaces share no blocks, as their pages are not shared.
        chars_per_token: of the model's tokenizer.
    """
    return work_of(graph.nodes, inputs or {}, namespace=namespace, chars_per_token=chars_per_token)


def work_of(
    nodes: Sequence[Node],
    inputs: Mapping[str, str],
    *,
    namespace: str = "",
    chars_per_token: float = CHARS_PER_TOKEN,
) -> ProgramWork:
    """The work of nodes; see `program_work`."""
    prefix = longest_prefix(nodes, inputs)
    compute = sum([_computed(node, inputs, chars_per_token) for node in nodes])
    digests = block_digests(prefix, namespace)
    return ProgramWork(digests, BLOCK_CHARS / chars_per_token, max(compute, len(prefix) / chars_per_token))


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
            known.append(f"\x02{part.role}\x03{part.tools or ''}")
        elif isinstance(part, RoleEnd):
            known.append("\x04")
        elif isinstance(part, Ref):
            return "".join(known), False
        else:  # token ids
            known.append(f"\x05{part!r}")
    return "".join(known), True


def _computed(node: Node, inputs: Mapping[str, str], chars_per_token: float) -> float:
    """Estimated tokens that a node computes besides those before it, output tokens weighted; the longest case of a branch."""
    match node:
        case Text():
            return sum([_part_tokens(part, inputs, chars_per_token) for part in node.parts])
        case Generate():
            return node.params.max_tokens * EXPECTED_OUTPUT * OUTPUT_WEIGHT * num_requests(node)
        case Select():
            num_chars = sum(map(len, node.choices)) * num_requests(node) // len(node.choices)
            return num_chars / chars_per_token
        case Switch() | Repeat():
            blocks = [
                sum([_computed(each, inputs, chars_per_token) for each in block.nodes]) for block in blocks_of(node)
            ]
            times = max(1.0, node.at_most * EXPECTED_OUTPUT) if isinstance(node, Repeat) else 1.0
            return times * max(blocks, default=0.0)
        case _:
            return 0.0


def _part_tokens(part: Part, inputs: Mapping[str, str], chars_per_token: float) -> float:
    match part:
        case str():
            return len(part) / chars_per_token
        case Arg():
            return len(inputs.get(part.name, "")) / chars_per_token
        case Ref():
            return REF_TOKENS
        case TokenIds():
            return len(part.ids)
        case RoleStart():
            return 1.0 + len(part.tools or "") / chars_per_token
        case _:
            return 1.0
