"""`rtlang keys`: makes a key for a server."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from rtlang.contract.errors import ConfigError
from rtlang.serve.network.key_table import entry_of, new_key


def make_key(
    name: Annotated[str, typer.Argument(help="Name of the principal: for accounts, logs and metrics.")],
    keys_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Append the entry to this file of keys instead of printing it.")
    ] = None,
) -> None:
    """Make a random key: print it once, with its hashed entry for the server's file of keys."""
    key = new_key()
    try:
        entry = entry_of(name, key)
        if keys_file is not None:
            descriptor = os.open(keys_file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with os.fdopen(descriptor, "a", encoding="utf-8") as file:
                file.write(f"\n{entry}" if os.fstat(descriptor).st_size else entry)
    except (ConfigError, OSError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None
    typer.echo(f"key for {name} (shown once, not stored): {key}")
    if keys_file is None:
        typer.echo(entry, nl=False)
