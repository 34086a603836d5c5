"""Graphs of launches on a GPU, captured so that a capture which fails costs nothing but itself.

Where a capture is broken off by something that a GPU does not capture, torch up to 2.12 leaves its own stream behind as the current
one, and an allocator that takes the capture to go on for ever: from then on memory can no longer be given back, and every later
capture of the process fails, since it begins with that (pytorch/pytorch#180395). `captured` puts both right.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, TypeVar

import torch

T = TypeVar("T")


def captured(function: Callable[[], T], pool: Any = None) -> tuple[torch.cuda.CUDAGraph, T]:
    """Capture what `function` launches on the current GPU.

    Only calls of this thread become part of the graph; others may use the GPU meanwhile.

    Args:
        function: only launches, and has run before.
        pool: memory of what it allocates, as `torch.cuda.graph_pool_handle` gives it; default: one of the graph's own. Graphs that
            share one must not run at the same time.
    Returns:
        The graph, and what `function` returned, whose tensors each replay writes.
    Raises:
        RuntimeError: the GPU does not capture it.
    """
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.current_stream()
    memory = torch.cuda.graph_pool_handle() if pool is None else pool
    try:
        with _no_collection(), torch.cuda.graph(graph, pool=memory, capture_error_mode="thread_local"):
            result = function()
    except BaseException:
        torch.cuda.set_stream(stream)
        _unwind(graph, memory)
        raise
    return graph, result


@contextmanager
def _no_collection() -> Iterator[None]:
    """Collect no garbage: a graph or an event that is destroyed during a capture may break it."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _unwind(graph: torch.cuda.CUDAGraph, pool: Any) -> None:
    """Tell the allocator that a capture is over, where torch has not."""
    with suppress(RuntimeError):  # it has
        device = torch.cuda.current_device()
        torch._C._cuda_endAllocateToPool(device, pool)
        _broken().append(graph)
        torch._C._cuda_releasePool(device, pool)


@cache
def _broken() -> list[torch.cuda.CUDAGraph]:
    """Graphs whose capture failed: the allocator of pinned memory goes on asking them, so they must not be destroyed."""
    return []
