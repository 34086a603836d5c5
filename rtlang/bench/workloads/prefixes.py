"""Workloads whose prompts share prefixes in the ways that decide where states of recurrent layers must be kept.

All requests of one workload reach every engine in the same order, and their texts do not depend on times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rtlang.bench.workloads import requests
from rtlang.bench.workloads.text import Encoder, TextMaker
from rtlang.bench.workloads.workload import Workload, fixed_generation
from rtlang.contract.request_graph import Node, Ref, RequestGraph, Text

QUICK_TREE_LEVELS = 3
SHORT_TOKENS, OWN_TOKENS, SHORT_OUTPUT = 100, 40, 8
REQUESTS, QUICK_REQUESTS = 32, 8
TURNS, QUICK_TURNS = 43, 8
TURN_TOKENS, TURN_OUTPUT = 135, 16


def tree(encoder: Encoder, *, seed: int, quick: bool) -> Workload:
    """The tree of `requests.tree`, of a level less if it is quick."""
    num_levels = QUICK_TREE_LEVELS if quick else requests.TREE_LEVELS
    return replace(requests.tree(encoder, seed=seed, quick=quick, num_levels=num_levels), is_quick=quick)


def short_at_once(encoder: Encoder, *, seed: int, quick: bool) -> Workload:
    """Separate requests, all there at the start, that begin with the same short text."""
    maker = TextMaker(encoder, seed)
    prefix = maker.text(SHORT_TOKENS, is_start=True)
    num_requests = QUICK_REQUESTS if quick else REQUESTS
    graphs = tuple(
        RequestGraph((Text(0, None, (prefix + maker.text(OWN_TOKENS),)), fixed_generation(1, 0, SHORT_OUTPUT)))
        for _ in range(num_requests)
    )
    summary = f"{num_requests} requests at once, {SHORT_TOKENS} shared + {OWN_TOKENS} own tokens, {SHORT_OUTPUT} out"
    return Workload("short at once", summary, graphs, is_quick=quick)


def short_in_turn(encoder: Encoder, *, seed: int, quick: bool) -> Workload:
    """The same one after the other: each ends with the output before it, and nothing says where their texts part."""
    maker = TextMaker(encoder, seed)
    prefix = maker.text(SHORT_TOKENS, is_start=True)
    num_requests = QUICK_REQUESTS if quick else REQUESTS
    nodes: list[Node] = []
    last: int | None = None
    for _ in range(num_requests):
        start = len(nodes)
        nodes.append(Text(start, None, (prefix + maker.text(OWN_TOKENS),)))
        if last is not None:
            nodes.append(Text(start + 1, start, (Ref(last), ".")))
        last = len(nodes)
        nodes.append(fixed_generation(last, last - 1, SHORT_OUTPUT))
    summary = f"{num_requests} requests in turn, {SHORT_TOKENS} shared + {OWN_TOKENS} own tokens and the last output, {SHORT_OUTPUT} out"
    return Workload("short in turn", summary, (RequestGraph(tuple(nodes)),), is_quick=quick)


def long_chat(encoder: Encoder, *, seed: int, quick: bool) -> Workload:
    """A conversation of many turns, each of which continues the one before."""
    maker = TextMaker(encoder, seed)
    num_turns = QUICK_TURNS if quick else TURNS
    nodes: list[Node] = []
    for turn in range(num_turns):
        before = len(nodes) - 1 if nodes else None
        nodes.append(Text(len(nodes), before, (maker.text(TURN_TOKENS, is_start=not turn),)))
        nodes.append(fixed_generation(len(nodes), len(nodes) - 1, TURN_OUTPUT))
    num_prompt = sum(turn * (TURN_TOKENS + TURN_OUTPUT) + TURN_TOKENS for turn in range(num_turns))
    summary = f"{num_turns} turns of {TURN_TOKENS} tokens and {TURN_OUTPUT} out, {num_prompt:,} prompt tokens in all"
    return Workload("chat", summary, (RequestGraph(tuple(nodes)),), is_quick=quick)


CASES: dict[str, Callable[..., Workload]] = {
    "tree": tree,
    "short at once": short_at_once,
    "short in turn": short_in_turn,
    "chat": long_chat,
}
"""The workloads by name, in the order in which they run."""
