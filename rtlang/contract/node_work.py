"""Estimates of the tokens that nodes compute, before anything of them is known.

No tokenizer is needed: text is counted at a number of characters a token.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rtlang.contract.params import Constraint, SamplingParams
from rtlang.contract.request_graph import (
    Arg,
    Generate,
    Node,
    Part,
    Ref,
    Repeat,
    RoleStart,
    Select,
    Switch,
    Text,
    TokenIds,
    blocks_of,
    num_requests,
)

CHARS_PER_TOKEN = 4.0
"""Of a tokenizer that nobody has measured."""

OUTPUT_WEIGHT = 4.0
"""Tokens of a prompt that take as long as one output token, on a machine that nobody has measured."""

EXPECTED_OUTPUT = 0.5
"""Part of `max_tokens` that a generation is taken to use if it may end earlier."""

REF_TOKENS = 16
"""Tokens that a generated value in a text is taken to have."""

NO_INPUTS: Mapping[str, str] = {}


class NodeWork(NamedTuple):
    """Tokens that nodes compute besides those before them.

    Attributes:
        prompt: tokens of texts and of the choices of selections.
        output: expected output tokens.
    """

    prompt: float = 0.0
    output: float = 0.0

    def weighted(self, output_weight: float = OUTPUT_WEIGHT) -> float:
        """All tokens, as tokens of a prompt that take as long."""
        return self.prompt + output_weight * self.output

    def plus(self, other: NodeWork, times: float = 1.0) -> NodeWork:
        """The sum with another one."""
        return NodeWork(self.prompt + times * other.prompt, self.output + times * other.output)


def expected_output(params: SamplingParams, constraint: Constraint | None = None, num_given: int = 0) -> float:
    """Output tokens that a generation is taken to have behind the first `num_given`: half of what it may have, if anything but
    `max_tokens` may end it.
    """
    most = max(0, params.max_tokens - num_given)
    ends_itself = not params.ignore_eos or params.stop or params.stop_token_ids or params.stop_regex
    if constraint is None and not ends_itself:
        return float(most)
    return max(float(params.min_tokens - num_given), EXPECTED_OUTPUT * most)


def node_work(node: Node, inputs: Mapping[str, str] = NO_INPUTS, chars_per_token: float = CHARS_PER_TOKEN) -> NodeWork:
    """The work of a node; of a `Switch` that of its longest case, of a `Repeat` that of half its iterations.

    Args:
        inputs: the text of each input.
        chars_per_token: of the model's tokenizer.
    """
    match node:
        case Text():
            return NodeWork(sum([_part_tokens(part, inputs, chars_per_token) for part in node.parts]))
        case Generate():
            return NodeWork(0.0, expected_output(node.params, node.constraint) * num_requests(node))
        case Select():
            num_chars = sum(map(len, node.choices)) * num_requests(node) // len(node.choices)
            return NodeWork(num_chars / chars_per_token)
        case Switch() | Repeat():
            most = NodeWork()
            for block in blocks_of(node):
                total = NodeWork()
                for each in block.nodes:
                    total = total.plus(node_work(each, inputs, chars_per_token))
                most = max(most, total, key=NodeWork.weighted)
            times = max(1.0, node.at_most * EXPECTED_OUTPUT) if isinstance(node, Repeat) else 1.0
            return NodeWork().plus(most, times)
        case _:
            return NodeWork()


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
            return 1.0 + len((part.tools or "") + (part.template_options or "")) / chars_per_token
        case _:
            return 1.0
