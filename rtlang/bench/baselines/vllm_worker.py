"""The process in which vLLM runs: started with the Python of vLLM's own environment, so it imports nothing of ours.

    python vllm_worker.py '{"model": "...", "dtype": "bfloat16", "max_model_len": 4096}'

Reads one workload per line of standard input, runs it on vLLM's engine in this process, and writes one line of results: every request is
handed over as soon as the generations before it have ended. The first line that it writes says that the model is loaded.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any


class Programs:
    """The graphs of a workload: which requests are ready, and their outputs."""

    def __init__(self, programs: list[list[dict[str, Any]]]) -> None:
        self._nodes = {(index, node["id"]): node for index, nodes in enumerate(programs) for node in nodes}
        self._children: dict[tuple[int, int], list[tuple[int, int]]] = {}
        self.outputs: dict[tuple[int, int], list[int]] = {}
        self.first_s: dict[int, float] = {}
        self.end_s: dict[int, float] = {}
        for key, node in self._nodes.items():
            if node["tokens"] is None and (before := self._generation_before(key)) is not None:
                self._children.setdefault(before, []).append(key)

    def first(self) -> list[tuple[int, int]]:
        """The generations that wait for no other."""
        keys = (key for key, node in self._nodes.items() if node["tokens"] is None)
        return [key for key in keys if self._generation_before(key) is None]

    def finish(self, key: tuple[int, int], token_ids: list[int], now: float) -> list[tuple[int, int]]:
        """Record the tokens of a generation; returns those that waited for it."""
        self.outputs[key] = token_ids
        self.end_s[key[0]] = now
        return self._children.get(key, [])

    def prompt(self, key: tuple[int, int]) -> list[int]:
        """Token ids before a generation."""
        parts: list[list[int]] = []
        at = self._before(key)
        while at is not None:
            tokens = self._nodes[at]["tokens"]
            parts.append(self.outputs[at] if tokens is None else tokens)
            at = self._before(at)
        return [token_id for part in reversed(parts) for token_id in part]

    def node(self, key: tuple[int, int]) -> dict[str, Any]:
        return self._nodes[key]

    def _before(self, key: tuple[int, int]) -> tuple[int, int] | None:
        parent = self._nodes[key]["parent"]
        return None if parent is None else (key[0], parent)

    def _generation_before(self, key: tuple[int, int]) -> tuple[int, int] | None:
        at = self._before(key)
        while at is not None and self._nodes[at]["tokens"] is not None:
            at = self._before(at)
        return at


def run(engine: Any, vllm: Any, programs: Programs, clock: Callable[[], float] = perf_counter) -> dict[str, Any]:
    """Run all programs on an engine of vLLM; returns times and outputs as plain data."""
    started, cpu_started = clock(), process_time()
    num_prompt_tokens = 0
    keys: dict[str, tuple[int, int]] = {}

    def add(key: tuple[int, int]) -> None:
        nonlocal num_prompt_tokens
        node, prompt = programs.node(key), programs.prompt(key)
        num_prompt_tokens += len(prompt)
        settings: dict[str, Any] = {"temperature": 0.0, "max_tokens": node["max_tokens"]}
        if node["schema"] is not None:
            params = importlib.import_module("vllm.sampling_params").StructuredOutputsParams
            settings["structured_outputs"] = params(json=node["schema"])
        else:
            settings |= {"min_tokens": node["max_tokens"], "ignore_eos": True}
        name = f"{key[0]}:{key[1]}"
        keys[name] = key
        engine.add_request(name, {"prompt_token_ids": prompt}, vllm.SamplingParams(**settings))

    for key in programs.first():
        add(key)
    while engine.has_unfinished_requests():
        for output in engine.step():
            key = keys[output.request_id.partition("-")[0]]
            if output.outputs[0].token_ids:
                programs.first_s.setdefault(key[0], clock() - started)
            if output.finished:
                for child in programs.finish(key, list(output.outputs[0].token_ids), clock() - started):
                    add(child)
    total_s = clock() - started
    return {
        "total_s": total_s,
        "cpu_s": process_time() - cpu_started,
        "first_s": [programs.first_s[index] for index in sorted(programs.first_s)],
        "latency_s": [programs.end_s[index] for index in sorted(programs.end_s)],
        "outputs": [[*key, token_ids] for key, token_ids in programs.outputs.items()],
        "num_prompt_tokens": num_prompt_tokens,
    }


def main() -> None:
    settings = json.loads(sys.argv[1])
    answers = os.fdopen(os.dup(1), "w")  # vLLM prints to standard output
    os.dup2(2, 1)
    vllm = importlib.import_module("vllm")
    llm = vllm.LLM(enable_prefix_caching=True, **settings)

    def answer(value: object) -> None:
        answers.write(json.dumps(value) + "\n")
        answers.flush()

    answer({"version": vllm.__version__})
    for line in sys.stdin:
        llm.reset_prefix_cache()
        answer(run(llm.llm_engine, vllm, Programs(json.loads(line))))


if __name__ == "__main__":
    main()
