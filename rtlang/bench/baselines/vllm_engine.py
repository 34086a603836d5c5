"""vLLM as a baseline, in a process of its own Python, with its engine in that process and its prefix cache on."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from rtlang.bench.baselines.plain_graphs import measurement, plain_nodes
from rtlang.bench.machine import PeakMemory
from rtlang.bench.measure import Measurement
from rtlang.bench.workloads.text import Codec
from rtlang.bench.workloads.workload import Workload
from rtlang.contract.errors import RtlangError

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
        self._open = ExitStack()
        self._folder = Path(self._open.enter_context(tempfile.TemporaryDirectory(prefix="rtlang-bench-")))
        printed = self._open.enter_context((self._folder / "printed").open("w"))
        try:
            self._process = subprocess.Popen(
                [python, str(WORKER), json.dumps(settings)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=printed,
                text=True,
                env=environment,
            )
        except OSError as error:
            self._open.close()
            raise RtlangError(f"vllm_python = {python}: {error}") from error
        self.version = self._read()["version"]

    def close(self) -> None:
        """End the process. Idempotent."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._open.close()

    def run(self, workload: Workload, codec: Codec) -> Measurement:
        """Run the graphs of a workload; nothing is cached at the start.

        Raises:
            RtlangError: the process has ended.
            ValueError: a graph has other nodes than texts, single generations and tools, or a constraint that is no JSON schema.
        """
        assert self._process.stdin is not None
        programs = [plain_nodes(graph, codec) for graph in workload.graphs]
        peak = PeakMemory(Path(f"/proc/{self._process.pid}"))
        peak.reset()
        try:
            self._process.stdin.write(json.dumps({"programs": programs, "arrivals_s": workload.arrivals_s}) + "\n")
            self._process.stdin.flush()
        except OSError:  # `_read` tells why
            pass
        return replace(measurement(workload, self._read()), peak_bytes=peak.read_bytes())

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            end = (self._folder / "printed").read_text(encoding="utf-8", errors="replace")[-2000:].strip()
            self.close()
            raise RtlangError(f"vLLM ended with code {self._process.returncode}: {end}")
        return json.loads(line)
