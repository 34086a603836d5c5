"""Metadata of a completion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rtlang.contract.events import DraftUse, NodeFinished, Timing, TokenLogprob
from rtlang.contract.params import FinishReason, Usage
from rtlang.contract.request_graph import Node, Select
from rtlang.lang.partials.distortion import Distortion, distortion_of


@dataclass(frozen=True, slots=True)
class AttemptMeta:
    """One attempt of a generation with checks.

    Attributes:
        path: of the attempt in its run: that of the generation, and for repairs `:repair[1]`, ... after it.
        text: its text.
        value: its value; None if the text is no value of the type.
        message: why it was refused; None if it was accepted.
        usage: its tokens.
    """

    path: str
    text: str
    value: Any
    message: str | None
    usage: Usage


@dataclass(frozen=True, slots=True)
class Meta:
    """Metadata of one completion.

    Attributes:
        finish_reason: why the generation ended.
        stop_match: the stop string, pattern or token id that ended it, if any.
        token_ids: the tokens of the text.
        usage: tokens used by the node, for all of its completions and attempts; `usage.cached_tokens` were taken from the prefix cache.
        timing: seconds since the node was ready to start.
        logprobs: one entry per token, if requested.
        prompt_logprobs: one entry per prompt token, if requested.
        scores: for a select, the score of each choice by its method.
        probabilities: for a select, the softmax of the summed log-probabilities of the choices.
        choice_logprobs: for a select, the log-probability of each token of each choice.
        unconditional_logprobs: the same without the text before the select, if its method compares with it.
        captures: the texts of the rules of its grammar that have the option `capture`, by name, in the order in which they ended.
        path: the path of the node, with the index of the completion for n > 1; None for a node without one.
        drafts: draft tokens of all completions of the node, by source; each accepted one saved a step.
        is_replayed: whether the outcome was read from a recording (`rt.record`), so that nothing was computed.
        distortion: the probability that the masks of the constraint removed, if requested and known.
        reasoning: the reasoning before the text without its marks, if the generation had `reasoning`.
        reasoning_tokens: its number of tokens, marks included; they are not part of `usage`.
        attempts: of a generation with checks, in order; the last one has the text. Empty for others.
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
    is_replayed: bool = False
    distortion: Distortion | None = None
    reasoning: str | None = None
    reasoning_tokens: int = 0
    choice_logprobs: dict[str, tuple[TokenLogprob, ...]] | None = None
    unconditional_logprobs: dict[str, tuple[TokenLogprob, ...]] | None = None
    drafts: tuple[DraftUse, ...] = ()
    attempts: tuple[AttemptMeta, ...] = ()
    path: str | None = None
    captures: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, node: Node, event: NodeFinished, choice: int, path: str | None = None) -> Meta:
        """Create the metadata of one completion of a finished node with this path."""
        completion = event.completions[choice]
        scores = probabilities = of_choices = unconditional = None
        if isinstance(node, Select):
            if event.scores is not None:
                scores = dict(zip(node.choices, event.scores, strict=True))
            if event.probabilities is not None:
                probabilities = dict(zip(node.choices, event.probabilities, strict=True))
            if event.choice_logprobs is not None:
                of_choices = dict(zip(node.choices, event.choice_logprobs, strict=True))
            if event.unconditional_logprobs is not None:
                unconditional = dict(zip(node.choices, event.unconditional_logprobs, strict=True))
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
            event.is_replayed,
            distortion_of(node, completion),
            choice_logprobs=of_choices,
            unconditional_logprobs=unconditional,
            drafts=event.drafts,
            path=path,
            captures=completion.captures or {},
        )


if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    class AnyMeta(Meta):
        """The `Meta` of a variable, for type checkers: where the variable is a list, a list of them; in a program, lazy.

        Fields that are there if they were asked for are declared so.
        """

        logprobs: tuple[TokenLogprob, ...]
        prompt_logprobs: tuple[TokenLogprob, ...]
        scores: dict[str, float]
        probabilities: dict[str, float]
        distortion: Distortion
        reasoning: str
        choice_logprobs: dict[str, tuple[TokenLogprob, ...]]
        unconditional_logprobs: dict[str, tuple[TokenLogprob, ...]]

        def __getitem__(self, index: int) -> AnyMeta: ...
        def __iter__(self) -> Iterator[AnyMeta]: ...
        def __len__(self) -> int: ...
        def __await__(self) -> Generator[Any, None, AnyMeta]: ...

else:
    AnyMeta = Meta
