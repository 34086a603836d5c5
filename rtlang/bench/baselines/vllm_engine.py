"""vLLM as a baseline, in a process of its own Python, with its engine in that process and its prefix cache on."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

from rtlang.bench.baselines.plain_graphs import measurement, plain_nodes
from rtlang.bench.baselines.worker_process import WorkerProcess
from rtlang.bench.machine import PeakMemory
from rtlang.bench.measure import Measurement
from rtlang.bench.workloads.text import Codec
from rtlang.bench.workloads.workload import Workload

WORKER = Path(__file__).with_name("vllm_worker.py")
KV_GIB = 2


class VllmEngine:
    """Runs workloads on vLLM.

    Args:
        python: the Python of an environment in which vLLM is installed.
        directory: the checkpoint.
        dtype, num_threads, max_model_len: as for our side.

    Raises:
        RtlangError: vLLM does not start; the message has the end of what it printed.
    """

    def __init__(self, python: str, directory: Path, *, dtype: str, num_threads: int, max_model_len: int) -> None:
        settings = {"model": str(directory), "dtype": dtype, "max_model_len": max_model_len}
        cores = sorted(os.sched_getaffinity(0))[:num_threads]
        environment = {
            **os.environ,
            "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
            "VLLM_CPU_KVCACHE_SPACE": str(KV_GIB),
            "VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, cores)),
            "VLLM_LOGGING_LEVEL": "ERROR",
            "VLLM_NO_USAGE_STATS": "1",
            "HF_HUB_OFFLINE": "1",
            "OMP_NUM_THREADS": str(num_threads),
        }
        environment.pop("PYTHONPATH", None)
        self._process = WorkerProcess(
            "vLLM", [python, str(WORKER), json.dumps(settings)], environment, field="vllm_python"
        )
        self.version = self._process.first["version"]

    def close(self) -> None:
        """End the process. Idempotent."""
        self._process.close()

    def run(self, workload: Workload, codec: Codec) -> Measurement:
        """Run the graphs of a workload; nothing is cached at the start.

        Raises:
            RtlangError: the process has ended.
            ValueError: a graph has other nodes than texts, single generations and tools, or a constraint that is no JSON schema.
        """
        programs = [plain_nodes(graph, codec) for graph in workload.graphs]
        peak = PeakMemory(self._process.proc)
        peak.reset()
        results = self._process.ask({"programs": programs, "arrivals_s": workload.arrivals_s})
        return replace(measurement(workload, results), peak_bytes=peak.read_bytes())
