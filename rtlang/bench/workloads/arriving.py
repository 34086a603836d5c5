"""Workloads that arrive over time: programs at random moments, and a long prompt beside streams.

Times depend on the machine, so both workloads are first run without them, and the times follow from these runs: `without_times`, `timed`.
Lengths and arrivals are those of `python -m rtlang_bench.arrivals`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from rtlang.bench.measure import Measurement
from rtlang.bench.workloads import load
from rtlang.bench.workloads.load import ProgramLoad
from rtlang.bench.workloads.text import Encoder, TextMaker
from rtlang.bench.workloads.workload import ArrivesBeside, PoissonArrivals, Workload, fixed_generation
from rtlang.contract.request_graph import Node, RequestGraph, Text

PROGRAMS, QUICK_PROGRAMS = 48, 20
LONGEST_PROMPT, QUICK_LONGEST_PROMPT = 2048, 512
POISSON_SHARE = 0.8
LONG_PROMPT_TOKENS = 8000
STREAMED, QUICK_STREAMED = 256, 160
NUM_STREAMS = 8
STREAM_PROMPT_TOKENS, LONG_PROMPT_OUTPUT, STEPS_BEFORE = 32, 16, 16
_ROOM = 1024  # for the outputs and following prompts of a program


def poisson(encoder: Encoder, *, seed: int, quick: bool, max_len: int) -> Workload:
    """Programs of one or three calls, with prompts of very different lengths, that arrive as a Poisson process."""
    num_programs, longest = (QUICK_PROGRAMS, QUICK_LONGEST_PROMPT) if quick else (PROGRAMS, LONGEST_PROMPT)
    longest = min(longest, max_len - _ROOM)
    if longest < 16:
        raise ValueError(f"max_len = {max_len}: expected at least {_ROOM + 16}")
    maker = TextMaker(encoder, seed)
    programs = load.at_once(num_programs, longest_prompt=longest, seed=seed)
    summary = f"{num_programs} programs of 1 or 3 calls, prompts 16-{longest} log-uniform, outputs 16-128"
    graphs = tuple(_chain(each, maker) for each in programs)
    return Workload("poisson", summary, graphs, is_quick=quick, arrival=PoissonArrivals(POISSON_SHARE))


def longprompt(encoder: Encoder, *, seed: int, quick: bool, max_len: int) -> Workload:
    """Streams that decode, and a long prompt that arrives meanwhile; the gaps of the streams count."""
    num_tokens = min(LONG_PROMPT_TOKENS, max_len - 2 * LONG_PROMPT_OUTPUT)
    num_streamed = QUICK_STREAMED if quick else STREAMED
    maker = TextMaker(encoder, seed)
    sizes = [(STREAM_PROMPT_TOKENS, num_streamed)] * NUM_STREAMS + [(num_tokens, LONG_PROMPT_OUTPUT)]
    graphs = tuple(
        RequestGraph((Text(0, None, (maker.text(prompt, is_start=True),)), fixed_generation(1, 0, output)))
        for prompt, output in sizes
    )
    summary = (
        f"{NUM_STREAMS} streams of {num_streamed} out, and a prompt of {num_tokens} tokens after about {STEPS_BEFORE} steps; "
        "gaps are those of the streams until its first token"
    )
    arrival = ArrivesBeside(NUM_STREAMS, STEPS_BEFORE)
    return Workload("longprompt", summary, graphs, is_quick=quick, arrival=arrival)


def without_times(workload: Workload) -> Workload:
    """The workload to measure first: all programs at once, or only the streams."""
    if workload.watched is None:
        return workload
    graphs = tuple(each for index, each in enumerate(workload.graphs) if index != workload.watched)
    return replace(workload, graphs=graphs, arrival=None)


def timed(workload: Workload, runs: Sequence[Measurement], *, seed: int) -> Workload:
    """The workload with its times.

    Args:
        runs: one of each side, of `without_times`; the slower side decides.
        seed: of random times.
    """
    match workload.arrival:
        case PoissonArrivals(share=share):
            per_s = share * len(workload.graphs) / max(run.total_s for run in runs)
            unplaced = [ProgramLoad(0.0, ())] * len(workload.graphs)
            arrivals_s = tuple(each.arrival_s for each in load.poisson(unplaced, per_s, seed=seed))
            summary = f"{workload.summary}; {per_s:.2f} a second, {share:g} of the capacity of the slower side"
        case ArrivesBeside(graph=graph, num_steps=num_steps):
            at_s = max(max(run.first_token_s) + num_steps * median(run.gaps_s()) for run in runs)
            arrivals_s = tuple(at_s if index == graph else 0.0 for index in range(len(workload.graphs)))
            summary = workload.summary
        case None:
            return workload
    return replace(workload, summary=summary, arrivals_s=arrivals_s)


def _chain(program: ProgramLoad, maker: TextMaker) -> RequestGraph:
    """Calls one after the other, each continuing the text of the one before."""
    nodes: list[Node] = []
    for call in program.calls:
        before = len(nodes) - 1 if nodes else None
        nodes.append(Text(len(nodes), before, (maker.text(call.num_prompt, is_start=before is None),)))
        nodes.append(fixed_generation(len(nodes), len(nodes) - 1, call.num_output))
    return RequestGraph(tuple(nodes))
