"""Figures of a server whose event loop or engine thread one client tries to hold: the longest gap in the stream of another one.

The attacker is a process of its own, so that its work does not show in the gaps of the canary.
"""

from __future__ import annotations

import math
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator

import rtlang
from rtlang.bench.server_process import ServerProcess
from rtlang.client.remote_runtime import RemoteRuntime
from rtlang.contract.params import Constraint, ConstraintKind
from rtlang_bench.figure import Figure
from rtlang_bench.serve.streams import Canary, Recorder, generation
from rtlang_bench.serve.thread_attacks import ATTACKS

CANARY_LIMIT_MS, CONSTRAINT_LIMIT_S = 250.0, 1.0
_LIMIT_S = 120.0


def thread_figures(server: ServerProcess, names: Iterable[str] = tuple(ATTACKS)) -> Iterator[Figure]:
    """For each attack the canary's gap; beside slow constraints also the time of another client's small constraint."""
    with rtlang.connect(server.url) as remote, rtlang.connect(server.url) as other, Canary(remote) as canary:
        quiet = _gap_without_attack(canary)
        for name in names:
            command = [sys.executable, "-m", "rtlang_bench.serve.thread_attacks", server.url, name]
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
                assert process.stdout is not None
                process.stdout.readline()
                started = time.perf_counter()
                slowest = _slowest_constraint(other, process) if name == "slow_constraints" else None
                outcome = process.stdout.readline().strip()
                ended = time.perf_counter()
                process.kill()
            note = (
                f"{ATTACKS[name].__doc__} {outcome[:120]}; {ended - started:.1f} s; {quiet * 1e3:.0f} ms without attack"
            )
            yield Figure(f"held_by_{name}", canary.longest_gap(started, ended) * 1e3, "<=", CANARY_LIMIT_MS, "ms", note)
            if slowest is not None:
                yield Figure("constraint_beside_slow_ones", slowest, "<=", CONSTRAINT_LIMIT_S, "s")


def _gap_without_attack(canary: Canary, seconds: float = 1.0) -> float:
    started = time.perf_counter()
    time.sleep(seconds)
    return canary.longest_gap(started, time.perf_counter())


def _slowest_constraint(remote: RemoteRuntime, process: subprocess.Popen[str]) -> float:
    """The longest time of a small constraint of another client while the attack runs."""
    slowest, until = 0.0, time.perf_counter() + 8.0
    number = 0
    while process.poll() is None and time.perf_counter() < until:
        number += 1
        source = f"(yes|no), [a-z]{{1,3}}|n{number}"
        probe = Recorder().submit(
            remote, generation("Answer: ", constraint=Constraint(ConstraintKind.REGEX, source), max_tokens=8)
        )
        if not probe.wait(_LIMIT_S) or probe.error is not None:
            return math.nan
        slowest = max(slowest, (probe.ended or math.inf) - probe.started)
    return slowest
