"""The process of vLLM, with a stand-in for the package: what is sent to it, and what is made of its answers and its end."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from rtlang.bench.baselines.vllm_engine import VllmEngine
from rtlang.bench.workloads.workload import Workload, tool_call
from rtlang.contract.errors import RtlangError
from rtlang.contract.params import Constraint, ConstraintKind, SamplingParams
from rtlang.contract.request_graph import Generate, Ref, RequestGraph, Text
from tests.support.engine.encoders import Letters

STAND_IN = """
import sys
from types import SimpleNamespace

__version__ = "9.9"


class SamplingParams:
    def __init__(self, **settings):
        self.settings = settings


class Engine:
    def __init__(self):
        self.waiting = []

    def add_request(self, name, prompt, params):
        self.waiting.append((name, prompt["prompt_token_ids"], params.settings))

    def has_unfinished_requests(self):
        return bool(self.waiting)

    def step(self):
        name, prompt, settings = self.waiting.pop(0)
        schema = settings.get("structured_outputs")
        tokens = [len(prompt)] * settings["max_tokens"] if schema is None else [len(schema["json"])]
        return [SimpleNamespace(request_id=name, outputs=[SimpleNamespace(token_ids=tokens)], finished=True)]


class LLM:
    def __init__(self, **settings):
        print("a line of vLLM")
        if "broken" in settings["model"]:
            raise RuntimeError("no such model")
        self.llm_engine = Engine()

    def get_tokenizer(self):
        return SimpleNamespace(encode=lambda text, add_special_tokens: [ord(each) for each in text], decode=str)

    def reset_prefix_cache(self):
        pass
"""


@pytest.fixture
def python(tmp_path: Path) -> str:
    """A Python in which the stand-in is installed."""
    package = tmp_path / "site" / "vllm"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(STAND_IN)
    (package / "sampling_params.py").write_text("StructuredOutputsParams = dict\n")
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path / "site"}" exec "{sys.executable}" -S "$@"\n')
    script.chmod(0o755)
    return str(script)


def test_graphs_are_run_and_measured(python: str) -> None:
    schema = Constraint(ConstraintKind.JSON_SCHEMA, json.dumps({"type": "null"}))
    long = RequestGraph(
        (
            Text(0, None, ("ab",)),
            Generate(1, 0, "x", SamplingParams(max_tokens=2)),
            tool_call(4, 1, 0.001, "d"),
            Text(2, 1, ("c", Ref(4))),
            Generate(3, 2, "y", SamplingParams(max_tokens=1)),
        )
    )
    typed = RequestGraph((Text(0, None, ("a",)), Generate(1, 0, "x", SamplingParams(max_tokens=5), schema)))
    engine = VllmEngine(python, Path("model"), dtype="float32", num_threads=1, max_model_len=100)
    try:
        assert engine.version == "9.9"
        for _ in range(2):
            measured = engine.run(Workload("w", "", (long, typed), arrivals_s=(0.0, 0.002)), Letters())
            assert measured.outputs == {(0, 1): (3, 3), (0, 3): (7,), (1, 1): (1,)}
            assert measured.prompt_tokens == 3 + 7 + 2
            assert len(measured.latencies_s) == len(measured.first_token_s) == 2
            assert measured.total_s >= max(measured.latencies_s)
            assert all(len(times) == 1 for times in measured.output_times_s.values())
            assert measured.peak_bytes is None or measured.peak_bytes > 1 << 20
    finally:
        engine.close()
    engine.close()


def test_what_vllm_printed_is_in_the_error(python: str) -> None:
    with pytest.raises(RtlangError, match="no such model"):
        VllmEngine(python, Path("broken"), dtype="float32", num_threads=1, max_model_len=100)
    with pytest.raises(RtlangError, match="vllm_python = /nowhere/python"):
        VllmEngine("/nowhere/python", Path("model"), dtype="float32", num_threads=1, max_model_len=100)
