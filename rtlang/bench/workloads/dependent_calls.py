"""Workloads of programs whose calls depend on each other: agents that wait for tools, and judges that branch, solve and merge.

Their graphs have the marks that the passes of the compiler give to every program; other engines ignore them.
"""

from __future__ import annotations

import json
import math
import random

from rtlang.bench.workloads.text import Encoder, TextMaker
from rtlang.bench.workloads.workload import Workload, fixed_generation, tool_call
from rtlang.compiler.pipeline import chosen_passes, compile_graph
from rtlang.contract.params import Constraint, ConstraintKind
from rtlang.contract.request_graph import Node, Part, Ref, RequestGraph, Text

AGENTS, QUICK_AGENTS = 8, 4
AGENT_CALLS, QUICK_AGENT_CALLS = (10, 40), (10, 16)
AGENT_SYSTEM_TOKENS, AGENT_TASK_TOKENS = 256, 64
AGENT_OUTPUT, AGENT_RESULT_TOKENS, AGENT_DELAY_S = (8, 24), (16, 48), (0.02, 0.4)
ESSAYS, QUICK_ESSAYS = 12, 6
RUBRIC_TOKENS, ESSAY_TOKENS, CRITERIA, CRITERION_TOKENS = 192, 160, 4, 16
ANALYSIS_OUTPUT, VERDICT_OUTPUT, MERGED_OUTPUT = 32, 96, 48
VERDICT = {
    "type": "object",
    "properties": {
        "score": {"type": "integer", "minimum": 0, "maximum": 10},
        "reason": {"type": "string", "minLength": 8, "maxLength": 32},
    },
    "required": ["score", "reason"],
    "additionalProperties": False,
}


def agents(encoder: Encoder, *, seed: int, quick: bool) -> Workload:
    """Agents side by side; each generation calls a tool, whose answer the next one continues."""
    maker, rng = TextMaker(encoder, seed), random.Random(seed)
    system = maker.text(AGENT_SYSTEM_TOKENS, is_start=True)
    num_agents, lengths = (QUICK_AGENTS, QUICK_AGENT_CALLS) if quick else (AGENTS, AGENT_CALLS)
    # Evenly spread, so that a few agents differ as much as many.
    nums_calls = [round(lengths[0] + (lengths[1] - lengths[0]) * i / max(1, num_agents - 1)) for i in range(num_agents)]
    graphs = []
    for num_calls in nums_calls:
        nodes: list[Node] = [Text(0, None, (system,)), Text(1, 0, (maker.text(AGENT_TASK_TOKENS),))]
        for number in range(num_calls):
            call = fixed_generation(len(nodes), nodes[-1].node_id, rng.randint(*AGENT_OUTPUT))
            nodes.append(call)
            if number < num_calls - 1:
                delay_s = math.exp(rng.uniform(*map(math.log, AGENT_DELAY_S)))
                tool = tool_call(len(nodes), call.node_id, delay_s, maker.text(rng.randint(*AGENT_RESULT_TOKENS)))
                nodes += [tool, Text(tool.node_id + 1, call.node_id, (Ref(tool.node_id),))]
        graphs.append(_compiled(nodes))
    low, high = AGENT_DELAY_S
    summary = (
        f"{num_agents} agents of {min(nums_calls)}-{max(nums_calls)} calls, {AGENT_SYSTEM_TOKENS} shared + {AGENT_TASK_TOKENS} own "
        f"tokens; each call {_range(AGENT_OUTPUT)} out, then a tool of {low:g}-{high:g} s that answers with {_range(AGENT_RESULT_TOKENS)}"
    )
    return Workload("agents", summary, tuple(graphs), is_quick=quick)


def judge(encoder: Encoder, *, seed: int, quick: bool) -> Workload:
    """A batch of essays under one rubric: branches for its criteria, each with an analysis and a verdict as JSON, and one that merges."""
    maker = TextMaker(encoder, seed)
    rubric = maker.text(RUBRIC_TOKENS, is_start=True)
    criteria = [maker.text(CRITERION_TOKENS) for _ in range(CRITERIA)]
    constraint = Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(VERDICT))
    num_essays = QUICK_ESSAYS if quick else ESSAYS
    graphs = []
    for _ in range(num_essays):
        nodes: list[Node] = [Text(0, None, (rubric,)), Text(1, 0, (maker.text(ESSAY_TOKENS),))]
        verdicts: list[Part] = []
        for criterion in criteria:
            start = len(nodes)
            nodes += [
                Text(start, 1, (criterion,)),
                fixed_generation(start + 1, start, ANALYSIS_OUTPUT),
                Text(start + 2, start + 1, ("\nVerdict: ",)),
                fixed_generation(start + 3, start + 2, VERDICT_OUTPUT, constraint=constraint),
            ]
            verdicts += ["\n", Ref(start + 3)]
        merged = len(nodes)
        nodes += [
            Text(merged, 1, ("\nVerdicts:", *verdicts, "\nIn all: ")),
            fixed_generation(merged + 1, merged, MERGED_OUTPUT),
        ]
        graphs.append(_compiled(nodes))
    summary = (
        f"{num_essays} programs, {RUBRIC_TOKENS} shared + {ESSAY_TOKENS} own tokens, {CRITERIA} branches of {ANALYSIS_OUTPUT} out and a "
        f"JSON verdict of at most {VERDICT_OUTPUT}, then one generation of {MERGED_OUTPUT} over all verdicts"
    )
    return Workload("judge", summary, tuple(graphs), is_quick=quick)


def _compiled(nodes: list[Node]) -> RequestGraph:
    graph, _ = compile_graph(RequestGraph(tuple(nodes)), chosen_passes(["retain", "path"]))
    return graph


def _range(bounds: tuple[int, int]) -> str:
    return f"{bounds[0]}-{bounds[1]}"
