"""Cleanup after failed captures, on a stand-in for a GPU that fails captures as torch 2.11 and 2.13 do."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from rtlang_kernels.host import cuda_graph
from rtlang_kernels.host.cuda_graph import captured

OWN_STREAM, SIDE_STREAM = "own stream", "stream of captures"


class Pretended:
    """The parts of torch.cuda that `captured` uses, and an allocator that records the memory of captures."""

    def __init__(self, *, cleans_up: bool) -> None:
        self.cleans_up = cleans_up
        self.stream = OWN_STREAM
        self.underway: list[Any] = []
        self.held: list[Any] = []
        self.num_pools = 0
        self.is_broken = False

    def CUDAGraph(self) -> object:
        return object()

    def current_stream(self) -> str:
        return self.stream

    def set_stream(self, stream: str) -> None:
        self.stream = stream

    def current_device(self) -> int:
        return 3

    def graph_pool_handle(self) -> tuple[int, int]:
        self.num_pools += 1
        return 0, self.num_pools

    @contextmanager
    def graph(self, graph: object, *, pool: Any, capture_error_mode: str) -> Iterator[None]:
        assert capture_error_mode == "thread_local"
        if self.underway:
            raise RuntimeError("captures_underway.empty() INTERNAL ASSERT FAILED")
        before, self.stream = self.stream, SIDE_STREAM
        self.underway.append(pool)
        self.held.append(pool)
        try:
            yield
        finally:
            if not self.is_broken or self.cleans_up:
                self.underway.remove(pool)
            if self.is_broken:
                self.is_broken = False
                raise RuntimeError("operation failed due to a previous error during capture")
            self.stream = before

    def end(self, device: int, pool: Any) -> None:
        assert device == 3
        if pool not in self.underway:
            raise RuntimeError("endAllocatePool: not currently recording to mempool_id")
        self.underway.remove(pool)

    def release(self, device: int, pool: Any) -> None:
        assert device == 3
        self.held.remove(pool)


def pretend(monkeypatch: pytest.MonkeyPatch, *, cleans_up: bool) -> Pretended:
    gpu = Pretended(cleans_up=cleans_up)
    for name in ("CUDAGraph", "current_stream", "set_stream", "current_device", "graph_pool_handle", "graph"):
        monkeypatch.setattr(torch.cuda, name, getattr(gpu, name))
    monkeypatch.setattr(torch._C, "_cuda_endAllocateToPool", gpu.end, raising=False)
    monkeypatch.setattr(torch._C, "_cuda_releasePool", gpu.release, raising=False)
    cuda_graph._broken.cache_clear()
    return gpu


@pytest.mark.parametrize("cleans_up", [False, True], ids=["torch 2.11", "torch 2.13"])
def test_a_failed_capture_does_not_affect_later_captures(cleans_up: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = pretend(monkeypatch, cleans_up=cleans_up)

    def waits() -> None:
        gpu.is_broken = True
        raise RuntimeError("operation not permitted when stream is capturing")

    for _ in range(2):
        with pytest.raises(RuntimeError, match="previous error during capture"):
            captured(waits)
        assert (gpu.stream, gpu.underway) == (OWN_STREAM, [])
    assert len(gpu.held) == (2 if cleans_up else 0)
    assert len(cuda_graph._broken()) == (0 if cleans_up else 2), "torch 2.11 asks them again"
    assert captured(lambda: 7)[1] == 7
    assert (gpu.stream, gpu.underway) == (OWN_STREAM, [])


def test_an_error_outside_the_capture_is_propagated(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = pretend(monkeypatch, cleans_up=False)

    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        captured(interrupted, (0, 9))
    assert (gpu.stream, gpu.underway, gpu.held) == (OWN_STREAM, [], [(0, 9)])
    assert cuda_graph._broken() == []


@pytest.mark.parametrize("is_enabled", [True, False])
def test_no_garbage_is_collected_while_a_graph_is_captured(is_enabled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = pretend(monkeypatch, cleans_up=True)
    assert gc.isenabled()
    try:
        if not is_enabled:
            gc.disable()
        _, seen = captured(lambda: (gc.isenabled(), gpu.stream, list(gpu.underway)), (0, 5))
        assert seen == (False, SIDE_STREAM, [(0, 5)])
        assert gc.isenabled() == is_enabled
    finally:
        gc.enable()
