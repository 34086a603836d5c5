"""Writes log lines to standard error without ever waiting for whoever reads them.

A pipe that nobody reads fills up after 64 KiB, and a write to it stops its thread: the event loop of a server, or an engine. So a line that
would not fit is left to a thread, at most `MAX_WAITING_BYTES` of them; lines beyond that are lost, and the next one that is written tells
their number. Other lines are written where they are logged, so that the last one before a crash is not lost.
"""

from __future__ import annotations

import array
import fcntl
import logging
import os
import select
import stat
import sys
import termios
import threading
from collections import deque
from typing import TextIO

MAX_WAITING_BYTES = 4 << 20
"""Bytes of lines that wait for their reader."""
FLUSH_S = 1.0
"""Seconds for which the end of a process waits for its lines to be read."""
_PIPE_BYTES = 1024  # of a line that is written to a pipe with room for some processes to write at once
_SHARE = 8  # of an empty pipe, likewise


class LogWriter(logging.Handler):
    """Writes formatted records, one line each, to a stream.

    Args:
        stream: by default standard error; it must have a file descriptor, or it is written to as it is.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        super().__init__()
        self._stream = sys.stderr if stream is None else stream
        self._changed = threading.Condition(threading.Lock())
        self._waiting: deque[str] = deque()
        self._num_bytes = self._num_lost = 0
        self._is_writing = False  # the thread holds a line
        self._thread: threading.Thread | None = None
        self._descriptor = _descriptor(self._stream)
        self._may_block = self._descriptor is not None and not _is_file(self._descriptor)
        self._pipe_size = 0 if self._descriptor is None else _pipe_size(self._descriptor)

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, or leave it to the thread."""
        try:
            line = self.format(record) + "\n"
            with self._changed:
                if not self._is_busy and self._has_room(line):
                    self._write(line)
                else:
                    self._put(line)
        except Exception:
            self.handleError(record)

    def flush(self) -> None:
        """Wait until everything is written, for at most FLUSH_S."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_busy, FLUSH_S)

    @property
    def _is_busy(self) -> bool:
        return self._is_writing or bool(self._waiting)

    def _has_room(self, line: str) -> bool:
        """Whether writing a line cannot wait."""
        if not self._may_block:
            return True
        assert self._descriptor is not None
        poll = select.poll()
        poll.register(self._descriptor, select.POLLOUT)
        num_bytes = len(line.encode("utf-8", "replace"))
        return bool(poll.poll(0)) and (
            num_bytes <= _PIPE_BYTES or (num_bytes <= self._pipe_size // _SHARE and _is_empty(self._descriptor))
        )

    def _put(self, line: str) -> None:
        if self._num_bytes + len(line) > MAX_WAITING_BYTES:
            self._num_lost += 1
            return
        self._waiting.append(line)
        self._num_bytes += len(line)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="rtlang-log", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting:
                    self._changed.wait()
                line = self._waiting.popleft()
                self._num_bytes -= len(line)
                self._is_writing = True
                num_lost, self._num_lost = self._num_lost, 0
            if num_lost:
                line += self._lost(num_lost)
            try:
                self._write(line)
            except (OSError, ValueError):
                pass  # the reader has left, or the stream was closed
            finally:
                with self._changed:
                    self._is_writing = False
                    self._changed.notify_all()

    def _lost(self, num_lost: int) -> str:
        message = "%d log lines were lost, because nobody read them in time"
        return self.format(logging.LogRecord(__name__, logging.WARNING, __file__, 0, message, (num_lost,), None)) + "\n"

    def _write(self, line: str) -> None:
        self._stream.write(line)
        self._stream.flush()


def _descriptor(stream: TextIO) -> int | None:
    try:
        return stream.fileno()
    except (OSError, ValueError, AttributeError):
        return None


def _is_file(descriptor: int) -> bool:
    """Whether writes do not wait for a reader; taken for true where the system cannot be asked about that."""
    return not hasattr(select, "poll") or stat.S_ISREG(os.fstat(descriptor).st_mode)


def _pipe_size(descriptor: int) -> int:
    """The bytes that a pipe holds; 0 for anything else, and where the system does not tell."""
    is_pipe = stat.S_ISFIFO(os.fstat(descriptor).st_mode)
    return fcntl.fcntl(descriptor, fcntl.F_GETPIPE_SZ) if is_pipe and hasattr(fcntl, "F_GETPIPE_SZ") else 0


def _is_empty(pipe: int) -> bool:
    """Whether everything in a pipe was read."""
    num_unread = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, num_unread)
    return num_unread[0] == 0
