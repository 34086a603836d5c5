"""llama.cpp as a baseline, in a process of its own, with its prebuilt shared libraries."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rtlang.bench.baselines.plain_graphs import measurement, plain_nodes
from rtlang.bench.baselines.worker_process import WorkerProcess
from rtlang.bench.machine import PeakMemory, resident_bytes
from rtlang.bench.measure import Measurement
from rtlang.bench.workloads.text import Codec
from rtlang.bench.workloads.workload import Workload, generations

WORKER = Path(__file__).with_name("llama_cpp_worker.py")


class LlamaCppEngine:
    """Runs workloads on llama.cpp.

    Args:
        libraries: the folder of its shared libraries.
        model: a GGUF file.
        num_tokens: of the KV cache, which all sequences share.
        cores: to which the process is bound.
    Attributes:
        version: of llama.cpp.
        ready_cpu_s: processor time of the process until its first token.
    Raises:
        RtlangError: llama.cpp does not load; the message has the end of what it printed.
    """

    def __init__(
        self, libraries: Path, model: Path, *, num_tokens: int, num_threads: int, cores: Sequence[int]
    ) -> None:
        settings = {
            "libraries": str(libraries),
            "model": str(model),
            "num_tokens": num_tokens,
            "num_threads": num_threads,
            "cores": list(cores),
        }
        self._process = WorkerProcess("llama.cpp", [sys.executable, str(WORKER), json.dumps(settings)])
        self.version: str = self._process.first["version"]
        self.ready_cpu_s: float = self._process.first["cpu_s"]

    def close(self) -> None:
        """End the process. Idempotent."""
        self._process.close()

    @property
    def resident_bytes(self) -> int:
        """Resident memory of its process."""
        return resident_bytes(self._process.proc)

    @staticmethod
    def reason_against(workload: Workload) -> str | None:
        """Why it cannot run a workload; None if it can."""
        if any(each.constraint is not None for graph in workload.graphs for each in generations(graph)):
            return "llama.cpp's own grammars accept other texts than ours"
        return None

    def run(self, workload: Workload, codec: Codec) -> Measurement:
        """Run the graphs of a workload; nothing is cached at the start.

        Raises:
            RtlangError: the process has ended.
            ValueError: a graph has other nodes than texts, single generations and tools.
        """
        programs = [plain_nodes(graph, codec) for graph in workload.graphs]
        peak = PeakMemory(self._process.proc)
        peak.reset()
        results = self._process.ask({"programs": programs, "arrivals_s": workload.arrivals_s})
        return replace(measurement(workload, results), peak_bytes=peak.read_bytes())
