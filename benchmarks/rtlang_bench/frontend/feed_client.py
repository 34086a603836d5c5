"""Readers of the stream of snapshots, from one process: the times between two snapshots of each.

python -m rtlang_bench.frontend.feed_client http://HOST:PORT 200 10
"""

from __future__ import annotations

import json
import subprocess
import sys
import time

from rtlang_bench.frontend.load_client import drive

_MARK = b"event: snapshot\n"


class FeedChannel:
    """One reader."""

    def __init__(self, host: str, gaps: list[float], until: float) -> None:
        self._host, self._gaps, self._until = host, gaps, until
        self._tail = b""
        self._last: float | None = None

    def begin(self) -> bytes:
        """See `Channel.begin`."""
        return f"GET /v1/engine/snapshot/stream HTTP/1.1\r\nHost: {self._host}\r\n\r\n".encode()

    def take(self, data: bytes) -> bytes | None:
        """See `Channel.take`."""
        now = time.perf_counter()
        if not data:
            raise ValueError(f"the server ended the feed: {self._tail.decode(errors='replace')}")
        received = self._tail + data
        if _MARK in received:
            if self._last is not None:
                self._gaps.append(now - self._last)
            self._last = now
            received = received[received.rindex(_MARK) + len(_MARK) :]
        self._tail = received[-len(_MARK) :]
        return b"" if now < self._until else None


def feed_gaps(url: str, num_readers: int, seconds: float) -> list[float]:
    """The times between two snapshots of all readers, in a process of its own."""
    command = [sys.executable, "-m", "rtlang_bench.frontend.feed_client", url, str(num_readers), str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 60, check=False)
    if done.returncode:
        raise ValueError(f"the client failed: {done.stderr[-1000:]}")
    found: list[float] = json.loads(done.stdout)
    return found


def main() -> None:
    """Arguments: the URL, the number of readers, and seconds."""
    url, num_readers, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    gaps: list[float] = []
    until = time.perf_counter() + seconds
    drive(url, [FeedChannel(url.partition("//")[2], gaps, until) for _ in range(num_readers)])
    sys.stdout.write(json.dumps(gaps))


if __name__ == "__main__":
    main()
