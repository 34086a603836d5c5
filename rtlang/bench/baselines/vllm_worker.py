"""The process in which vLLM runs: started with the Python of vLLM's own environment, so of ours it imports the file beside it only.

    python vllm_worker.py '{"model": "...", "dtype": "bfloat16", "max_model_len": 4096}'

Reads one workload per line of standard input, runs it on vLLM's engine in this process, and writes one line of results: every request is
handed over as soon as it is due. The first line that it writes says that the model is loaded.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable
from time import perf_counter, process_time, sleep
from typing import Any


def run(
    engine: Any,
    vllm: Any,
    programs: Any,
    clock: Callable[[], float] = perf_counter,
    sleep: Callable[[float], None] = sleep,
) -> dict[str, Any]:
    """Run `PlainPrograms` on an engine of vLLM; returns times and outputs as plain data."""
    started, cpu_started = clock(), process_time()
    keys: dict[str, tuple[int, int]] = {}
    num_tokens: dict[tuple[int, int], int] = {}
    num_cached_tokens = 0

    def add(key: tuple[int, int]) -> None:
        node = programs.node(key)
        settings: dict[str, Any] = {"temperature": 0.0, "max_tokens": node["max_tokens"]}
        if node["schema"] is not None:
            params = importlib.import_module("vllm.sampling_params").StructuredOutputsParams
            settings["structured_outputs"] = params(json=node["schema"])
        else:
            settings |= {"min_tokens": node["max_tokens"], "ignore_eos": True}
        name = f"{key[0]}:{key[1]}"
        keys[name] = key
        engine.add_request(name, {"prompt_token_ids": programs.start(key)}, vllm.SamplingParams(**settings))

    while not programs.is_done:
        for key in programs.take_due(clock() - started):
            add(key)
        if not engine.has_unfinished_requests():
            sleep(max(0.0, programs.next_s - (clock() - started)))
            continue
        for output in engine.step():
            key = keys[output.request_id.partition("-")[0]]
            token_ids = output.outputs[0].token_ids
            if len(token_ids) > num_tokens.get(key, 0):
                num_tokens[key] = len(token_ids)
                programs.note_output(key, clock() - started)
            if output.finished:
                num_cached_tokens += getattr(output, "num_cached_tokens", 0) or 0
                programs.finish(key, list(token_ids), clock() - started)
    results: dict[str, Any] = programs.results(clock() - started)
    return {**results, "cpu_s": process_time() - cpu_started, "num_cached_tokens": num_cached_tokens}


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
    plain = importlib.import_module("plain_programs")  # beside this file
    tokenizer = llm.get_tokenizer()

    def encode(text: str) -> list[int]:
        return list(tokenizer.encode(text, add_special_tokens=False))

    for line in sys.stdin:
        llm.reset_prefix_cache()
        workload = json.loads(line)
        programs = plain.PlainPrograms(workload["programs"], workload["arrivals_s"], encode, tokenizer.decode)
        answer(run(llm.llm_engine, vllm, programs))


if __name__ == "__main__":
    main()
