"""What only a GPU has: a memory of its own, copies that nobody waits for, graphs of launches.

It is little, so that all the rest can be tested without one. `CudaAccelerator` is a GPU (torch gives AMD's the same name);
`InterpretedAccelerator` has CPU tensors, on which triton's interpreter runs the same kernels, and leaves out what it has no need for.
"""

from __future__ import annotations

import gc
import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from numpy.typing import NDArray
from torch import Tensor

from rtlang.contract.errors import ConfigError
from rtlang.model import system_resources
from rtlang.model.gpu import sync_check
from rtlang_kernels.launch_graph import captured


class Fetched(Protocol):
    """Tensors on their way to the system_resources."""

    def wait(self) -> list[NDArray[Any]]:
        """Their values, once they are there."""


class Accelerator(Protocol):
    """A device that models run on. Used from one thread.

    Attributes:
        device: of its tensors.
        name: for people.
        compiles: whether a kernel takes long at its first launch.
    """

    device: torch.device
    name: str
    compiles: bool

    def enter(self) -> None:
        """Make it the calling thread's device; each thread has one of its own."""

    def free_bytes(self) -> int:
        """Device memory that could still be taken."""

    def fetch(self, tensors: Sequence[Tensor]) -> Fetched:
        """Begin to copy tensors to the host, after what was launched so far; does not wait."""

    def obstacle(self, function: Callable[[], Tensor]) -> str | None:
        """Run a function; why it cannot be captured, for people, None if it can. It must have run before."""

    def capture(self, function: Callable[[], Tensor]) -> Callable[[], Tensor]:
        """A way to launch again what `function` launches, on the same tensors; its result is the same tensor each time.

        `function` must have no obstacle, and have run before. It is kept, and with it the tensors that it holds.
        Raises:
            RuntimeError: the device does not capture it after all.
        """

    def release(self) -> None:
        """Give memory that no tensor holds back to the machine. For whoever has just given tensors up."""


def accelerator_for(name: str) -> Accelerator:
    """The device that `RuntimeConfig.device` names.

    Raises:
        ConfigError: it is not there, or its kernels cannot run.
    """
    if name == "cuda":
        if not torch.cuda.is_available():
            raise ConfigError("device", name, "torch sees no GPU here")
        try:
            return CudaAccelerator()
        except RuntimeError as error:  # it is in exclusive use, or broken
            raise ConfigError("device", name, f"the GPU cannot be used: {' '.join(str(error).split())}") from error
    if os.environ.get("TRITON_INTERPRET") != "1" or os.environ.get("RTLANG_KERNELS") != "triton":
        raise ConfigError("device", name, "TRITON_INTERPRET=1 and RTLANG_KERNELS=triton must be set")
    return InterpretedAccelerator()


class CudaAccelerator:
    """The current GPU of the thread that makes it. All launches and copies are in order, on one stream."""

    compiles = True

    def __init__(self) -> None:
        self.device = torch.device("cuda", torch.cuda.current_device())
        self.name = torch.cuda.get_device_name(self.device)
        self._graph_memory: Any = None

    def enter(self) -> None:
        """See `Accelerator`."""
        torch.cuda.set_device(self.device)

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

    def obstacle(self, function: Callable[[], Tensor]) -> str | None:
        """See `Accelerator`. Also finds operators that wait for the device inside."""
        before = torch.cuda.get_sync_debug_mode()
        with warnings.catch_warnings(action="ignore"):  # of a prototype, which is an error where warnings are
            torch.cuda.set_sync_debug_mode("error")
        try:
            return sync_check.obstacle(function, self.device)
        finally:
            torch.cuda.set_sync_debug_mode(before)

    def capture(self, function: Callable[[], Tensor]) -> Callable[[], Tensor]:
        """See `Accelerator`."""
        if self._graph_memory is None:
            self._graph_memory = torch.cuda.graph_pool_handle()  # one for all graphs, which never run at the same time
        torch.cuda.synchronize(self.device)
        return _Graph(*captured(function, self._graph_memory), function)

    def release(self) -> None:
        """See `Accelerator`."""
        self._graph_memory = None
        gc.collect()  # what is only reachable from itself holds tensors too
        torch.cuda.synchronize(self.device)
        torch.cuda.empty_cache()


class _Graph:
    """A captured graph, its result, and what holds the tensors that it reads."""

    def __init__(self, graph: torch.cuda.CUDAGraph, result: Tensor, held: object) -> None:
        self._graph, self._result, self._held = graph, result, held

    def __call__(self) -> Tensor:
        self._graph.replay()
        return self._result


class _OnItsWay:
    """Copies in pinned memory, and the event that follows them."""

    def __init__(self, copies: list[Tensor], done: torch.cuda.Event) -> None:
        self._copies, self._done = copies, done

    def wait(self) -> list[NDArray[Any]]:
        """See `Fetched`."""
        self._done.synchronize()
        return [copy.numpy() for copy in self._copies]


class InterpretedAccelerator:
    """CPU tensors and interpreted kernels: everything is done when a launch returns."""

    compiles = False

    def __init__(self) -> None:
        self.device, self.name = torch.device("cpu"), "triton's interpreter"

    def enter(self) -> None:
        """See `Accelerator`."""

    def free_bytes(self) -> int:
        """See `Accelerator`."""
        return system_resources.free_bytes()

    def fetch(self, tensors: Sequence[Tensor]) -> Fetched:
        """See `Accelerator`. The values are those of now, as a GPU would copy them."""
        return _There([tensor.clone() for tensor in tensors])

    def obstacle(self, function: Callable[[], Tensor]) -> str | None:
        """See `Accelerator`."""
        return sync_check.obstacle(function, self.device)

    def capture(self, function: Callable[[], Tensor]) -> Callable[[], Tensor]:
        """See `Accelerator`."""
        return function

    def release(self) -> None:
        """See `Accelerator`. Memory of a CPU goes back by itself; references in circles do not."""
        gc.collect()


class _There:
    """What was fetched from CPU tensors."""

    def __init__(self, copies: list[Tensor]) -> None:
        self._copies = copies

    def wait(self) -> list[NDArray[Any]]:
        """See `Fetched`."""
        return [copy.numpy() for copy in self._copies]
