"""Measures how long small requests of one key take alone, and beside heavy requests of another key.

python -m rtlang_bench.neighbour

A server of its own runs on loopback. All figures of a line are from one run, so their ratios can be compared between machines.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import math
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from rtlang.bench.server_process import ServerProcess
from rtlang.console.one_line_errors import one_line_errors
from rtlang.console.options import with_settings
from rtlang.console.source import CommandError
from rtlang.contract.config import RuntimeConfig
from rtlang_bench.command import command, progress

GOAL_S = 0.5
"""No request takes so much longer than the slowest one alone."""
_TIMEOUT_S = 300.0
_FILL_S = 1.0
_HEAVY, _SMALL = "heavy", "small"
KEYS = "".join(
    f'[[keys]]\nname = "{name}"\nsha256 = "{hashlib.sha256(name.encode()).hexdigest()}"\n' for name in (_HEAVY, _SMALL)
)
"""The file of keys of both clients, whose keys are their names."""
_WORDS = "the quick brown fox jumps over the lazy dog while it rains, "


@dataclass(frozen=True, slots=True)
class Delays:
    """Seconds of the requests of one kind, alone and beside a load.

    Attributes:
        num_heavy: requests of the load that ended while the others were measured.
    """

    kind: str
    load: str
    alone_s: tuple[float, ...]
    beside_s: tuple[float, ...]
    num_heavy: int

    @property
    def is_met(self) -> bool:
        """Whether the goal is met."""
        return max(self.beside_s) - max(self.alone_s) <= GOAL_S

    def __str__(self) -> str:
        alone, beside = (statistics.median(each) for each in (self.alone_s, self.beside_s))
        return (
            f"{self.kind} beside {self.load} of another key: median {beside * 1000:.0f} ms, alone {alone * 1000:.0f} ms "
            f"({beside / alone:.1f}x); slowest {max(self.beside_s) * 1000:.0f} ms, alone {max(self.alone_s) * 1000:.0f} ms "
            f"(goal: at most {GOAL_S:g} s more, {'met' if self.is_met else 'MISSED'}; {self.num_heavy} heavy requests ended)"
        )


Request = tuple[str, Mapping[str, Any]]


def small_requests() -> dict[str, Callable[[int], Request]]:
    """The requests that are measured, by name; each takes a number that makes it a new one."""

    def chat(number: int, **more: Any) -> Request:
        body = {"messages": [{"role": "user", "content": f"Tell me about {number}."}], "max_tokens": 8}
        return "/v1/chat/completions", body | more

    def schema(number: int) -> Request:
        properties = {f"field_{number}": {"enum": ["yes", "no", f"{number}"]}}
        form = {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
        named = {"type": "json_schema", "json_schema": {"name": "answer", "schema": form}}
        return chat(number, response_format=named, max_tokens=40)

    return {
        "a tokenization": lambda number: ("/tokenize", {"prompt": f"{number} {_WORDS}"}),
        "a chat of 8 tokens": chat,
        "a new schema": schema,
    }


def loads(num_bytes: int) -> dict[str, Callable[[int], Request]]:
    """The heavy requests, by name."""

    def schema(number: int) -> Request:
        properties = {
            f"p{number}_{n}": {"type": "string", "pattern": f"^[a-z]{{{n % 40 + 1},90}}$"} for n in range(300)
        }
        form = {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
        named = {"type": "json_schema", "json_schema": {"name": "heavy", "schema": form}}
        body = {"messages": [{"role": "user", "content": "x"}], "max_tokens": 4, "response_format": named}
        return "/v1/chat/completions", body

    text = (_WORDS * (num_bytes // len(_WORDS) + 1))[:num_bytes]
    numbers = [[n % 10] * 90 for n in range(max(1, min(num_bytes // 180, 2000)))]
    return {
        "tokenizations": lambda number: ("/tokenize", {"prompt": f"{number} {text}"}),
        "bodies of numbers": lambda number: ("/v1/completions", {"prompt": "x", "stop": numbers, "n": number}),
        "schemas": schema,
    }


class Client:
    """Requests of one key over one connection."""

    def __init__(self, url: str, key: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=_TIMEOUT_S)
        self._headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}

    def post(self, path: str, body: Mapping[str, Any] | bytes) -> int:
        """Send a request and read its answer; returns the status."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self._connection.request("POST", path, data, self._headers)
        answer = self._connection.getresponse()
        answer.read()
        return answer.status

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


@contextmanager
def heavy_load(url: str, make: Callable[[int], Request], num_clients: int) -> Iterator[Callable[[], int]]:
    """Clients that send heavy requests without a pause; yields a function that counts those which ended."""
    is_over, lock, ended = threading.Event(), threading.Lock(), [0]

    def run(number: int) -> None:
        client = Client(url, _HEAVY)
        while not is_over.is_set():
            path, body = make(number)
            number += num_clients
            try:
                client.post(path, body)
            except OSError:  # closed below, while a request ran
                break
            with lock:
                ended[0] += 1
        client.close()

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(num_clients)]
    for thread in threads:
        thread.start()
    try:
        yield lambda: ended[0]
    finally:
        is_over.set()
        for thread in threads:
            thread.join(_TIMEOUT_S)


@contextmanager
def server_with_keys(config: RuntimeConfig) -> Iterator[str]:
    """A server in a process of its own that knows the keys of both clients; yields its URL."""
    with TemporaryDirectory() as folder:
        keys = Path(folder, "keys.toml")
        keys.write_text(KEYS)
        with ServerProcess("--model", config.model, "--keys-file", str(keys)) as server:
            yield server.url.replace("ws://", "http://")


def measure(
    url: str,
    *,
    chosen: tuple[str, ...] = (),
    num_clients: int = 24,
    num_bytes: int = 1_000_000,
    rounds: int = 10,
    tell: Callable[[str], None] = lambda line: None,
) -> Iterator[Delays]:
    """Measure every kind of small request, alone and beside each load.

    Args:
        url: of a server that knows `KEYS`.
        chosen: names of loads; default: all.
        num_clients: that send heavy requests at one time.
        num_bytes: of a heavy text.
        rounds: small requests of each kind, one after the other.
    """
    client, numbers = Client(url, _SMALL), count(1)

    def timed(make: Callable[[int], Request]) -> tuple[float, ...]:
        found = []
        for _ in range(rounds):
            path, body = make(next(numbers))
            started = time.perf_counter()
            status = client.post(path, body)
            found.append(time.perf_counter() - started)
            if status != 200:
                raise CommandError(f"{path} was answered with status {status}")
        return tuple(found)

    for make in small_requests().values():  # compiles what first requests need
        timed(make)
    for load, heavy in loads(num_bytes).items():
        if chosen and load not in chosen:
            continue
        tell(f"alone, before {load}")
        alone = {kind: timed(make) for kind, make in small_requests().items()}
        tell(f"beside {load}")
        with heavy_load(url, heavy, num_clients) as num_ended:
            time.sleep(_FILL_S)  # the queue fills
            for kind, make in small_requests().items():
                before = num_ended()
                beside = timed(make)
                yield Delays(kind, f"{num_clients} {load}", alone[kind], beside, num_ended() - before)
    client.close()


@with_settings(RuntimeConfig, "settings")
def bench_neighbour(
    settings: dict[str, Any],
    only: Annotated[
        str, typer.Option(help="Comma-separated names of loads: tokenizations, bodies of numbers, schemas.")
    ] = "",
    clients: Annotated[int, typer.Option(min=1, max=256, help="Heavy requests at one time.")] = 24,
    num_bytes: Annotated[int, typer.Option("--bytes", min=1, max=4_000_000, help="Size of a heavy text.")] = 1_000_000,
    rounds: Annotated[int, typer.Option(min=1, max=1000, help="Small requests of each kind.")] = 10,
) -> None:
    """Measure small requests of one key beside heavy requests of another one.

    Exits with code 1 if one takes half a second more than the slowest one alone.
    """
    with one_line_errors():
        chosen = tuple(name for each in only.split(",") if (name := each.strip()))
        if unknown := [name for name in chosen if name not in loads(1)]:
            raise CommandError(f"--only {unknown[0]}: allowed are {', '.join(loads(1))}")
        worst = -math.inf
        sizes: dict[str, Any] = {"num_clients": clients, "num_bytes": num_bytes, "rounds": rounds}
        with progress() as tell, server_with_keys(RuntimeConfig(**settings)) as url:
            for found in measure(url, chosen=chosen, **sizes, tell=tell):
                typer.echo(str(found))
                worst = max(worst, max(found.beside_s) - max(found.alone_s))
        if worst > GOAL_S:
            raise CommandError("the goal is missed")


app = command(bench_neighbour)

if __name__ == "__main__":
    app()
