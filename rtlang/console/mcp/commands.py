"""`rtlang mcp`: serves the programs of a file to MCP clients."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import sys
import threading
from typing import Annotated, Any

import typer

from rtlang.console.loading import connected, started
from rtlang.console.one_line_errors import one_line_errors
from rtlang.console.options import with_settings
from rtlang.console.source import CommandError, load_programs
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.service.target import Target

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@with_settings(RuntimeConfig, "settings")
def mcp(
    programs: Annotated[
        list[str],
        typer.Argument(metavar="FILE[:PROGRAM]...", help="Programs: all of a file or module, or the named one."),
    ],
    settings: dict[str, Any],
    url: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="Run on the server at this ws:// URL; repeat to name fallback servers."),
    ] = None,
    api_key: Annotated[str | None, typer.Option(help="API key for that server.", envvar="RTLANG_API_KEY")] = None,
    http: Annotated[
        str | None,
        typer.Option(metavar="[HOST:]PORT", help="Serve streamable HTTP at /mcp instead of stdio; HOST: 127.0.0.1."),
    ] = None,
) -> None:
    """Serve programs as tools to an MCP client: over stdio, or over streamable HTTP. The model is loaded at the first call.

    Over stdio, programs must leave standard input alone; their output goes to standard error.
    """
    output = sys.stdout.buffer
    with one_line_errors(), contextlib.redirect_stdout(sys.stderr):
        loaded = [program for spec in programs for program in load_programs(spec)]
        if url and settings:
            raise CommandError("runtime options cannot be combined with --url; the server has its own")
        try:
            from rtlang.console.mcp import program_server
        except ImportError as error:
            raise CommandError(f"MCP needs a package: pip install 'rtlang[mcp]' ({error})") from None
        address = None if http is None else _address(http)
        with contextlib.ExitStack() as exits:
            lock = threading.Lock()

            @functools.cache
            def opened() -> Target:
                target: Target = connected(url, api_key) if url else started(RuntimeConfig(**settings))
                exits.callback(target.close)
                return target

            def open_target() -> Target:
                with lock:
                    return opened()

            server = program_server.program_server(loaded, open_target)
            if address is None:
                asyncio.run(program_server.serve_stdio(server, output))
            else:
                typer.echo(f"serving MCP at http://{address[0]}:{address[1]}/mcp", err=True)
                program_server.serve_http(server, *address)


def _address(given: str) -> tuple[str, int]:
    host, _, port = given.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise CommandError(f"--http {given}: expected PORT or HOST:PORT, with a port from 0 to 65535")
    host = host or "127.0.0.1"
    if host not in _LOOPBACK:
        raise CommandError(
            f"--http {given}: expected one of {', '.join(_LOOPBACK)}; put a proxy with access control in front of it"
        )
    return host, int(port)
