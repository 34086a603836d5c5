"""A server of two keys, its canaries and its attacker, each in processes of their own, and the memory of the server as it changes."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rtlang.bench.server_process import ServerProcess
from rtlang.contract.runs.principal import PrincipalLimits
from rtlang_bench.worst_cases import attacker, canaries
from rtlang_bench.worst_cases.judge import Baseline, CaseRecord, Measurement, MemorySample, baseline_of

LIMIT_BYTES = 64 << 20
"""Bytes of prompts, and of values, that the attacker may hold."""

MAX_SERVER_BYTES = 8 << 30
"""A server with more is ended."""

_ENGINE = b"rtlang.fleet.host.worker"
_SAMPLE_S = 0.05
_TELL_EVERY = 100
_SETTLE_S = 3.0
_CALIBRATE_S = 5.0
_OPTIONS = (
    "--grammar-cache-bytes",
    str(16 << 20),
    "--num-pages",
    "1024",
    "--drain-timeout-s",
    "1",
    "--max-sockets-per-address",
    "4096",
)
_WATCH_MS = 30
_HELD = re.compile(r"the (event loop|engine thread) was held for ([0-9.]+) ms by (.*?); at (.*)")
_BYTE_LIMITS = ("max_prompt_bytes", "max_value_bytes")


@dataclass(slots=True)
class Observed:
    """All that was seen so far.

    Attributes:
        records: cases that have begun, by number.
        restarts: engine processes that ended, those of ended servers included.
    """

    records: dict[int, CaseRecord] = field(default_factory=dict)
    measurements: list[Measurement] = field(default_factory=list)
    samples: list[MemorySample] = field(default_factory=list)
    restarts: int = 0


def limit_bytes() -> int:
    """Bytes that the limits of the attacker allow in all."""
    return LIMIT_BYTES * len(_limits())


def attacker_limits() -> PrincipalLimits:
    """The limits of the attacker."""
    return PrincipalLimits(**_limits())


def _limits() -> dict[str, int]:
    known = {each.name for each in fields(PrincipalLimits)}
    return {name: LIMIT_BYTES for name in _BYTE_LIMITS if name in known}


def keys_file(path: Path) -> tuple[str, str]:
    """Write a file of two keys; the keys of the attacker and the bystander."""
    found = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
    limits = ", ".join(f"{name} = {value}" for name, value in _limits().items())
    lines = []
    for name, key in zip(("attacker", "bystander"), found, strict=True):
        lines.append(f'[[keys]]\nname = "{name}"\nsha256 = "{hashlib.sha256(key.encode()).hexdigest()}"\n')
        lines.append(f"limits = {{ {limits} }}\n" if name == "attacker" else "")
    path.write_text("".join(lines))
    return found


class Session:
    """A server with canaries that were calibrated. Use `session`.

    Attributes:
        baseline: what they measured without attacks.
        was_ended: why the server was ended before its time, or nothing.
    """

    def __init__(self, server: ServerProcess, keys: tuple[str, str], observed: Observed, calibrates_s: float) -> None:
        self.server, self._observed, self._calibrates_s = server, observed, calibrates_s
        self._attacker_key, self._bystander_key = keys
        self.baseline = Baseline({}, 0)
        self.was_ended = ""
        self._has_begun = False
        self._stop = threading.Event()
        self._early: list[Measurement] = []
        self._engines = self.engine_pids()

    def engine_pids(self) -> set[int]:
        """Process ids of the engines."""
        found = set()
        for pid in self.server.processes()[1:]:
            with contextlib.suppress(OSError):
                if _ENGINE in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.add(pid)
        return found

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the canaries and the watch over memory."""
        watch = threading.Thread(target=self._watch, daemon=True)
        watch.start()
        with self._process(canaries, canaries.KEY_VARIABLE, self._bystander_key, self.server.url) as process:
            reader = threading.Thread(target=self._read_canaries, args=(process,), daemon=True)
            reader.start()
            try:
                time.sleep(min(_SETTLE_S, self._calibrates_s))
                self._early.clear()
                time.sleep(self._calibrates_s)
                memory = self._observed.samples[-1].total if self._observed.samples else 0
                self.baseline = baseline_of(self._early, memory)
                self._observed.samples.clear() if not self._observed.records else None
                self._has_begun = True
                yield
                time.sleep(1.0)
            finally:
                self._stop.set()
                assert process.stdin is not None
                process.stdin.close()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(130.0 if not self.was_ended else 5.0)
                reader.join(5.0)
                watch.join()

    @contextmanager
    def _process(self, module: Any, variable: str, key: str, *args: str) -> Iterator[subprocess.Popen[str]]:
        path = os.pathsep.join(each for each in sys.path if each)
        environment = {**os.environ, "PYTHONPATH": path, variable: key}
        command = [sys.executable, "-m", module.__name__, *args]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def _read_canaries(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            found = Measurement(**json.loads(line))
            (self._observed.measurements if self._has_begun else self._early).append(found)

    def attack(
        self, seed: int, width: int, numbers: Sequence[int], tell: Callable[[str], None], until: float = math.inf
    ) -> None:
        """Send cases, `width` at a time; returns when they have ended, or when the server was ended. None begins after `until`."""
        args = (self.server.url, str(seed), str(width), str(until), *map(str, numbers))
        with self._process(attacker, attacker.KEY_VARIABLE, self._attacker_key, *args) as process:
            assert process.stdout is not None
            for line in process.stdout:
                self._take(json.loads(line))
                if len(self._observed.records) % _TELL_EVERY == 0:
                    tell(f"{len(self._observed.records)} cases have begun")
                if self.was_ended:
                    break
                if not self.server.is_running:
                    self.was_ended = "the server ended"
                    break
        now = time.monotonic()
        for record in self._observed.records.values():
            if record.ended > now:
                record.ended = now
                record.wrong = (self.was_ended or "the attacker ended",)

    def _take(self, fields: dict[str, Any]) -> None:
        number = fields["case"]
        if "begun" in fields:
            self._observed.records[number] = CaseRecord(number, fields["name"], fields["begun"])
        else:
            record = self._observed.records[number]
            record.ended, record.ends, record.wrong = fields["ended"], tuple(fields["ends"]), tuple(fields["wrong"])

    def _watch(self) -> None:
        page = os.sysconf("SC_PAGE_SIZE")
        last_look, num_lines = 0.0, 0
        pids: list[int] = []
        while not self._stop.wait(_SAMPLE_S):
            now = time.monotonic()
            if now - last_look > 0.5:
                last_look, pids = now, self.server.processes()
                engines = self.engine_pids()
                if engines:
                    self._observed.restarts += len(self._engines - engines)
                    self._engines = engines
                pids = [pids[0], *engines] if pids else []  # without processes that compile code once on a machine
            lines = self.server.lines
            self._note_holds(lines[num_lines:], now)
            num_lines = len(lines)
            sizes = []
            for pid in pids:
                try:
                    sizes.append(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * page)
                except (OSError, IndexError):
                    sizes.append(0)
            if not sizes:
                continue
            self._observed.samples.append(MemorySample(now, sizes[0], sum(sizes[1:])))
            if sum(sizes) > MAX_SERVER_BYTES:
                self.was_ended = f"the server had {sum(sizes) >> 20} MiB and was ended"
                for pid in reversed(pids):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                return

    def _note_holds(self, lines: Sequence[str], now: float) -> None:
        if not self._has_begun:
            return
        for line in lines:
            if found := _HELD.search(line):
                place = f"{found[1]}: {found[3]} at {found[4][:300]}"
                held = Measurement("held", now - float(found[2]) / 1e3, now, place=place)
                self._observed.measurements.append(held)


@contextmanager
def session(model: str, observed: Observed, calibrates_s: float = _CALIBRATE_S) -> Iterator[Session]:
    """A server with canaries; ready for attacks."""
    with ExitStack() as stack:
        path = Path(stack.enter_context(TemporaryDirectory()), "keys.toml")
        keys = keys_file(path)
        options = ("--model", model, "--keys-file", str(path), *_OPTIONS)
        watching = {"RTLANG_WATCH_MS": str(_WATCH_MS)}
        server = stack.enter_context(ServerProcess(*options, environment=watching))
        found = Session(server, keys, observed, calibrates_s)
        stack.enter_context(found.running())
        yield found
