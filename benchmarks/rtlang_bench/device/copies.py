"""Measures copies of KV pages between a device and the host, and how much they slow down steps on the device.

python -m rtlang_bench.device.copies

Pages of a pool of the given shape are read and written in batches, as the tiers below the pool do, alone and beside reductions over a large
tensor, which stand for decoding steps: both read memory. Pages must come back unchanged. `--device interpreter` only shows that the
command runs.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer

from rtlang.console.one_line_errors import one_line_errors
from rtlang.console.source import CommandError
from rtlang.model.gpu.accelerator import Accelerator, accelerator_for
from rtlang.model.gpu.device_content import DevicePages
from rtlang.model.layers.attention import HeadGeometry, PagedKV
from rtlang_bench.command import command

_DTYPE = torch.bfloat16


@dataclass(frozen=True, slots=True)
class Copies:
    """The figures of one direction.

    Attributes:
        rate: bytes per second.
        thread_s: CPU seconds of the copying thread per GB.
        slowdown: time of the reductions beside copies, relative to that without.
    """

    name: str
    rate: float
    thread_s: float
    slowdown: float

    def __str__(self) -> str:
        slower = f"steps beside it take {self.slowdown:.3f} times as long"
        return f"{self.name:6} {self.rate / 1e9:7.2f} GB/s, {self.thread_s:6.3f} s of CPU per GB, {slower}"


def measure(accelerator: Accelerator, kv: PagedKV, num_pages: int, step_bytes: int, num_steps: int) -> list[Copies]:
    """Read and write `num_pages` pages, beside `num_steps` reductions over `step_bytes` bytes.

    Raises:
        AssertionError: a page came back with other bytes.
    """
    accelerator.enter()
    pages = DevicePages(kv, accelerator)
    weights = torch.zeros(max(1, step_bytes // 4), dtype=torch.float32, device=accelerator.device)
    page_ids = list(range(num_pages))
    content = pages.read_pages(page_ids)
    pages.write_pages(zip(reversed(page_ids), content, strict=True))
    assert np.array_equal(pages.read_pages(page_ids), content[::-1]), "pages came back with other bytes"

    def steps() -> float:
        started = time.perf_counter()
        for _ in range(num_steps):
            total = weights.sum()
        accelerator.fetch([total]).wait()
        return time.perf_counter() - started

    steps()
    alone_s = min(steps() for _ in range(3))
    found = []
    for name, copy in (
        ("read", lambda: pages.read_pages(page_ids)),
        ("write", lambda: pages.write_pages(zip(page_ids, content, strict=True))),
    ):
        seconds, thread_s = min(_timed(copy) for _ in range(3))
        copying = threading.Event()
        thread = threading.Thread(target=_repeat, args=(copy, copying))
        thread.start()
        beside_s = min(steps() for _ in range(3))
        copying.set()
        thread.join()
        num_bytes = content.nbytes
        found.append(Copies(name, num_bytes / seconds, thread_s * 1e9 / num_bytes, beside_s / alone_s))
    return found


def _timed(copy: Callable[[], object]) -> tuple[float, float]:
    started, thread_started = time.perf_counter(), time.thread_time()
    copy()
    return time.perf_counter() - started, time.thread_time() - thread_started


def _repeat(copy: Callable[[], object], until: threading.Event) -> None:
    while not until.is_set():
        copy()


def bench_copies(
    device: Annotated[str, typer.Option(help="cuda or interpreter.")] = "cuda",
    layers: Annotated[int, typer.Option(min=1)] = 32,
    kv_heads: Annotated[int, typer.Option(min=1)] = 8,
    head_dim: Annotated[int, typer.Option(min=1)] = 128,
    page_size: Annotated[int, typer.Option(min=1, help="Tokens of a page.")] = 16,
    pages: Annotated[int, typer.Option(min=1, help="Pages to copy.")] = 256,
    step_bytes: Annotated[int, typer.Option(min=4, help="Bytes that a step reads.")] = 16_000_000_000,
    steps: Annotated[int, typer.Option(min=1)] = 20,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write all figures to this file.")] = None,
) -> None:
    """Measure copies of KV pages beside steps."""
    with one_line_errors():
        if device not in ("cuda", "interpreter"):
            raise CommandError(f"--device {device}: expected cuda or interpreter")
        accelerator = accelerator_for(device)
        geometry = HeadGeometry(kv_heads, kv_heads, head_dim, head_dim)
        with torch.inference_mode():
            kv = PagedKV((geometry,) * layers, pages, page_size, _DTYPE, accelerator.device)
            for tensor in kv.tensors:
                tensor.copy_(torch.rand(tensor.shape[1:], dtype=_DTYPE, device=tensor.device))
            typer.echo(f"{pages} pages of {kv.page_bytes:,} bytes on {accelerator.name}")
            found = measure(accelerator, kv, pages, step_bytes, steps)
            for each in found:
                typer.echo(str(each))
            if json_file is not None:
                json_file.write_text("".join(json.dumps({"kind": "copies"} | asdict(each)) + "\n" for each in found))


app = command(bench_copies)

if __name__ == "__main__":
    app()
