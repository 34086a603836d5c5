"""Figures of faults: requests whose step fails, and an engine process that is killed."""

from __future__ import annotations

import math
import os
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import rtlang
from rtlang.bench.server_process import ServerProcess
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.process.log_limit import limited_logs
from rtlang.runtime.runtime import Runtime
from rtlang_bench.figure import Figure
from rtlang_bench.serve.engine_figures import STORY, WAIT_S, run_all
from rtlang_bench.serve.streams import Recorder, generation

FAULTS = {"raise:5": True, "nan:5": True, "memory:5": False}
"""Whether the request with the fault ends with an error; a step that lacks memory is repeated in parts."""
NUM_BYSTANDERS = 8
_LOGGERS = ("rtlang.engine.step_pipeline", "rtlang.engine.engine")


def fault_figures(config: RuntimeConfig) -> Iterator[Figure]:
    """An exception, NaN logits and too little memory, each in one request: the texts of eight others, and the end of that one."""
    graphs = [
        generation(f"{n}. " + STORY, max_tokens=40, temperature=1.0, ignore_eos=True) for n in range(NUM_BYSTANDERS)
    ]
    seeds = list(range(NUM_BYSTANDERS))
    same = right = 0
    with limited_logs(*_LOGGERS), Runtime(config=replace(config, dtype="float32", fault_injection=True)) as runtime:
        alone = [each.text for each in run_all(runtime, graphs, seeds)]
        for fault, is_fatal in FAULTS.items():
            bad = generation("A fault: ", max_tokens=40, ignore_eos=True, x_fault=fault)
            found = run_all(runtime, [bad, *graphs], [99, *seeds])
            right += (found[0].error is not None) == is_fatal
            same += sum(text is not None and each.text == text for each, text in zip(found[1:], alone, strict=True))
    expected = NUM_BYSTANDERS * len(FAULTS)
    yield Figure("fault_same_texts", same, "==", expected, "texts", f"of {expected} beside {', '.join(FAULTS)}")
    yield Figure("fault_ends", right, "==", len(FAULTS), "requests", "two fail alone, the one without memory goes on")


def kill_figures(server: ServerProcess, num_streams: int = 4) -> Iterator[Figure]:
    """SIGKILL for the engine's process in mid stream: clients are told, and go on with the same text."""
    graphs = [
        generation(f"{n}. " + STORY, max_tokens=200, temperature=1.0, ignore_eos=True) for n in range(num_streams)
    ]
    with rtlang.connect(server.url) as remote:
        alone = [Recorder().submit(remote, graph, seed=number) for number, graph in enumerate(graphs)]
        for each in alone:
            each.wait(WAIT_S)
        killed = [Recorder().submit(remote, graph, seed=number) for number, graph in enumerate(graphs)]
        while not all(len(each.times) >= 10 or each.has_ended for each in killed):
            time.sleep(0.001)
        started = time.perf_counter()
        engines = [pid for pid in server.processes()[1:] if _is_engine(pid)]
        for pid in engines:
            os.kill(pid, signal.SIGKILL)
        num_cut = sum(not each.has_ended for each in killed)
        told = _seconds_until_told(server.url)
        for each in killed:
            each.wait(WAIT_S)
    same = sum(one.text is not None and one.text == two.text for one, two in zip(alone, killed, strict=True))
    errors = {str(each.error) for each in killed if each.error is not None}
    pause = max(each.longest_gap(started, each.times[-1]) for each in killed)
    note = f"{num_cut} were running, {len(engines)} engine killed, longest pause {pause:.1f} s" + "".join(
        f"; {each}" for each in errors
    )
    yield Figure("kill_same_texts", same if engines else math.nan, "==", num_streams, "texts", note)
    yield Figure("kill_told", told, "<=", 1.0, "s", "until /ready says that the engine restarts")


def _is_engine(pid: int) -> bool:
    try:
        return b"rtlang.supervise" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _seconds_until_told(url: str, timeout_s: float = 10.0) -> float:
    started = time.perf_counter()
    while (elapsed := time.perf_counter() - started) < timeout_s:
        try:
            with urllib.request.urlopen(url.replace("ws://", "http://") + "/ready", timeout=5.0):
                time.sleep(0.005)
        except urllib.error.HTTPError as error:
            error.close()
            return elapsed
    return math.nan
