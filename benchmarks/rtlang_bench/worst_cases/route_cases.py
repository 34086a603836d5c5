"""Requests to every HTTP route that are much work: long, many, deep, at once, left early, or not what they declare."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from rtlang_bench.worst_cases.draws import Draws, hostile_grammar, hostile_pattern, hostile_schema, nested, tools
from rtlang_bench.worst_cases.graph_cases import (
    ARGUMENTS,
    NODES,
    GraphDraft,
    call_value,
    function_graph,
    graph_body,
    node_graph,
)
from rtlang_bench.worst_cases.requests import DEADLINE_MS, HttpRequest

BODY_BYTES = 4 << 20
"""The longest body that a server reads by default."""

_TEXT_CHARS = 1_000_000


def json_bytes(value: Any) -> bytes:
    """A value as JSON, with characters as they are."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def post(path: str, body: Any, **fields: Any) -> HttpRequest:
    """A request with a JSON body."""
    return HttpRequest("POST", path, json_bytes(body), **fields)


def program(draws: Draws, draft: GraphDraft) -> HttpRequest:
    """A graph over `/v1/programs`, whose calls are answered and which may be extended while it runs."""
    body: dict[str, Any] = graph_body(draft) | {"deadline_ms": DEADLINE_MS, "stream": draws.chance(0.7)}
    if not body["stream"]:
        return post("/v1/programs", body)
    actions: list[tuple[str, bytes]] = []
    for node in draft.nodes:
        if node["kind"] == "call" and len(actions) < 8:
            actions.append(("resolve", json_bytes({"n": node["id"], "value": call_value(draws)})))
    if draws.chance(0.2):
        body |= {"open": True, "detach_ms": draws.size(2_000)}
        more = GraphDraft(draws, next_id=draft.next_id + 100)
        for _ in range(draws.size(2_000)):
            more.add("apply", function="len", args=[{"value": "abc"}])
        actions.append(("extend", json_bytes({"nodes": more.nodes, "close": draws.chance(0.7)})))
        actions.append((draws.pick("close", "cancel", "reject"), b'{"n": 1, "code": "call", "message": "no"}'))
    return post("/v1/programs", body, actions=tuple(actions))


def _programs(draws: Draws) -> HttpRequest:
    if draws.chance(0.2):
        path = draws.pick(
            "/v1/programs/" + "0" * 32, "/v1/programs/x/extend", "/v1/programs/" + "a" * draws.size(4_000)
        )
        return HttpRequest(draws.pick("GET", "POST"), path, b"{}")
    if draws.chance(0.5):
        return program(draws, function_graph(draws, draws.pick(*ARGUMENTS)))
    return program(draws, node_graph(draws, draws.pick(*NODES)))


def _messages(draws: Draws) -> list[dict[str, Any]]:
    count = draws.size(10_000) if draws.chance(0.3) else draws.size(20)
    text = draws.text(draws.size(max(1, _TEXT_CHARS // count)))
    roles = ("user", "assistant")
    found: list[dict[str, Any]] = [{"role": roles[number % 2], "content": text} for number in range(count)]
    if draws.chance(0.2):
        parts = draws.size(2_000)
        found[-1]["content"] = [{"type": "text", "text": text[: _TEXT_CHARS // parts]}] * parts
    if draws.chance(0.1):
        call = {
            "id": "c",
            "type": "function",
            "function": {"name": "f", "arguments": draws.json_text(draws.size(50_000))},
        }
        found.append({"role": "assistant", "tool_calls": [call] * draws.size(100)})
        found.append({"role": "tool", "tool_call_id": "c", "content": text})
    return found


def _sampling(draws: Draws) -> dict[str, Any]:
    found: dict[str, Any] = {"max_tokens": draws.size(20), "stream": draws.chance(0.5)}
    if draws.chance(0.3):
        found |= {"n": draws.size(20), "temperature": 1.0}
    if draws.chance(0.2):
        found["stop"] = [draws.text(draws.size(2_000)) or "x"] * draws.size(32)
    if draws.chance(0.2):
        found["logit_bias"] = {str(number): 1 for number in range(draws.size(1_024))}
    if draws.chance(0.1):
        found["metadata"] = {f"k{number}": "v" * draws.size(1_000) for number in range(draws.size(1_000))}
    return found


def _structure(draws: Draws) -> dict[str, Any]:
    if not draws.chance(0.4):
        return {}
    match draws.rng.randrange(4):
        case 0:
            schema = {"name": "x", "schema": hostile_schema(draws), "strict": draws.chance(0.5)}
            return {"response_format": {"type": "json_schema", "json_schema": schema}}
        case 1:
            return {"guided_regex": hostile_pattern(draws)}
        case 2:
            return {"guided_grammar": hostile_grammar(draws)}
        case _:
            return {"guided_choice": [f"{n}{'a' * draws.size(100)}" for n in range(draws.size(3_000))]}


def _chat(draws: Draws) -> HttpRequest:
    body: dict[str, Any] = {"messages": _messages(draws)} | _sampling(draws) | _structure(draws)
    if draws.chance(0.3):
        body["tools"] = tools(draws, draws.size(128), draws.size(30))
        body["tool_choice"] = draws.pick("auto", "required", "none")
    if draws.chance(0.2):
        body |= {"logprobs": True, "top_logprobs": draws.size(100)}
    return post("/v1/chat/completions", body, leaves_after=_left(draws))


def _completions(draws: Draws) -> HttpRequest:
    count = draws.size(2_048) if draws.chance(0.2) else draws.size(8)
    length = draws.size(max(1, _TEXT_CHARS // count))
    prompts: Any = draws.pick([draws.text(length) for _ in range(count)], [[5] * min(length, 50_000)] * min(count, 40))
    body = {"prompt": prompts} | _sampling(draws) | _structure(draws)
    if count > 8:
        body |= {"max_tokens": 1, "n": 1}
    if draws.chance(0.2):
        body |= {"logprobs": draws.size(100), "echo": draws.chance(0.5)}
    return post("/v1/completions", body, leaves_after=_left(draws))


def _responses(draws: Draws) -> HttpRequest:
    if draws.chance(0.1):
        return HttpRequest(draws.pick("GET", "DELETE"), "/v1/responses/resp_" + "0" * draws.size(1_000))
    body: dict[str, Any] = {"input": draws.pick(draws.text(draws.size(_TEXT_CHARS)), _messages(draws))}
    body |= {"max_output_tokens": draws.size(20), "stream": draws.chance(0.5), "store": draws.chance(0.5)}
    if draws.chance(0.2):
        body["text"] = {"format": {"type": "json_schema", "name": "x", "schema": hostile_schema(draws)}}
    if draws.chance(0.2):
        body["tools"] = [
            each["function"] | {"type": "function"} for each in tools(draws, draws.size(128), draws.size(30))
        ]
    return post("/v1/responses", body, leaves_after=_left(draws))


def _embeddings(draws: Draws) -> HttpRequest:
    count = draws.size(2_048)
    return post("/v1/embeddings", {"input": [draws.text(draws.size(_TEXT_CHARS // count + 1))] * count})


def _tokenize(draws: Draws) -> HttpRequest:
    path = draws.pick("/tokenize", "/v1/tokenize")
    if draws.chance(0.2):
        return post(path, {"messages": _messages(draws), "tools": tools(draws, draws.size(50), draws.size(20))})
    size = draws.size(4_000_000) if draws.chance(0.3) else draws.size(_TEXT_CHARS)
    count = draws.size(1_024) if draws.chance(0.3) else 1
    text = draws.text(size // count + 1)
    return post(path, {"prompt": text if count == 1 else [text] * count, "return_token_strs": draws.chance(0.2)})


def _detokenize(draws: Draws) -> HttpRequest:
    size = draws.size(1_000_000)
    ids = draws.pick(
        [5] * size, [[draws.rng.randrange(500)] * 100] * (size // 100 + 1), [2**31 - 1] * size, [-1] * size
    )
    return post(draws.pick("/detokenize", "/v1/detokenize"), {"tokens": ids})


def _sglang(draws: Draws) -> HttpRequest:
    count = draws.size(500) if draws.chance(0.3) else 1
    text = draws.text(draws.size(_TEXT_CHARS // count))
    params: dict[str, Any] = {"max_new_tokens": 1 if count > 1 else draws.size(30)}
    if draws.chance(0.3):
        params["regex"] = hostile_pattern(draws)
    elif draws.chance(0.3):
        params["json_schema"] = json.dumps(hostile_schema(draws))
    if draws.chance(0.2):
        params |= {"stop_regex": ["(a|a)*b$"] * draws.size(8), "n": draws.size(16), "temperature": 1.0}
    body: dict[str, Any] = {"text": text if count == 1 else [text] * count, "sampling_params": params}
    body |= {"stream": draws.chance(0.5)}
    if draws.chance(0.3):
        body |= {"return_logprob": True, "top_logprobs_num": draws.size(100), "logprob_start_len": draws.pick(0, -1)}
    return post("/generate", body, leaves_after=_left(draws))


def _cache(draws: Draws) -> HttpRequest:
    match draws.rng.randrange(4):
        case 0:
            prompt = draws.pick({"prompt": draws.text(draws.size(_TEXT_CHARS))}, {"messages": _messages(draws)})
            return post("/v1/cache/explain", prompt)
        case 1:
            body = {"prompt": draws.text(draws.size(200_000)), "ttl_s": draws.size(60), "computes": draws.chance(0.3)}
            return post("/v1/cache/pins", body)
        case 2:
            return HttpRequest(draws.pick("GET", "DELETE"), "/v1/cache/pins/" + "p" * draws.size(2_000))
        case _:
            return HttpRequest("GET", f"/v1/cache/tree?max_nodes={draws.size(100_000)}")


def _operations(draws: Draws) -> HttpRequest:
    path = draws.pick(
        *("/metrics", "/version", "/ready", "/health", "/", "/rtlang.js", "/v1/fleet", "/v1/models", "/server_info"),
        *(
            "/tokenizer_info",
            "/get_model_info",
            "/model_info",
            "/get_server_info",
            "/v1/cache/pins",
            "/health_generate",
        ),
        *("/v1/engine/snapshot", "/v1/models/" + "m" * draws.size(5_000), "/flush_cache"),
    )
    return HttpRequest("GET", path + draws.pick("", "", "?a=" + "b" * draws.size(5_000)))


def _feed(draws: Draws) -> HttpRequest:
    interval = draws.pick(100, 100, 250, 10_000, 1, 10**9)
    path = f"/v1/engine/snapshot/stream?interval_ms={interval}"
    return HttpRequest("GET", path, leaves_after=draws.size(20_000))


def _malformed(draws: Draws) -> HttpRequest:
    """A body that is too long, too short, too deep, or no JSON."""
    path = draws.pick(
        "/v1/chat/completions", "/v1/programs", "/tokenize", "/generate", "/v1/responses", "/v1/cache/explain"
    )
    size = draws.size(BODY_BYTES)
    match draws.rng.randrange(6):
        case 0:
            return HttpRequest("POST", path, b"a" * size)
        case 1:
            return HttpRequest("POST", path, b"[" * size)
        case 2:
            return HttpRequest("POST", path, b'{"a":' * (size // 5))
        case 3:
            return HttpRequest("POST", path, b'{"prompt": "' + b"a" * size + b'"}', declared=draws.size(BODY_BYTES))
        case 4:
            return HttpRequest("POST", path, json_bytes({"prompt": nested(draws.size(300), 1)}))
        case _:
            return HttpRequest("POST", path, b'{"prompt": "' + b"a" * (BODY_BYTES + draws.size(BODY_BYTES)) + b'"}')


def _left(draws: Draws) -> int | None:
    return draws.size(20_000) if draws.chance(0.1) else None


ROUTES: dict[str, Callable[[Draws], HttpRequest]] = {
    "chat": _chat,
    "completions": _completions,
    "responses": _responses,
    "embeddings": _embeddings,
    "tokenize": _tokenize,
    "detokenize": _detokenize,
    "sglang": _sglang,
    "cache": _cache,
    "operations": _operations,
    "feed": _feed,
    "programs": _programs,
    "malformed": _malformed,
}
"""The groups of routes."""


def route_requests(draws: Draws, route: str) -> tuple[HttpRequest, ...]:
    """One request to a route, or the same one many times at once."""
    first = ROUTES[route](draws)
    if route == "feed":
        return (first,) * draws.size(200)
    return (first,) * (draws.size(32) if draws.chance(0.15) else 1)
