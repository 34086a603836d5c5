"""`rtlang serve`: an engine, in a process of its own unless asked otherwise, and the server in front of it."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import typer
from rich.console import Console

from rtlang.console.fleet_target import FleetChoice, fleet_target
from rtlang.console.loading import show_loading, started
from rtlang.contract.config import RuntimeConfig, ServeConfig
from rtlang.contract.errors import RtlangError
from rtlang.contract.target import Target

logger = logging.getLogger(__name__)
ENGINE_FAILED = 70
"""Exit code: the engine has failed for good, and another start of the server may help."""
ALIVE_INTERVAL_S = 0.5
_UPDATE = "rtlang-update"


def serve_engine(
    settings: RuntimeConfig,
    config: ServeConfig,
    *,
    in_process: bool,
    stall_timeout_s: float,
    choice: FleetChoice | None = None,
) -> bool:
    """Serve until SIGINT or SIGTERM, or until the engine has failed for good. Returns whether the engine still works.

    Raises:
        ModelLoadError, ConfigError: the model cannot be loaded, or the server cannot listen, with these settings.
    """
    target: Any
    if in_process:
        target = started(settings)
    elif choice is not None and choice.is_fleet:
        if choice.runs_processes:
            signal.signal(signal.SIGUSR1, _refuse_update)
        with show_loading(Console(stderr=True)):
            target = fleet_target(settings, choice, stall_timeout_s=stall_timeout_s).start()
    else:
        engine_process = import_module("rtlang.supervise.engine_process").EngineProcess
        with show_loading(Console(stderr=True)):
            target = engine_process(settings, stall_timeout_s=stall_timeout_s).start()
    with target:
        server_module = import_module("rtlang.serve.server")
        text = target.text_service.info
        info = server_module.TokenizerInfo(
            settings.model, text.vocab_size, text.max_model_len, target.tool_format, target.model_identity
        )
        server = server_module.Server(target, info, config, metrics=target.metrics)

        def announce() -> None:
            page = server.url.replace("ws", "http", 1)
            typer.echo(f"serving {settings.model} at {server.url} (live page: {page}; press Ctrl-C to stop)")
            sys.stdout.flush()

        replace: Callable[[], None] | None = None
        if choice is not None and choice.runs_processes:
            # A GPU has no room for the pages of two engines.
            replace = partial(target.replace, starts_first=settings.device != "cuda")
        asyncio.run(serve_while_alive(server, target, announce, replace))
        if replace is not None:  # the event loop has taken its handler away
            signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        return bool(target.is_alive)


async def serve_while_alive(
    server: Any, target: Target, on_listening: Callable[[], None], replace: Callable[[], None] | None = None
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
    logger.warning("the engines are being started, so they are not replaced")


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
        logger.warning("the engines are being replaced already")
        return
    threading.Thread(target=update, name=_UPDATE, daemon=True).start()
