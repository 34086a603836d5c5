"""The frontend beside that of `vllm serve`: processor time a token, and the time to the first token.

Both serve the same random model on the same number of threads, one after the other, without drafts. The same client sends the same
requests to `/v1/completions`: prompts of random token ids, a fixed number of tokens, and `return_token_ids`, by which it counts tokens.
Processor time is that of the process that serves clients; each engine is a process of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from rtlang.bench.checkpoint import SHAPES, write_random
from rtlang.bench.measure import percentile
from rtlang.bench.server_process import ServerProcess
from rtlang.contract.config import EMBEDDED_MODEL
from rtlang.model.loader import model_directory
from rtlang_bench.figure import Figure
from rtlang_bench.frontend.load_client import Load, Report, run_load
from rtlang_bench.frontend.vllm_server import VllmServer

CPU_RATIO, FIRST_TOKEN_RATIO = 0.7, 1.0
_SHAPE = "llama-36m"
_PROMPT_TOKENS, _MAX_MODEL_LEN, _THREADS = 32, 1024, 1
_SAMPLING: Mapping[str, Mapping[str, Any]] = {
    "greedy": {"temperature": 0.0},
    "sampled": {"temperature": 1.0, "top_p": 0.95, "seed": 7},
}


@dataclass(frozen=True, slots=True)
class Case:
    """Streams at the same time, requests of each, and tokens of each request."""

    concurrency: int
    num_rounds: int
    num_tokens: int


CASES = (Case(1, 8, 64), Case(32, 2, 64), Case(256, 1, 64))
QUICK_CASES = (Case(1, 2, 8), Case(4, 1, 8))


class Served(Protocol):
    """A running server."""

    @property
    def http_url(self) -> str:
        """Its address."""

    @property
    def pid(self) -> int:
        """The process that serves clients."""


def comparison_figures(
    vllm_python: str, cases: tuple[Case, ...] = CASES, tell: Callable[[str], None] = lambda line: None
) -> Iterator[Figure]:
    """The ratios of rtlang to vLLM, for each number of streams, greedy and sampled."""
    with TemporaryDirectory() as folder:
        directory = write_random(Path(folder, "model"), model_directory(EMBEDDED_MODEL), *SHAPES[_SHAPE])
        ours = ("--model", str(directory), "--num-threads", str(_THREADS), "--dtype", "bfloat16")
        tell("rtlang serve")
        with ServerProcess(*ours, "--speculation", "off", "--max-model-len", str(_MAX_MODEL_LEN)) as server:
            our_reports = measured(server, cases)
        theirs = ("--dtype", "bfloat16", "--max-model-len", str(_MAX_MODEL_LEN), "--max-num-seqs", "256")
        tell("vllm serve")
        with VllmServer(vllm_python, directory, _THREADS, *theirs) as server:
            their_reports = measured(server, cases)
    for name, ours_found in our_reports.items():
        yield from _ratios(name, ours_found, their_reports[name])


def measured(server: Served, cases: tuple[Case, ...]) -> dict[str, Report]:
    """The reports of one server, by the names of the figures."""
    run_load(_load(server, Case(4, 1, 8), _SAMPLING["greedy"]))  # warms up
    return {
        f"{case.concurrency}_{name}": run_load(_load(server, case, sampling))
        for case in cases
        for name, sampling in _SAMPLING.items()
    }


def _load(server: Served, case: Case, sampling: Mapping[str, Any]) -> Load:
    body = {"stream": True, "max_tokens": case.num_tokens, "ignore_eos": True, "return_token_ids": True, **sampling}
    return Load(
        server.http_url,
        body,
        case.concurrency,
        case.num_tokens,
        num_rounds=case.num_rounds,
        num_prompt_tokens=_PROMPT_TOKENS,
        pid=server.pid,
    )


def _ratios(name: str, ours: Report, theirs: Report) -> Iterator[Figure]:
    failures = [*ours.failures, *theirs.failures]
    if failures:
        yield Figure(f"vllm_{name}_failed", len(failures), "==", 0, "requests", failures[0][:200])
        return
    assert ours.num_tokens == theirs.num_tokens, "both sides count each token once"
    cpu_us = [each.cpu_s / each.num_tokens * 1e6 for each in (ours, theirs)]
    first_ms = [percentile(each.first_s, 0.5) * 1e3 for each in (ours, theirs)]
    rates = [each.num_tokens / each.seconds for each in (ours, theirs)]
    note = f"{cpu_us[0]:.0f} us a token and {cpu_us[1]:.0f}; {rates[0]:.0f} tokens/s and {rates[1]:.0f}"
    yield Figure(f"vllm_{name}_cpu", cpu_us[0] / cpu_us[1], "<=", CPU_RATIO, "times", note)
    note = f"{first_ms[0]:.1f} ms and {first_ms[1]:.1f}"
    yield Figure(f"vllm_{name}_first_token_p50", first_ms[0] / first_ms[1], "<=", FIRST_TOKEN_RATIO, "times", note)
