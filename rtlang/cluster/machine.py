"""The engines of a fleet that share one machine: launchers of child processes, each with its part of the cores, memory or GPUs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from rtlang.contract.config import RuntimeConfig
from rtlang.supervise.launcher import ProcessLauncher

SHARED_BY = "RTLANG_SHARED_BY"
"""See `rtlang.model.system_resources`."""
GPUS = "CUDA_VISIBLE_DEVICES"


def process_launchers(
    config: RuntimeConfig, num_sharing: int, *, environ: Mapping[str, str] | None = None
) -> Callable[[str], ProcessLauncher]:
    """A function that makes the launcher of a replica from its name.

    On the CPU every engine gets its part of the cores and of the memory for pages, unless the configuration says how much. On a GPU each
    has one of those that CUDA_VISIBLE_DEVICES lists, in turns by the number at the end of its name; where the variable is not set, the
    GPU with that number.

    Args:
        num_sharing: engines that run on this machine at the same time, at most.
        environ: variables of this process; None for the real ones.
    """
    given = os.environ if environ is None else environ
    gpus = [each for each in given.get(GPUS, "").split(",") if each]

    def launcher(name: str) -> ProcessLauncher:
        variables = {SHARED_BY: str(num_sharing)}
        if config.device == "cuda":
            variables[GPUS] = _turn(gpus, name)
        return ProcessLauncher(name, environment=variables)

    return launcher


def _turn(gpus: Sequence[str], name: str) -> str:
    digits = name[len(name.rstrip("0123456789")) :]
    number = int(digits or 0)
    return gpus[number % len(gpus)] if gpus else str(number)
