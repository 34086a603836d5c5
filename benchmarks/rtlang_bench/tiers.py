"""Compares texts with a KV pool of a part of the working set, and tiers below it, to those with a pool for all.

python -m rtlang_bench.tiers

Requests continue random parts of a few documents, several at once, greedily and sampled. Each run has a runtime of its own: with a large
pool, and with a small one and the tier in memory, the tier on disk, the files of that run after a restart, and those files with every third
one damaged. Texts must be the same in all of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from rtlang.console.one_line_errors import one_line_errors
from rtlang.console.options import with_settings
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.params import SamplingParams
from rtlang.contract.service.generation import Generation
from rtlang.runtime.runtime import Runtime
from rtlang_bench.command import Shape, command, config_of, progress, show

NUM_AT_ONCE = 3
_TAIL, _OUTPUT = 12, 8  # tokens


@dataclass(frozen=True, slots=True)
class PoolRun:
    """The requests with one pool.

    Attributes:
        texts: output tokens of each request.
        num_host_tokens, num_disk_tokens: prompt tokens that came from a tier.
        num_recomputed_pages: pages of a tier that were computed again, because that is faster.
    """

    name: str
    num_pages: int
    seconds: float
    texts: tuple[tuple[int, ...], ...]
    num_evicted_pages: int
    num_host_tokens: int
    num_disk_tokens: int
    num_recomputed_pages: int

    def __str__(self) -> str:
        return (
            f"{self.name:28} {self.num_pages:6} pages {self.seconds:7.1f} s, {self.num_evicted_pages} pages evicted, prompt tokens from "
            f"memory {self.num_host_tokens}, from disk {self.num_disk_tokens}, pages computed again {self.num_recomputed_pages}"
        )


@dataclass(frozen=True, slots=True)
class SmallPool:
    """The runs; the first one has a pool for the whole working set."""

    runs: tuple[PoolRun, ...]

    @property
    def is_met(self) -> bool:
        """Whether all texts are the same and every small pool gave up pages."""
        first, *others = self.runs
        return all(run.texts == first.texts and run.num_evicted_pages > 0 for run in others)

    def __str__(self) -> str:
        first = self.runs[0]
        lines = [
            f"{run}; {'the first' if run is first else 'same texts' if run.texts == first.texts else 'DIFFERENT TEXTS'}"
            for run in self.runs
        ]
        return "\n".join(lines)


def measure_small_pool(
    config: RuntimeConfig,
    *,
    num_documents: int = 12,
    num_tokens: int = 384,
    num_requests: int = 48,
    share: float = 0.25,
    tell: Callable[[str], None] = lambda line: None,
) -> SmallPool:
    """Run the requests with each pool.

    Args:
        num_tokens: of each document.
        share: of the pages of all documents and their tails that the small pool has.
    """
    size = config.page_size
    per_document = -(-(num_tokens + _TAIL + _OUTPUT) // size)
    working_set = num_documents * per_document
    small = max(int(working_set * share), per_document + 1)
    large = working_set + num_requests * (-(-(_TAIL + _OUTPUT) // size) + 1)
    runs = list[PoolRun]()

    def run(name: str, num_pages: int, **settings: object) -> None:
        tell(name)
        runs.append(
            _run(name, replace(config, num_pages=num_pages, **settings), num_documents, num_tokens, num_requests)  # type: ignore[arg-type]
        )
        tell(str(runs[-1]))

    with TemporaryDirectory() as folder:
        run("a pool for all", large)
        run("a small pool", small)
        run("with a tier in memory", small, cache_host_bytes=4 << 30)
        run("with a tier on disk", small, cache_dir=folder)
        run("after a restart", small, cache_dir=folder)
        for path in sorted(Path(folder).rglob("*.page"))[::3]:
            content = bytearray(path.read_bytes())
            content[-1] ^= 1
            path.write_bytes(content)
        run("with damaged files", small, cache_dir=folder)
    return SmallPool(tuple(runs))


def _run(name: str, config: RuntimeConfig, num_documents: int, num_tokens: int, num_requests: int) -> PoolRun:
    random = Random(0)
    with Runtime(config=config) as runtime:
        vocab_size = runtime.text_service.info.vocab_size

        def tokens(count: int) -> list[int]:
            return [random.randrange(3, vocab_size) for _ in range(count)]

        documents = [tokens(num_tokens) for _ in range(num_documents)]
        waiting = list[Generation]()
        ends = []
        started = time.perf_counter()
        for number in range(num_requests):
            prompt = _part(random, documents) + tokens(_TAIL)
            params = SamplingParams(max_tokens=_OUTPUT, temperature=float(number % 2), ignore_eos=True)
            waiting.append(runtime.generate(token_ids=prompt, params=params, seed=number))
            if len(waiting) == NUM_AT_ONCE:
                ends.append(waiting.pop(0).result())
        ends += [each.result() for each in waiting]
        seconds = time.perf_counter() - started
        stats = runtime.stats()
    return PoolRun(
        name,
        stats["num_pages"],
        seconds,
        tuple(end.completions[0].token_ids for end in ends),
        stats["num_pages_evicted"],
        sum(end.usage.host_tokens for end in ends),
        sum(end.usage.disk_tokens for end in ends),
        sum(count for key, count in stats.items() if key.startswith("num_pages_recomputed_")),
    )


def _part(random: Random, documents: Sequence[list[int]]) -> list[int]:
    document = random.choice(documents)
    return document[: random.choice((len(document), len(document), random.randint(1, len(document))))]


@with_settings(RuntimeConfig, "settings")
def bench_tiers(
    settings: dict[str, Any],
    documents: Annotated[int, typer.Option(min=2, max=10_000, help="Documents that requests continue.")] = 12,
    tokens: Annotated[int, typer.Option(min=16, max=1_000_000, help="Tokens of each document.")] = 384,
    requests: Annotated[int, typer.Option(min=1, max=1_000_000, help="Requests.")] = 48,
    share: Annotated[float, typer.Option(min=0.01, max=1.0, help="Share of the working set in the small pool.")] = 0.25,
    shape: Shape = None,
) -> None:
    """Compare texts with a small KV pool and tiers below it to those with a large pool, also after a restart and with damaged files.

    Exits with code 1 if a text differs.
    """
    with one_line_errors(), config_of(settings, shape) as config:
        with progress() as tell:
            found = measure_small_pool(
                config, num_documents=documents, num_tokens=tokens, num_requests=requests, share=share, tell=tell
            )
        show(found)


app = command(bench_tiers)

if __name__ == "__main__":
    app()
