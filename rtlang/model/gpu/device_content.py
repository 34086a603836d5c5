"""Copies the content of pages and states between a device and the host, beside the steps.

Pages, or states, are gathered on the device into one run of bytes and cross through pinned memory, several in a batch. Batches are launched
on a stream of their own, after all earlier launches, and only the thread that wants them waits: steps never do. So a read sees the
writes of earlier steps, and a write comes after the earlier steps that still use its page. As on the host, the engine ensures that no
later step writes a page that is being read (otherwise it discards the copy), or uses one that is being written.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rtlang.contract.config import RuntimeConfig
from rtlang.model.gpu.accelerator import Accelerator
from rtlang.model.layers.attention import PagedKV
from rtlang.model.layers.states import StateMemory

Item = tuple[int, NDArray[np.uint8]]
"""The number of a page or of a slot, and its content."""

_BATCH_BYTES = 8 << 20
"""Bytes of a batch, or one item if that is larger. Each direction has `_NUM_LANES` batches in memory of its own."""
_NUM_LANES = 2  # one crosses while the other is packed or unpacked
_ALIGNMENT = 16
_WORDS = (torch.int64, torch.int32, torch.int16, torch.uint8)  # gathers copy an element at a time: the widest that fits


class DeviceContent:
    """The items of tensors as bytes: of each tensor in turn, the lines of its parts. Any thread; one reads and one writes at a time.

    Args:
        tensors: contiguous, [num_parts, num_items, ...] each, on the device.

    Attributes:
        item_bytes: bytes of an item.
    """

    def __init__(self, tensors: Sequence[Tensor], accelerator: Accelerator) -> None:
        self._lines: tuple[Tensor, ...] | None = tuple(_in_words(tensor) for tensor in tensors)
        self._accelerator = accelerator
        self.item_bytes = sum(lines.shape[0] * lines.shape[2] * lines.itemsize for lines in self._lines)
        self._num_per_batch = max(1, _BATCH_BYTES // max(1, self.item_bytes))
        self._readers: list[_Lane] = []
        self._writers: list[_Lane] = []
        self._reading, self._writing = threading.Lock(), threading.Lock()
        self._launching = threading.Lock()  # held while a write is launched
        self._num_abandoned = 0

    def reserve(self) -> None:
        """Allocate the memory of batches now; else the first copies do."""
        if self.item_bytes and not self._writers:
            num_bytes = self._num_per_batch * self.item_bytes + _ALIGNMENT * len(self._lines or ())
            lanes = [_Lane(self._accelerator, self._num_per_batch, num_bytes) for _ in range(2 * _NUM_LANES)]
            self._readers, self._writers = lanes[:_NUM_LANES], lanes[_NUM_LANES:]

    def close(self) -> None:
        """Release the device's memory. Later copies are refused."""
        self._lines = None
        self.abandon_writes()
        self._readers, self._writers = [], []

    def read(self, numbers: Sequence[int]) -> NDArray[np.uint8]:
        """The content of items: uint8 [len(numbers), item_bytes].

        Raises:
            RuntimeError: the memory is closed, or the device failed.
        """
        found = np.empty((len(numbers), self.item_bytes), dtype=np.uint8)
        under_way: deque[tuple[_Lane, NDArray[np.uint8]]] = deque()
        with self._reading, torch.inference_mode():
            self.reserve()
            for start in range(0, len(numbers) if self.item_bytes else 0, self._num_per_batch):
                lane = self._readers[start // self._num_per_batch % _NUM_LANES]
                if len(under_way) == _NUM_LANES:
                    self._unpack(*under_way.popleft())
                lane.wait()
                lane.note(numbers[start : start + self._num_per_batch])
                lane.wait = self._accelerator.beside(self._gathering(lane))
                under_way.append((lane, found[start : start + self._num_per_batch]))
            while under_way:
                self._unpack(*under_way.popleft())
        return found

    def write(self, items: Iterable[Item]) -> None:
        """Write the content of items, which are taken from the iterable as needed. Returns when all are written.

        Raises:
            RuntimeError: the memory is closed, or the device failed.
        """
        num_abandoned = self._num_abandoned
        with self._writing, torch.inference_mode():
            self.reserve()
            batch: list[Item] = []
            for item in items:
                batch.append(item)
                if len(batch) == self._num_per_batch:
                    self._write(batch, num_abandoned)
                    batch = []
            if batch:
                self._write(batch, num_abandoned)
            for lane in self._writers:
                lane.wait()

    def abandon_writes(self) -> None:
        """Drop the rest of writes that have begun."""
        with self._launching:
            self._num_abandoned += 1
        for lane in self._writers:
            with suppress(RuntimeError):  # a copy that failed changes nothing either
                lane.wait()

    def _write(self, batch: Sequence[Item], num_abandoned: int) -> None:
        if not self.item_bytes:
            return
        self._writers.append(self._writers.pop(0))
        lane = self._writers[-1]
        lane.wait()
        lane.note([number for number, _ in batch])
        start = 0
        for part in self._parts(lane.here, lane.num_items):
            place = part.view(torch.uint8).numpy()  # [num_parts, num_items, bytes]
            size = place.shape[0] * place.shape[2]
            for index, (_, content) in enumerate(batch):
                np.copyto(place[:, index], content[start : start + size].reshape(place.shape[0], place.shape[2]))
            start += size
        work = self._scattering(lane)
        with self._launching:
            if self._num_abandoned == num_abandoned:
                lane.wait = self._accelerator.beside(work)

    def _unpack(self, lane: _Lane, found: NDArray[np.uint8]) -> None:
        """Wait for a batch, and copy it into `found`, uint8 [num_items, item_bytes]."""
        lane.wait()
        start = 0
        for part in self._parts(lane.here, lane.num_items):
            place = part.view(torch.uint8).numpy()
            size = place.shape[0] * place.shape[2]
            shape = lane.num_items, place.shape[0], place.shape[2]
            np.copyto(found[:, start : start + size].reshape(shape), place.swapaxes(0, 1))
            start += size

    def _gathering(self, lane: _Lane) -> Callable[[], None]:
        count = lane.num_items
        lines, parts, end = self._open(), self._parts(lane.there, count), self._places(count)[-1][1]

        def work() -> None:
            lane.ids_there[:count].copy_(lane.ids_here[:count], non_blocking=True)
            for each, part in zip(lines, parts, strict=True):
                torch.index_select(each, 1, lane.ids_there[:count], out=part)
            lane.here[:end].copy_(lane.there[:end], non_blocking=True)

        return work

    def _scattering(self, lane: _Lane) -> Callable[[], None]:
        count = lane.num_items
        lines, parts, end = self._open(), self._parts(lane.there, count), self._places(count)[-1][1]

        def work() -> None:
            lane.ids_there[:count].copy_(lane.ids_here[:count], non_blocking=True)
            lane.there[:end].copy_(lane.here[:end], non_blocking=True)
            for each, part in zip(lines, parts, strict=True):
                each.index_copy_(1, lane.ids_there[:count], part)

        return work

    def _parts(self, memory: Tensor, num_items: int) -> list[Tensor]:
        """The parts of a batch in the memory of a lane: [num_parts, num_items, words] for each tensor."""
        return [
            memory[start:end].view(lines.dtype).view(lines.shape[0], num_items, lines.shape[2])
            for lines, (start, end) in zip(self._open(), self._places(num_items), strict=True)
        ]

    def _places(self, num_items: int) -> list[tuple[int, int]]:
        """Where the part of each tensor begins and ends in a batch, in bytes."""
        found, start = list[tuple[int, int]](), 0
        for lines in self._open():
            end = start + lines.shape[0] * num_items * lines.shape[2] * lines.itemsize
            found.append((start, end))
            start = -(-end // _ALIGNMENT) * _ALIGNMENT
        return found

    def _open(self) -> tuple[Tensor, ...]:
        if self._lines is None:
            raise RuntimeError("the runner of this memory is closed")
        return self._lines


class _Lane:
    """A batch between device and host: its bytes and the numbers of its items on either side. `wait` waits until it has crossed."""

    def __init__(self, accelerator: Accelerator, num_items: int, num_bytes: int) -> None:
        self.here, self.there = accelerator.host_buffer(num_bytes), _bytes(num_bytes, accelerator.device)
        ids_here, ids_there = accelerator.host_buffer(8 * num_items), _bytes(8 * num_items, accelerator.device)
        self.ids_here, self.ids_there = ids_here.view(torch.int64), ids_there.view(torch.int64)
        self.num_items = 0
        self.wait: Callable[[], None] = _nothing

    def note(self, numbers: Sequence[int]) -> None:
        """Take the numbers of the items of the next batch."""
        self.num_items = len(numbers)
        self.ids_here[: len(numbers)] = torch.tensor(numbers, dtype=torch.int64)


class DevicePages:
    """See `PageMemory`: the pages of a device.

    Args:
        kv: the pages; the last one is the runner's.
    """

    def __init__(self, kv: PagedKV, accelerator: Accelerator) -> None:
        self._content = DeviceContent(kv.tensors, accelerator)
        # other devices compute other bits, which must not mix in one text
        self.page_format = f"{kv.page_format}, {accelerator.name}"

    @property
    def page_bytes(self) -> int:
        """Bytes of one page in all layers."""
        return self._content.item_bytes

    @property
    def gives_back(self) -> bool:
        """See `PageMemory`."""
        return False

    def release(self, runs: Sequence[tuple[int, int]]) -> None:
        """See `PageMemory`; does nothing."""

    def read_pages(self, page_ids: Sequence[int]) -> NDArray[np.uint8]:
        """See `PageMemory`."""
        return self._content.read(page_ids)

    def write_pages(self, pages: Iterable[Item]) -> None:
        """See `PageMemory`."""
        self._content.write(pages)

    def abandon_writes(self) -> None:
        """See `PageMemory`."""
        self._content.abandon_writes()

    def reserve(self) -> None:
        """See `DeviceContent`."""
        self._content.reserve()

    def close(self) -> None:
        """See `DeviceContent`."""
        self._content.close()


class DeviceStates:
    """See `StateContent`: the states of a device."""

    def __init__(self, memory: StateMemory, accelerator: Accelerator) -> None:
        self._content = DeviceContent(memory.tensors, accelerator)
        self.state_format = f"{memory.state_format}, {accelerator.name}"

    @property
    def state_bytes(self) -> int:
        """Bytes of one state in all layers."""
        return self._content.item_bytes

    def release_states(self, slots: Sequence[int]) -> None:
        """See `StateContent`; does nothing."""

    def read_states(self, slots: Sequence[int]) -> NDArray[np.uint8]:
        """See `StateContent`."""
        return self._content.read(slots)

    def write_states(self, states: Iterable[Item]) -> None:
        """See `StateContent`."""
        self._content.write(states)

    def abandon_writes(self) -> None:
        """See `StateContent`."""
        self._content.abandon_writes()

    def reserve(self) -> None:
        """See `DeviceContent`."""
        self._content.reserve()

    def close(self) -> None:
        """See `DeviceContent`."""
        self._content.close()


def contents_of(
    kv: PagedKV, memory: StateMemory | None, accelerator: Accelerator, config: RuntimeConfig
) -> tuple[DevicePages, DeviceStates | None]:
    """The pages and the states of a device, with memory for copies if the settings name a tier."""
    pages, states = DevicePages(kv, accelerator), None if memory is None else DeviceStates(memory, accelerator)
    if config.has_tiers:
        pages.reserve()
        if states is not None:
            states.reserve()
    return pages, states


def _in_words(tensor: Tensor) -> Tensor:
    """A view [num_parts, num_items, words] of a contiguous tensor, in the widest words that divide a line."""
    lines = tensor.view(tensor.shape[0], tensor.shape[1], -1).view(torch.uint8)
    return lines.view(next(word for word in _WORDS if lines.shape[2] % word.itemsize == 0))


def _bytes(num_bytes: int, device: torch.device) -> Tensor:
    return torch.empty(num_bytes, dtype=torch.uint8, device=device)


def _nothing() -> None:
    pass
