"""The commands `rtlang bench memory`, `tiers`, `pages` and `fleet-soak`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Protocol

import typer
from rich.console import Console

from rtlang.bench.checkpoint import SHAPES
from rtlang.console.errors import one_line_errors
from rtlang.console.fleet import ray_modules
from rtlang.console.options import with_settings
from rtlang.console.progress import told
from rtlang.console.source import CommandError
from rtlang.contract.config import EMBEDDED_MODEL, RuntimeConfig

_Shape = Annotated[
    str | None, typer.Option(help=f"Use a random model of this shape: {', '.join(SHAPES)}.", metavar="NAME")
]


class _Found(Protocol):
    """The result of a benchmark."""

    @property
    def is_met(self) -> bool:
        """Whether the goal is met."""


@with_settings(RuntimeConfig, "settings")
def bench_memory(
    settings: dict[str, Any],
    minutes: Annotated[float, typer.Option(min=0.01, max=10_000, help="Time of the load.")] = 30.0,
    clients: Annotated[int, typer.Option(min=1, max=256, help="Clients at once.")] = 6,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all that the clients do.")] = 0,
    shape: _Shape = None,
) -> None:
    """Measure whether memory stays flat under mixed load: chats, JSON, trees, cancelled generations, prompts of any length.

    Exits with code 1 if the resident memory at the end is more than 1.1 times that after the first minute, or if a request fails or hangs.
    """
    mixed_load = import_module("rtlang.bench.endurance.mixed_load")
    with one_line_errors(), _config(settings, shape) as config:
        with told(Console(stderr=True, highlight=False, markup=False)) as tell:
            found = mixed_load.measure_mixed_load(config, minutes=minutes, num_clients=clients, seed=seed, tell=tell)
        _show(found)


@with_settings(RuntimeConfig, "settings")
def bench_tiers(
    settings: dict[str, Any],
    documents: Annotated[int, typer.Option(min=2, max=10_000, help="Documents that requests continue.")] = 12,
    tokens: Annotated[int, typer.Option(min=16, max=1_000_000, help="Tokens of each document.")] = 384,
    requests: Annotated[int, typer.Option(min=1, max=1_000_000, help="Requests.")] = 48,
    share: Annotated[float, typer.Option(min=0.01, max=1.0, help="Share of the working set in the small pool.")] = 0.25,
    shape: _Shape = None,
) -> None:
    """Compare texts with a small KV pool and tiers below it to those with a large pool, also after a restart and with damaged files.

    Exits with code 1 if a text differs.
    """
    small_pool = import_module("rtlang.bench.endurance.small_pool")
    with one_line_errors(), _config(settings, shape) as config:
        with told(Console(stderr=True, highlight=False, markup=False)) as tell:
            found = small_pool.measure_small_pool(
                config, num_documents=documents, num_tokens=tokens, num_requests=requests, share=share, tell=tell
            )
        _show(found)


@with_settings(RuntimeConfig, "settings")
def bench_pages(
    settings: dict[str, Any],
    tokens: Annotated[
        str, typer.Option(help="Lengths of prompts in tokens, separated by commas.", metavar="N,N")
    ] = "48,96,192,384,768",
    rounds: Annotated[int, typer.Option(min=1, max=1000, help="Prompts of each length.")] = 3,
    shape: _Shape = None,
) -> None:
    """Measure when fetching the KV pages of another engine takes less time than computing them, by length of prompt and speed of link.

    Exits with code 1 if a text differs.
    """
    page_exchange = import_module("rtlang.bench.page_exchange")
    with one_line_errors(), _config(settings, shape) as config:
        try:
            lengths = [int(each) for each in tokens.split(",")]
        except ValueError:
            lengths = []
        if not lengths or min(lengths) < 2 * config.page_size:
            raise CommandError(
                f"--tokens {tokens}: expected numbers of at least {2 * config.page_size}, separated by commas"
            )
        with told(Console(stderr=True, highlight=False, markup=False)) as tell:
            found = page_exchange.measure_page_exchange(config, lengths=lengths, rounds=rounds, tell=tell)
        _show(found)


@with_settings(RuntimeConfig, "settings")
def bench_fleet_soak(
    settings: dict[str, Any],
    minutes: Annotated[float, typer.Option(min=0.1, max=10_000, help="Time of the load.")] = 30.0,
    nodes: Annotated[int, typer.Option(min=1, max=16, help="Nodes of the cluster, all on this machine.")] = 4,
    clients: Annotated[int, typer.Option(min=1, max=256, help="Clients at once.")] = 16,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the load and of the disturbances.")] = 0,
) -> None:
    """Kill, replace and add engines and nodes of a Ray cluster on this machine at random, and compare the texts of seeded programs.

    Exits with code 1 if a program is lost or fails, if a text changes, or if the memory of the frontend grows by more than a tenth.
    """
    soak = import_module("rtlang.bench.endurance.fleet_soak")
    with one_line_errors():
        soak.keep_on_loopback()
        ray_modules()  # says how to install it
        with told(Console(stderr=True, highlight=False, markup=False)) as tell:
            found = soak.measure_fleet_soak(
                settings, minutes=minutes, num_nodes=nodes, num_clients=clients, seed=seed, tell=tell
            )
        _show(found)


def _show(found: _Found) -> None:
    """Print what was found; raises CommandError if the goal is missed."""
    typer.echo(str(found))
    if not found.is_met:
        raise CommandError("the goal is missed")


@contextmanager
def _config(settings: dict[str, Any], shape: str | None) -> Iterator[RuntimeConfig]:
    """The configuration, with a random model of a shape if one is named."""
    config = RuntimeConfig(**settings)
    if shape is None:
        yield config
        return
    if shape not in SHAPES:
        raise CommandError(f"--shape {shape}: expected {' or '.join(SHAPES)}")
    checkpoint, loader = import_module("rtlang.bench.checkpoint"), import_module("rtlang.model.loading.loader")
    with TemporaryDirectory() as folder:
        directory = Path(folder, "model")
        checkpoint.write_random(directory, loader.model_directory(EMBEDDED_MODEL), *SHAPES[shape])
        yield replace(config, model=str(directory))
