"""Decides which programs are opened at a replica that computes prompts, and go on at another one after their first token.

The other replica fetches the pages of the prompt. That pays where computing the prompt takes many times as long as fetching its pages, so
that the generations of others are not held up. Replicas report both by their own measurements: seconds for computing a token of a long
prompt, and for fetching it. While one is unknown, prompts from some length on are computed elsewhere, which measures it.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Any

from rtlang.fleet.routing.router import ProgramWork

GAIN = 10.0
"""A prompt must take so many times as long to compute as to hand over."""
MOVE_S = 0.01
"""Seconds for moving a program, besides its pages."""
MIN_TOKENS = 256.0
"""Shorter prompts are computed where their program stays."""
UNMEASURED_TOKENS = 512.0
"""The same while a time is unknown."""


class PrefillRule:
    """The measured times of a fleet, and the rule. Not thread-safe.

    Args:
        gain: see GAIN.
    """

    def __init__(self, gain: float = GAIN) -> None:
        self._gain = gain
        self._prefill_ns: dict[str, float] = {}
        self._fetch_ns: dict[str, float] = {}

    def report(self, name: str, load: Mapping[str, Any]) -> None:
        """Take in a replica's report of its load: `prefill_ns` and `fetch_ns`, each a number per token, or absent if unknown."""
        for times, field in ((self._prefill_ns, "prefill_ns"), (self._fetch_ns, "fetch_ns")):
            if load.get(field) is not None:
                times[name] = float(load[field])

    def forget(self, name: str) -> None:
        """The replica is gone."""
        self._prefill_ns.pop(name, None)
        self._fetch_ns.pop(name, None)

    def is_worthwhile(self, work: ProgramWork, num_held: float = 0.0) -> bool:
        """Whether a program's prompt should be computed at another replica than the one where it goes on.

        Args:
            num_held: tokens of the prompt that the latter is taken to have.
        """
        num_tokens = len(work.digests) * work.tokens_per_block - num_held
        if num_tokens < MIN_TOKENS:
            return False
        if not self._prefill_ns or not self._fetch_ns:
            return num_tokens >= UNMEASURED_TOKENS
        prefill_s = num_tokens * fmean(self._prefill_ns.values()) * 1e-9
        transfer_s = num_tokens * fmean(self._fetch_ns.values()) * 1e-9
        return prefill_s >= self._gain * (transfer_s + MOVE_S)
