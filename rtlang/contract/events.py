"""Events of a running graph.

The events of one graph arrive in order, on one thread. Every node ends with exactly one `NodeFinished` or `NodeFailed`, and every
accepted graph with exactly one `GraphFinished` or `GraphFailed`, which is its last event.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rtlang.contract.accounts.request_account import RequestAccount
from rtlang.contract.errors import RtlangError
from rtlang.contract.params import FinishReason, Usage
from rtlang.contract.process.call_context import CallContext


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """Natural log-probability of a token, before temperature and filters, and of the most likely tokens (`top`)."""

    token_id: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds from the time the node was ready until its first step, its first token and its end."""

    queued_s: float = 0.0
    first_token_s: float = 0.0
    total_s: float = 0.0


@dataclass(frozen=True, slots=True)
class DraftUse:
    """Draft tokens of one source that were computed for a node, and how many of them were right. Each right one saved a step."""

    source: str
    num_drafted: int
    num_accepted: int


@dataclass(frozen=True, slots=True)
class Completion:
    """One finished output of a node.

    Attributes:
        text: the text without stop tokens and stop strings.
        token_ids: the tokens of `text`.
        stop_match: the stop string, pattern or token id that ended the generation, if any.
        distortion: for each sampled token, the end token included, -log of the probability of all tokens that the mask allowed (nats, under
            the model's own distribution), and the length of the text behind it in characters; if requested and known.
        captures: the texts of the rules of its grammar that have the option `capture`, by name, in the order in which they ended; None if
            there are none.
    """

    text: str
    token_ids: tuple[int, ...]
    finish_reason: FinishReason
    stop_match: str | int | None = None
    logprobs: tuple[TokenLogprob, ...] | None = None
    distortion: tuple[tuple[float, int], ...] | None = None
    captures: Mapping[str, tuple[str, ...]] | None = None


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of text of one choice of a node; never splits a character.

    Attributes:
        token_ids: the tokens computed since the previous piece.
        logprobs: of each of these tokens, if the node asked for them and they are known.
    """

    graph_id: int
    node_id: int
    choice: int
    text: str
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[TokenLogprob, ...] | None = None


@dataclass(frozen=True, slots=True)
class NodeFinished:
    """A node has finished: a generate or select node, or one with a value. Text and apply nodes send no event unless they fail.

    Attributes:
        completions: `n` entries; one for a select; none for a node with a value, or one marked as cancelled if a decision ended it.
        scores: for a select, the score of each choice by its method, in order.
        probabilities: for a select, the softmax of the summed log-probabilities of the choices.
        is_replayed: whether the outcome was recorded in an earlier run, so that nothing was computed now.
        max_tokens: the limit of each completion, where the budget of the run lowered it.
        value: the value of a call, switch, repeat or decide node.
        choice_logprobs: for a select, the log-probability of each token of each choice, in order.
        unconditional_logprobs: the same without the prompt, if the method of the select compares with it.
        drafts: of all completions, for each source that drafted tokens; they change no text.
        account: the engine's part of what the graph has cost so far; None if it is not known. Clients do not get it.
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
    is_replayed: bool = False
    max_tokens: int | None = None
    value: Any = None
    choice_logprobs: tuple[tuple[TokenLogprob, ...], ...] | None = None
    unconditional_logprobs: tuple[tuple[TokenLogprob, ...], ...] | None = None
    drafts: tuple[DraftUse, ...] = ()
    account: RequestAccount | None = field(default=None, compare=False, repr=False)

    @property
    def is_cancelled(self) -> bool:
        """Whether a decision was made without all of the node's completions."""
        return bool(self.completions) and all(each.finish_reason is FinishReason.CANCELLED for each in self.completions)


@dataclass(frozen=True, slots=True)
class NodeFailed:
    """A node failed, either itself or (with DependencyError) because a node that it depends on failed."""

    graph_id: int
    node_id: int
    name: str | None
    error: RtlangError


@dataclass(frozen=True, slots=True)
class CallRequested:
    """A call node needs the value of the client's `function` for these plain values; `GraphRun.resolve` or `reject` answers.

    Attributes:
        context: what a journal knows about the call; it is not sent.
    """

    graph_id: int
    node_id: int
    function: str
    args: tuple[Any, ...]
    context: CallContext | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class NodeStarted:
    """The requests of a generate or select node were queued. Sent if the graph was submitted with `reports_progress`."""

    graph_id: int
    node_id: int
    name: str | None


@dataclass(frozen=True, slots=True)
class PromptComputed:
    """The prompt of a generate or select node is computed: its length, and how much of it the prefix cache held.

    Sent once for a node, before its first text, if the graph was submitted with `reports_progress`.
    """

    graph_id: int
    node_id: int
    num_prompt_tokens: int
    num_cached_tokens: int


@dataclass(frozen=True, slots=True)
class ValueKnown:
    """The value of an apply node, which sends no other event. Sent if the graph was submitted with `reports_progress`."""

    graph_id: int
    node_id: int
    value: Any


@dataclass(frozen=True, slots=True)
class CreditSpent:
    """The graph has no credit left: its requests wait until `GraphRun.grant`. `node_id` is the node with the last delta."""

    graph_id: int
    node_id: int


@dataclass(frozen=True, slots=True)
class GraphFinished:
    """All nodes have ended; some may have failed.

    Attributes:
        account: the engine's part of what the graph has cost; None if it is not known. Clients do not get it.
        values: the text or value of each name, or a list of them in node order if n > 1 or several nodes share the name.
    """

    graph_id: int
    values: dict[str, Any]
    usage: Usage
    failed_node_ids: tuple[int, ...] = field(default=())
    account: RequestAccount | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class GraphFailed:
    """The graph ended early: it was cancelled, its deadline passed or its engine died. Unfinished nodes send no events.

    Attributes:
        account: see `GraphFinished`.
    """

    graph_id: int
    error: RtlangError
    account: RequestAccount | None = field(default=None, compare=False, repr=False)


Event = (
    TextDelta
    | NodeFinished
    | NodeFailed
    | CallRequested
    | NodeStarted
    | PromptComputed
    | ValueKnown
    | CreditSpent
    | GraphFinished
    | GraphFailed
)


def note_end(account: RequestAccount, node: NodeFinished, run_s: float) -> None:
    """Note in an account how a node ended, `run_s` seconds after the start of its run."""
    for completion in node.completions:
        account.note_completion(str(completion.finish_reason))
    if node.usage.completion_tokens:
        account.note_first_token(run_s - node.timing.total_s + node.timing.first_token_s)
