"""A workload: request graphs that all compared engines get, as plain data.

A graph has texts, single generations, and tools. A tool is a host call that answers with a fixed text some time after the generation that
calls it, so every engine waits for it as long.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rtlang.contract.params import Constraint, SamplingParams
from rtlang.contract.request_graph import Call, Const, Generate, Ref, RequestGraph

TOOL = "tool"


@dataclass(frozen=True, slots=True)
class PoissonArrivals:
    """Programs arrive at random, `share` of what the slower side can run."""

    share: float


@dataclass(frozen=True, slots=True)
class ArrivesBeside:
    """Graph number `graph` arrives when the others have generated for `num_steps` steps."""

    graph: int
    num_steps: int


@dataclass(frozen=True, slots=True)
class Workload:
    """Graphs that are submitted at once, or over time.

    Attributes:
        name, summary: shown to people.
        graphs: one graph per program.
        is_quick: whether there are fewer requests than in the full benchmark.
        arrival: when the graphs arrive; None for all at once.
        arrivals_s: by graph, seconds from the start of a run until it arrives; empty for all at once, or as long as nothing is measured
            from which the times of `arrival` follow.
    """

    name: str
    summary: str
    graphs: tuple[RequestGraph, ...]
    is_quick: bool = False
    arrival: PoissonArrivals | ArrivesBeside | None = None
    arrivals_s: tuple[float, ...] = ()

    @property
    def watched(self) -> int | None:
        """The graph beside which token gaps of the others count; None if all gaps do."""
        return self.arrival.graph if isinstance(self.arrival, ArrivesBeside) else None


def fixed_generation(node_id: int, parent: int, num_tokens: int, *, constraint: Constraint | None = None) -> Generate:
    """A generation of exactly so many tokens; with a constraint, of at most as many."""
    if constraint is not None:
        return Generate(node_id, parent, "out", SamplingParams(max_tokens=num_tokens), constraint)
    params = SamplingParams(max_tokens=num_tokens, min_tokens=num_tokens, ignore_eos=True)
    return Generate(node_id, parent, "out", params)


def generations(graph: RequestGraph) -> Iterator[Generate]:
    """The generate nodes of a graph, in node order."""
    return (node for node in graph.nodes if isinstance(node, Generate))


def tool_call(node_id: int, caller: int, delay_s: float, answer: str) -> Call:
    """A tool that the generation `caller` calls, and that answers after `delay_s` seconds."""
    return Call(node_id, TOOL, (Ref(caller), Const(delay_s), Const(answer)))


def tool_of(call: Call) -> tuple[int, float, str]:
    """The caller, the delay in seconds and the answer of a tool.

    Raises:
        ValueError: it is another host call.
    """
    match call:
        case Call(function="tool", args=(Ref(node_id=caller, choice=0), Const(value=delay_s), Const(value=answer))):
            return caller, delay_s, answer
    raise ValueError(f"node {call.node_id}: expected a tool that answers after a time, not {call.function}")
