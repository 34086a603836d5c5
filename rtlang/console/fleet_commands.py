"""`rtlang fleet` lists, scales, replaces and stops fleets on Ray, which exist whether or not a server uses them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import ModuleType
from typing import Annotated, Any

import typer

from rtlang.console.one_line_errors import one_line_errors
from rtlang.console.source import CommandError
from rtlang.contract.service.fleet_report import DEFAULT_FLEET

fleet = typer.Typer(help="List, scale, replace and stop fleets on Ray.", no_args_is_help=True, rich_markup_mode=None)

Address = Annotated[
    str, typer.Option("--ray", metavar="HOST:PORT", help="Ray cluster; auto finds the cluster of this machine.")
]
Name = Annotated[str, typer.Argument(metavar="FLEET", help="Name of the fleet, as given to `rtlang serve --fleet`.")]


@fleet.command("list")
def list_fleets(address: Address = "auto") -> None:
    """List the fleets of a cluster: model, replicas, waiting tokens and frontends."""
    with _on_ray(address) as ray:
        names = ray.fleet_names()
        if not names:
            typer.echo("no fleets")
        for name in names:
            typer.echo(_line(ray.fleet_status(name)))


@fleet.command("replace")
def replace_fleet(name: Name = DEFAULT_FLEET, address: Address = "auto") -> None:
    """Replace every replica by a new one, one at a time, while programs go on: new code, or new files of the same model."""
    with _on_ray(address) as ray:
        if not ray.replace_fleet(name):
            raise CommandError(f"the cluster has no fleet {name!r}")
        typer.echo(f"replacing the replicas of {name} one at a time; `rtlang fleet list` shows when it is done")


@fleet.command("scale")
def scale_fleet(
    min_replicas: Annotated[int, typer.Option(min=1, help="Smallest number of replicas.")],
    max_replicas: Annotated[int | None, typer.Option(min=1, help="Largest number; default: the smallest.")] = None,
    name: Name = DEFAULT_FLEET,
    address: Address = "auto",
) -> None:
    """Change the size of a fleet: a fixed one, or the bounds between which it follows its queue."""
    with _on_ray(address) as ray:
        status = ray.fleet_status(name)
        if status is None:
            raise CommandError(f"the cluster has no fleet {name!r}")
        scaling = replace(status.scaling, min_replicas=min_replicas, max_replicas=max_replicas or min_replicas)
        ray.scale_fleet(name, scaling)
        typer.echo(f"{name} gets {scaling.min_replicas} to {scaling.max_replicas} replicas")


@fleet.command("stop")
def stop_fleet(name: Name = DEFAULT_FLEET, address: Address = "auto") -> None:
    """Stop a fleet: all its replicas end, with the programs that run there."""
    with _on_ray(address) as ray:
        if not ray.end_fleet(name):
            raise CommandError(f"the cluster has no fleet {name!r}")
        typer.echo(f"stopped {name}")


@contextmanager
def needs_ray() -> Iterator[None]:
    """Turn a missing Ray into a CommandError."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in ("ray", "grpc"):
            raise
        raise CommandError("this needs Ray: pip install 'rtlang[ray]'") from None


def check_cluster(address: str) -> None:
    """Check that a Ray cluster answers, before Ray is imported, which takes seconds.

    Raises:
        CommandError: Ray is not installed.
        ConfigError, ConnectionLostError: see `rtlang.fleet.ray.head.check_cluster`.
    """
    with needs_ray():
        from rtlang.fleet.ray import head

        head.check_cluster(address)


def ray_modules() -> tuple[ModuleType, ModuleType]:
    """The modules `rtlang.fleet.ray.cluster` and `rtlang.fleet.ray.directory`.

    Raises:
        CommandError: Ray is not installed.
    """
    with needs_ray():
        from rtlang.fleet.ray import cluster, directory
    return cluster, directory


@contextmanager
def _on_ray(address: str) -> Iterator[ModuleType]:
    """Join a cluster; yields `rtlang.fleet.ray.directory`."""
    with one_line_errors():
        check_cluster(address)
        cluster, directory = ray_modules()
        cluster.join_ray(address)
        try:
            yield directory
        finally:
            cluster.leave_ray()


def _line(status: Any) -> str:
    roster = status.roster
    waiting = sum(status.waiting.values())
    parts = [
        status.name,
        status.model,
        f"{len(roster.used)} replicas ({status.scaling.min_replicas} to {status.scaling.max_replicas})",
        f"{waiting:.0f} tokens waiting",
        f"{len(status.frontends)} frontends",
    ]
    if roster.draining:
        parts.append(f"{len(roster.draining)} draining")
    if status.is_replacing:
        parts.append("being replaced")
    return ", ".join(parts)
