"""Memory that an engine's process writes and this process reads, also after the engine's death: its current work, and its stacks.

The process writes its stacks there when a signal such as SIGSEGV ends it, or when it gets SIGUSR1; both work while a thread holds the
interpreter's lock, since the handler (`faulthandler`) takes none.
"""

from __future__ import annotations

import mmap
import os
import re
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from rtlang.contract.process.current_work import NUM_WORDS, WorkSample, read_sample
from rtlang.contract.process.thread_watch import stack_in

_MAX_STACK_BYTES = 1 << 18
_LEAST_S = 0.5
_IDLE_SHARE = 0.05
"""Share of a processor: waiting for the interpreter's lock takes less than 0.01."""
_CRASHED = re.compile(r"^Fatal Python error: .*\n\nCurrent thread 0x([0-9a-f]+) ", re.MULTILINE)


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
        """The stack of the engine thread that was written last, the innermost function first; empty if there is none."""
        start = max(0, self.num_stack_bytes - _MAX_STACK_BYTES)
        text = os.pread(self.stack_fd, _MAX_STACK_BYTES, start).decode("ascii", "replace")
        return stack_in(text, self.sample().thread)

    @property
    def crashed_thread(self) -> int | None:
        """The thread of the error that ended the process; None if it wrote no stack at its end, as for one that was killed."""
        start = max(0, self.num_stack_bytes - _MAX_STACK_BYTES)
        text = os.pread(self.stack_fd, _MAX_STACK_BYTES, start).decode("ascii", "replace")
        found = _CRASHED.findall(text)
        return int(found[-1], 16) if found else None

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
    """Counts readings of a record, about one a second, that find the same work.

    Attributes:
        num_same: readings before the last one that found the engine thread in the same work for one graph.
        num_frozen: readings before the last one that found all threads in the same work, some beside the engine's, while no answer came:
            one of them may hold the interpreter's lock.
        num_idle: of `num_same`, those since which the engine's thread hardly computed and no answer came.
    """

    num_same: int = 0
    num_frozen: int = 0
    num_idle: int = 0
    _last: WorkSample | None = None

    @property
    def is_held_up(self) -> bool:
        """Whether the engine's thread rather waited than worked: another one holds the interpreter's lock, for no graph that is known."""
        return 2 * self.num_idle > self.num_same

    def note(self, sample: WorkSample, *, has_answered: bool = False, is_idle: bool = False) -> None:
        """Note a reading, and whether the process has answered and its thread was idle since the one before."""
        last, self._last = self._last, sample
        is_same = last is not None and sample.piece is not None and sample.piece == last.piece
        is_frozen = not has_answered and bool(sample.beside) and sample == last
        self.num_same = self.num_same + 1 if is_same else 0
        self.num_idle = self.num_idle + (is_idle and not has_answered) if is_same else 0
        self.num_frozen = self.num_frozen + 1 if is_frozen else 0


class ThreadClock:
    """Tells whether a thread of another process computes, from its processor time (Linux; elsewhere nothing is known)."""

    def __init__(self) -> None:
        self._last: tuple[float, int, int] | None = None  # wall time, thread, processor time in ticks

    def is_idle(self, process: int | None, thread: int) -> bool:
        """Whether the thread hardly computed since the last call, at least _LEAST_S ago; False if that is not known."""
        ticks = None if process is None or not thread else _thread_ticks(process, thread)
        if ticks is None:
            self._last = None
            return False
        now, last = time.monotonic(), self._last
        if last is not None and last[1] == thread and now - last[0] < _LEAST_S:
            return False
        self._last = now, thread, ticks
        if last is None or last[1] != thread:
            return False
        return (ticks - last[2]) / os.sysconf("SC_CLK_TCK") < _IDLE_SHARE * (now - last[0])


def _thread_ticks(process: int, thread: int) -> int | None:
    try:
        _, _, fields = Path(f"/proc/{process}/task/{thread}/stat").read_text().rpartition(")")
        user, system = fields.split()[11:13]
    except (OSError, ValueError):
        return None
    return int(user) + int(system)


def _memory(name: str) -> int:
    """A file descriptor of memory; of a file without a name where the system has no such memory."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create(name)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
