"""`rtlang serve`: an engine, in a process of its own unless asked otherwise, or a fleet, and the server in front of it."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from rtlang.console.fleet_commands import check_cluster, needs_ray
from rtlang.console.loading import show_loading, started
from rtlang.console.source import CommandError
from rtlang.contract.config import RuntimeConfig, ServeConfig
from rtlang.contract.errors import RtlangError
from rtlang.contract.process.logs import LogFormat, writes_json
from rtlang.contract.service.fleet_report import DEFAULT_FLEET
from rtlang.contract.service.target import Target
from rtlang.fleet.engines.engine_process import EngineProcess
from rtlang.fleet.engines.engine_target import EngineTarget
from rtlang.fleet.replicas.fleet import Fleet
from rtlang.fleet.replicas.process_fleet import ProcessFleet
from rtlang.fleet.replicas.scaling import Scaling
from rtlang.serve.server import Server, TokenizerInfo, check_settings

if TYPE_CHECKING:
    from rtlang.runtime.runtime import Runtime

logger = logging.getLogger(__name__)
ENGINE_FAILED = 70
"""Exit code: the engine has failed for good, and another start of the server may help."""
ALIVE_INTERVAL_S = 0.5
_UPDATE = "rtlang-update"
LOCAL_RAY = "local"
"""The address of a Ray that is started for this process; see `rtlang.fleet.ray.head.LOCAL`."""


@dataclass(frozen=True, slots=True)
class FleetChoice:
    """What the command line says about a fleet.

    Args:
        replicas: a fixed size, or the size at first if bounds are given as well.
        min_replicas, max_replicas: bounds between which the fleet follows its queue.
        ray: the address of a Ray cluster, or "local"; None for child processes.
        name: of the fleet in its cluster.
        prefill_replicas: how many of the child processes only compute prompts.
        spare_replicas: additional engines, each of which takes the place of one that ends.
    """

    replicas: int | None = None
    min_replicas: int | None = None
    max_replicas: int | None = None
    ray: str | None = None
    name: str = DEFAULT_FLEET
    prefill_replicas: int = 0
    spare_replicas: int = 0

    @property
    def is_fleet(self) -> bool:
        """Whether anything was said: else one engine does."""
        return bool(self.prefill_replicas or self.spare_replicas) or any(
            each is not None for each in (self.replicas, self.min_replicas, self.max_replicas, self.ray)
        )

    @property
    def runs_processes(self) -> bool:
        """Whether its engines are child processes."""
        return self.is_fleet and self.ray is None

    @property
    def bounds(self) -> tuple[int, int]:
        """The smallest and the largest size.

        Raises:
            CommandError: the size at first is outside of them.
        """
        first = self.replicas or 1
        low = self.min_replicas if self.min_replicas is not None else min(first, self.max_replicas or first)
        high = self.max_replicas if self.max_replicas is not None else max(first, low)
        if self.replicas is not None and not low <= self.replicas <= high:
            raise CommandError(
                f"--replicas {self.replicas}: expected {low} (--min-replicas) to {high} (--max-replicas)"
            )
        if self.prefill_replicas and (self.ray is not None or self.prefill_replicas >= low):
            raise CommandError(
                f"--prefill-replicas {self.prefill_replicas}: expected fewer than all replicas ({low}), and no --ray"
            )
        if self.prefill_replicas and self.spare_replicas:
            raise CommandError("--spare-replicas: not together with --prefill-replicas")
        return low, high


def serve_engine(
    settings: RuntimeConfig,
    config: ServeConfig,
    *,
    in_process: bool,
    stall_timeout_s: float,
    choice: FleetChoice | None = None,
) -> bool:
    """Serve until SIGINT or SIGTERM, or until the engine has failed for good or its fleet was stopped. Returns False after a failure.

    Raises:
        ModelLoadError, ConfigError: the model cannot be loaded, or the server cannot listen, with these settings.
    """
    check_settings(config)
    runs_processes = choice is not None and choice.runs_processes
    if runs_processes:
        signal.signal(signal.SIGUSR1, _refuse_update)
    target: Runtime | EngineTarget
    if in_process:
        target = started(settings)
    else:
        with show_loading(Console(stderr=True)):
            if choice is None or not choice.is_fleet:
                target = EngineProcess(settings, stall_timeout_s=stall_timeout_s).start()
            else:
                target = fleet_target(settings, choice, stall_timeout_s=stall_timeout_s).start()
    with target:
        text = target.text_service.info
        info = TokenizerInfo(
            settings.model_name, text.vocab_size, text.max_model_len, target.tool_format, target.model_identity
        )
        server = Server(target, info, config, metrics=target.metrics)

        def announce() -> None:
            page = server.url.replace("ws", "http", 1)
            typer.echo(f"serving {settings.model} at {server.url} (live page: {page}; press Ctrl-C to stop)")
            sys.stdout.flush()

        replace: Callable[[], None] | None = None
        if runs_processes:
            assert isinstance(target, Fleet)
            # A GPU has no room for the pages of two engines.
            replace = partial(target.replace, starts_first=settings.device != "cuda")
        asyncio.run(serve_while_alive(server, target, announce, replace))
        if replace is not None:  # the event loop has taken its handler away
            signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        if isinstance(target, EngineTarget) and target.was_stopped:
            typer.echo(f"{target.end_reason}; the server ends")
            return True
        return target.is_alive


def fleet_target(settings: RuntimeConfig, choice: FleetChoice, *, stall_timeout_s: float) -> Fleet:
    """A fleet that has not been started.

    Raises:
        CommandError: Ray is needed and not installed, or the sizes contradict each other.
        ConfigError, ConnectionLostError: see `RayFleet`.
    """
    scaling = Scaling(*choice.bounds, num_spares=choice.spare_replicas)
    if choice.ray is None:
        return ProcessFleet(
            settings,
            scaling,
            num_replicas=choice.replicas,
            num_prefill=choice.prefill_replicas,
            stall_timeout_s=stall_timeout_s,
        )
    if choice.ray != LOCAL_RAY:
        check_cluster(choice.ray)
    with needs_ray():
        from rtlang.fleet.ray.directory import FleetOptions
        from rtlang.fleet.ray.frontend import RayFleet
    given = {each.name: getattr(settings, each.name) for each in fields(settings)}
    options = FleetOptions(
        {name: value for name, value in given.items() if value != getattr(RuntimeConfig(), name)},
        scaling,
        choice.replicas,
        log_level=logging.getLevelName(logging.getLogger().getEffectiveLevel()),
        log_form=(LogFormat.JSON if writes_json() else LogFormat.TEXT).value,
    )
    return RayFleet(choice.ray, choice.name, options, stall_timeout_s=stall_timeout_s)


async def serve_while_alive(
    server: Server, target: Target, on_listening: Callable[[], None], replace: Callable[[], None] | None = None
) -> None:
    """Serve until a signal comes, or until the target is dead.

    Args:
        replace: replaces the engines of the target, for SIGUSR1; runs on a thread.
    """
    if replace is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, _begin_update, replace)
    serving = asyncio.create_task(server.serve(handle_signals=True, on_listening=on_listening))
    while not serving.done():
        await asyncio.wait((serving,), timeout=ALIVE_INTERVAL_S)
        if not target.is_alive:
            server.stop()
            await asyncio.wait((serving,))
    await serving


def _refuse_update(*_: object) -> None:
    """Log that SIGUSR1 is ignored while the engines start; without a handler it would end the process."""
    logger.warning("the engines are still starting; the update is ignored")


def _begin_update(replace: Callable[[], None]) -> None:
    """Begin a rolling update, unless one is under way."""

    def update() -> None:
        logger.info("replacing all engines")
        try:
            replace()
        except RtlangError as error:
            logger.error("the engines were not replaced: %s", error)
        else:
            logger.info("all engines are replaced")

    if any(thread.name == _UPDATE for thread in threading.enumerate()):
        logger.warning("the engines are already being replaced")
        return
    threading.Thread(target=update, name=_UPDATE, daemon=True).start()
