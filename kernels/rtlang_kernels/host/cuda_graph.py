"""Capture of CUDA graphs that leaves the process usable if a capture fails.

If a capture fails because of an operation that a GPU cannot capture, torch up to 2.12 leaves its own stream current and the allocator in
capture mode: memory can no longer be released, and every later capture in the process fails, since it begins by releasing memory
(pytorch/pytorch#180395). `captured` restores both.
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
    """Capture the launches of `function` on the current GPU.

    Only calls from this thread become part of the graph; other threads may use the GPU in the meantime.

    Args:
        function: launches kernels and does nothing else; must have run before.
        pool: memory for its allocations, from `torch.cuda.graph_pool_handle`; default: the graph has a pool of its own. Graphs that share a
            pool must not run at the same time.
    Returns:
        The graph, and the result of `function`, whose tensors each replay writes.
    Raises:
        RuntimeError: the GPU cannot capture it.
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
    """Disable garbage collection: destroying a graph or an event during a capture may break the capture."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _unwind(graph: torch.cuda.CUDAGraph, pool: Any) -> None:
    """Tell the allocator that a failed capture has ended, if torch has not done so."""
    with suppress(RuntimeError):  # torch has already done so
        device = torch.cuda.current_device()
        torch._C._cuda_endAllocateToPool(device, pool)
        _broken().append(graph)
        torch._C._cuda_releasePool(device, pool)


@cache
def _broken() -> list[torch.cuda.CUDAGraph]:
    """The graphs whose capture failed. They are never destroyed: the allocator of pinned memory keeps querying them."""
    return []
