"""The process of llama.cpp, with a stand-in for the worker: what is sent to it, and what is made of its answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rtlang.bench.baselines import llama_cpp_engine
from rtlang.bench.baselines.llama_cpp_engine import LlamaCppEngine
from rtlang.bench.workloads.workload import Workload
from rtlang.contract.errors import RtlangError
from rtlang.contract.params import Constraint, ConstraintKind, SamplingParams
from rtlang.contract.request_graph import Generate, RequestGraph, Text
from tests.support.engine.encoders import Letters

STAND_IN = """
import json, sys
settings = json.loads(sys.argv[1])
if "broken" in settings["model"]:
    sys.exit("no such file")
print(json.dumps({"version": settings["num_tokens"], "cpu_s": 0.5}), flush=True)
for line in sys.stdin:
    tokens = json.loads(line)["programs"][0]
    print(json.dumps({
        "total_s": 2.0, "latencies_s": [1.5], "times_s": [[0, 1, [1.0, 1.5]]], "outputs": [[0, 1, [len(tokens), 7]]],
        "num_prompt_tokens": 3, "num_cached_tokens": 1, "cpu_s": 0.25}), flush=True)
"""


def engine(model: str) -> LlamaCppEngine:
    return LlamaCppEngine(Path("libraries"), Path(model), num_tokens=100, num_threads=1, cores=[0])


def test_graphs_are_run_and_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    worker = tmp_path / "worker.py"
    worker.write_text(STAND_IN)
    monkeypatch.setattr(llama_cpp_engine, "WORKER", worker)
    graph = RequestGraph((Text(0, None, ("ab",)), Generate(1, 0, "x", SamplingParams(max_tokens=2))))
    running = engine("model.gguf")
    try:
        assert (running.version, running.ready_cpu_s) == (100, 0.5)
        measured = running.run(Workload("w", "", (graph,)), Letters())
        assert measured.outputs == {(0, 1): (3, 7)}
        assert measured.output_times_s == {(0, 1): (1.0, 1.5)}
        assert (measured.total_s, measured.cpu_s, measured.prompt_tokens, measured.cached_tokens) == (2.0, 0.25, 3, 1)
        assert running.resident_bytes > 1 << 20
    finally:
        running.close()
    with pytest.raises(RtlangError, match=r"llama\.cpp ended with code 1: no such file"):
        engine("broken.gguf")


def test_constraints_are_not_compared() -> None:
    schema = Constraint(ConstraintKind.JSON_SCHEMA, json.dumps({"type": "null"}))
    free = RequestGraph((Text(0, None, ("a",)), Generate(1, 0, "x", SamplingParams(max_tokens=5))))
    typed = RequestGraph((Text(0, None, ("a",)), Generate(1, 0, "x", SamplingParams(max_tokens=5), schema)))
    assert LlamaCppEngine.reason_against(Workload("w", "", (free,))) is None
    assert "grammars" in str(LlamaCppEngine.reason_against(Workload("w", "", (free, typed))))
