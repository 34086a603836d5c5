"""Kernels that ran on a GPU while a function ran, and the time between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch.profiler import ProfilerActivity, profile

_MOST_NAMES, _NAME_LENGTH = 12, 60


@dataclass(frozen=True, slots=True)
class Profile:
    """Times in milliseconds.

    Attributes:
        busy_ms: time during which at least one kernel ran.
        gaps_ms: time between kernels.
        kernels_ms: total time by name, of those that take most.
    """

    num_kernels: int
    busy_ms: float
    gaps_ms: float
    kernels_ms: dict[str, float]

    def __str__(self) -> str:
        names = ", ".join(f"{name} {ms:.2f}" for name, ms in self.kernels_ms.items())
        return f"{self.num_kernels} kernels, busy {self.busy_ms:.1f} ms, gaps {self.gaps_ms:.1f} ms: {names}"


def profiled(function: Callable[[], object]) -> Profile:
    """Run a function and profile the kernels of all its threads. Without a GPU there are none."""
    activities = [ProfilerActivity.CUDA] if torch.cuda.is_available() else [ProfilerActivity.CPU]
    with profile(activities=activities) as recorded:
        function()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
    return summary(
        (event.time_range.start, event.time_range.end, event.name)
        for event in recorded.events() or ()
        if str(event.device_type).endswith("CUDA")
    )


def summary(kernels: Iterable[tuple[float, float, str]]) -> Profile:
    """The profile of kernels, each with its start, its end (in microseconds) and its name."""
    busy = gaps = 0.0
    num_kernels, last = 0, None
    names: dict[str, float] = {}
    for start, end, name in sorted(kernels):
        num_kernels += 1
        short = name[:_NAME_LENGTH]
        names[short] = names.get(short, 0.0) + (end - start) / 1e3
        last = start if last is None else last
        gaps += max(0.0, start - last)
        busy += max(0.0, end - max(start, last))
        last = max(last, end)
    most = sorted(names.items(), key=lambda item: -item[1])[:_MOST_NAMES]
    return Profile(num_kernels, busy / 1e3, gaps / 1e3, dict(most))
