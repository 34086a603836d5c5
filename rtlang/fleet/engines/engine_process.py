"""A target whose engine runs in a process of its own, which is watched and started again when it dies.

    with EngineProcess(RuntimeConfig(model=...)) as target:
        ...

A crash of the engine does not stop the process that serves clients. When the engine's process ends, by itself or because its engine thread
has not answered for `stall_timeout_s`, another one is started, and every graph continues after the output that it has given.
"""

from __future__ import annotations

from rtlang.contract.config import RuntimeConfig
from rtlang.fleet.engines.engine_target import EngineTarget
from rtlang.fleet.engines.launcher import ProcessLauncher


class EngineProcess(EngineTarget):
    """Runs graphs in a process of its own. Thread-safe; a context manager.

    Args:
        config: settings of the runtime in that process.
        stall_timeout_s: seconds without an answer of the engine thread after which its process is replaced.
    """

    def __init__(self, config: RuntimeConfig | None = None, *, stall_timeout_s: float = 120.0) -> None:
        super().__init__((ProcessLauncher(),), config, stall_timeout_s=stall_timeout_s)

    @property
    def pid(self) -> int | None:
        """The id of the present process; None if there is none."""
        (link,) = self._links.values()
        return link.pid
