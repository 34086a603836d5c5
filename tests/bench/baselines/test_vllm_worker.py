"""The worker's order of requests, on an engine whose next token is known."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from rtlang.bench.baselines.plain_programs import PlainPrograms
from rtlang.bench.baselines.vllm_worker import run
from tests.support.engine.encoders import Letters


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
            outputs.append(
                SimpleNamespace(request_id=f"{name}-x", outputs=[token_ids], finished=is_finished, num_cached_tokens=1)
            )
        return outputs


def expected(prompt: list[int], num_tokens: int) -> list[int]:
    tokens: list[int] = []
    for _ in range(num_tokens):
        tokens.append((sum(prompt) + sum(tokens)) % 97)
    return tokens


def generation(node_id: int, parent: int, num_tokens: int) -> dict[str, Any]:
    return {"id": node_id, "parent": parent, "max_tokens": num_tokens, "schema": None}


VLLM = SimpleNamespace(SamplingParams=lambda **settings: SimpleNamespace(**settings))


def running(programs: list[list[dict[str, Any]]], *arrivals_s: float) -> PlainPrograms:
    letters = Letters()
    return PlainPrograms(programs, arrivals_s, lambda text: letters.encode(text, is_start=False), letters.decode)


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
    result = run(engine, VLLM, running([chain, single]), lambda: float(next(ticks)))
    outputs = {(index, node_id): tokens for index, node_id, tokens in result["outputs"]}
    first = expected([1, 5, 6], 3)
    assert outputs[0, 1] == first
    assert outputs[0, 3] == expected([1, 5, 6, *first, 9], 2)
    assert outputs[0, 4] == expected([1, 5, 6, *first, 9], 4)
    assert outputs[1, 0] == expected([2], 2)
    assert engine.most_at_once == 2
    assert result["num_prompt_tokens"] == 3 + 7 + 7 + 1
    assert result["num_cached_tokens"] == 4
    assert all(0 < latency <= result["total_s"] for latency in result["latencies_s"])
    assert {tuple(key): len(times) for *key, times in result["times_s"]} == {(0, 1): 3, (0, 3): 2, (0, 4): 4, (1, 0): 2}


def test_the_engine_sleeps_until_a_tool_has_answered_or_a_program_arrives() -> None:
    tool = {"id": 2, "parent": None, "caller": 1, "delay_s": 5.0, "text": "b"}
    waiting = [
        {"id": 0, "parent": None, "tokens": [1]},
        generation(1, 0, 1),
        tool,
        {"id": 3, "parent": 1, "parts": ["a", 2]},
        generation(4, 3, 1),
    ]
    late = [{"id": 0, "parent": None, "tokens": [2]}, generation(1, 0, 1)]
    engine, now = Engine(), [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    result = run(engine, VLLM, running([waiting, late], 0.0, 50.0), lambda: now[0], sleep)
    assert {tuple(key): times for *key, times in result["times_s"]} == {(0, 1): [0.0], (0, 4): [5.0], (1, 1): [50.0]}
    assert engine.prompts["0:4"] == [1, 1, *b"ab"]
    assert result["latencies_s"] == [5.0, 0.0]
