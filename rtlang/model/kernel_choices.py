"""Describes the kernels that serve the loaded model of this process, and the measurements that chose them."""

from __future__ import annotations

from rtlang_kernels.host.processor import processor
from rtlang_kernels.host.tuning import tuning


def kernel_lines() -> list[str]:
    """One line per choice: subject, case, the chosen candidate, and its time over that of the alternatives."""
    machine = processor()
    lines = [f"{machine.model} ({machine.target}: {', '.join(machine.features) or 'no vector features'})"]
    for choice in tuning().choices():
        found = choice.seconds.get(choice.chosen)
        others = [seconds for name, seconds in choice.seconds.items() if name != choice.chosen]
        figures = ""
        if found is not None:
            figures = f" ({found * 1e3:.3g} ms" + (f", others {_span(others)} ms)" if others else ")")
        lines.append(f"{choice.name}, {choice.shape}: {choice.chosen}{figures}")
    return lines


def _span(seconds: list[float]) -> str:
    low, high = min(seconds) * 1e3, max(seconds) * 1e3
    return f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"
