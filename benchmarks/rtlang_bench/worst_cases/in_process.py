"""The graphs among the cases against a runtime in this process, beside a program, a schema and a tokenization on other threads.

All share one interpreter, so a call that keeps its lock for long holds up everybody: that is what is measured here.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

import rtlang
from rtlang.contract.errors import RtlangError
from rtlang.contract.events import CallRequested, Event, GraphFailed, GraphFinished, NodeFailed
from rtlang.contract.params import Constraint, ConstraintKind
from rtlang.contract.request_graph import RequestGraph
from rtlang.contract.runs.run_options import RunOptions
from rtlang.contract.service.text_service import text_service_of
from rtlang_bench.serve.streams import Recorder, generation
from rtlang_bench.worst_cases.cases import make_case
from rtlang_bench.worst_cases.judge import Baseline, CaseRecord, Measurement, MemorySample, baseline_of
from rtlang_bench.worst_cases.requests import DEADLINE_MS, Case, Frames, HttpRequest
from rtlang_bench.worst_cases.session import MAX_SERVER_BYTES, Observed, attacker_limits

_LIMIT_S = 60.0
_LEAST_GAP_S = 0.02
_PAUSE_S = 0.1
_CALIBRATE_S = 4.0
_TEXT = "The red fox sleeps under the old tree by the river. " * 20
_BLAMES_RUNTIME = {"internal", "fault", "engine_dead", "connection", "model_load", "numerics", "request"}


def attack_in_process(
    model: str,
    seed: int,
    cases: Sequence[int],
    width: int,
    tell: Callable[[str], None],
    until: float = math.inf,
    calibrates_s: float = _CALIBRATE_S,
) -> tuple[Observed, Baseline]:
    """Run the graphs of the cases, `width` at a time; requests that are no graphs are left out, and no case begins after `until`."""
    observed = Observed()
    with rtlang.Runtime(model, grammar_cache_bytes=16 << 20, num_pages=1024) as runtime:
        watch = _Watch(runtime, observed)
        with watch:
            time.sleep(calibrates_s)
            baseline = baseline_of(observed.measurements, _resident_bytes())
            observed.measurements.clear()
            tell(str(baseline))
            chosen = takewhile(lambda number: time.monotonic() <= until, cases)
            lock = threading.Lock()
            threads = [
                threading.Thread(target=_work, args=(runtime, seed, chosen, lock, observed, tell)) for _ in range(width)
            ]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
    return observed, baseline


def _work(
    runtime: Any,
    seed: int,
    chosen: Iterator[int],
    lock: threading.Lock,
    observed: Observed,
    tell: Callable[[str], None],
) -> None:
    while True:
        with lock:
            number = next(chosen, None)
        if number is None:
            return
        if _resident_bytes() > MAX_SERVER_BYTES:
            raise RtlangError(f"this process has more than {MAX_SERVER_BYTES >> 30} GiB before case {number}")
        case = make_case(seed, number)
        graphs = list(_graphs(case))
        if not graphs:
            continue
        record = CaseRecord(number, f"{case.kind}:{case.name}", time.monotonic())
        with lock:
            observed.records[number] = record
            if len(observed.records) % 100 == 0:
                tell(f"{len(observed.records)} cases have begun")
        runs = [_GraphCase(runtime, *each) for each in graphs]
        ends = [each.wait() for each in runs]
        record.ended = time.monotonic()
        record.ends = tuple(sorted({text for text, _ in ends}))[:4]
        record.wrong = tuple(text for text, is_wrong in ends if is_wrong)[:2]


def _graphs(case: Case) -> Iterator[tuple[dict[str, Any], Any]]:
    """The bodies of graphs in a case, with the value that answers their calls."""
    for each in case.requests:
        if isinstance(each, HttpRequest) and each.path == "/v1/programs" and each.body:
            body = json.loads(each.body)
            if "graph" in body:
                yield body, json.loads(each.actions[0][1]).get("value") if each.actions else None
        elif isinstance(each, Frames):
            for message in each.messages:
                if isinstance(message, dict) and message.get("kind") == "program":
                    yield message["body"], each.reply


class _GraphCase:
    """One graph; calls are answered by a thread of their own."""

    def __init__(self, runtime: Any, body: dict[str, Any], reply: Any) -> None:
        self._reply, self._codes = reply, [""][:0]
        self._has_ended = threading.Event()
        self._called: list[int] = []
        self._run: Any = None
        options = RunOptions(
            inputs=body.get("inputs", {}),
            deadline_s=DEADLINE_MS / 1000,
            principal=rtlang.Principal("attacker", limits=attacker_limits()),
        )
        try:
            self._run = runtime.submit(RequestGraph.from_plain(body["graph"]), self._take, options)
        except RtlangError as error:
            self._codes.append(error.code)
            self._has_ended.set()

    def _take(self, event: Event) -> None:
        if isinstance(event, CallRequested):
            self._called.append(event.node_id)
        elif isinstance(event, (NodeFailed, GraphFailed)):
            self._codes.append(event.error.code)
        if isinstance(event, (GraphFinished, GraphFailed)):
            self._has_ended.set()

    def wait(self) -> tuple[str, bool]:
        """Wait for the end; how it ended, and whether that is wrong."""
        until = time.monotonic() + _LIMIT_S
        while not self._has_ended.wait(0.005):
            while self._called:
                try:
                    self._run.resolve(self._called.pop(), self._reply)
                except RtlangError as error:
                    self._codes.append(error.code)
            if time.monotonic() > until:
                self._run.cancel()
                return f"no end for {_LIMIT_S:.0f} s", True
        blamed = [code for code in self._codes if code in _BLAMES_RUNTIME]
        if blamed:
            return f"error {blamed[0]}", True
        return (f"error {self._codes[0]}" if self._codes else "value"), False


class _Watch:
    """Canaries on threads of this process, and its memory."""

    def __init__(self, runtime: Any, observed: Observed) -> None:
        self._runtime, self._observed = runtime, observed
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=each, daemon=True)
            for each in (self._stream, self._schemas, self._tokens, self._tokenizations, self._memory, self._stalls)
        ]

    def __enter__(self) -> _Watch:
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        time.sleep(0.5)
        self._stop.set()
        for each in self._threads:
            each.join(_LIMIT_S)

    def _tell(self, kind: str, begun: float, error: object = None) -> None:
        shown = "" if error is None else str(error)[:200]
        self._observed.measurements.append(Measurement(kind, begun, time.monotonic(), shown))

    def _stream(self) -> None:
        principal = rtlang.Principal("bystander")
        last = time.monotonic()

        class Ear(Recorder):
            def __call__(ear, event: Event) -> None:
                nonlocal last
                if type(event).__name__ == "TextDelta":
                    if time.monotonic() - last > _LEAST_GAP_S:
                        self._tell("stream", last)
                    last = time.monotonic()
                Recorder.__call__(ear, event)

        for number in itertools.count():
            ear = Ear().submit(
                self._runtime, generation(f"Canary {number}: ", max_tokens=400, ignore_eos=True), principal=principal
            )
            while not ear.wait(0.05):
                if self._stop.is_set():
                    ear.cancel()
                    ear.wait(10.0)
                    return
            if ear.error is not None:
                self._tell("stream", last, ear.error)
                self._stop.wait(0.2)
            if self._stop.is_set():
                return

    def _schemas(self) -> None:
        principal, start = rtlang.Principal("bystander"), time.monotonic_ns()
        for number in itertools.count():
            schema = {"type": "object", "properties": {f"a{start}_{number}": {"type": "string"}}, "required": []}
            held = Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(schema))
            begun = time.monotonic()
            probe = Recorder().submit(
                self._runtime, generation("Row: ", constraint=held, max_tokens=6), principal=principal
            )
            has_ended = probe.wait(_LIMIT_S)
            self._tell("schema", begun, probe.error if has_ended else "no end")
            if self._stop.wait(_PAUSE_S):
                return

    def _tokens(self) -> None:
        principal = rtlang.Principal("bystander")
        for number in itertools.count():
            begun = time.monotonic()
            probe = Recorder().submit(self._runtime, generation(f"{number}: ", max_tokens=8), principal=principal)
            has_ended = probe.wait(_LIMIT_S)
            self._tell("tokens", begun, probe.error if has_ended else "no end")
            if self._stop.wait(_PAUSE_S):
                return

    def _tokenizations(self) -> None:
        texts = text_service_of(self._runtime)
        assert texts is not None
        for number in itertools.count():
            begun = time.monotonic()
            texts.encode(f"{number} {_TEXT}")
            self._tell("tokenize", begun)
            if self._stop.wait(_PAUSE_S):
                return

    def _memory(self) -> None:
        while not self._stop.wait(0.05):
            self._observed.samples.append(MemorySample(time.monotonic(), 0, _resident_bytes()))

    def _stalls(self) -> None:
        while not self._stop.is_set():
            begun = time.monotonic()
            time.sleep(0.005)
            if time.monotonic() - begun > _LEAST_GAP_S + 0.005:
                self._tell("stall", begun + 0.005)


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
