"""The workloads by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rtlang.bench.workloads import requests
from rtlang.bench.workloads.text import Encoder
from rtlang.bench.workloads.workload import Workload

AT_ONCE: dict[str, Callable[..., Workload]] = {
    "shared": requests.shared,
    "tree": requests.tree,
    "mixed": requests.mixed,
    "json": requests.json_outputs,
    "stream": requests.stream,
    "chat": requests.chat,
    "decode_1": partial(requests.decode, num_rows=1),
    "decode_8": partial(requests.decode, num_rows=8),
    "decode_32": partial(requests.decode, num_rows=32),
}
DEPENDENT, ARRIVING = ("agents", "judge"), ("poisson", "longprompt")
NAMES = (*AT_ONCE, *DEPENDENT, *ARRIVING)
USUAL = ("shared", "tree", "mixed", "json")
"""The workloads that are run by default."""
SPECULATE = "speculate"
"""The workloads of `rtlang.bench.speculation`."""
STEPS = "steps"
"""The figures of `rtlang.bench.steps`."""
STATES = "states"
"""The counts of `rtlang.bench.states`."""
ALONE = (SPECULATE, STATES, STEPS)
"""Workloads with figures of their own, each run without others."""


def make(name: str, encoder: Encoder, *, seed: int = 0, quick: bool = False, max_len: int = 4096) -> Workload:
    """The workload `name`, one of NAMES, for a model of at most `max_len` tokens.

    Raises:
        ValueError: no workload has that name, or the model is too short for it.
    """
    if name in AT_ONCE:
        return AT_ONCE[name](encoder, seed=seed, quick=quick)
    if name in DEPENDENT:
        from rtlang.bench.workloads import dependent_calls

        calls = {"agents": dependent_calls.agents, "judge": dependent_calls.judge}
        return calls[name](encoder, seed=seed, quick=quick)
    if name in ARRIVING:
        from rtlang.bench.workloads import arriving

        arrivals = {"poisson": arriving.poisson, "longprompt": arriving.longprompt}
        return arrivals[name](encoder, seed=seed, quick=quick, max_len=max_len)
    raise ValueError(f"workload = {name!r}: expected one of {', '.join(NAMES)}")
