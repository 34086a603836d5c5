"""Figures of a server under load and under attack. Clients and server are separate processes."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

import rtlang
from rtlang.bench.measure import percentile
from rtlang.bench.server_process import ServerProcess
from rtlang.client.remote_runtime import RemoteRuntime
from rtlang.contract.params import Constraint, ConstraintKind
from rtlang.contract.request_graph import RequestGraph
from rtlang_bench.figure import Figure, fairness
from rtlang_bench.frontend.load_client import Load, run_load
from rtlang_bench.serve import hostile
from rtlang_bench.serve.streams import Canary, Recorder, generation

BOMB_LIMIT_S, CANARY_LIMIT_MS, EIGHT_TOKENS_LIMIT_S = 10.0, 250.0, 0.5
FAIRNESS = 0.95
FLOODS = ("places", "constraints", "detached")
_MIB = 1 << 20
_PROMPT_TOKENS = 8


def reader_figure(server: ServerProcess, seconds: float) -> Figure:
    """The 99th percentile of the token gap of eight streams beside a client that never reads, relative to one that reads the same."""
    with rtlang.connect(server.url) as remote:
        with rtlang.connect(server.url) as reader:
            params = hostile.UNREAD_PARAMS
            others = [Recorder().submit(reader, generation(f"Read {n}: ", **params)) for n in range(hostile.NUM_UNREAD)]
            before = _gap(remote, seconds)
            for each in others:
                each.cancel()
        with hostile.never_reading(server.url):
            beside = _gap(remote, seconds)
    note = f"{before * 1e3:.1f} ms beside {hostile.NUM_UNREAD} streams that are read, {beside * 1e3:.1f} ms if not"
    return Figure("never_reading_p99_gap", beside / before if before else math.nan, "<=", 1.5, "times", note)


def _gap(remote: RemoteRuntime, seconds: float) -> float:
    recorders = [
        Recorder().submit(remote, generation(f"Reader {n}: ", max_tokens=900, ignore_eos=True)) for n in range(8)
    ]
    time.sleep(seconds)
    for each in recorders:
        each.cancel()
    for each in recorders:
        each.wait(30.0)
    return percentile([gap for each in recorders for gap in each.gaps], 0.99)


def bomb_figures(server: ServerProcess, count: int | None = None) -> Iterator[Figure]:
    """Hostile constraints and stop patterns while a canary streams; another client's small constraint beside them."""
    graphs = [generation("Bomb: ", constraint=each, max_tokens=8) for each in hostile.constraints()[:count]]
    graphs += [generation("aaaa xxxx " * 8, stop_regex=[each], max_tokens=40) for each in hostile.stop_patterns()]
    small = Constraint(ConstraintKind.REGEX, "(yes|no), [a-z]{1,3}")
    memory = server.num_resident_bytes()
    with (
        rtlang.connect(server.url) as attacker,
        rtlang.connect(server.url) as other,
        rtlang.connect(server.url) as remote,
        Canary(remote) as canary,
    ):
        started = time.perf_counter()
        recorders = [Recorder().submit(attacker, graph, deadline_s=BOMB_LIMIT_S + 20.0) for graph in graphs]
        slowest = 0.0
        number = 0
        while not all(each.has_ended for each in recorders) and time.perf_counter() < started + 60.0:
            number += 1
            source = small.source + f"|n{number}"
            probe = Recorder().submit(
                other, generation("Answer: ", constraint=Constraint(ConstraintKind.REGEX, source), max_tokens=8)
            )
            probe.wait(30.0)
            slowest = max(slowest, time.perf_counter() - probe.started)
        ended = time.perf_counter()
        gap = canary.longest_gap(started, ended)
        answers = [(each.ended or ended) - each.started for each in recorders]
        errors = canary.num_errors
    grown = (server.num_resident_bytes() - memory) / _MIB
    refused = sum(each.error is not None for each in recorders)
    yield Figure(
        "bombs_slowest_answer", max(answers), "<=", BOMB_LIMIT_S, "s", f"{len(graphs)} bombs, {refused} refused"
    )
    yield Figure("bombs_canary_gap", gap * 1e3, "<=", CANARY_LIMIT_MS, "ms", f"{errors} errors of the canary")
    yield Figure("bombs_other_constraint", slowest, "<=", 1.0, "s", f"slowest of {number} of another client")
    yield Figure("bombs_memory", grown, "<=", 1024.0, "MiB", "growth of resident memory")
    yield Figure("bombs_crashes", 0 if server.is_running else 1, "==", 0, "crashes")


def schema_figure(server: ServerProcess, count: int = 400) -> Figure:
    """Growth of memory over distinct schemas."""
    memory = server.num_resident_bytes()
    with rtlang.connect(server.url) as remote:
        for start in range(0, count, 50):
            recorders = []
            for number in range(start, min(start + 50, count)):
                schema = {
                    "type": "object",
                    "properties": {
                        f"{name}{number}": {"type": "string", "maxLength": 20 + number % 7} for name in "abcd"
                    },
                    "required": [f"a{number}"],
                }
                constraint = Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(schema))
                recorders.append(Recorder().submit(remote, generation("Row: ", constraint=constraint, max_tokens=4)))
            for each in recorders:
                each.wait(60.0)
    grown = (server.num_resident_bytes() - memory) / _MIB
    return Figure("distinct_schemas_memory", grown, "<=", 384.0, "MiB", f"{count} schemas; the cache may hold 256 MiB")


def stream_figures(server: ServerProcess, count: int, num_tokens: int) -> Iterator[Figure]:
    """Many streams at once, on four connections: failures, and fairness when half of all tokens have come.

    Fairness is Jain's index over the rates of the streams: tokens per second from its submission until then, or until its end.
    """
    remotes = [rtlang.connect(server.url) for _ in range(4)]
    recorders = [Recorder() for _ in range(count)]

    def submit(part: int) -> None:
        for number in range(part, count, len(remotes)):
            graph = generation(f"Stream {number}: ", max_tokens=num_tokens, temperature=1.0, ignore_eos=True)
            recorders[number].submit(remotes[part], graph, seed=number)

    try:
        started = time.perf_counter()
        threads = [threading.Thread(target=submit, args=(part,)) for part in range(len(remotes))]
        for thread in threads:
            thread.start()
        half = count * num_tokens / 2
        while sum(each.num_tokens for each in recorders) < half and time.perf_counter() < started + 240.0:
            if all(each.has_ended for each in recorders):
                break
            time.sleep(0.02)
        now = time.perf_counter()
        amounts = [float(each.num_tokens) for each in recorders]
        rates = [amount / ((each.ended or now) - each.started) for amount, each in zip(amounts, recorders, strict=True)]
        for thread in threads:
            thread.join()
        for each in recorders:
            each.wait(240.0)
        seconds = time.perf_counter() - started
    finally:
        for remote in remotes:
            remote.close()
    failed = sum(each.error is not None or not each.has_ended for each in recorders)
    rate = sum(each.num_tokens for each in recorders) / seconds
    note = f"Jain's index of rates at half of the tokens, {fairness(amounts):.3f} of counts; {rate:.0f} tokens/s"
    yield Figure("streams_failed", failed, "==", 0, "streams", f"of {count}, {num_tokens} tokens each")
    yield Figure("streams_fairness", fairness(rates), ">=", FAIRNESS, "", note)
    yield from _sse_figures(server, count, num_tokens)


def _sse_figures(server: ServerProcess, count: int, num_tokens: int) -> Iterator[Figure]:
    """The same for server-sent events, on a connection each; the streams are opened at once."""
    body = {"stream": True, "max_tokens": num_tokens, "temperature": 1.0, "ignore_eos": True, "return_token_ids": True}
    load = Load(server.http_url, body, count, num_tokens, num_prompt_tokens=_PROMPT_TOKENS, pid=server.pid)
    report = run_load(load)
    reason = report.failures[0][:100] if report.failures else f"of {count}, {num_tokens} tokens each"
    yield Figure("streams_sse_failed", len(report.failures), "==", 0, "streams", reason)
    if not report.rates_at_half:
        return
    counts, rate = fairness(report.tokens_at_half), report.num_tokens / report.seconds
    median, last = (percentile(report.first_s, share) for share in (0.5, 0.99))
    note = f"Jain's index of rates at half of the tokens, {counts:.3f} of counts; {rate:.0f} tokens/s, "
    note += f"first token p50 {median:.2f} s, p99 {last:.2f} s"
    yield Figure("streams_sse_fairness", fairness(report.rates_at_half), ">=", FAIRNESS, "", note)


def flood_figures(
    server: ServerProcess, names: Iterable[str] = FLOODS, *, places: int = 20_000, detached: int = 2_000
) -> Iterator[Figure]:
    """One client's floods; the time in which another one gets eight tokens during each."""
    with rtlang.connect(server.url) as attacker, rtlang.connect(server.url) as other:
        if "places" in names:
            params: dict[str, Any] = {"n": 128, "max_tokens": 200, "temperature": 1.0, "ignore_eos": True}
            graphs = [generation(f"Flood {n}: ", **params) for n in range(-(-places // 128))]
            yield _beside(attacker, graphs, "places", other, f"{places} places asked for by another client")
        if "constraints" in names:
            bombs = [*hostile.constraints(), *(_fresh_bomb(n) for n in range(100))][:100]
            graphs = [generation("Bomb: ", constraint=each, max_tokens=8) for each in bombs]
            yield _beside(attacker, graphs, "constraints", other, "100 hostile constraints of another client")
        if "detached" in names:
            command = [sys.executable, "-m", "rtlang_bench.serve.hostile", server.url, str(detached)]
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
                assert process.stdout is not None
                line = process.stdout.readline()
                process.kill()
            note = f"{detached} detached streams asked for, {line.strip() or 'none'}"
            yield _eight_tokens("flood_of_detached", other, note)


def _beside(attacker: RemoteRuntime, graphs: list[RequestGraph], name: str, other: RemoteRuntime, note: str) -> Figure:
    """The figure beside graphs of an attacker, which are cancelled behind it."""
    flood = [Recorder().submit(attacker, graph, seed=number) for number, graph in enumerate(graphs)]
    figure = _eight_tokens(f"flood_of_{name}", other, note)
    for each in flood:
        each.cancel()
    for each in flood:
        each.wait(60.0)
    return figure


def _fresh_bomb(number: int) -> Constraint:
    return Constraint(ConstraintKind.REGEX, f"(x{number}|[ab]*a[ab]{{{150 + number}}})*")


def _eight_tokens(name: str, remote: RemoteRuntime, note: str) -> Figure:
    slowest = 0.0
    for number in range(3):
        recorder = Recorder().submit(remote, generation(f"Eight {number}: ", max_tokens=8, ignore_eos=True))
        recorder.wait(60.0)
        if recorder.error is not None:
            return Figure(name, math.nan, "<=", EIGHT_TOKENS_LIMIT_S, "s", f"{note}: {recorder.error}")
        slowest = max(slowest, (recorder.ended or math.inf) - recorder.started)
    return Figure(name, slowest, "<=", EIGHT_TOKENS_LIMIT_S, "s", note)
