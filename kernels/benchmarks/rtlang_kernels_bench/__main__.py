"""`python -m rtlang_kernels_bench`: the CPU backend against plain torch; with `--device cuda`, the GPU kernels.

Every kernel is checked before it is timed. A failed check makes the exit status 1.
"""

from __future__ import annotations

import argparse
import math
import platform
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from functools import partial
from importlib import import_module
from typing import Any

import torch

from rtlang_kernels_bench import check_process, device_run, table
from rtlang_kernels_bench.output import Output, watchdog


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark. Returns the exit status: 1 if a check failed, 2 if the device is missing or a file cannot be created."""
    parser = argparse.ArgumentParser(prog="python -m rtlang_kernels_bench", description=__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="kernels to measure")
    parser.add_argument("--quick", action="store_true", help="fewer rounds or shapes, under a minute")
    names = (
        "attention",
        "latent",
        "sampling",
        "layers",
        "linear",
        "experts",
        "recurrence",
        "memory",
        "decode",
        "trees",
        "extend",
    )
    parser.add_argument("--only", choices=names, help="one group; the last three are parts of GPU attention")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="torch threads")
    parser.add_argument(
        "--budget-s", type=float, default=480.0, help="on a GPU: seconds after which no new line starts"
    )
    parser.add_argument("--json", metavar="FILE", help="also write the figures to a file, as a JSON object per line")
    parser.add_argument("--out", metavar="FILE", help="also write what is printed to a file, line by line")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.stderr.write("--device = cuda: torch finds no GPU; timings of interpreted kernels are meaningless\n")
        return 2
    if not math.isfinite(options.budget_s):
        parser.error(f"--budget-s = {options.budget_s}: a finite number of seconds is allowed")
    try:
        output = Output(options.out, options.json)
    except (OSError, ValueError) as error:
        parser.error(f"--out or --json: {error}")
    with output:
        if options.device == "cuda":
            with watchdog(output, options.budget_s), output.part("run"):
                measure_gpu(options, output)
        else:
            measure_cpu(options, output)
    return int(output.num_failed > 0)


def measure_cpu(options: argparse.Namespace, output: Output) -> None:
    """Measure the CPU backend, line by line."""
    # Loaded here, because the machine of a GPU may not have numba.
    names = "attention_bench", "latent_bench", "cpu_bench", "linear_bench", "recurrence_bench"
    attention_bench, latent_bench, cpu_bench, linear_bench, recurrence_bench = (
        import_module(f"rtlang_kernels_bench.{name}") for name in names
    )
    write = output.write
    rounds = 25 if options.quick else 150
    write(f"{platform.processor() or platform.machine()}, {options.threads} threads, torch {torch.__version__}")
    write("us per call, median; ratio = other / ours; planning once per step is not counted in ours")
    groups: dict[str, Callable[[int], Iterable[dict[str, Any]]]] = {
        "attention": partial(attention_bench.attention_lines, is_quick=options.quick),
        "latent": partial(latent_bench.latent_lines, is_quick=options.quick),
        "sampling": cpu_bench.sampling_lines,
        "layers": cpu_bench.layer_lines,
        "linear": partial(linear_bench.linear_lines, is_quick=options.quick),
        "memory": lambda rounds: linear_bench.memory_lines(),
        "recurrence": partial(recurrence_bench.recurrence_lines, is_quick=options.quick),
    }
    for name, group in groups.items():
        if options.only in (None, name):
            with output.part(name):
                for item in group(rounds):
                    output.figure(item)
                    write(described(item))


def described(item: dict[str, Any]) -> str:
    """The line of a figure."""
    if "mb" in item:
        return f"{item['label']:<48} " + "  ".join(f"{name} {value:+.1f} MB" for name, value in item["mb"].items())
    cells = "  ".join(f"{key} {value:.0f}" for key, value in item["us"].items())
    ratios = "  ".join(f"{value:.1f}x {key}" for key, value in item["ratio"].items())
    if "ns_score" in item:
        ratios += f"  |  {item['ns_score']:.2f} ns a score, {item['kv_gb_s']:.1f} GB/s of KV"
    if "share" in item:  # of the machine's limit in the same run
        shares = "  ".join(f"{value:.0%} {key}" for key, value in item["share"].items())
        ratios += f"  | of {item['read_gb_s']:.1f} GB/s, {item['multiply_tflop_s']:.3f} TFLOP/s: {shares}"
    return f"{item['label']:<48} {cells}  |  {ratios}  | spread {item['spread']:.0%} error {item['error']:.0e}"


def measure_gpu(options: argparse.Namespace, output: Output) -> None:
    """Check and measure the GPU kernels, line by line, and summarise.

    Raises:
        RuntimeError: the GPU no longer responds.
    """
    started, device = time.monotonic(), torch.device("cuda", torch.cuda.current_device())
    measure = device_run.measure_on_device

    def is_late() -> bool:
        return bool(time.monotonic() - started > options.budget_s)

    output.write(device_run.environment(device))
    if options.only is None:
        check_process.run(output, device, is_late)
    ceilings = device_run.measure_ceilings(device, measure)
    output.write(str(ceilings))
    output.figure({"kind": "ceilings"} | asdict(ceilings))
    output.write("median us per call in a captured graph, inputs from memory; host: preparing a step; (peer / ours)")
    tasks = device_run.tasks(options.only, options.quick, device, ceilings, measure)
    found = device_run.run_tasks(tasks, output, is_late)
    if (left := sum(1 for _ in tasks)) > 0:
        output.write(f"stopped after {options.budget_s:.0f} s: {left} more lines were not measured")
    for entry in table.summary(found):
        output.write(entry)


if __name__ == "__main__":
    sys.exit(main())
