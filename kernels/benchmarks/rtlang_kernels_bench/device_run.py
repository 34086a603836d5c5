"""A run of the GPU benchmark: timing, ceilings, order of the lines, and continuation after failures.

Ceilings (copy, matrix product, an empty launch) are measured in the same run. Calls are captured in a graph and replayed. Losses stay in
the table; a task that raises is reported, and the next one starts. `measure_on_device` and `measure_ceilings` need a GPU, the rest does
not.
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial

import torch

from rtlang_kernels.host.cuda_graph import captured
from rtlang_kernels.host.numba_jit import HAS_NUMBA
from rtlang_kernels_bench import (
    device_bench,
    device_cases,
    device_experts,
    device_layers,
    device_linear,
    device_recurrence,
)
from rtlang_kernels_bench.device_cases import CALLS_PER_GRAPH, Ceilings, Heads, Measure
from rtlang_kernels_bench.output import Output
from rtlang_kernels_bench.table import Line, format_line

WARM_REPLAYS, REPLAYS = 3, 25
CROWDED_SHARE = 0.3  # of the device's memory
LEAST_REPLAYS, MEASURED_US = 7, 300_000  # for calls so slow that all replays would exceed this time


def measure_on_device(functions: Sequence[Callable[[], object]]) -> tuple[float, float]:
    """Median microseconds per call and spread (interquartile range over median), from replays of a captured graph."""
    stream = _side_stream()
    stream.wait_stream(torch.cuda.current_stream())  # which may still be producing the inputs
    with torch.cuda.stream(stream):
        for function in functions:  # compiles, and fills the caches of plans
            function()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()

    def launch() -> None:
        for index in range(CALLS_PER_GRAPH):
            functions[index % len(functions)]()

    graph, _ = captured(launch)
    times: list[float] = []
    count = REPLAYS
    for turn in range(REPLAYS + WARM_REPLAYS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        took_us = start.elapsed_time(end) * 1e3
        if turn == WARM_REPLAYS - 1:
            count = max(LEAST_REPLAYS, min(REPLAYS, int(MEASURED_US / max(took_us, 1.0))))
        elif turn >= WARM_REPLAYS:
            times.append(took_us / CALLS_PER_GRAPH)
        if len(times) == count:
            break
    low, middle, high = statistics.quantiles(times, n=4)
    return middle, (high - low) / middle


@cache
def _side_stream() -> torch.cuda.Stream:
    """One stream for all warm-ups: memory allocated on a stream serves that stream only."""
    stream: torch.cuda.Stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    return stream


def is_crowded() -> bool:
    """Whether so much more device memory is reserved than allocated that the next part might not fit."""
    if not torch.cuda.is_available():
        return False
    held = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
    return held > CROWDED_SHARE * torch.cuda.mem_get_info()[1]


def release_memory() -> None:
    """Release unused device memory, after a part of a run that may have taken most of it.

    Raises:
        RuntimeError: the device no longer responds.
    """
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
        torch.cuda.empty_cache()


def environment(device: torch.device) -> str:
    """Describe the device and versions. Sets full float32 precision for this process."""
    import triton

    torch.set_float32_matmul_precision("highest")  # an environment variable may lower it, and references are float32

    name = torch.cuda.get_device_name(device)
    host = "compiled" if HAS_NUMBA else "NOT compiled (numba is missing): host times are those of plain Python"
    cuda = torch.version.cuda or torch.version.hip
    return f"{name}, torch {torch.__version__}, CUDA {cuda}, triton {triton.__version__}, planning {host}"


def measure_ceilings(device: torch.device, measure: Measure) -> Ceilings:
    """Measure the copy rate over 1 GiB, the rate of a bfloat16 product of 8192, and an empty launch; twice, for the noise of this run."""
    l2_bytes = torch.cuda.get_device_properties(device).L2_cache_size
    source = torch.randn(1 << 28, device=device)
    target = torch.empty_like(source)  # written by a kernel: the copy engine, which a copy in a graph uses, is slower
    a, b = (torch.randn(8192, 8192, device=device).to(torch.bfloat16) for _ in range(2))
    calls = (
        partial(torch.neg, source, out=target),
        partial(torch.mm, a, b),
        torch.empty(1, device=device).zero_,
    )
    first, second = ([measure([call])[0] for call in calls] for _ in range(2))
    copy_us, product_us, launch_us = map(min, first, second)
    noise = max(abs(x - y) / min(x, y) for x, y in zip(first[:2], second[:2], strict=True))
    num_bytes = 2 * source.numel() * source.element_size()
    return Ceilings(num_bytes / copy_us * 1e6, 2 * 8192**3 / product_us * 1e6, launch_us, l2_bytes, noise)


@dataclass(frozen=True, slots=True)
class Task:
    """Lines that are measured together, and their name before they exist."""

    name: str
    lines: Callable[[], Iterator[Line]]


def tasks(
    only: str | None, is_quick: bool, device: torch.device, ceilings: Ceilings, measure: Measure
) -> Iterator[Task]:
    """All lines, or those of one group, most important first; with `is_quick` a few of each.

    That is bfloat16 with the commonest heads, then sampling, prompts, the small kernels of a layer, weights of few bits, recurrent
    layers, other heads and other types.
    """
    few = slice(None, 3) if is_quick else slice(None)

    def attention(dtype: torch.dtype, heads: Heads, name: str, rank: int | None = None) -> Iterator[Task]:
        if only in (None, "attention", name):
            for shape in device_cases.SHAPES[name][few]:
                lines = partial(device_bench.attention_lines, [shape], heads, dtype, device, ceilings, measure, rank)
                yield Task(f"{name} {device_cases.attention_label(shape, heads, dtype)}", lines)

    yield from attention(torch.bfloat16, device_cases.HEADS[0], "decode")
    yield from attention(torch.bfloat16, device_cases.HEADS[0], "trees")
    if only in (None, "sampling"):
        for case in device_bench.sampling_cases(device_cases.SAMPLING[few]):
            rows, vocab_size, has_mask, name, _ = case
            title = f"sampling {rows} x {vocab_size}{' masked' if has_mask else ''}{name}"
            line = partial(device_bench.sampling_line, *case, torch.bfloat16, device, ceilings, measure)
            yield Task(title, partial(_one, line))
    yield from attention(torch.bfloat16, device_cases.HEADS[0], "extend")
    if only in (None, "layers"):
        sizes = device_layers.LayerShape()
        for rows in device_layers.ROWS:
            lines = partial(device_layers.layer_lines, rows, sizes, torch.bfloat16, device, ceilings, measure)
            yield Task(f"layers of {rows} rows", lines)
    if only in (None, "linear"):
        for name, num_outputs, num_inputs in device_linear.TIMED[few]:
            lines = partial(device_linear.linear_lines, name, num_outputs, num_inputs, device, ceilings, measure)
            yield Task(f"linear {name} {num_outputs} x {num_inputs}", lines)
    if only in (None, "experts"):
        for layer in device_experts.SHAPES[few]:
            lines = partial(device_experts.experts_lines, layer, device, ceilings, measure)
            yield Task(f"experts {layer.label}", lines)
    if only in (None, "recurrence"):
        for name in device_recurrence.timed()[few]:
            lines = partial(device_recurrence.recurrence_lines, name, device, ceilings, measure)
            yield Task(f"recurrence {name}", lines)
    for heads, rank in device_cases.LATENT[: 1 if is_quick else None]:
        for name in ("decode", "trees"):
            yield from attention(torch.bfloat16, heads, name, rank)
    yield from attention(torch.float32, device_cases.HEADS[0], "trees")
    for heads in () if is_quick else device_cases.HEADS[1:]:
        for name in device_cases.SHAPES:
            yield from attention(torch.bfloat16, heads, name)
    for name in device_cases.SHAPES:
        yield from attention(torch.float16, device_cases.HEADS[0], name)


def _one(make: Callable[[], Line]) -> Iterator[Line]:
    yield make()


def run_tasks(
    tasks: Iterator[Task],
    output: Output,
    is_late: Callable[[], bool],
    release: Callable[[], None] = release_memory,
) -> list[Line]:
    """Measure until the tasks or the time end. Lines are written at once; a task that raises is reported.

    Raises:
        RuntimeError: the device no longer responds.
    """
    found: list[Line] = []
    while not is_late():
        task = next(tasks, None)
        if task is None:
            return found
        before = output.num_failed
        with output.part(task.name):
            for line in task.lines():
                found.append(line)
                output.write(format_line(line))
                output.figure({"kind": "kernel"} | asdict(line))
        if output.num_failed > before or is_crowded():
            release()
    return found
