"""The engines of a fleet that share one machine: launchers of child processes, each with its part of the cores, memory or GPUs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Collection, Mapping, Sequence

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ConfigError, EngineDeadError
from rtlang.fleet.engines.launcher import ProcessLauncher
from rtlang.fleet.routing.program_balancer import place_of

SHARED_BY = "RTLANG_SHARED_BY"
"""See `rtlang.model.system_resources`."""
GPUS = "CUDA_VISIBLE_DEVICES"
_LIST_GPUS = ("nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader")
_LIST_TIMEOUT_S = 30.0


def process_launchers(
    config: RuntimeConfig,
    max_replicas: int,
    names_in_use: Callable[[], Collection[str]],
    *,
    environ: Mapping[str, str] | None = None,
    list_gpus: Callable[[], list[str]] | None = None,
) -> Callable[[str], ProcessLauncher]:
    """A function that makes the launcher of a replica from its name.

    On the CPU every engine gets its part of the cores and of the memory for pages, unless the configuration says how much. On GPUs each
    replica sees as many as `tensor_parallel` says, one after another in the order of CUDA_VISIBLE_DEVICES, and no other replica sees them.

    Args:
        max_replicas: replicas that run on this machine at the same time, at most.
        names_in_use: the names of the replicas that have not ended; called whenever a launcher is made.
        environ: variables of this process; None for the real ones.
        list_gpus: names the GPUs of the machine, for a process without CUDA_VISIBLE_DEVICES; None asks nvidia-smi.
    Raises:
        ConfigError: there are fewer GPUs than the replicas need. The returned function raises EngineDeadError while replicas that have not
            ended hold all of them.
    """
    variables = {SHARED_BY: str(max_replicas)}
    if config.device != "cuda":
        return lambda name: ProcessLauncher(name, environment=variables)
    listed = (os.environ if environ is None else environ).get(GPUS)
    gpus = (list_gpus or _installed_gpus)() if listed is None else [each for each in listed.split(",") if each]
    groups = _groups(gpus, config.tensor_parallel)
    if len(groups) < max_replicas:
        raise ConfigError(
            "max_replicas",
            max_replicas,
            f"expected at most {len(groups)}: each replica takes {config.tensor_parallel} of {len(gpus)} GPUs",
        )
    taken: dict[str, int] = {}  # by replica, the index of its group

    def launcher(name: str) -> ProcessLauncher:
        place = place_of(name)
        for gone in taken.keys() - {place_of(each) for each in names_in_use()} - {place}:
            del taken[gone]
        if place not in taken:
            free = [index for index in range(len(groups)) if index not in taken.values()]
            if not free:
                raise EngineDeadError(f"{name}: no GPU is free until a replica has ended")
            taken[place] = free[0]
        return ProcessLauncher(name, environment=variables | {GPUS: groups[taken[place]]})

    return launcher


def _groups(gpus: Sequence[str], size: int) -> list[str]:
    """The values of CUDA_VISIBLE_DEVICES for groups of `size` GPUs; GPUs that are left over belong to none."""
    return [",".join(gpus[start : start + size]) for start in range(0, len(gpus) - size + 1, size)]


def _installed_gpus() -> list[str]:
    """The identifiers of the GPUs that this process may use; none if nvidia-smi cannot tell."""
    try:
        listed = subprocess.run(_LIST_GPUS, capture_output=True, text=True, timeout=_LIST_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return [line.strip() for line in listed.stdout.splitlines() if line.strip()]
