"""What is known of one generated text besides the text."""

from __future__ import annotations

from dataclasses import dataclass

from rtlang.contract.events import NodeFinished, Timing, TokenLogprob
from rtlang.contract.graph import Node, Select
from rtlang.contract.params import FinishReason, Usage


@dataclass(frozen=True, slots=True)
class Meta:
    """How one text came about.

    Attributes:
        finish_reason: why it ended.
        stop_match: the stop string, pattern or token id that ended it, if one did.
        token_ids: those of the text.
        usage: tokens spent by the node (all of its texts); `usage.cached_tokens` came from the prefix cache.
        timing: seconds from when the node could start.
        logprobs: one entry per token, where asked for.
        prompt_logprobs: of the tokens before it, where asked for.
        scores: of a select, by choice: the number its method compared.
        probabilities: of a select, by choice: the softmax of the summed log-probabilities.
    """

    finish_reason: FinishReason
    stop_match: str | int | None
    token_ids: tuple[int, ...]
    usage: Usage
    timing: Timing
    logprobs: tuple[TokenLogprob, ...] | None = None
    prompt_logprobs: tuple[TokenLogprob, ...] | None = None
    scores: dict[str, float] | None = None
    probabilities: dict[str, float] | None = None

    @classmethod
    def of(cls, node: Node, event: NodeFinished, choice: int) -> Meta:
        """The meta of one text of a finished node."""
        completion = event.completions[choice]
        scores = probabilities = None
        if isinstance(node, Select):
            if event.scores is not None:
                scores = dict(zip(node.choices, event.scores, strict=True))
            if event.probabilities is not None:
                probabilities = dict(zip(node.choices, event.probabilities, strict=True))
        return cls(
            completion.finish_reason,
            completion.stop_match,
            completion.token_ids,
            event.usage,
            event.timing,
            completion.logprobs,
            event.prompt_logprobs,
            scores,
            probabilities,
        )
