"""The worker's order of requests, on an engine whose next token is known."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from rtlang.bench.baselines.vllm_worker import Programs, run


class Engine:
    """Adds one token to every request in a step: the sum of all tokens before it, modulo 97."""

    def __init__(self) -> None:
        self.requests: dict[str, list[int]] = {}
        self.left: dict[str, int] = {}
        self.prompts: dict[str, list[int]] = {}
        self.most_at_once = 0

    def add_request(self, name: str, prompt: dict[str, list[int]], params: Any) -> None:
        self.prompts[name] = prompt["prompt_token_ids"]
        self.requests[name] = []
        self.left[name] = params.max_tokens

    def has_unfinished_requests(self) -> bool:
        return bool(self.left)

    def step(self) -> list[Any]:
        self.most_at_once = max(self.most_at_once, len(self.left))
        outputs = []
        for name in list(self.left):
            tokens = self.requests[name]
            tokens.append((sum(self.prompts[name]) + sum(tokens)) % 97)
            self.left[name] -= 1
            is_finished = not self.left[name]
            if is_finished:
                del self.left[name]
            token_ids = SimpleNamespace(token_ids=tuple(tokens))
            outputs.append(SimpleNamespace(request_id=f"{name}-x", outputs=[token_ids], finished=is_finished))
        return outputs


def expected(prompt: list[int], num_tokens: int) -> list[int]:
    tokens: list[int] = []
    for _ in range(num_tokens):
        tokens.append((sum(prompt) + sum(tokens)) % 97)
    return tokens


def generation(node_id: int, parent: int, num_tokens: int) -> dict[str, Any]:
    return {"id": node_id, "parent": parent, "tokens": None, "max_tokens": num_tokens, "schema": None}


def test_generations_follow_those_they_continue() -> None:
    chain = [
        {"id": -1, "parent": None, "tokens": [1]},
        {"id": 0, "parent": -1, "tokens": [5, 6]},
        generation(1, 0, 3),
        {"id": 2, "parent": 1, "tokens": [9]},
        generation(3, 2, 2),
        generation(4, 2, 4),
    ]
    single = [{"id": -1, "parent": None, "tokens": [2]}, generation(0, -1, 2)]
    engine = Engine()
    ticks = iter(range(1000))
    vllm = SimpleNamespace(SamplingParams=lambda **settings: SimpleNamespace(**settings))
    result = run(engine, vllm, Programs([chain, single]), lambda: float(next(ticks)))
    outputs = {(index, node_id): tokens for index, node_id, tokens in result["outputs"]}
    first = expected([1, 5, 6], 3)
    assert outputs[0, 1] == first
    assert outputs[0, 3] == expected([1, 5, 6, *first, 9], 2)
    assert outputs[0, 4] == expected([1, 5, 6, *first, 9], 4)
    assert outputs[1, 0] == expected([2], 2)
    assert engine.most_at_once == 2
    assert result["num_prompt_tokens"] == 3 + 7 + 7 + 1
    assert len(result["latency_s"]) == len(result["first_s"]) == 2
    assert result["first_s"][0] < result["latency_s"][1] < result["latency_s"][0] <= result["total_s"]
