"""`rtlang serve`: an engine, in a process of its own unless asked otherwise, and the server in front of it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import typer
from rich.console import Console

from rtlang.console.fleet_target import FleetChoice, fleet_target
from rtlang.console.loading import show_loading, started
from rtlang.contract.config import RuntimeConfig, ServeConfig
from rtlang.contract.target import Target

ENGINE_FAILED = 70
"""Exit code: the engine has failed for good, and another start of the server may help."""
ALIVE_INTERVAL_S = 0.5


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

        asyncio.run(serve_while_alive(server, target, announce))
        return bool(target.is_alive)


async def serve_while_alive(server: Any, target: Target, on_listening: Callable[[], None]) -> None:
    """Serve until a signal comes, or until the target is dead."""
    serving = asyncio.create_task(server.serve(handle_signals=True, on_listening=on_listening))
    while not serving.done():
        await asyncio.wait((serving,), timeout=ALIVE_INTERVAL_S)
        if not target.is_alive:
            server.stop()
            await asyncio.wait((serving,))
    await serving
