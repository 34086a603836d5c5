"""Plays back slow minutes: one key floods a server with work of one kind while others do theirs, and the key is found by its account.

For each cause, a server is asked by four keys, one of which, chosen at random, is the guilty one. Then two judges name it: one reads the
log lines of the minute and nothing else, the other two readings of `/metrics` and nothing else. Both add up seconds of work by principal
(`rtlang.contract.service.principal_loads`), as an operator would. Run with `python -m rtlang_bench.slow_minute`.
"""

from __future__ import annotations

import json
import random
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Any, Protocol

import typer

from rtlang.bench.server_process import ServerProcess
from rtlang.contract.process.logs import REQUEST_LOGGER
from rtlang.contract.request_graph import Apply, Arg, RequestGraph
from rtlang.contract.service.principal_loads import PrincipalLoad, busiest, loads_between, read_loads
from rtlang_bench.command import command

NAMES = ("ana", "ben", "cleo", "dan")
OPERATOR = "operator"
"""The key that reads the metrics of all others: it has no namespace."""
_TIMEOUT_S = 120.0
_PAUSE_S = 0.2  # between two requests of an innocent key
_FLOODERS = 3  # connections of the guilty key


@dataclass(frozen=True, slots=True)
class Request:
    """One request: the path of a route and its body."""

    path: str
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whom the judges name for one cause.

    Attributes:
        guilty: the key that did it, and the kinds of work that tell its cause.
        named: the principals that metrics tell of.
        by_lines, by_metrics: the principal and the kind of work that a judge names; None if it cannot say.
        num_requests: requests of all keys.
    """

    cause: str
    guilty: str
    kinds: tuple[str, ...]
    by_lines: tuple[str, str] | None
    by_metrics: tuple[str, str] | None
    num_requests: int
    named: tuple[str, ...] = NAMES

    @property
    def is_right(self) -> bool:
        """Whether both judges name the guilty key and what it did, where metrics tell of the others as well."""
        return set(NAMES) <= set(self.named) and all(
            found is not None and found[0] == self.guilty and found[1] in self.kinds
            for found in (self.by_lines, self.by_metrics)
        )

    def __str__(self) -> str:
        verdict = "right" if self.is_right else "WRONG"
        return (
            f"{self.cause}: {self.guilty} of {', '.join(NAMES)} ({self.num_requests} requests); "
            f"by log lines {_shown(self.by_lines)}, by metrics {_shown(self.by_metrics)}: {verdict}"
        )


def tokenization(draws: random.Random) -> Request:
    """A long text to encode."""
    return Request("/tokenize", {"prompt": _words(draws, 40_000)})


def schemas(draws: random.Random) -> Request:
    """A schema that nobody has compiled before, which takes seconds and allows no text that is short enough."""
    length = 2000 + draws.randrange(1000)
    schema = {"type": "string", "minLength": length, "maxLength": length + 1, "pattern": "^(ab|cd)+$"}
    form = {"type": "json_schema", "json_schema": {"name": "f", "schema": schema}}
    messages = [{"role": "user", "content": "x"}]
    return Request(
        "/v1/chat/completions",
        {"messages": messages, "response_format": form, "max_tokens": 60, "temperature": 0},
    )


def long_prompts(draws: random.Random) -> Request:
    """A long prompt that the cache does not have."""
    return Request("/v1/completions", {"prompt": _words(draws, 80), "max_tokens": 1})


def long_texts(draws: random.Random) -> Request:
    """Many tokens."""
    return Request("/v1/completions", {"prompt": "Once", "max_tokens": 300, "ignore_eos": True, "n": 4})


def values(draws: random.Random) -> Request:
    """A program whose values take long: large ones, and thousands of small ones, none of which is long by itself."""
    long = [Apply(number, "parse_json", (Arg("long"),)) for number in range(10)]
    short = [Apply(number, "upper", (Arg("short"),)) for number in range(10, 1500)]
    graph = RequestGraph((*long, *short), ("long", "short"))
    digits = ",".join(str(draws.randrange(10)) for _ in range(50_000))
    return Request(
        "/v1/programs",
        {"graph": graph.to_plain(), "inputs": {"long": f"[{digits}]", "short": _words(draws, 10)}, "stream": False},
    )


def innocent(draws: random.Random) -> Request:
    """What the other keys ask for."""
    return Request("/v1/completions", {"prompt": f"Number {draws.randrange(100)}:", "max_tokens": 4})


CAUSES: dict[str, tuple[Callable[[random.Random], Request], tuple[str, ...]]] = {
    "tokenization": (tokenization, ("tokenize",)),
    "schemas": (schemas, ("constraint",)),
    "values": (values, ("value",)),
    "long_prompts": (long_prompts, ("steps",)),
    "long_texts": (long_texts, ("steps",)),
}
"""What the guilty key does, and the kinds of work that are a right answer."""


def judge_lines(lines: Iterable[str]) -> tuple[str, str] | None:
    """The principal with the most work, from the lines of a log (JSON) and nothing else, and its largest kind of work."""
    return busiest(loads_of_lines(lines))


def judge_metrics(before: str, after: str) -> tuple[str, str] | None:
    """The same from two readings of `/metrics` and nothing else."""
    return busiest(loads_between(read_loads(before), read_loads(after)))


def loads_of_lines(lines: Iterable[str]) -> dict[str, PrincipalLoad]:
    """The loads of principals as the lines of their requests tell them; other lines are skipped."""
    loads: dict[str, PrincipalLoad] = {}
    for line in lines:
        try:
            fields = json.loads(line)
        except ValueError:
            continue
        if not isinstance(fields, dict) or fields.get("logger") != REQUEST_LOGGER:
            continue
        load = loads.setdefault(fields["principal"], PrincipalLoad())
        for name, sums in (("tokens", load.tokens), ("work_s", load.work_s), ("waits_s", load.waits_s)):
            for kind, value in fields.get(name, {}).items():
                sums[kind] += value
    return loads


class Played(Protocol):
    """A server that is played to.

    Attributes:
        http_url: its address.
        lines: everything that it has written to its log so far, as JSON.
    """

    @property
    def http_url(self) -> str: ...

    @property
    def lines(self) -> Sequence[str]: ...


def play(server: Played, cause: str, guilty: str, seconds: float, seed: int = 0) -> Verdict:
    """Let one key flood a server for a while, and ask the judges. NAMES and OPERATOR are the keys of the server."""
    flood, kinds = CAUSES[cause]
    base = server.http_url
    first_line, before = len(server.lines), _get(base + "/metrics", OPERATOR)
    counts = dict.fromkeys(NAMES, 0)
    ends_at = time.monotonic() + seconds

    def work(name: str, number: int) -> None:
        draws = random.Random(f"{seed} {cause} {name} {number}")
        make, pause_s = (flood, 0.0) if name == guilty else (innocent, _PAUSE_S)
        while time.monotonic() < ends_at:
            _post(base, name, make(draws))
            counts[name] += 1
            time.sleep(pause_s)

    threads = [
        threading.Thread(target=work, args=(name, number), name=f"{name}-{number}")
        for name in NAMES
        for number in range(_FLOODERS if name == guilty else 1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    patience = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < patience and _num_lines(server.lines[first_line:]) < sum(counts.values()):
        time.sleep(0.1)  # the lines of the last requests are on their way
    after = _get(base + "/metrics", OPERATOR)
    lines = server.lines[first_line:]
    by_lines, by_metrics = judge_lines(lines), judge_metrics(before, after)
    return Verdict(cause, guilty, kinds, by_lines, by_metrics, sum(counts.values()), tuple(read_loads(after)))


def play_all(
    seconds: float, seed: int, causes: Iterable[str] = CAUSES, options: tuple[str, ...] = ()
) -> Iterator[Verdict]:
    """Play each cause on one server, with a guilty key chosen at random."""
    draws = random.Random(seed)
    with ServerProcess(*options, environment={"RTLANG_KEYS": keys_text()}, is_json=True) as server:
        for name in NAMES:  # the first request of each starts threads and loads code
            _post(server.http_url, name, innocent(draws))
        for cause in causes:
            yield play(server, cause, draws.choice(NAMES), seconds, seed)


def keys_text() -> str:
    """A file of keys in which each name is its own key, OPERATOR among them."""
    keys = (
        f'[[keys]]\nname = "{name}"\nnamespace = "{space}"\nsha256 = "{sha256(name.encode()).hexdigest()}"\n'
        for name, space in (*zip(NAMES, NAMES, strict=True), (OPERATOR, ""))
    )
    return "".join(keys)


def _num_lines(lines: Iterable[str]) -> int:
    return sum(f'"logger": "{REQUEST_LOGGER}"' in line for line in lines)


def _post(base: str, key: str, asked: Request) -> None:
    """Send a request and read its answer; an error is an answer as well."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(base + asked.path, json.dumps(asked.body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
            answer.read()
    except urllib.error.HTTPError as error:
        error.read()


def _get(url: str, key: str) -> str:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {key}"})
    with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
        return str(answer.read().decode())


def _words(draws: random.Random, num: int) -> str:
    return " ".join(
        draws.choice(("river", "stone", "cloud", "amber", "quiet", "seven")) + str(draws.randrange(99))
        for _ in range(num)
    )


def _shown(found: tuple[str, str] | None) -> str:
    return "nobody" if found is None else f"{found[0]} ({found[1]})"


def slow_minute(
    seconds: Annotated[float, typer.Option(min=0.5, help="How long each cause is played.")] = 60.0,
    seed: Annotated[int, typer.Option(help="Chooses the guilty keys and the texts.")] = 0,
) -> None:
    """Play slow minutes, and say whom log lines and metrics name. Exits with code 1 if one of them is wrong."""
    verdicts = []
    for verdict in play_all(seconds, seed):
        verdicts.append(verdict)
        typer.echo(str(verdict))
    num_right = sum(verdict.is_right for verdict in verdicts)
    typer.echo(f"{num_right} of {len(verdicts)} right, {seconds:g} s each")
    if num_right < len(verdicts):
        raise typer.Exit(1)


app = command(slow_minute)

if __name__ == "__main__":
    app()
