"""Workloads of requests that are all known at the start: shared prefixes, trees, chats, streams, constrained objects.

Every generation has a fixed length, except in `json`, where the constraint determines it.
"""

from __future__ import annotations

import json
import math
import random
from typing import Any

from rtlang.bench.workloads.text import Encoder, TextMaker
from rtlang.bench.workloads.workload import Workload, fixed_generation
from rtlang.contract.params import Constraint, ConstraintKind, SamplingParams
from rtlang.contract.request_graph import Generate, Node, RequestGraph, Text

SHARED_REQUESTS, SHARED_TOKENS, OWN_TOKENS, SHARED_OUTPUT = 32, 1024, 32, 64
TREE_LEVELS, TREE_BRANCH, TREE_ROOT_TOKENS, TREE_NODE_TOKENS, TREE_OUTPUT = 4, 3, 256, 48, 32
MIXED_REQUESTS, QUICK_MIXED_REQUESTS = 64, 32
MIXED_PROMPT_TOKENS, MIXED_OUTPUT_TOKENS = (16, 512), (8, 256)
JSON_REQUESTS, JSON_PROMPT_TOKENS, JSON_OUTPUT = 24, 96, 192
STREAM_PROMPT_TOKENS, STREAM_OUTPUT = 32, 300
CHAT_SESSIONS, CHAT_TURNS, CHAT_SYSTEM_TOKENS, CHAT_TURN_TOKENS, CHAT_OUTPUT = 8, 4, 128, 64, 48
DECODE_PROMPT_TOKENS, DECODE_OUTPUT = 16, 256


def shared(encoder: Encoder, *, seed: int, quick: bool) -> Workload:
    """Programs that begin with the same long text."""
    del quick  # never scaled down, because sharing is what it measures
    maker = TextMaker(encoder, seed)
    prefix = maker.text(SHARED_TOKENS, is_start=True)
    graphs = tuple(
        RequestGraph(
            (Text(0, None, (prefix,)), Text(1, 0, (maker.text(OWN_TOKENS),)), fixed_generation(2, 1, SHARED_OUTPUT))
        )
        for _ in range(SHARED_REQUESTS)
    )
    summary = f"{SHARED_REQUESTS} requests, {SHARED_TOKENS} shared + {OWN_TOKENS} own tokens, {SHARED_OUTPUT} out"
    return Workload("shared", summary, graphs)


def tree(encoder: Encoder, *, seed: int, quick: bool, num_levels: int | None = None) -> Workload:
    """One tree-of-thought program: every thought is continued by `TREE_BRANCH` others, in `TREE_LEVELS` levels unless a number is given."""
    del quick
    num_levels = TREE_LEVELS if num_levels is None else num_levels
    maker = TextMaker(encoder, seed)
    nodes: list[Node] = [Text(0, None, (maker.text(TREE_ROOT_TOKENS, is_start=True),))]
    level = [0]
    for _ in range(num_levels):
        thoughts = []
        for parent in level:
            for _ in range(TREE_BRANCH):
                text = Text(len(nodes), parent, (maker.text(TREE_NODE_TOKENS),))
                nodes += [text, fixed_generation(text.node_id + 1, text.node_id, TREE_OUTPUT)]
                thoughts.append(text.node_id + 1)
        level = thoughts
    summary = (
        f"1 program, {len(nodes) // 2} thoughts in {num_levels} levels of branch {TREE_BRANCH}, root {TREE_ROOT_TOKENS}, "
        f"each {TREE_NODE_TOKENS} new prompt tokens and {TREE_OUTPUT} out"
    )
    return Workload("tree", summary, (RequestGraph(tuple(nodes)),))


def mixed(encoder: Encoder, *, seed: int, quick: bool) -> Workload:
    """Independent requests of very different lengths."""
    maker = TextMaker(encoder, seed)
    num_requests = QUICK_MIXED_REQUESTS if quick else MIXED_REQUESTS
    graphs = tuple(
        RequestGraph((Text(0, None, (maker.text(num_prompt, is_start=True),)), fixed_generation(1, 0, num_output)))
        for num_prompt, num_output in mixed_lengths(num_requests, seed)
    )
    low, high = MIXED_PROMPT_TOKENS
    summary = f"{num_requests} requests, nothing shared, prompts {low}-{high}, outputs {'-'.join(map(str, MIXED_OUTPUT_TOKENS))}"
    return Workload("mixed", summary, graphs, is_quick=quick)


def mixed_lengths(num_requests: int, seed: int) -> list[tuple[int, int]]:
    """Prompt and output lengths, each log-uniform between its bounds: many short ones, a few long.

    The draws are stratified, so that a few requests are spread as evenly as many.
    """
    rng = random.Random(seed)

    def draws(bounds: tuple[int, int]) -> list[int]:
        low, high = bounds
        places = [(index + rng.random()) / num_requests for index in range(num_requests)]
        rng.shuffle(places)
        return [round(low * math.exp(math.log(high / low) * place)) for place in places]

    return list(zip(draws(MIXED_PROMPT_TOKENS), draws(MIXED_OUTPUT_TOKENS), strict=True))


SCHEMAS: tuple[dict[str, Any], ...] = (
    {
        "name": {"type": "string", "minLength": 4, "maxLength": 16},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "house": {"enum": ["north", "south", "east", "west"]},
    },
    {
        "sku": {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$"},
        "price_cents": {"type": "integer", "minimum": 100, "maximum": 99999},
        "in_stock": {"type": "boolean"},
        "tags": {"type": "array", "items": {"enum": ["new", "sale", "rare"]}, "minItems": 2, "maxItems": 3},
    },
    {
        "city": {"type": "string", "minLength": 3, "maxLength": 12},
        "position": {
            "type": "object",
            "properties": {
                "latitude": {"type": "integer", "minimum": -90, "maximum": 90},
                "longitude": {"type": "integer", "minimum": -180, "maximum": 180},
            },
            "required": ["latitude", "longitude"],
            "additionalProperties": False,
        },
        "is_capital": {"type": "boolean"},
    },
    {
        "title": {"type": "string", "minLength": 6, "maxLength": 24},
        "priority": {"enum": ["low", "normal", "high", "urgent"]},
        "steps": {
            "type": "array",
            "items": {"type": "string", "minLength": 3, "maxLength": 10},
            "minItems": 2,
            "maxItems": 3,
        },
    },
    {
        "tool": {"const": "search_documents"},
        "arguments": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "minLength": 4, "maxLength": 20},
                "limit": {"type": "integer", "minimum": 1, "maximum": 50},
            },
            "required": ["query", "limit"],
            "additionalProperties": False,
        },
    },
    {
        "answer": {"enum": ["yes", "no", "unknown"]},
        "reason": {"type": "string", "minLength": 8, "maxLength": 40},
        "scores": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 10}, "minItems": 3, "maxItems": 3},
    },
)  # fmt: skip


def json_constraint(index: int) -> Constraint:
    """The constraint of schema `index`: a closed object with every property required."""
    properties = SCHEMAS[index]
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(schema))


def json_outputs(encoder: Encoder, *, seed: int, quick: bool) -> Workload:
    """JSON objects constrained by several schemas."""
    del quick
    maker = TextMaker(encoder, seed)
    params = SamplingParams(max_tokens=JSON_OUTPUT)
    graphs = tuple(
        RequestGraph(
            (
                Text(0, None, (maker.text(JSON_PROMPT_TOKENS, is_start=True),)),
                Generate(1, 0, "out", params, json_constraint(number % len(SCHEMAS))),
            )
        )
        for number in range(JSON_REQUESTS)
    )
    summary = (
        f"{JSON_REQUESTS} objects over {len(SCHEMAS)} schemas, prompts {JSON_PROMPT_TOKENS}, at most {JSON_OUTPUT} out"
    )
    return Workload("json", summary, graphs)


def stream(encoder: Encoder, *, seed: int, quick: bool) -> Workload:
    """A single request, as experienced by a user who watches the text being generated."""
    del quick
    prompt = TextMaker(encoder, seed).text(STREAM_PROMPT_TOKENS, is_start=True)
    graph = RequestGraph((Text(0, None, (prompt,)), fixed_generation(1, 0, STREAM_OUTPUT)))
    return Workload("stream", f"1 request alone, prompt {STREAM_PROMPT_TOKENS}, {STREAM_OUTPUT} out", (graph,))


def chat(encoder: Encoder, *, seed: int, quick: bool) -> Workload:
    """Conversations side by side that begin with the same text; every turn continues the one before."""
    del quick
    maker = TextMaker(encoder, seed)
    system = maker.text(CHAT_SYSTEM_TOKENS, is_start=True)
    graphs = []
    for _ in range(CHAT_SESSIONS):
        nodes: list[Node] = [Text(0, None, (system,))]
        for _ in range(CHAT_TURNS):
            nodes.append(Text(len(nodes), len(nodes) - 1, (maker.text(CHAT_TURN_TOKENS),)))
            nodes.append(fixed_generation(len(nodes), len(nodes) - 1, CHAT_OUTPUT))
        graphs.append(RequestGraph(tuple(nodes)))
    summary = (
        f"{CHAT_SESSIONS} sessions of {CHAT_TURNS} turns, {CHAT_SYSTEM_TOKENS} shared tokens, each turn "
        f"{CHAT_TURN_TOKENS} tokens and {CHAT_OUTPUT} out"
    )
    return Workload("chat", summary, tuple(graphs))


def decode(
    encoder: Encoder, *, seed: int, quick: bool = False, num_rows: int, num_outputs: int = DECODE_OUTPUT
) -> Workload:
    """Requests that hardly have a prompt, so that almost all steps decode `num_rows` rows."""
    del quick
    maker = TextMaker(encoder, seed)
    graphs = tuple(
        RequestGraph(
            (Text(0, None, (maker.text(DECODE_PROMPT_TOKENS, is_start=True),)), fixed_generation(1, 0, num_outputs))
        )
        for _ in range(num_rows)
    )
    summary = f"{num_rows} requests, prompts {DECODE_PROMPT_TOKENS}, {num_outputs} out"
    return Workload(f"decode_{num_rows}", summary, graphs)


def prefill(encoder: Encoder, *, seed: int, num_tokens: int) -> Workload:
    """One request with a prompt and a single token."""
    text = TextMaker(encoder, seed).text(num_tokens, is_start=True)
    graph = RequestGraph((Text(0, None, (text,)), fixed_generation(1, 0, 1)))
    return Workload(f"prefill_{num_tokens}", f"1 request, prompt {num_tokens}, 1 out", (graph,))
