"""Makes the runner for the settings of a runtime."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import EngineDeadError
from rtlang.model.device_runner import DeviceRunner
from rtlang.model.faulty_runner import FaultyRunner
from rtlang.model.host_runner import HostRunner
from rtlang.model.runner import Runner
from rtlang.model.scripted.script_file import script_path
from rtlang.model.scripted.scripted_runner import ScriptedRunner


def new_runner(
    config: RuntimeConfig, on_death: Callable[[EngineDeadError], None], num_pages: int | None = None
) -> Runner:
    """A runner that has not loaded its model yet.

    Args:
        on_death: see `Ranks`.
        num_pages: pages of the runner in whose place this one comes.
    """
    if script_path(config.model) is not None:
        return ScriptedRunner(config)
    runner: HostRunner | DeviceRunner
    if config.device != "cpu":
        if (
            num_pages is not None and config.draft_model is not None
        ):  # whose pages are there now: less is free than before
            config = replace(config, num_pages=num_pages)
        runner = DeviceRunner(config)
    else:
        runner = FaultyRunner(config) if config.fault_injection else HostRunner(config)
    runner.ranks.on_death = on_death
    return runner
