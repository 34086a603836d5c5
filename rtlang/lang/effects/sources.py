"""Time and randomness as nodes of a run: a durable or recorded run that goes on has the values of its first time."""

from __future__ import annotations

import datetime
import random as plain_random
from typing import Any

from rtlang.contract.graph.node_paths import mixed_seed
from rtlang.contract.process.call_context import NOW, RANDOM, current_call
from rtlang.contract.request_graph import Ref
from rtlang.lang.control import node_value, running_state
from rtlang.lang.lazy_values.static_types import AnyValue
from rtlang.lang.lazy_values.values import Value, real
from rtlang.lang.output_types.kinds import FLOAT
from rtlang.lang.recordings.driver import AheadOfTime
from rtlang.lang.recordings.recording import Recording

_NUM_BITS = 53


def now() -> AnyValue:
    """The time, as a `datetime` of the time zone UTC. In a program it is a node: a run that goes on has the same time.

    Returns:
        The `datetime`; in an `async def` program and in a branch or loop of the graph its lazy value (`await rt.now()`).
    Raises:
        TraceError: outside of a program.
    """
    state = running_state("rt.now")
    recording = state.recording
    node_id = recording.add_call(NOW, (), _time, state.new_path("now()"), "retry")
    return _read(
        Value(
            recording,
            (node_id,),
            (Ref(node_id),),
            lambda: datetime.datetime.fromisoformat(recording.outcomes.plain_value(node_id)),
            "the value of rt.now()",
        ),
        recording,
    )


def random() -> AnyValue:
    """A random number from 0 up to 1, which follows from the seed of the run and the path of the call: a seeded run repeats it.

    For other distributions, it seeds a generator: `random.Random(rt.random())`.

    Returns:
        The float; in an `async def` program and in a branch or loop of the graph its lazy value (`await rt.random()`).
    Raises:
        TraceError: outside of a program.
    """
    state = running_state("rt.random")
    node_id = state.recording.add_call(RANDOM, (), _number, state.new_path("random()"), "retry")
    return _read(node_value(state.recording, node_id, "the value of rt.random()", FLOAT), state.recording)


def _read(value: Value, recording: Recording) -> AnyValue:
    """The value itself where a plain body can wait for it."""
    is_lazy = recording.is_in_block or recording.is_async or isinstance(recording.driver, AheadOfTime)
    found: AnyValue = value if is_lazy else real(value)
    return found


def _time(plain: tuple[Any, ...]) -> str:
    return str(datetime.datetime.now(datetime.UTC))


def _number(plain: tuple[Any, ...]) -> float:
    context = current_call()
    if context.seed is None:
        return plain_random.SystemRandom().random()
    return float((mixed_seed(context.seed, context.path) >> (64 - _NUM_BITS)) / (1 << _NUM_BITS))
