"""A long run of clients that connect, stream, cancel and vanish, against one server with a model.

    python -m tests.support.servers.soak --minutes 60 [--clients 8] [--seed 1]

Each client does random things; one request whose text is known is repeated all the time. Every minute a line says what was done. The exit
code is 1 if a text differs, pages are lost, memory grows by more than 64 MiB after the first tenth, or a client waits 60 s.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections import Counter
from random import Random

import rtlang
from rtlang.contract.params import Constraint, ConstraintKind
from rtlang_bench.serve.streams import Recorder, generation
from tests.support.servers.fuzz import Fuzzer, frame, lost_pages, resident_bytes, served
from tests.support.servers.serving import RawSocket

WAIT_S = 60.0
PATTERNS = ("[a-z]{1,8}", "(yes|no)", "[0-9]{2}-[0-9]{2}", '"[a-z ]{0,12}"')


class Client(threading.Thread):
    """One client until `stop` is set; `done` counts what it did, `hangs` the waits that took too long."""

    def __init__(self, url: str, seed: int, stop: threading.Event) -> None:
        super().__init__(name=f"soak-{seed}", daemon=True)
        self._url, self._rng, self._stop_event = url, Random(seed), stop
        self.done: Counter[str] = Counter()
        self.hangs = 0

    def run(self) -> None:
        while not self._stop_event.is_set():
            action = self._rng.choice((self._finish, self._cancel, self._vanish, self._detach, self._fuzz))
            action()
            self.done[action.__name__.strip("_")] += 1

    def _graph(self, max_tokens: int) -> rtlang.RequestGraph:
        rng = self._rng
        held = Constraint(ConstraintKind.REGEX, rng.choice(PATTERNS)) if rng.random() < 0.4 else None
        return generation(f"Story {rng.randrange(40)}: ", constraint=held, max_tokens=max_tokens, temperature=1.0)

    def _finish(self) -> None:
        with rtlang.connect(self._url) as remote:
            for each in [Recorder().submit(remote, self._graph(20)) for _ in range(self._rng.randint(1, 6))]:
                self.hangs += not each.wait(WAIT_S)

    def _cancel(self) -> None:
        with rtlang.connect(self._url) as remote:
            recorder = Recorder().submit(remote, self._graph(400))
            recorder.wait(self._rng.random() * 0.2)
            recorder.cancel()
            self.hangs += not recorder.wait(WAIT_S)

    def _vanish(self) -> None:
        with RawSocket(self._url) as peer:
            peer.socket.sendall(b"GET /v1/stream HTTP/1.1\r\nHost: localhost\r\n"[: self._rng.randint(1, 44)])

    def _detach(self) -> None:
        with rtlang.connect(self._url, resume_s=5.0) as remote:
            Recorder().submit(remote, self._graph(100)).wait(0.05)

    def _fuzz(self) -> None:
        Fuzzer(self._url, self._rng.randrange(1 << 30)).round(frame, 40)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.servers.soak")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    return soak(options.minutes * 60.0, options.clients, options.seed)


def soak(seconds: float, num_clients: int, seed: int) -> int:
    """Run clients for so long; the exit code."""
    stop = threading.Event()
    with served(with_model=True) as (url, target):
        known = Fuzzer(url, seed)
        clients = [Client(url, seed * 1000 + number, stop) for number in range(num_clients)]
        for each in clients:
            each.start()
        started, settled, told = time.monotonic(), 0, 0.0
        while (elapsed := time.monotonic() - started) < seconds:
            known.check()
            stop.wait(0.1)
            if not settled and elapsed > seconds / 10:
                settled = resident_bytes()
            if elapsed - told >= 60.0:
                told = elapsed
                tell(elapsed, clients)
        stop.set()
        for each in clients:
            each.join(2 * WAIT_S)
        tell(seconds, clients)
        lost, hangs = lost_pages(target), sum(each.hangs + each.is_alive() for each in clients)
        grown = (resident_bytes() - (settled or resident_bytes())) >> 20
        sys.stdout.write(f"{lost} pages lost, {hangs} hangs, grown {grown} MiB\n")
        return int(bool(lost or hangs or grown > 64))


def tell(elapsed: float, clients: list[Client]) -> None:
    done = sum((each.done for each in clients), Counter[str]())
    sys.stdout.write(f"{elapsed:.0f} s: {dict(done)}, {resident_bytes() >> 20} MiB\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
