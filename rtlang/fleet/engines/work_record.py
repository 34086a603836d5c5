"""Memory that an engine's process writes and this process reads, also after the engine's death: its current work, and its stacks.

The process writes its stacks there when a signal such as SIGSEGV ends it, or when it gets SIGUSR1; both work while a thread holds the
interpreter's lock, since the handler (`faulthandler`) takes none.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from dataclasses import dataclass

from rtlang.contract.process.current_work import NUM_WORDS, WorkSample, read_sample
from rtlang.contract.process.thread_watch import stack_in

_MAX_STACK_BYTES = 1 << 18


class WorkRecord:
    """One engine's record. Closed by its owner.

    Attributes:
        work_fd, stack_fd: file descriptors that the engine's process inherits.
    """

    def __init__(self) -> None:
        self.work_fd, self.stack_fd = _memory("rtlang-work"), _memory("rtlang-stacks")
        os.ftruncate(self.work_fd, 8 * NUM_WORDS)
        self._memory = mmap.mmap(self.work_fd, 8 * NUM_WORDS)
        self._words = memoryview(self._memory).cast("Q")

    def sample(self) -> WorkSample:
        """The work now, or when the process ended."""
        return read_sample(self._words)

    @property
    def num_stack_bytes(self) -> int:
        """Size of all stacks that were written so far."""
        return os.fstat(self.stack_fd).st_size

    def stack(self) -> list[str]:
        """The stack of the engine's thread that was written last, the innermost function first; empty if there is none."""
        start = max(0, self.num_stack_bytes - _MAX_STACK_BYTES)
        text = os.pread(self.stack_fd, _MAX_STACK_BYTES, start).decode("ascii", "replace")
        return stack_in(text, self.sample().thread)

    def close(self) -> None:
        """Free the memory. Idempotent."""
        if self.work_fd < 0:
            return
        self._words.release()
        self._memory.close()
        os.close(self.work_fd)
        os.close(self.stack_fd)
        self.work_fd = self.stack_fd = -1


@dataclass(slots=True)
class StallWatch:
    """Counts readings of a record, about one a second, that find the engine's thread in the same work for one graph."""

    _last: tuple[int, int | None] | None = None
    num_same: int = 0

    def note(self, sample: WorkSample) -> int:
        """Returns the number of readings before this one that found the same work."""
        is_same = sample.piece is not None and sample.piece == self._last
        self._last = sample.piece
        self.num_same = self.num_same + 1 if is_same else 0
        return self.num_same


def _memory(name: str) -> int:
    """A file descriptor of memory; of a file without a name where the system has no such memory."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create(name)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
