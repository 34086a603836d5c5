"""Makes the runner for the settings of a runtime."""

from __future__ import annotations

from collections.abc import Callable

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import EngineDeadError
from rtlang.model.device_runner import DeviceRunner
from rtlang.model.faulty_runner import FaultyRunner
from rtlang.model.host_runner import HostRunner
from rtlang.model.runner import Runner
from rtlang.model.scripted.script_file import script_path
from rtlang.model.scripted.scripted_runner import ScriptedRunner


def new_runner(config: RuntimeConfig, on_death: Callable[[EngineDeadError], None]) -> Runner:
    """A runner that has not loaded its model yet.

    Args:
        on_death: see `Ranks`.
    """
    if script_path(config.model) is not None:
        return ScriptedRunner(config)
    runner: HostRunner | DeviceRunner
    if config.device != "cpu":
        runner = DeviceRunner(config)
    else:
        runner = FaultyRunner(config) if config.fault_injection else HostRunner(config)
    runner.ranks.on_death = on_death
    return runner
