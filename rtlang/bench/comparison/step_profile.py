"""Where the time of our side goes: each part of a step in milliseconds and as a share of the time that passed.

    found = profile(runtime, "mixed", lambda: run)

While `run` runs, the functions of the engine are wrapped with timers: the engine itself has none, so they cost nothing otherwise. A timer
counts the time of its function without that of the timers within it, so the times add up to the time of the engine thread. Work on
other threads beside it, such as masks, is not counted; waiting for it is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from rtlang.engine.constraints.session import ConstraintSession
from rtlang.engine.requests.detokenizer import IncrementalDetokenizer
from rtlang.model.layers.attention import StepAttention
from rtlang.model.layers.linear import Linear
from rtlang.runtime.runtime import Runtime
from rtlang_kernels import ops

FUSED = "layers in one call"
REST, IDLE = "rest of the engine", "waiting for work"
PARTS = (
    FUSED,
    "linears",
    "attention",
    "norms, rotation, gate",
    "rest of the layers",
    "head",
    "sampling",
    "masks",
    "scores of prompts",
    "batch",
    "schedule",
    "drafts",
    "constraints",
    "detokenize",
    "outputs and events",
    REST,
    IDLE,
)
PROFILE_TITLE = "where time goes: ms a step (share)"


@dataclass(frozen=True, slots=True)
class Profile:
    """The times of one run with timers.

    Attributes:
        num_steps: steps of the engine.
        total_s: the time that passed.
        parts_s: seconds by part, in the order of PARTS.
        within_fused: shares of the parts of a step whose layers are separate calls, which show what the layers in one call consist of;
            empty if none were in one call.
    """

    workload: str
    num_steps: int
    total_s: float
    parts_s: dict[str, float]
    within_fused: dict[str, float]

    @property
    def explained(self) -> float:
        """The share of the time that the parts explain."""
        return sum(self.parts_s.values()) / self.total_s


class PartTimer:
    """Times of nested functions, each without those within it. One thread counts: that of the first call.

    Args:
        clock: in seconds.
    Attributes:
        seconds: by part.
    """

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self._clock, self._thread = clock, 0
        self._inner_s: list[float] = []  # time of the timers within each open one
        self._is_closed = False  # within a function whose parts are not told apart
        self.seconds: dict[str, float] = {}

    def use_this_thread(self) -> None:
        """Count the functions of the calling thread."""
        self._thread = threading.get_ident()

    def timed(self, part: str, function: Callable[..., Any], *, is_whole: bool = False) -> Callable[..., Any]:
        """The function with a timer; with `is_whole`, timers within it do not count."""
        clock, inner_s, seconds = self._clock, self._inner_s, self.seconds

        def run(*args: Any, **kwargs: Any) -> Any:
            if self._is_closed or threading.get_ident() != self._thread:
                return function(*args, **kwargs)
            self._is_closed = is_whole
            inner_s.append(0.0)
            started = clock()
            try:
                return function(*args, **kwargs)
            finally:
                passed = clock() - started
                self._is_closed = False
                seconds[part] = seconds.get(part, 0.0) + passed - inner_s.pop()
                if inner_s:
                    inner_s[-1] += passed

        return run


def profile(runtime: Runtime, workload: str, make_run: Callable[[], Callable[[], object]]) -> Profile:
    """Time a run; where the layers of a step are one call, a second run without that tells its parts apart.

    Args:
        make_run: prepares a run, which is not timed.
    """
    timer, num_steps, total_s = _timed_run(runtime, make_run())
    within: dict[str, float] = {}
    if timer.seconds.get(FUSED):
        apart, _, _ = _timed_run(runtime, make_run(), is_fused=False)
        layers = {name: apart.seconds.get(name, 0.0) for name in PARTS[1:5]}
        within = {name: seconds / sum(layers.values()) for name, seconds in layers.items()}
    parts_s = {name: timer.seconds.get(name, 0.0) for name in PARTS}
    return Profile(workload, num_steps, total_s, parts_s, within)


def _timed_run(runtime: Any, run: Callable[[], object], *, is_fused: bool = True) -> tuple[PartTimer, int, float]:
    """The times of a run, its number of steps, and the seconds that passed."""
    timer, loop = PartTimer(), runtime._running_loop()
    open_timers = ExitStack()

    def begin() -> float:
        timer.use_this_thread()
        open_timers.enter_context(_timers(timer, loop, runtime._engine, runtime._runner, is_fused=is_fused))
        return perf_counter()

    first_step = runtime.stats()["num_steps"]
    started = loop.run(begin)
    try:
        run()
    finally:
        loop.run(open_timers.close)
        # The turn of the loop that removed the timers has one itself, which ends before the next command.
        ended = loop.run(perf_counter)
    return timer, runtime.stats()["num_steps"] - first_step, ended - started


@contextmanager
def _timers(timer: PartTimer, loop: Any, engine: Any, runner: Any, *, is_fused: bool) -> Iterator[None]:
    """Wraps the functions of a running engine. Used on its thread."""
    decoder, pipeline = runner.decoder, engine._pipeline
    fused = getattr(decoder, "_fused", None)
    parts: list[tuple[Any, str, str]] = [
        (loop, "_run_once", REST),
        (loop, "_step", "outputs and events"),
        (loop._condition, "wait", IDLE),
        (engine, "step", REST),
        (engine, "_schedule", "schedule"),
        (engine.scheduler, "launched", "schedule"),
        (pipeline, "_apply", "outputs and events"),
        (pipeline, "_start_masks", "masks"),
        (pipeline, "_sample", "masks"),
        (ConstraintSession, "accept", "constraints"),
        (IncrementalDetokenizer, "push", "detokenize"),
        (runner, "launch", "batch"),
        (runner, "_score", "scores of prompts"),
        (runner, "sample", "sampling"),
        (runner, "collect", "sampling"),
        (decoder, "forward", "rest of the layers"),
        (StepAttention, "plan", "attention"),
    ]
    whole = [
        (engine.drafter, "choose", "drafts"),  # a draft model has layers of its own
        (engine.drafter, "note", "drafts"),
        (decoder, "project", "head"),
        (Linear, "__call__", "linears"),
        (Linear, "add_to", "linears"),
    ]
    if fused is not None and is_fused:
        whole.append((fused, "forward", FUSED))
    with ExitStack() as changed:
        for places, is_whole in ((parts, False), (whole, True)):
            for owner, name, part in places:
                if owner is not None:
                    timed = timer.timed(part, getattr(owner, name), is_whole=is_whole)
                    changed.enter_context(_replaced(owner, name, timed))
        if fused is not None and not is_fused:
            changed.enter_context(_replaced(fused, "is_worthwhile", lambda num_tokens: False))
        changed.enter_context(_replaced(ops, "backend_named", _timed_backends(timer)))
        yield


def _timed_backends(timer: PartTimer) -> Callable[[str], Any]:
    """`backend_named` whose kernels have timers."""
    find = ops.backend_named
    made: dict[str, Any] = {}

    def backend_named(name: str) -> Any:
        if name not in made:
            found = find(name)
            others = "norms, rotation, gate"
            made[name] = replace(
                found,
                paged_attention=timer.timed("attention", found.paged_attention),
                add_rms_norm=timer.timed(others, found.add_rms_norm),
                rope_append=timer.timed(others, found.rope_append),
                silu_and_mul=timer.timed(others, found.silu_and_mul),
            )
        return made[name]

    return backend_named


@contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Sets an attribute and restores it: of an object, what its class has shows again."""
    missing = object()
    before = vars(owner).get(name, missing)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if before is missing:
            delattr(owner, name)
        else:
            setattr(owner, name, before)


def profile_rows(profiles: Sequence[Profile]) -> list[list[str]]:
    """The cells of the table, the head first: one column for each workload, without parts that take no time in any."""
    shown = [name for name in PARTS if any(each.parts_s[name] >= 5e-4 * each.total_s for each in profiles)]
    rows = [["part", *(each.workload for each in profiles)]]
    for name in shown:
        rows.append([name, *(_cell(each.parts_s[name], each) for each in profiles)])
    rows.append(["explained", *(_cell(each.explained * each.total_s, each) for each in profiles)])
    rows.append(["unexplained", *(_cell((1 - each.explained) * each.total_s, each) for each in profiles)])
    return rows


def profile_notes(profiles: Sequence[Profile]) -> list[str]:
    """Explanations of the table, one line each."""
    if not profiles:
        return []
    notes = [
        "where time goes: of the engine thread in one more run with timers, which add to its time; the shares are of the time that passed"
    ]
    for each in profiles:
        if each.within_fused:
            shares = ", ".join(f"{name} {share:.0%}" for name, share in each.within_fused.items() if share >= 0.005)
            notes.append(f"{each.workload}: {FUSED} are, by a run of separate calls: {shares}")
    return notes


def _cell(seconds: float, of: Profile) -> str:
    return f"{1e3 * seconds / max(1, of.num_steps):.2f} ({seconds / of.total_s:.1%})"
