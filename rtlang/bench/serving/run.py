"""Measures every figure in turn; figures that raise count as not measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from rtlang.bench.serving import engine_figures, fault_figures, load_figures
from rtlang.bench.serving.figure import Figure
from rtlang.bench.serving.server_process import ServerProcess
from rtlang.bench.serving.thread_attacks import ATTACKS
from rtlang.bench.serving.thread_figures import thread_figures
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import RtlangError


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured.

    Attributes:
        num_streams, num_tokens: concurrent streams and tokens of each.
        gap_s: seconds in which token gaps are collected.
        num_bombs: hostile constraints; None for all.
        num_schemas: distinct schemas.
        num_places, num_detached: of the floods.
        attacks: on the two threads that serve everybody.
    """

    num_streams: int = 1000
    num_tokens: int = 48
    gap_s: float = 10.0
    num_bombs: int | None = None
    num_schemas: int = 400
    num_places: int = 20_000
    num_detached: int = 2_000
    attacks: tuple[str, ...] = tuple(ATTACKS)


QUICK = Sizes(20, 8, 0.5, 6, 10, 1000, 20, ("stop_patterns",))


def measure(config: RuntimeConfig, sizes: Sizes, tell: Callable[[str], None]) -> Iterator[Figure]:
    """All figures, each as soon as it is known.

    Args:
        config: settings of the runtimes in this process; its model is served.
        tell: called with the name of each part when it begins.
    """
    for name, part in _engine_parts(config):
        tell(name)
        yield from _guarded(name, part)
    for name, served in _server_parts(sizes):
        tell(name)

        def figures(served: Callable[[ServerProcess], Iterable[Figure]] = served) -> Iterator[Figure]:
            # A server of its own for each part, so that one attack does not show in the figures of another.
            with ServerProcess("--model", config.model) as server:
                yield from served(server)

        yield from _guarded(name, figures)


def _engine_parts(config: RuntimeConfig) -> Iterator[tuple[str, Callable[[], Iterable[Figure]]]]:
    yield "cancel", lambda: (engine_figures.cancel_figure(config),)
    yield "batch_shape", lambda: (engine_figures.batch_shape_figure(config),)
    yield "over_commit", lambda: engine_figures.over_commit_figures(config)
    yield "texts", lambda: engine_figures.text_figures(config)
    yield "faults", lambda: fault_figures.fault_figures(config)


def _server_parts(sizes: Sizes) -> Iterator[tuple[str, Callable[[ServerProcess], Iterable[Figure]]]]:
    yield "kill", fault_figures.kill_figures
    yield "streams", lambda server: load_figures.stream_figures(server, sizes.num_streams, sizes.num_tokens)
    yield "never_reading", lambda server: (load_figures.reader_figure(server, sizes.gap_s),)
    yield "bombs", lambda server: load_figures.bomb_figures(server, sizes.num_bombs)
    yield "threads", lambda server: thread_figures(server, sizes.attacks)
    yield "schemas", lambda server: (load_figures.schema_figure(server, sizes.num_schemas),)
    yield (
        "floods",
        lambda server: load_figures.flood_figures(server, places=sizes.num_places, detached=sizes.num_detached),
    )


def _guarded(name: str, part: Callable[[], Iterable[Figure]]) -> Iterator[Figure]:
    try:
        yield from part()
    except (RtlangError, OSError, ArithmeticError, ValueError) as error:
        yield Figure(name, math.nan, "==", 0, "", f"{type(error).__name__}: {error}")
