"""Measures whether the memory of a runtime stays flat under mixed load.

python -m rtlang_bench.memory --minutes 30

Concurrent clients send a random mix: chats that grow, JSON and other constrained texts (most constraints come once),
trees of generations, generations that are cancelled, and prompts of any length. The KV pool is filled before, so that it does not count.
The resident memory after the first minute is compared with that at the end.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Annotated, Any

import typer

from rtlang.console.one_line_errors import one_line_errors
from rtlang.console.options import with_settings
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import RtlangError
from rtlang.contract.events import Event, GraphFailed, GraphFinished
from rtlang.contract.params import Constraint, ConstraintKind, SamplingParams
from rtlang.contract.request_graph import Generate, Node, RequestGraph, Text
from rtlang.runtime.runtime import Runtime
from rtlang_bench.command import Shape, command, config_of, progress, show
from rtlang_bench.prompt_memory import Sample, sample

logger = logging.getLogger(__name__)

GOAL = 1.1
"""The memory at the end is at most so many times that after the first minute."""
FIRST_S = 60.0
WAIT_S = 120.0
"""Seconds after which a request counts as hanging."""
_WORDS = ("the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "while", "seven", "wizards", "box")


@dataclass(frozen=True, slots=True)
class MixedLoad:
    """Memory under mixed load, in bytes.

    Attributes:
        first: after the first minute, or the first fifth of a shorter run.
        last: at the end; the mean of the last samples, whose spread is small.
        done: what the clients did, by kind; `failed` and `hung` among them.
    """

    minutes: float
    first: Sample
    last: Sample
    most_resident: int
    done: Counter[str]

    @property
    def ratio(self) -> float:
        """Resident memory at the end over that after the first minute."""
        return self.last.resident / self.first.resident

    @property
    def is_met(self) -> bool:
        """Whether memory stayed flat and every request ended well."""
        return self.ratio <= GOAL and not self.done["failed"] and not self.done["hung"]

    def __str__(self) -> str:
        mib = [each / 2**20 for each in (self.first.resident, self.last.resident, self.most_resident)]
        counts = ", ".join(f"{count} {kind}" for kind, count in sorted(self.done.items()))
        return (
            f"resident memory: {mib[0]:.0f} MiB after the first minute, {mib[1]:.0f} MiB after {self.minutes:g} minutes: "
            f"{self.ratio:.3f}x (goal: at most {GOAL:g}x; most {mib[2]:.0f} MiB)\n{counts}"
        )


def measure_mixed_load(
    config: RuntimeConfig,
    *,
    minutes: float = 30.0,
    num_clients: int = 6,
    seed: int = 0,
    tell: Callable[[str], None] = lambda line: None,
) -> MixedLoad:
    """Run the load for so many minutes.

    Args:
        tell: gets a line with the memory every minute.
    """
    with Runtime(config=config) as runtime:
        tell("filling the pool")
        _fill(runtime, Random(seed))
        stop, seconds = threading.Event(), minutes * 60.0
        clients = [Client(runtime, 1000 * seed + number, stop) for number in range(num_clients)]
        for client in clients:
            client.start()
        first_s = min(FIRST_S, seconds / 5)
        pause_s = min(5.0, seconds / 50)
        started = time.monotonic()
        first: Sample | None = None
        most, next_line, now = 0, 0.0, 0.0
        while now < seconds:
            time.sleep(pause_s)
            now = time.monotonic() - started
            found = sample(sum(client.done.total() for client in clients))
            most = max(most, found.resident)
            if first is None and now >= first_s:
                first = found
            if now >= next_line:
                next_line += 60.0
                tell(f"{now / 60:5.1f} min {found}")
        last = sample(sum(client.done.total() for client in clients))
        stop.set()
        for client in clients:
            client.join(2 * WAIT_S)
    assert first is not None
    done = sum((client.done for client in clients), Counter[str]())
    return MixedLoad(minutes, first, last, max(most, last.resident), done)


class Client(threading.Thread):
    """One client until `stop` is set; `done` counts what it did."""

    def __init__(self, runtime: Runtime, seed: int, stop: threading.Event) -> None:
        super().__init__(name=f"load-{seed}", daemon=True)
        self.done: Counter[str] = Counter()
        self._runtime, self._random, self._stop_event = runtime, Random(seed), stop
        info = runtime.text_service.info
        self._longest = min(info.max_model_len or 1024, runtime.stats()["num_pages"] * runtime.config.page_size // 2)
        self._vocab_size = info.vocab_size

    def run(self) -> None:
        while not self._stop_event.is_set():
            self.act(self._random.choice(self.actions))

    @property
    def actions(self) -> Sequence[Callable[[], None]]:
        """All that a client does."""
        return (self._chat, self._json, self._constrained, self._tree, self._cancelled, self._prompt, self._text)

    def act(self, action: Callable[[], None]) -> None:
        """Do one thing, and count how it ended."""
        try:
            action()
            self.done[action.__name__.strip("_")] += 1
        except TimeoutError:
            self.done["hung"] += 1
        except RtlangError as error:
            logger.error("%s failed: %s", action.__name__.strip("_"), error)
            self.done["failed"] += 1

    def _chat(self) -> None:
        messages: list[dict[str, str]] = []
        for _ in range(self._random.randint(1, 4)):
            messages.append({"role": "user", "content": self._words(self._random.randint(3, 30))})
            answer = self._runtime.generate(messages, params=self._params(16)).result(WAIT_S)
            messages.append({"role": "assistant", "content": answer.completions[0].text})

    def _json(self) -> None:
        names = sorted({self._word() for _ in range(self._random.randint(1, 3))})
        kinds: list[dict[str, Any]] = [{"type": "integer"}, {"type": "boolean"}, {"enum": [self._word(), self._word()]}]
        schema = {
            "type": "object",
            "properties": {name: self._random.choice(kinds) for name in names},
            "required": names,
            "additionalProperties": False,
        }
        constraint = Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(schema))
        self._runtime.generate(self._words(8), params=self._params(96), constraint=constraint).result(WAIT_S)

    def _constrained(self) -> None:
        word = self._word()
        pattern = self._random.choice((f"({word}|no) [a-z]{{1,6}}", f"{word}-[0-9]{{2,4}}", f"[{word}]{{3,9}}"))
        constraint = Constraint(ConstraintKind.REGEX, pattern)
        self._runtime.generate(self._words(5), params=self._params(32), constraint=constraint).result(WAIT_S)

    def _tree(self) -> None:
        nodes: list[Node] = [Text(0, None, (self._words(40),))]
        level = [0]
        for _ in range(self._random.randint(1, 3)):
            next_level = []
            for parent in level:
                for _ in range(2):
                    number = len(nodes)
                    nodes.append(Text(number, parent, (f" {self._words(4)}:",)))
                    nodes.append(Generate(number + 1, number, None, self._params(8)))
                    next_level.append(number + 1)
            level = next_level
        ended, errors = threading.Event(), list[RtlangError]()

        def listen(event: Event) -> None:
            if isinstance(event, GraphFailed):
                errors.append(event.error)
            if isinstance(event, (GraphFinished, GraphFailed)):
                ended.set()

        self._runtime.submit(RequestGraph(tuple(nodes)), listen)
        if not ended.wait(WAIT_S):
            raise TimeoutError
        if errors:
            raise errors[0]

    def _cancelled(self) -> None:
        generation = self._runtime.generate(self._words(20), params=self._params(400))
        for number, _ in enumerate(generation):
            if number == self._random.randint(0, 6):
                break
        generation.cancel()
        with suppress(CancelledError):
            generation.result(WAIT_S)

    def _prompt(self) -> None:
        length = self._random.randint(1, max(2, self._longest - 8))
        ids = [self._random.randrange(3, self._vocab_size) for _ in range(length)]
        self._runtime.generate(token_ids=ids, params=self._params(2)).result(WAIT_S)

    def _text(self) -> None:
        self._runtime.generate(self._words(self._random.randint(1, 60)), params=self._params(24)).result(WAIT_S)

    def _params(self, max_tokens: int) -> SamplingParams:
        return SamplingParams(max_tokens=max_tokens, temperature=self._random.choice((0.0, 0.0, 1.0)))

    def _words(self, count: int) -> str:
        return " ".join(self._random.choice(_WORDS) for _ in range(count))

    def _word(self) -> str:
        return "".join(self._random.choice("abcdefghijklmnop") for _ in range(5))


def _fill(runtime: Runtime, random: Random) -> None:
    """Compute prompts until the pages of the pool were all used once."""
    info, stats = runtime.text_service.info, runtime.stats()
    params = SamplingParams(max_tokens=2, ignore_eos=True)
    length = min(info.max_model_len or 1024, stats["num_pages"] * runtime.config.page_size // 2) - params.max_tokens
    while runtime.stats()["num_pages_free"] > stats["num_pages"] // 20:
        ids = [random.randrange(3, info.vocab_size) for _ in range(length)]
        runtime.generate(token_ids=ids, params=params).result()


@with_settings(RuntimeConfig, "settings")
def bench_memory(
    settings: dict[str, Any],
    minutes: Annotated[float, typer.Option(min=0.01, max=10_000, help="Time of the load.")] = 30.0,
    clients: Annotated[int, typer.Option(min=1, max=256, help="Clients at once.")] = 6,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all that the clients do.")] = 0,
    shape: Shape = None,
) -> None:
    """Measure whether memory stays flat under mixed load: chats, JSON, trees, cancelled generations, prompts of any length.

    Exits with code 1 if the resident memory at the end is more than 1.1 times that after the first minute, or if a request fails or hangs.
    """
    with one_line_errors(), config_of(settings, shape) as config:
        with progress() as tell:
            found = measure_mixed_load(config, minutes=minutes, num_clients=clients, seed=seed, tell=tell)
        show(found)


app = command(bench_memory)

if __name__ == "__main__":
    app()
