"""Measures every figure in turn; figures that raise count as not measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from rtlang.bench.server_process import ServerProcess
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import RtlangError
from rtlang_bench.figure import Figure
from rtlang_bench.frontend import comparison, frontend_figures
from rtlang_bench.serve import engine_figures, fault_figures, load_figures
from rtlang_bench.serve.thread_attacks import ATTACKS
from rtlang_bench.serve.thread_figures import thread_figures


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured.

    Attributes:
        num_streams, num_tokens: concurrent streams and tokens of each.
        gap_s: seconds in which token gaps are collected.
        num_bombs: hostile constraints; None for all.
        num_schemas: distinct schemas.
        num_places, num_detached: of the floods.
        num_frontend_streams, num_frontend_tokens: streams of an engine without a model.
        num_readers: of the snapshot feed.
        vllm_cases: loads of the comparison with vLLM.
        attacks: on the two threads that serve everybody.
        floods: of one client.
    """

    num_streams: int = 1000
    num_tokens: int = 48
    gap_s: float = 10.0
    num_bombs: int | None = None
    num_schemas: int = 400
    num_places: int = 20_000
    num_detached: int = 2_000
    num_frontend_streams: int = 2000
    num_frontend_tokens: int = 20
    num_readers: int = 200
    vllm_cases: tuple[comparison.Case, ...] = comparison.CASES
    attacks: tuple[str, ...] = tuple(ATTACKS)
    floods: tuple[str, ...] = load_figures.FLOODS


QUICK = Sizes(20, 8, 0.5, 6, 10, 1000, 20, 20, 4, 5, comparison.QUICK_CASES, ("stop_patterns",))


AGAINST_VLLM = "against_vllm"
ENGINE_PARTS = ("cancel", "batch_shape", "over_commit", "texts", "faults")
FRONTEND_PARTS = ("frontend", AGAINST_VLLM)
SERVER_PARTS = ("kill", "streams", "feed", "never_reading", "bombs", "threads", "schemas", "floods")
"""Names of the parts that need a server; each gets one of its own."""
CLASSES = (
    *ENGINE_PARTS,
    *FRONTEND_PARTS,
    *SERVER_PARTS,
    *(f"held_by_{name}" for name in ATTACKS),
    *(f"flood_of_{name}" for name in load_figures.FLOODS),
)
"""All that `measure` can be limited to: a part, or one attack of the parts "threads" and "floods"."""


def measure(
    config: RuntimeConfig,
    sizes: Sizes,
    tell: Callable[[str], None],
    only: Collection[str] = (),
    vllm_python: str | None = None,
) -> Iterator[Figure]:
    """All figures, each as soon as it is known.

    Args:
        config: settings of the runtimes in this process; its model is served.
        tell: called with the name of each part when it begins.
        only: names of `CLASSES`; empty for all.
        vllm_python: the Python of an environment with vLLM; None to leave the comparison out.
    """
    sizes, chosen = _limited(sizes, only)
    for name, part in _engine_parts(config):
        if name in chosen:
            tell(name)
            yield from _guarded(name, part)
    for name, part in _frontend_parts(sizes, tell, vllm_python):
        if name in chosen:
            tell(name)
            yield from _guarded(name, part)
    for name, served in _server_parts(sizes):
        if name in chosen:
            tell(name)
            yield from _guarded(name, partial(_with_server, config, served))


def _limited(sizes: Sizes, only: Collection[str]) -> tuple[Sizes, Collection[str]]:
    """The sizes for some classes, and the parts in which these are measured."""
    if not only:
        return sizes, (*ENGINE_PARTS, *FRONTEND_PARTS, *SERVER_PARTS)
    chosen = set(only)
    if "threads" not in only:
        sizes = replace(sizes, attacks=tuple(name for name in ATTACKS if f"held_by_{name}" in only))
        chosen |= {"threads"} if sizes.attacks else set()
    if "floods" not in only:
        sizes = replace(sizes, floods=tuple(name for name in load_figures.FLOODS if f"flood_of_{name}" in only))
        chosen |= {"floods"} if sizes.floods else set()
    return sizes, chosen


def _with_server(config: RuntimeConfig, served: Callable[[ServerProcess], Iterable[Figure]]) -> Iterator[Figure]:
    """The figures of a server of its own, so that one attack does not show in the figures of another."""
    with ServerProcess("--model", config.model) as server:
        yield from served(server)


def _engine_parts(config: RuntimeConfig) -> Iterator[tuple[str, Callable[[], Iterable[Figure]]]]:
    yield "cancel", lambda: (engine_figures.cancel_figure(config),)
    yield "batch_shape", lambda: (engine_figures.batch_shape_figure(config),)
    yield "over_commit", lambda: engine_figures.over_commit_figures(config)
    yield "texts", lambda: engine_figures.text_figures(config)
    yield "faults", lambda: fault_figures.fault_figures(config)


def _frontend_parts(
    sizes: Sizes, tell: Callable[[str], None], vllm_python: str | None
) -> Iterator[tuple[str, Callable[[], Iterable[Figure]]]]:
    num_streams, num_tokens = sizes.num_frontend_streams, sizes.num_frontend_tokens
    yield "frontend", lambda: frontend_figures.stream_figures(num_streams, num_tokens)
    if vllm_python is not None:
        yield AGAINST_VLLM, lambda: comparison.comparison_figures(vllm_python, sizes.vllm_cases, tell)


def _server_parts(sizes: Sizes) -> Iterator[tuple[str, Callable[[ServerProcess], Iterable[Figure]]]]:
    yield "kill", fault_figures.kill_figures
    yield "streams", lambda server: load_figures.stream_figures(server, sizes.num_streams, sizes.num_tokens)
    yield "feed", lambda server: frontend_figures.feed_figures(server, sizes.num_readers, sizes.gap_s)
    yield "never_reading", lambda server: (load_figures.reader_figure(server, sizes.gap_s),)
    yield "bombs", lambda server: load_figures.bomb_figures(server, sizes.num_bombs)
    yield "threads", lambda server: thread_figures(server, sizes.attacks)
    yield "schemas", lambda server: (load_figures.schema_figure(server, sizes.num_schemas),)
    yield (
        "floods",
        lambda server: load_figures.flood_figures(
            server, sizes.floods, places=sizes.num_places, detached=sizes.num_detached
        ),
    )


def _guarded(name: str, part: Callable[[], Iterable[Figure]]) -> Iterator[Figure]:
    try:
        yield from part()
    except (RtlangError, OSError, ArithmeticError, ValueError) as error:
        yield Figure(name, math.nan, "==", 0, "", f"{type(error).__name__}: {error}")
