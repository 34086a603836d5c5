"""vLLM as a baseline, in a process of its own Python, with its engine in that process and its prefix cache on."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rtlang.bench.measure import Measurement
from rtlang.bench.workloads import Encoder
from rtlang.contract.errors import RtlangError
from rtlang.contract.graph import Generate, RequestGraph, Text, parent_of

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

    def run(self, graphs: Sequence[RequestGraph], encoder: Encoder) -> Measurement:
        """Run graphs of text and single generations; all are submitted at the start, and nothing is cached then.

        Raises:
            RtlangError: the process has ended.
            ValueError: a graph has other nodes, or a constraint that is no JSON schema.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps([_plain(graph, encoder) for graph in graphs]) + "\n")
            self._process.stdin.flush()
        except OSError:  # `_read` tells why
            pass
        result = self._read()
        return Measurement(
            total_s=result["total_s"],
            latencies_s=tuple(result["latency_s"]),
            first_token_s=tuple(result["first_s"]),
            outputs={(index, node_id): tuple(token_ids) for index, node_id, token_ids in result["outputs"]},
            prompt_tokens=result["num_prompt_tokens"],
            cpu_s=result["cpu_s"],
        )

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            end = (self._folder / "printed").read_text(encoding="utf-8", errors="replace")[-2000:].strip()
            self.close()
            raise RtlangError(f"vLLM ended with code {self._process.returncode}: {end}")
        return json.loads(line)


def _plain(graph: RequestGraph, encoder: Encoder) -> list[dict[str, Any]]:
    """The nodes of a graph as the worker reads them; the start of a sequence is a node with a negative id."""
    start = -1
    nodes: list[dict[str, Any]] = [{"id": start, "parent": None, "tokens": list(encoder.start_ids())}]
    for node in graph.nodes:
        parent = parent_of(node)
        before = start if parent is None else parent
        if isinstance(node, Text) and all(isinstance(part, str) for part in node.parts):
            text = "".join(part for part in node.parts if isinstance(part, str))
            nodes.append(
                {"id": node.node_id, "parent": before, "tokens": encoder.encode(text, is_start=parent is None)}
            )
        elif isinstance(node, Generate) and node.params.n == 1:
            schema = None if node.constraint is None else json.loads(node.constraint.source)
            nodes.append(
                {
                    "id": node.node_id,
                    "parent": before,
                    "tokens": None,
                    "max_tokens": node.params.max_tokens,
                    "schema": schema,
                }
            )
        else:
            raise ValueError(f"node {node.node_id}: the baseline runs plain text and single generations only")
    return nodes
