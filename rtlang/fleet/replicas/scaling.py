"""The number of replicas that a fleet should have, from the tokens that wait in it.

A replica is added when the queue of each has been longer than `queue_tokens` for a while, and as many as the queue needs. One is given up
when the others would still have at most half of that for a longer while. Between the two bounds nothing changes, so that a steady load
never adds and removes replicas in turns. A pure function of time and load.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from rtlang.contract.errors import ConfigError

MAX_REPLICAS = 10_000
DOWN_SHARE = 0.5
"""Share of `queue_tokens` that each remaining replica may have after one is given up."""
MAX_GROWTH = 2.0
"""Factor by which a fleet grows at most at once: the load of the new replicas is not known yet."""


@dataclass(frozen=True, slots=True)
class Scaling:
    """Bounds of a fleet.

    Args:
        min_replicas, max_replicas: its size; equal for a fleet that is not scaled.
        queue_tokens: tokens that wait at each replica, as it reports them, above which the fleet grows.
        up_after_s, down_after_s: seconds for which the reason must last.
        num_spares: additional replicas with a loaded model, each of which takes the place of one that ends; not counted above.
    Raises:
        ConfigError: a field is out of its range.
    """

    min_replicas: int = 1
    max_replicas: int = 1
    queue_tokens: float = 8192.0
    up_after_s: float = 3.0
    down_after_s: float = 60.0
    num_spares: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.min_replicas <= MAX_REPLICAS:
            raise ConfigError("min_replicas", self.min_replicas, f"expected 1 to {MAX_REPLICAS}")
        if not self.min_replicas <= self.max_replicas <= MAX_REPLICAS:
            allowed = f"expected {self.min_replicas} (min_replicas) to {MAX_REPLICAS}"
            raise ConfigError("max_replicas", self.max_replicas, allowed)
        if not 0 <= self.num_spares <= MAX_REPLICAS:
            raise ConfigError("num_spares", self.num_spares, f"expected 0 to {MAX_REPLICAS}")
        for name in ("queue_tokens", "up_after_s", "down_after_s"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise ConfigError(name, value, "expected a number above 0")


@dataclass(frozen=True, slots=True)
class ScalingState:
    """Since when there has been a reason to grow or to shrink; None if there is none."""

    grows_since: float | None = None
    shrinks_since: float | None = None


def wanted_replicas(
    scaling: Scaling, state: ScalingState, *, now: float, num_ready: int, num_starting: int, waiting: float
) -> tuple[int, ScalingState]:
    """The number of replicas that the fleet should have now.

    Args:
        state: the one returned by the call before.
        now: seconds of any clock that does not go back.
        num_ready, num_starting: replicas that work, and those that load their model; they count as if they worked already.
        waiting: tokens that wait in all replicas together.
    """
    num_now = num_ready + num_starting
    if not scaling.min_replicas <= num_now <= scaling.max_replicas:
        return min(max(num_now, scaling.min_replicas), scaling.max_replicas), ScalingState()
    if waiting > num_now * scaling.queue_tokens and num_now < scaling.max_replicas:
        since = now if state.grows_since is None else state.grows_since
        if now - since < scaling.up_after_s:
            return num_now, ScalingState(grows_since=since)
        needed = min(math.ceil(waiting / scaling.queue_tokens), math.floor(num_now * MAX_GROWTH))
        return min(needed, scaling.max_replicas), ScalingState()
    fits_fewer = waiting <= (num_now - 1) * scaling.queue_tokens * DOWN_SHARE
    if fits_fewer and num_now > scaling.min_replicas:
        since = now if state.shrinks_since is None else state.shrinks_since
        if now - since < scaling.down_after_s:
            return num_now, ScalingState(shrinks_since=since)
        return num_now - 1, ScalingState()
    return num_now, ScalingState()
