"""Reports how much of a prompt is cached, and why the rest is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first token at which a prompt differs from the stored sequence with the same prefix.

    Attributes:
        position: index of the token in the prompt.
        token_id, text: of the prompt from there on, a few tokens.
        stored_token_id, stored_text: of the stored sequence that agrees longest.
    """

    position: int
    token_id: int
    text: str
    stored_token_id: int
    stored_text: str


@dataclass(frozen=True, slots=True)
class PageRun:
    """Whole pages of a prompt in a row that are in the same place.

    Attributes:
        start, num_tokens: the tokens of the prompt in these pages.
        tier: pool, host, disk or peer; None if they must be computed.
        evicted_s_ago: seconds since the first of them was evicted from the pool; None if it is there, or is not known to have been.
    """

    start: int
    num_tokens: int
    tier: str | None
    evicted_s_ago: float | None = None


@dataclass(frozen=True, slots=True)
class StateReport:
    """The pages and checkpoints of a prompt in a model with recurrent layers.

    Attributes:
        num_page_tokens: number of its first tokens that are in whole pages of the pool.
        num_state_tokens: position of the deepest checkpoint, from which it is computed; 0 if there is none.
        positions: positions of all its checkpoints, ascending.
    """

    num_page_tokens: int
    num_state_tokens: int
    positions: tuple[int, ...] = ()

    @property
    def num_replayed_tokens(self) -> int:
        """Number of tokens in pages that are computed again for their states."""
        return max(0, self.num_page_tokens - self.num_state_tokens)

    def __str__(self) -> str:
        return (
            f"pages {self.num_page_tokens}, state {self.num_state_tokens}: {self.num_replayed_tokens} tokens replayed"
        )


@dataclass(frozen=True, slots=True)
class CacheExplanation:
    """The cached part of a prompt, and the place of the rest.

    Attributes:
        num_tokens: of the prompt.
        num_cached_tokens: tokens at its start that are in the pool, whole pages and the tokens of the next page that agree; for a model
            with recurrent layers, the tokens before its deepest checkpoint.
        divergence: where the pool goes on differently; None if the whole prompt is stored, or nothing is stored after its known part.
        pages: where all its whole pages are, in order.
        states: pages and checkpoints of a model with recurrent layers; None for others.
    """

    num_tokens: int
    num_cached_tokens: int
    divergence: Divergence | None
    pages: tuple[PageRun, ...]
    states: StateReport | None = None

    def to_plain(self) -> dict[str, Any]:
        """The explanation as maps, lists, numbers and text."""
        return asdict(self)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> CacheExplanation:
        """The explanation of a map made by `to_plain`."""
        divergence = plain["divergence"]
        return cls(
            plain["num_tokens"],
            plain["num_cached_tokens"],
            None if divergence is None else Divergence(**divergence),
            tuple(PageRun(**run) for run in plain["pages"]),
            _states(plain.get("states")),
        )

    def __str__(self) -> str:
        lines = [f"{self.num_cached_tokens} of {self.num_tokens} tokens are in the pool"]
        if self.states is not None:
            lines = [f"{self.num_cached_tokens} of {self.num_tokens} tokens need not be computed: {self.states}"]
        found = self.divergence
        if found is not None:
            lines.append(
                f"token {found.position} differs: the prompt continues with {found.text!r} (id {found.token_id}), "
                f"stored is {found.stored_text!r} (id {found.stored_token_id})"
            )
        for run in self.pages:
            if run.tier == "pool":
                continue
            where = "must be computed" if run.tier is None else f"are in the {run.tier} tier"
            when = "" if run.evicted_s_ago is None else f", evicted {run.evicted_s_ago:.1f} s ago"
            lines.append(f"tokens {run.start} to {run.start + run.num_tokens - 1} {where}{when}")
        return "\n".join(lines)


def _states(plain: Mapping[str, Any] | None) -> StateReport | None:
    if plain is None:
        return None
    return StateReport(plain["num_page_tokens"], plain["num_state_tokens"], tuple(plain["positions"]))


def page_runs(places: Sequence[tuple[str | None, float | None]], page_size: int) -> tuple[PageRun, ...]:
    """Group pages in the same tier, evicted or not, into runs; `places` has the tier and the time since eviction of each page."""
    runs: list[PageRun] = []
    for page, (tier, evicted_s_ago) in enumerate(places):
        last = runs[-1] if runs else None
        if last is not None and last.tier == tier and (last.evicted_s_ago is None) == (evicted_s_ago is None):
            runs[-1] = PageRun(last.start, last.num_tokens + page_size, tier, last.evicted_s_ago)
        else:
            runs.append(PageRun(page * page_size, page_size, tier, evicted_s_ago))
    return tuple(runs)
