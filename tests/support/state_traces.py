"""Compares the orders of eviction of checkpoints on simulated traces: the share of prompt tokens that need not be computed.

python -m tests.support.state_traces

The requests are those of `eviction_traces.py`, of a model with recurrent layers. Each keeps the state where its match of whole pages ended,
at the end of its prompt, and at the end of its output. There is one slot for so many pages of the pool.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from statistics import mean

from rtlang.cache.node_states import NodeStates
from rtlang.cache.prefix_cache import PrefixCache
from rtlang.cache.states import Checkpoint, StatePool
from tests.support.eviction_traces import PAGE_SIZE, SHARES, TRACES, Request, hit_rate

PAGES_PER_SLOT = (99, 40)
"""A state of a Qwen3.5 model is as large as 99 pages of its keys and values."""
MIN_SLOTS = 6


class RecentStates(StatePool):
    """A pool that evicts the least recently used checkpoint."""

    def __init__(self, num_slots: int) -> None:
        super().__init__(num_slots)
        self._num_uses = 0

    def touch(self, checkpoint: Checkpoint) -> None:
        super().touch(checkpoint)
        self._num_uses += 1
        checkpoint.last_access = self._num_uses


def state_hit_rate(requests: Sequence[Request], num_pages: int, num_states: int, *, recent: bool = False) -> float:
    """The share of prompt tokens before the checkpoints that are found, with so many slots."""
    cache = PrefixCache(num_pages, PAGE_SIZE, num_states=num_states)
    if recent:
        cache.states = RecentStates(num_states)
        cache._tree.states = NodeStates(cache.states, PAGE_SIZE)
        cache.states.count_spared = lambda checkpoint: 0
    pool = cache.states
    assert pool is not None
    for prompt, output in requests:
        tokens = [*prompt, *output]
        match = cache.match(prompt, len(prompt) - 1)
        cache.lock(match.node)
        if match.state_slot is not None:
            pool.lock(match.state_slot)
        page_ids = cache.allocate(-(-len(tokens) // PAGE_SIZE) - len(match.page_ids))
        assert page_ids is not None, "a prompt is larger than the pool"
        end = len(tokens) // PAGE_SIZE * PAGE_SIZE
        num_new = (end - match.num_tokens) // PAGE_SIZE
        added = tokens[match.num_tokens : end]
        node, _ = cache.extend(match.node, added, page_ids[:num_new], start=match.num_tokens)
        cache.commit()
        junction = [match.num_tokens] if match.num_tokens > match.num_state_tokens else []
        for position in (*junction, len(prompt)):
            slot = pool.allocate()
            assert slot is not None
            cache.keep_state(node, position, slot)
        slot = pool.allocate()
        assert slot is not None
        cache.finish(node, tokens[end:], page_ids[num_new:], start=end, state=(len(tokens), slot))
        if match.state_slot is not None:
            pool.unlock(match.state_slot)
    return cache.stats.num_hit_tokens / cache.stats.num_queried_tokens


def table(seeds: Sequence[int], names: Sequence[str] = tuple(TRACES)) -> str:
    """The rates without states, and with both orders, means over seeds, as a markdown table."""
    lines = ["| trace | pool | pages a slot | without states | recent | value |", "|---|---|---|---|---|---|"]
    for name in names:
        traces = [list(TRACES[name](seed)) for seed in seeds]
        longest = max(len(prompt) + len(output) for trace in traces for prompt, output in trace) // PAGE_SIZE + 1
        sizes = [hit_rate(trace, 1 << 20)[1] for trace in traces]
        for share in SHARES:
            pools = [max(longest, int(share * size)) for size in sizes]
            runs = list(zip(traces, pools, strict=True))
            dense = mean(hit_rate(trace, pool, "valuable")[0] for trace, pool in runs)
            for per_slot in PAGES_PER_SLOT:
                recent, value = (
                    mean(
                        state_hit_rate(each, pool, max(MIN_SLOTS, pool // per_slot), recent=order)
                        for each, pool in runs
                    )
                    for order in (True, False)
                )
                lines.append(f"| {name} | {share:.0%} | {per_slot} | {dense:.3f} | {recent:.3f} | {value:.3f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Hit rates of the orders of eviction of checkpoints on simulated traces."
    )
    parser.add_argument("--seeds", type=int, default=3, help="traces of each kind; default: 3")
    options = parser.parse_args()
    if not 1 <= options.seeds <= 100:
        parser.error("--seeds: expected 1 to 100")
    print(table(range(options.seeds)))


if __name__ == "__main__":
    main()
