"""Compares the orders of eviction on simulated traces: the share of prompt tokens that the cache has, without a model.

python -m tests.support.eviction_traces

Requests come one after the other; each computes its prompt and its output, and leaves them in the cache. The pool has a share of the pages
of all sequences together.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from statistics import mean

from rtlang.cache.eviction import ORDERS
from rtlang.cache.prefix_cache import PrefixCache

PAGE_SIZE = 16
NUM_OUTPUT_TOKENS = 48
SHARES = (0.15, 0.4)
Request = tuple[list[int], list[int]]
"""The tokens of a prompt, and of its output."""


class _Trace:
    """Makes token sequences; equal names give equal tokens."""

    def __init__(self, seed: int, first_token: int = 0) -> None:
        self.random = random.Random(seed)
        self._texts: dict[object, list[int]] = {}
        self._next = first_token

    def text(self, name: object, num_tokens: int) -> list[int]:
        """The text of this name."""
        if name not in self._texts:
            self._texts[name] = self.new(num_tokens)
        return self._texts[name]

    def new(self, num_tokens: int) -> list[int]:
        """A text that no other contains."""
        self._next += num_tokens
        return list(range(self._next - num_tokens, self._next))

    def popular(self, number: int, exponent: float) -> int:
        """One of `number` things, with Zipf's popularity."""
        weights = list(accumulate((rank + 1) ** -exponent for rank in range(number)))
        return self.random.choices(range(number), cum_weights=weights)[0]


def documents(seed: int) -> Iterator[Request]:
    """Questions about 60 documents of 256 to 4,096 tokens, some far more popular than others."""
    trace = _Trace(seed)
    for _ in range(240):
        document = trace.popular(60, 0.9)
        yield trace.text(document, 256 << document % 5) + trace.new(40), trace.new(NUM_OUTPUT_TOKENS)


def documents_and_scans(seed: int) -> Iterator[Request]:
    """The same, and every second prompt is one that never comes again."""
    other = _Trace(-1 - seed, 1 << 30)
    for request in documents(seed):
        yield request
        yield other.new(other.random.randrange(256, 3000)), other.new(NUM_OUTPUT_TOKENS)


def chats(seed: int) -> Iterator[Request]:
    """Conversations of 2 to 12 turns with 4 system prompts, 25 of them open at a time."""
    trace = _Trace(seed)
    is_open: list[tuple[list[int], int]] = []
    for _ in range(300):
        while len(is_open) < 25:
            system = trace.text(("system", trace.popular(4, 1.0)), 400)
            is_open.append((list(system), trace.random.randint(2, 12)))
        index = trace.random.randrange(len(is_open))
        sequence, num_turns = is_open.pop(index)
        sequence = sequence + trace.new(trace.random.randint(20, 200))
        output = trace.new(trace.random.randint(20, 200))
        yield sequence, output
        if num_turns > 1:
            is_open.append((sequence + output, num_turns - 1))


def agents(seed: int) -> Iterator[Request]:
    """Agents of 10 to 30 steps over shared instructions, each step with a tool's result; 8 run at a time."""
    trace = _Trace(seed)
    running: list[tuple[list[int], int]] = []
    for _ in range(300):
        while len(running) < 8:
            running.append((trace.text("instructions", 1200) + trace.new(100), trace.random.randint(10, 30)))
        sequence, num_steps = running.pop(0)
        sequence = sequence + trace.new(trace.random.randint(60, 400))
        output = trace.new(NUM_OUTPUT_TOKENS)
        yield sequence, output
        if num_steps > 1:
            running.append((sequence + output, num_steps - 1))


def trees(seed: int) -> Iterator[Request]:
    """Trees of thought, 4 levels of 3 branches each, 3 of them at a time, after a shared introduction."""
    trace = _Trace(seed)
    for _ in range(3):
        level = [[trace.text("introduction", 800) + trace.new(200)] for _ in range(3)]
        for _ in range(4):
            grown: list[list[list[int]]] = [[], [], []]
            for number, sequences in enumerate(level):
                for sequence in sequences:
                    for _ in range(3):
                        thought = trace.new(60)
                        yield sequence, thought
                        grown[number].append(sequence + thought)
            level = [trace.random.sample(sequences, min(3, len(sequences))) for sequences in grown]


TRACES: dict[str, Callable[[int], Iterator[Request]]] = {
    "documents": documents,
    "documents and scans": documents_and_scans,
    "chats": chats,
    "agents": agents,
    "trees": trees,
}


def hit_rate(requests: Sequence[Request], num_pages: int, order: str = "recent") -> tuple[float, int]:
    """The share of prompt tokens that are found, with an order of eviction in a pool of so many pages; and the pages stored at the end."""
    cache = PrefixCache(num_pages, PAGE_SIZE, eviction=order)
    for prompt, output in requests:
        tokens = [*prompt, *output]
        match = cache.match(prompt, len(prompt) - 1)
        cache.lock(match.node)
        pages = cache.allocate(-(-len(tokens) // PAGE_SIZE) - len(match.page_ids))
        assert pages is not None, "a prompt is larger than the pool"
        cache.finish(match.node, tokens[match.num_tokens :], pages, start=match.num_tokens)
    return cache.stats.num_hit_tokens / cache.stats.num_queried_tokens, cache.num_cached


def table(seeds: Sequence[int], names: Sequence[str] = tuple(TRACES)) -> str:
    """The hit rates of all orders, means over seeds, as a markdown table."""
    lines = [f"| trace | pool | {' | '.join(ORDERS)} |", "|---|---|" + "---|" * len(ORDERS)]
    for name in names:
        traces = [list(TRACES[name](seed)) for seed in seeds]
        longest = max(len(prompt) + len(output) for trace in traces for prompt, output in trace) // PAGE_SIZE + 1
        sizes = [hit_rate(trace, 1 << 20)[1] for trace in traces]
        for share in SHARES:
            pools = [max(longest, int(share * size)) for size in sizes]
            rates = [
                mean(hit_rate(trace, pool, order)[0] for trace, pool in zip(traces, pools, strict=True))
                for order in ORDERS
            ]
            lines.append(f"| {name} | {share:.0%} | {' | '.join(f'{rate:.3f}' for rate in rates)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Hit rates of the orders of eviction on simulated traces.")
    parser.add_argument("--seeds", type=int, default=3, help="traces of each kind; default: 3")
    options = parser.parse_args()
    if not 1 <= options.seeds <= 100:
        parser.error("--seeds: expected 1 to 100")
    print(table(range(options.seeds)))


if __name__ == "__main__":
    main()
