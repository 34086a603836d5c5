"""The progress of a request by idea: results in flight, pages, results, and figures for reports."""

from __future__ import annotations

from dataclasses import dataclass, field

from rtlang.cache.node import RadixNode
from rtlang.contract.events import TokenLogprob


@dataclass(slots=True)
class Pending:
    """Results of launched steps that the host has not seen; all 0 between steps on the host.

    Attributes:
        num_tokens, num_scores: sampled tokens and scores.
        num_computed_tokens: computed tokens.
        num_drafts: draft tokens of one step. The request sits out steps until their results say how long its text is.
    """

    num_tokens: int = 0
    num_scores: int = 0
    num_computed_tokens: int = 0
    num_drafts: int = 0


@dataclass(slots=True)
class HeldPages:
    """The pages of a running or parked request.

    Attributes:
        page_ids: in the order of the tokens.
        node, num_tree_tokens: the deepest tree node that the request locks, and the number of tokens on the path to it.
    """

    page_ids: list[int] = field(default_factory=list)
    node: RadixNode | None = None
    num_tree_tokens: int = 0


@dataclass(slots=True)
class Results:
    """The results besides the text.

    Attributes:
        scores: of prompt tokens, and of given output tokens whose log-probabilities are wanted.
        logprobs: of the output tokens.
        distortion: what each masked sample lost in probability, with the length of the text after it.
        stop: the stop string, pattern or token that ended the text.
    """

    scores: list[TokenLogprob] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    distortion: list[tuple[float, int]] = field(default_factory=list)
    stop: str | int | None = None


@dataclass(slots=True)
class RequestStats:
    """Figures for usage, metrics and traces.

    Attributes:
        num_cached_tokens: prompt tokens taken from the prefix cache at first admission.
        num_fetched_tokens: prompt tokens loaded into the cache for this request, by tier.
        num_preemptions: times that its pages were taken.
        first_step_time: when it was first admitted, in seconds of the engine's clock.
        drafts: by source, the number of draft tokens that were computed, and of those accepted.
    """

    num_cached_tokens: int = 0
    num_fetched_tokens: dict[str, int] = field(default_factory=dict)
    num_preemptions: int = 0
    first_step_time: float | None = None
    drafts: dict[str, tuple[int, int]] = field(default_factory=dict)
