"""The interface to a device: memory, asynchronous copies and captured graphs.

The interface is small, so that everything above it can be tested without a GPU. `CudaAccelerator` is a GPU (including AMD's, which torch
also calls cuda); `InterpretedAccelerator` holds CPU tensors, on which triton's interpreter runs the same kernels.
"""

from __future__ import annotations

import gc
import os
import warnings
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, Protocol

import torch
from numpy.typing import NDArray
from torch import Tensor

from rtlang.contract.errors import ConfigError
from rtlang.model import system_resources
from rtlang.model.gpu import sync_check
from rtlang_kernels.host.cuda_graph import captured


class Fetched(Protocol):
    """Tensors being copied to the host."""

    def wait(self) -> list[NDArray[Any]]:
        """Wait for the copies and return the values."""


class Stopwatch(Protocol):
    """Measures work on the device, from its beginning, when all earlier work is done, to its end."""

    def stop(self) -> None:
        """The work is launched."""

    def seconds(self) -> float:
        """Wait for the end of the work; returns its time."""


class Accelerator(Protocol):
    """A device that runs models. Used from one thread.

    Attributes:
        device: the torch device.
        name: human-readable name.
        compiles: whether kernels are compiled at their first launch.
    """

    device: torch.device
    name: str
    compiles: bool

    def enter(self) -> None:
        """Make this the current device of the calling thread."""

    def free_bytes(self) -> int:
        """Free device memory in bytes."""

    def fetch(self, tensors: Sequence[Tensor]) -> Fetched:
        """Start copying tensors to the host, ordered after earlier launches; does not wait."""

    def stopwatch(self) -> Stopwatch:
        """Measure the launches from now on."""

    def beside(self, work: Callable[[], None]) -> Callable[[], None]:
        """Launch copies and kernels, which run after all earlier launches and concurrently with later ones. Any thread.

        Returns:
            A function that waits until they are done, on any thread.
        """

    def host_buffer(self, num_bytes: int) -> Tensor:
        """Memory of the host from and to which `beside` copies without waiting: uint8 [num_bytes]. Any thread."""

    def obstacle(self, function: Callable[[], Tensor]) -> str | None:
        """Run a function; returns why it cannot be captured, or None if it can. It must have run once before."""

    def capture(self, function: Callable[[], Tensor]) -> Callable[[], Tensor]:
        """Capture `function`; the result replays its launches on the same tensors and returns the same tensor each time.

        `function` must be capturable and must have run once. It is kept alive together with its tensors.

        Raises:
            RuntimeError: capturing failed.
        """

    def release(self) -> None:
        """Return unused cached memory to the system. Call this after dropping tensors."""


def accelerator_for(name: str) -> Accelerator:
    """The accelerator for `RuntimeConfig.device`.

    Raises:
        ConfigError: the device is unavailable or cannot run the kernels.
    """
    if name == "cuda":
        if not torch.cuda.is_available():
            raise ConfigError("device", name, "torch finds no GPU")
        try:
            return CudaAccelerator()
        except RuntimeError as error:  # in exclusive use, or broken
            raise ConfigError("device", name, f"the GPU cannot be used: {' '.join(str(error).split())}") from error
    if os.environ.get("TRITON_INTERPRET") != "1" or os.environ.get("RTLANG_KERNELS") != "triton":
        raise ConfigError("device", name, "TRITON_INTERPRET=1 and RTLANG_KERNELS=triton must be set")
    return InterpretedAccelerator()


class CudaAccelerator:
    """The current GPU of the creating thread. All launches and copies are ordered on one stream, except those of `beside`."""

    compiles = True

    def __init__(self) -> None:
        self.device = torch.device("cuda", torch.cuda.current_device())
        self.name = torch.cuda.get_device_name(self.device)
        self._graph_memory: Any = None
        self._steps: torch.cuda.Stream | None = None
        self._side: torch.cuda.Stream | None = None

    def enter(self) -> None:
        """See `Accelerator`."""
        torch.cuda.set_device(self.device)
        self._steps, self._side = torch.cuda.current_stream(self.device), torch.cuda.Stream(self.device)  # type: ignore[no-untyped-call]

    def free_bytes(self) -> int:
        """See `Accelerator`."""
        free: int = torch.cuda.mem_get_info(self.device)[0]
        held = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
        return free + held

    def fetch(self, tensors: Sequence[Tensor]) -> Fetched:
        """See `Accelerator`."""
        copies = [torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True) for tensor in tensors]
        for copy, tensor in zip(copies, tensors, strict=True):
            copy.copy_(tensor, non_blocking=True)
        done = torch.cuda.Event()  # type: ignore[no-untyped-call]
        done.record()
        return _OnItsWay(copies, done)

    def stopwatch(self) -> Stopwatch:
        """See `Accelerator`."""
        return _Events()

    def beside(self, work: Callable[[], None]) -> Callable[[], None]:
        """See `Accelerator`. A thread that waits leaves its core to others."""
        assert self._steps is not None, "enter comes first"
        assert self._side is not None
        done = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
        with torch.cuda.stream(self._side):
            self._side.wait_stream(self._steps)
            work()
            done.record(self._side)
        return done.synchronize

    def host_buffer(self, num_bytes: int) -> Tensor:
        """See `Accelerator`."""
        return torch.empty(num_bytes, dtype=torch.uint8, pin_memory=True)

    def obstacle(self, function: Callable[[], Tensor]) -> str | None:
        """See `Accelerator`. Also detects operators that synchronize internally."""
        before = torch.cuda.get_sync_debug_mode()
        with warnings.catch_warnings(
            action="ignore"
        ):  # torch warns about a prototype; warnings may be turned into errors
            torch.cuda.set_sync_debug_mode("error")
        try:
            return sync_check.obstacle(function, self.device)
        finally:
            torch.cuda.set_sync_debug_mode(before)

    def capture(self, function: Callable[[], Tensor]) -> Callable[[], Tensor]:
        """See `Accelerator`."""
        if self._graph_memory is None:
            self._graph_memory = torch.cuda.graph_pool_handle()  # shared by all graphs, which never run concurrently
        torch.cuda.synchronize(self.device)
        return _Graph(*captured(function, self._graph_memory), function)

    def release(self) -> None:
        """See `Accelerator`."""
        self._graph_memory = None
        gc.collect()  # reference cycles may hold tensors
        torch.cuda.synchronize(self.device)
        torch.cuda.empty_cache()


class _Graph:
    """A captured graph, its result, and references to the tensors it reads."""

    def __init__(self, graph: torch.cuda.CUDAGraph, result: Tensor, held: object) -> None:
        self._graph, self._result, self._held = graph, result, held

    def __call__(self) -> Tensor:
        self._graph.replay()
        return self._result


class _OnItsWay:
    """Copies in pinned memory, and the event recorded after them."""

    def __init__(self, copies: list[Tensor], done: torch.cuda.Event) -> None:
        self._copies, self._done = copies, done

    def wait(self) -> list[NDArray[Any]]:
        """See `Fetched`."""
        self._done.synchronize()
        return [copy.numpy() for copy in self._copies]


class _Events:
    """The two events of a `Stopwatch` on the current stream."""

    def __init__(self) -> None:
        self._started, self._ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        self._started.record()

    def stop(self) -> None:
        """See `Stopwatch`."""
        self._ended.record()

    def seconds(self) -> float:
        """See `Stopwatch`."""
        self._ended.synchronize()
        milliseconds: float = self._started.elapsed_time(self._ended)
        return milliseconds / 1000


class InterpretedAccelerator:
    """CPU tensors and interpreted kernels; every launch is synchronous."""

    compiles = False

    def __init__(self) -> None:
        self.device, self.name = torch.device("cpu"), "triton's interpreter"

    def enter(self) -> None:
        """See `Accelerator`."""

    def free_bytes(self) -> int:
        """See `Accelerator`."""
        return system_resources.free_bytes()

    def fetch(self, tensors: Sequence[Tensor]) -> Fetched:
        """See `Accelerator`. Copies the current values, as a GPU would."""
        return _There([tensor.clone() for tensor in tensors])

    def stopwatch(self) -> Stopwatch:
        """See `Accelerator`."""
        return _Clock()

    def beside(self, work: Callable[[], None]) -> Callable[[], None]:
        """See `Accelerator`; done at once."""
        work()
        return lambda: None

    def host_buffer(self, num_bytes: int) -> Tensor:
        """See `Accelerator`."""
        return torch.empty(num_bytes, dtype=torch.uint8)

    def obstacle(self, function: Callable[[], Tensor]) -> str | None:
        """See `Accelerator`."""
        return sync_check.obstacle(function, self.device)

    def capture(self, function: Callable[[], Tensor]) -> Callable[[], Tensor]:
        """See `Accelerator`."""
        return function

    def release(self) -> None:
        """See `Accelerator`. Collects reference cycles; CPU memory is freed by itself."""
        gc.collect()


class _There:
    """Fetched values of CPU tensors."""

    def __init__(self, copies: list[Tensor]) -> None:
        self._copies = copies

    def wait(self) -> list[NDArray[Any]]:
        """See `Fetched`."""
        return [copy.numpy() for copy in self._copies]


class _Clock:
    """A `Stopwatch` of work that is done when it is launched."""

    def __init__(self) -> None:
        self._started = self._ended = perf_counter()

    def stop(self) -> None:
        """See `Stopwatch`."""
        self._ended = perf_counter()

    def seconds(self) -> float:
        """See `Stopwatch`."""
        return self._ended - self._started
