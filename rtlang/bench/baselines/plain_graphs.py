"""Graphs of a workload for engines that know single requests only."""

from __future__ import annotations

import json
from typing import Any

from rtlang.bench.baselines.plain_programs import Node, PlainPrograms
from rtlang.bench.measure import Measurement
from rtlang.bench.workloads.text import Codec, Encoder
from rtlang.bench.workloads.workload import Workload, tool_of
from rtlang.contract.request_graph import Call, Generate, Ref, RequestGraph, Text


def plain_nodes(graph: RequestGraph, encoder: Encoder) -> list[Node]:
    """The nodes of a graph as `PlainPrograms` reads them; the start of its sequences is a node with a negative id.

    Raises:
        ValueError: the graph has other nodes than texts, single generations and tools.
    """
    start = -1
    nodes: list[Node] = [{"id": start, "parent": None, "tokens": list(encoder.start_ids())}]
    for node in graph.nodes:
        match node:
            case Text(node_id=node_id, parent=parent, parts=parts) if all(isinstance(each, str) for each in parts):
                tokens = encoder.encode("".join(map(str, parts)), is_start=parent is None)
                nodes.append({"id": node_id, "parent": start if parent is None else parent, "tokens": tokens})
            case Text(node_id=node_id, parent=int(parent), parts=parts) if all(
                isinstance(each, str) or (isinstance(each, Ref) and not each.choice) for each in parts
            ):
                plain = [each.node_id if isinstance(each, Ref) else each for each in parts]
                nodes.append({"id": node_id, "parent": parent, "parts": plain})
            case Generate(node_id=node_id, parent=parent) if node.params.n == 1:
                schema = None if node.constraint is None else json.loads(node.constraint.source)
                nodes.append(
                    {
                        "id": node_id,
                        "parent": start if parent is None else parent,
                        "max_tokens": node.params.max_tokens,
                        "schema": schema,
                    }
                )
            case Call():
                caller, delay_s, text = tool_of(node)
                nodes.append({"id": node.node_id, "parent": None, "caller": caller, "delay_s": delay_s, "text": text})
            case _:
                raise ValueError(
                    f"node {node.node_id}: the baseline runs texts that continue a sequence, single generations and tools only"
                )
    return nodes


def running(workload: Workload, codec: Codec) -> PlainPrograms:
    """The programs of a workload, to be run in this process.

    Raises:
        ValueError: as `plain_nodes`.
    """
    programs = [plain_nodes(graph, codec) for graph in workload.graphs]
    return PlainPrograms(programs, workload.arrivals_s, lambda text: codec.encode(text, is_start=False), codec.decode)


def measurement(workload: Workload, results: dict[str, Any]) -> Measurement:
    """The measurement of a run, from `PlainPrograms.results`."""
    return Measurement(
        total_s=results["total_s"],
        latencies_s=tuple(results["latencies_s"]),
        output_times_s={(index, node_id): tuple(times) for index, node_id, times in results["times_s"]},
        outputs={(index, node_id): tuple(token_ids) for index, node_id, token_ids in results["outputs"]},
        prompt_tokens=results["num_prompt_tokens"],
        cached_tokens=results.get("num_cached_tokens", 0),
        arrivals_s=workload.arrivals_s,
        cpu_s=results.get("cpu_s"),
    )
