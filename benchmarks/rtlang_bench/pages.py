"""Measures when pages of another engine pay.

python -m rtlang_bench.pages --dtype float32

One runtime computes prompts and serves their pages, another one continues the same prompts. For each length of the prompt and each speed of
the link between them: the time of computing, the time of fetching all pages, and the first token and the choice of the second runtime. Its
rule compares the two by its own measurements (`engine/tiers/fetch_price.py`). The texts of both must be the same.
"""

from __future__ import annotations

import random
import socket
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import typer

from rtlang.cache.tiers.digest import sequence_digests
from rtlang.cache.tiers.peers.peer_tier import PeerTier
from rtlang.console.one_line_errors import one_line_errors
from rtlang.console.options import with_settings
from rtlang.console.source import CommandError
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.params import SamplingParams
from rtlang.runtime.runtime import Runtime
from rtlang_bench.command import Shape, command, config_of, progress, show
from rtlang_bench.slow_link import SlowLink

LINKS: dict[str, float | None] = {"loopback": None, "1 Gbit/s": 125e6, "100 Mbit/s": 12.5e6, "10 Mbit/s": 1.25e6}
"""Bytes per second by name; None for what the machine gives."""
_NUM_WARM = 3
_WAIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Exchange:
    """One length of the prompt over one link; seconds are medians.

    Attributes:
        prefill_s: to the first token of the runtime that computes.
        fetch_s: of fetching all pages, the question included.
        chosen_s: to the first token of the runtime that may fetch.
        num_fetched: tokens that it fetched, the median.
    """

    link: str
    num_tokens: int
    prefill_s: float
    fetch_s: float
    chosen_s: float
    num_fetched: int
    is_same_text: bool

    @property
    def is_fetched(self) -> bool:
        """Whether the rule chose to fetch most of the prompt."""
        return self.num_fetched > self.num_tokens / 2

    def __str__(self) -> str:
        return (
            f"{self.link:>10} {self.num_tokens:7} {1000 * self.prefill_s:11.1f} {1000 * self.fetch_s:9.1f} "
            f"{self.prefill_s / self.fetch_s:7.1f}x {1000 * self.chosen_s:14.1f} {self.num_fetched:7}  "
            f"{'same text' if self.is_same_text else 'DIFFERENT TEXT'}"
        )


@dataclass(frozen=True, slots=True)
class PageExchange:
    """All rows, and the transport alone.

    Attributes:
        bytes_per_s: of fetching the pages of the longest prompt over loopback without a relay, the most of three rounds.
    """

    page_bytes: int
    page_size: int
    bytes_per_s: float
    rows: tuple[Exchange, ...]

    @property
    def is_met(self) -> bool:
        """Whether all texts are the same."""
        return all(row.is_same_text for row in self.rows)

    def __str__(self) -> str:
        lines = [
            f"pages of {self.page_bytes:,} bytes and {self.page_size} tokens; over loopback {self.bytes_per_s / 1e6:,.0f} MB/s",
            "      link  tokens  prefill ms  fetch ms  prefill/fetch  with peers ms  fetched",
            *map(str, self.rows),
        ]
        for link in dict.fromkeys(row.link for row in self.rows):
            lengths = [row.num_tokens for row in self.rows if row.link == link and row.is_fetched]
            lines.append(f"{link}: " + (f"fetched from {min(lengths)} tokens on" if lengths else "computed"))
        return "\n".join(lines)


def measure_page_exchange(
    config: RuntimeConfig,
    *,
    lengths: Sequence[int] = (48, 96, 192, 384, 768),
    links: Sequence[str] = tuple(LINKS),
    rounds: int = 3,
    tell: Callable[[str], None] = lambda line: None,
) -> PageExchange:
    """Measure every length over every link, `rounds` times with prompts of their own.

    Args:
        lengths: of prompts, in tokens; at least two pages each.
    """
    num_pages = max(config.num_pages or 0, 2 * -(-max(lengths) // config.page_size) + 8)
    none = dict.fromkeys(("cache_host_bytes", "cache_dir", "cache_listen", "cache_peers", "cache_secret"))
    config = replace(config, num_pages=num_pages, **none)  # type: ignore[arg-type]
    host, port = "127.0.0.1", _free_port()
    serving = replace(config, cache_host_bytes=4 << 30, cache_listen=f"{host}:{port}")
    with (
        Runtime(config=serving) as computes,
        SlowLink((host, port)) as link,
        Runtime(config=replace(config, cache_peers=f"{link.address[0]}:{link.address[1]}")) as fetches,
    ):
        bench = _Bench(computes, fetches, link)
        with bench.connected():
            rows = list[Exchange]()
            bench.round(max(lengths), 0)
            with bench.peer((host, port)) as direct:
                best = max(bench.transport(direct) for _ in range(3))
            for name in links:
                link.bytes_per_s = LINKS[name]
                for number in range(_NUM_WARM):
                    bench.round(max(lengths), -1 - number)  # the rule learns the speed of the link
                for length in lengths:
                    tell(f"{name}, {length} tokens")
                    found = [bench.round(length, number) for number in range(rounds)]
                    rows.append(_row(name, length, found))
                    tell(str(rows[-1]))
        return PageExchange(bench.page_bytes, config.page_size, best, tuple(rows))


@dataclass(frozen=True, slots=True)
class _Round:
    prefill_s: float
    fetch_s: float
    chosen_s: float
    num_fetched: int
    is_same_text: bool


class _Bench:
    """The two runtimes, and a client of the pages of the first one."""

    def __init__(self, computes: Runtime, fetches: Runtime, link: SlowLink) -> None:
        self._computes, self._fetches = computes, fetches
        engine, memory = computes._engine, computes._runner.page_memory  # type: ignore[union-attr]
        assert engine is not None
        assert memory is not None
        self.page_bytes, self._page_size = memory.page_bytes, engine.cache.page_size
        self._root = engine.cache.digests.root
        self._vocab_size = computes.text_service.info.vocab_size
        self._random = random.Random(0)
        self._link = link
        self._digests: list[bytes] = []  # of the last prompt

    @contextmanager
    def peer(self, address: tuple[str, int]) -> Iterator[PeerTier]:
        """A client of the first runtime's pages."""
        tier = PeerTier([address], b"", self._root, b"bench", self.page_bytes)
        try:
            tier.connect()
            yield tier
        finally:
            tier.close()

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Connect everything."""
        with self.peer(self._link.address) as self._tier:
            _wait(lambda: bool(self._tier.stats.num_connected and self._fetches.stats()["num_peers_connected"]))
            yield

    def transport(self, tier: PeerTier) -> float:
        """Bytes per second of the pages of the last prompt."""
        return len(self._digests) * self.page_bytes / self._fetch(tier, self._digests)

    def round(self, length: int, number: int) -> _Round:
        """One new prompt: computed, fetched by itself, and continued by the runtime that may fetch."""
        prompt = [self._random.randrange(3, self._vocab_size) for _ in range(length)]
        params = SamplingParams(max_tokens=4, temperature=float(number % 2), ignore_eos=True)
        prefill_s, text, _ = self._first_token(self._computes, prompt, params)
        num_pages = (length - 1) // self._page_size
        self._digests = sequence_digests(self._root, prompt, self._page_size, num_pages)
        _wait(self._are_stored)
        fetch_s = self._fetch(self._tier, self._digests)
        chosen_s, other, num_fetched = self._first_token(self._fetches, prompt, params)
        return _Round(prefill_s, fetch_s, chosen_s, num_fetched, text == other)

    def _are_stored(self) -> bool:
        self._tier.ask(self._digests)
        return all(map(self._tier.has, self._digests))

    def _fetch(self, tier: PeerTier, digests: Sequence[bytes]) -> float:
        pool = np.zeros((len(digests), self.page_bytes), dtype=np.uint8)
        started = time.perf_counter()
        tier.ask(digests)
        tier.expect(digests)
        for digest, out in zip(digests, pool, strict=True):
            page = tier.get(digest)
            assert page is not None, "the link is too slow for a page"
            out[:] = np.frombuffer(page, dtype=np.uint8)
        tier.expect(())
        return time.perf_counter() - started

    @staticmethod
    def _first_token(
        runtime: Runtime, prompt: Sequence[int], params: SamplingParams
    ) -> tuple[float, tuple[int, ...], int]:
        """Seconds to the first token, all tokens, and the number of prompt tokens that came from a peer."""
        started = time.perf_counter()
        generation = runtime.generate(token_ids=prompt, params=params, seed=1)
        next(iter(generation))
        seconds = time.perf_counter() - started
        end = generation.result()
        return seconds, end.completions[0].token_ids, end.usage.peer_tokens


def _row(link: str, length: int, found: Sequence[_Round]) -> Exchange:
    return Exchange(
        link,
        length,
        statistics.median(each.prefill_s for each in found),
        statistics.median(each.fetch_s for each in found),
        statistics.median(each.chosen_s for each in found),
        int(statistics.median(each.num_fetched for each in found)),
        all(each.is_same_text for each in found),
    )


def _wait(is_done: Callable[[], bool]) -> None:
    end = time.monotonic() + _WAIT_S
    while not is_done():
        if time.monotonic() > end:
            raise TimeoutError("the peer has no connection or not all pages")
        time.sleep(0.01)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@with_settings(RuntimeConfig, "settings")
def bench_pages(
    settings: dict[str, Any],
    tokens: Annotated[
        str, typer.Option(help="Lengths of prompts in tokens, separated by commas.", metavar="N,N")
    ] = "48,96,192,384,768",
    rounds: Annotated[int, typer.Option(min=1, max=1000, help="Prompts of each length.")] = 3,
    shape: Shape = None,
) -> None:
    """Measure when fetching the KV pages of another engine takes less time than computing them, by length of prompt and speed of link.

    Exits with code 1 if a text differs.
    """
    with one_line_errors(), config_of(settings, shape) as config:
        try:
            lengths = [int(each) for each in tokens.split(",")]
        except ValueError:
            lengths = []
        if not lengths or min(lengths) < 2 * config.page_size:
            raise CommandError(
                f"--tokens {tokens}: expected numbers of at least {2 * config.page_size}, separated by commas"
            )
        with progress() as tell:
            found = measure_page_exchange(config, lengths=lengths, rounds=rounds, tell=tell)
        show(found)


app = command(bench_pages)

if __name__ == "__main__":
    app()
