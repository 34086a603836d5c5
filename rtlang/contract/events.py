"""What a running graph tells whoever submitted it: the contract with clients.

Events of one graph arrive in order, from one thread. Every node ends in exactly one `NodeFinished` or `NodeFailed`, and every
accepted graph in exactly one `GraphFinished` or `GraphFailed`, after which nothing follows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rtlang.contract.errors import RtlangError
from rtlang.contract.params import FinishReason, Usage


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """Natural log-probability of a token, before temperature and filters, and of the likeliest tokens beside it."""

    token_id: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds since the node could start: until its first step, its first token, and its end."""

    queued_s: float = 0.0
    first_token_s: float = 0.0
    total_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Completion:
    """One finished text of a node. `token_ids` are those of `text` (stop tokens and stop strings are not in it).

    `stop_match` is the stop string, pattern or token id that ended it, if one did.
    """

    text: str
    token_ids: tuple[int, ...]
    finish_reason: FinishReason
    stop_match: str | int | None = None
    logprobs: tuple[TokenLogprob, ...] | None = None


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More text of choice `choice` of a node; whole characters only."""

    graph_id: int
    node_id: int
    choice: int
    text: str
    token_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeFinished:
    """A generate or select node is done.

    `completions` has `n` entries (one for a select). For a select, `scores` holds for every choice, in order, the number its
    method compared and `probabilities` the softmax of the summed log-probabilities.
    """

    graph_id: int
    node_id: int
    name: str | None
    completions: tuple[Completion, ...]
    usage: Usage
    timing: Timing
    scores: tuple[float, ...] | None = None
    probabilities: tuple[float, ...] | None = None
    prompt_logprobs: tuple[TokenLogprob, ...] | None = None


@dataclass(frozen=True, slots=True)
class NodeFailed:
    """A node ended in an error, its own or (DependencyError) that of a node it needs."""

    graph_id: int
    node_id: int
    name: str | None
    error: RtlangError


@dataclass(frozen=True, slots=True)
class GraphFinished:
    """All nodes have ended (some perhaps in errors).

    `values` maps each name to its text; to a list of texts where the node had n > 1 or several nodes share the name, in node order.
    """

    graph_id: int
    values: dict[str, str | list[str]]
    usage: Usage
    failed_node_ids: tuple[int, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class GraphFailed:
    """The graph as a whole ended: cancelled, past its deadline, or its engine died. Unfinished nodes will not report."""

    graph_id: int
    error: RtlangError


Event = TextDelta | NodeFinished | NodeFailed | GraphFinished | GraphFailed
