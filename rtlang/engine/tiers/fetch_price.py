"""Decides whether pages of a tier are loaded or computed again, by the expected time of either.

Remote tiers are asked only where computing takes longer than their answers did. The time of loading a page is measured for each tier, from
reading it to its place in the pool. The time of computing comes from the cost model of steps. While either is unknown, pages are loaded.
Each time that a tier is passed over its price falls a little, so a tier that was slow once is tried again; a load is bounded by the time of
computing, so a wrong guess costs no more than that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from rtlang.engine.planning.step_cost import StepCost, StepSize

_MEMORY_PAGES = 64
"""An observation of so many pages counts as much as all earlier ones together."""
_DISCOUNT = 0.95
"""Factor on the price of a tier that is passed over."""
_ASKING_SHARE = 0.2
"""Weight of a new observation of the time of asking."""


@dataclass(frozen=True, slots=True)
class FetchRun:
    """Consecutive pages of a sequence in the same tier; `tier` is None if another request is loading them."""

    tier: str | None
    num_pages: int


@dataclass(frozen=True, slots=True)
class FetchPlan:
    """The pages to load.

    Attributes:
        num_pages: at the start of the runs.
        expected_s: seconds that loading them is expected to take; 0 if unknown.
        limit_s: seconds after which the rest is computed instead; None if the time of computing is unknown.
        passed: pages behind them that are computed instead, by tier.
    """

    num_pages: int
    expected_s: float
    limit_s: float | None
    passed: Mapping[str, int]


class FetchPrices:
    """Measured seconds per page, by tier. Used on the engine thread."""

    def __init__(self) -> None:
        self._prices: dict[str, float] = {}
        self._asking_s: float | None = None

    def price(self, tier: str) -> float | None:
        """Seconds per page; None before the first load."""
        return self._prices.get(tier)

    def observe(self, tier: str, num_pages: int, seconds: float) -> None:
        """Take in the time of loading pages."""
        if num_pages <= 0:
            return
        old, new = self._prices.get(tier), seconds / num_pages
        share = num_pages / (num_pages + _MEMORY_PAGES)
        self._prices[tier] = new if old is None else old + share * (new - old)

    def observe_asking(self, seconds: float) -> None:
        """Take in the time that the answers of remote tiers took."""
        old = self._asking_s
        self._asking_s = seconds if old is None else old + _ASKING_SHARE * (seconds - old)

    def is_worth_asking(self, compute_s: float | None) -> bool:
        """Whether remote tiers are to be asked for pages whose computation takes so many seconds; None if that is unknown."""
        if compute_s is None or self._asking_s is None or compute_s > self._asking_s:
            return True
        self._asking_s *= _DISCOUNT
        return False

    def choose(
        self, options: Sequence[tuple[Sequence[FetchRun], float | None]], wait_s: float
    ) -> tuple[int | None, FetchPlan]:
        """Choose one of several loads, each of which is of use as a whole only, or none.

        Args:
            options: what is loaded, and the seconds for computing it; None if unknown. Without them the first option is the best.
            wait_s: seconds until the load can begin.
        Returns:
            The index of the option, and its plan; without one, the plan has what the first option would have loaded as `passed`.
        """
        chosen, plan, best_gain = None, FetchPlan(0, 0.0, None, {}), 0.0
        for index, (runs, seconds) in enumerate(options):
            price = sum(run.num_pages * (self._prices.get(run.tier) or 0.0) for run in runs if run.tier is not None)
            gain = float("inf") if seconds is None else seconds - price - wait_s
            if gain > best_gain:
                chosen, plan, best_gain = index, FetchPlan(sum(run.num_pages for run in runs), price, seconds, {}), gain
        if chosen is None and options:
            plan = FetchPlan(0, 0.0, None, _behind(options[0][0], 0))
            self._discount(plan.passed)
        return chosen, plan

    def plan(self, runs: Sequence[FetchRun], wait_s: float, compute_s: Callable[[int], float | None]) -> FetchPlan:
        """Choose how many of the pages at the start of `runs` to load.

        Args:
            wait_s: seconds until the load can begin.
            compute_s: seconds for computing the first so many pages; None if unknown.
        """
        num_pages = num_best = 0
        price = best_gain = best_price = 0.0
        limit_s: float | None = None
        for run in runs:
            num_pages += run.num_pages
            price += run.num_pages * ((self._prices.get(run.tier) or 0.0) if run.tier is not None else 0.0)
            seconds = compute_s(num_pages)
            if seconds is None:
                limit_s = None
            elif (gain := seconds - price - wait_s) > best_gain:
                best_gain, limit_s = gain, seconds
            else:
                continue
            num_best, best_price = num_pages, price
        passed = _behind(runs, num_best)
        self._discount(passed)
        return FetchPlan(num_best, best_price, limit_s, passed)

    def _discount(self, tiers: Iterable[str]) -> None:
        for tier in tiers:
            if tier in self._prices:
                self._prices[tier] *= _DISCOUNT


def state_place(tier: str) -> str:
    """The name under which states of a tier have a price."""
    return f"{tier} states"


def compute_seconds(cost: StepCost, num_before: int, num_tokens: int, max_step_tokens: int) -> float | None:
    """Seconds for computing `num_tokens` tokens of a prompt after `num_before`, in steps of their own; None if unknown."""
    if not cost.is_settled:
        return None
    seconds = 0.0
    for start in range(0, num_tokens, max_step_tokens):
        length = min(max_step_tokens, num_tokens - start)
        seconds += cost.predict(StepSize(0).with_row(length, num_before + start))
    return seconds


def _behind(runs: Sequence[FetchRun], num_pages: int) -> dict[str, int]:
    """Pages of each tier after the first `num_pages`."""
    found: dict[str, int] = {}
    end = 0
    for run in runs:
        end += run.num_pages
        num_behind = min(run.num_pages, end - num_pages)
        if num_behind > 0 and run.tier is not None:
            found[run.tier] = found.get(run.tier, 0) + num_behind
    return found
