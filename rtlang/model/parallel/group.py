"""The ranks of a model that several processes compute together, and how they exchange tensors and messages.

There are two process groups of torch. The *data* group sums and gathers activations: gloo between processes on the CPU, NCCL between GPUs,
whose calls are ordered on the current stream, so that captured graphs can contain them. The *control* group is always gloo; on it, rank 0
tells the others what to compute next. They find each other through a file of torch's `FileStore`, and talk over loopback only.

On the CPU a sum has the same bits whatever else is in the tensor: two parts are added in one order only, and more are gathered and added in
the order of ranks. So batch invariance holds with any number of ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
import torch.distributed
from numpy.typing import NDArray
from torch import Tensor

from rtlang.contract.errors import ConfigError, ModelLoadError

T = TypeVar("T")
dist: Any = torch.distributed  # its types leave out most of what is used here

COLLECTIVE_TIMEOUT_S = 60.0
"""Seconds after which a collective on activations fails: a rank has stopped without closing its connections."""
_PATIENCE = timedelta(days=365)  # the others wait for rank 0 as long as it has nothing to compute
_FIRST_WORDS = 1024  # int32 words of a message that are sent at once; the rest follows


class RankGroup:
    """One rank's connections to all others. Used by one thread at a time.

    Args:
        data, control: process groups of torch; `data` is of NCCL if the tensors are on GPUs.

    Attributes:
        rank, size: this process is number `rank` of `size`.
    """

    def __init__(self, rank: int, size: int, data: Any, control: Any) -> None:
        self.rank, self.size = rank, size
        self._data, self._control = data, control

    @classmethod
    def connect(
        cls, store_path: Path, rank: int, size: int, device: str = "cpu", timeout_s: float = COLLECTIVE_TIMEOUT_S
    ) -> RankGroup:
        """Connect to the other ranks; returns once all are connected.

        Args:
            store_path: a file that only these processes use.
            device: cuda for NCCL on the current GPU; gloo otherwise.
        Raises:
            RuntimeError: another rank did not connect in time.
        """
        store = dist.FileStore(str(store_path), size)
        timeout = timedelta(seconds=timeout_s)
        control = _gloo(dist.PrefixStore("control", store), rank, size, timeout)
        places = dist.PrefixStore("data", store), rank, size
        data = _nccl(*places, timeout) if device == "cuda" else _gloo(*places, timeout)
        return cls(rank, size, data, control)

    @property
    def is_first(self) -> bool:
        """Whether this is rank 0, which schedules and samples."""
        return self.rank == 0

    def all_reduce(self, x: Tensor) -> Tensor:
        """Add up the tensors of all ranks, in place; returns x. Every rank gets the same bits.

        Raises:
            RuntimeError: a rank has ended, or does not answer.
        """
        if self.size > 2 and x.device.type == "cpu":
            parts = self._parts(x)
            total = parts[0].float()
            for part in parts[1:]:
                total = total.add_(part)
            return x.copy_(total)
        self._data.allreduce([x]).wait()
        return x

    def all_gather(self, x: Tensor, dim: int = -1) -> Tensor:
        """The tensors of all ranks, of equal shapes, joined along `dim` in the order of ranks. Raises RuntimeError as `all_reduce`."""
        return torch.cat(self._parts(x), dim)

    def broadcast(self, x: Tensor) -> Tensor:
        """Replace the values of x by those of rank 0; returns x. Raises RuntimeError as `all_reduce`."""
        self._data.broadcast([x], dist.BroadcastOptions()).wait()
        return x

    def send(self, message: NDArray[np.int32]) -> None:
        """Send words of rank 0 to all others, each of which must call `receive`. Raises RuntimeError as `all_reduce`."""
        first = torch.zeros(_FIRST_WORDS, dtype=torch.int32)
        words = torch.from_numpy(message)
        first[0], first[1 : 1 + len(words)] = len(words), words[: _FIRST_WORDS - 1]
        self._control.broadcast([first], _from_first()).wait()
        if len(words) > _FIRST_WORDS - 1:
            self._control.broadcast([words[_FIRST_WORDS - 1 :].contiguous()], _from_first()).wait()

    def receive(self) -> NDArray[np.int32]:
        """Wait for the words that rank 0 sends. Raises RuntimeError as `all_reduce`."""
        first = torch.empty(_FIRST_WORDS, dtype=torch.int32)
        self._control.broadcast([first], _from_first()).wait()
        num_words = int(first[0])
        words = first[1 : 1 + num_words]
        if num_words > _FIRST_WORDS - 1:
            rest = torch.empty(num_words - len(words), dtype=torch.int32)
            self._control.broadcast([rest], _from_first()).wait()
            words = torch.cat([words, rest])
        found: NDArray[np.int32] = words.numpy()
        return found

    def smallest(self, number: int) -> int:
        """The smallest of the numbers of all ranks, for agreements while loading. Raises RuntimeError as `all_reduce`."""
        options = dist.AllreduceOptions()
        options.reduceOp = dist.ReduceOp.MIN
        options.timeout = _PATIENCE
        value = torch.tensor([number], dtype=torch.int64)
        self._control.allreduce([value], options).wait()
        return int(value)

    def abort(self) -> None:
        """Let a collective on GPUs fail that waits for a rank that has ended; from any thread. On the CPU they fail by themselves."""
        if isinstance(self._data, _nccl_type()):
            self._data.abort()

    def _parts(self, x: Tensor) -> list[Tensor]:
        parts = list(x.new_empty((self.size, *x.shape)))
        self._data.allgather([parts], [x.contiguous()]).wait()
        return parts


def in_turn(group: RankGroup, load: Callable[[], T], model: str) -> T:
    """Call a function that needs much memory on one rank after another; returns the result of this rank.

    Args:
        model: its name for errors.
    Raises:
        ModelLoadError, ConfigError: as the call; or a ModelLoadError that names the rank whose call has raised one.
    """
    found: list[T] = []
    failure: Exception | None = None
    for turn in range(group.size):
        if turn == group.rank:
            try:
                found.append(load())
            except (ModelLoadError, ConfigError) as error:
                failure = error
        if not group.smallest(int(failure is None)):
            raise failure or ModelLoadError(model, f"rank {turn} of {group.size} could not load its part")
    return found[0]


def _gloo(store: Any, rank: int, size: int, timeout: timedelta) -> Any:
    options = dist.ProcessGroupGloo._Options()
    options._devices = [dist.ProcessGroupGloo.create_device(hostname="127.0.0.1", lazy_init=False)]
    options._threads = 1
    options._timeout = timeout
    return dist.ProcessGroupGloo(store, rank, size, options)


def _nccl(store: Any, rank: int, size: int, timeout: timedelta) -> Any:
    options = dist.ProcessGroupNCCL.Options()
    options._timeout = timeout
    return dist.ProcessGroupNCCL(store, rank, size, options)


def _nccl_type() -> Any:
    return getattr(dist, "ProcessGroupNCCL", ())


def _from_first() -> Any:
    options = dist.BroadcastOptions()  # of rank 0
    options.timeout = _PATIENCE
    return options
