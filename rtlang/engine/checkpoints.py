"""Chooses the positions of a prompt at which the state of a sequence is kept as a checkpoint. A pure function.

A sequence that begins like a stored one continues from the deepest checkpoint on their common prefix; the tokens after it are computed
again. A state is as large as the K and V of 10 to 3,000 tokens, so it is kept where other sequences are expected to continue:

- at the ends where a graph branches, where a constant prefix, a turn or a message ends (`RequestSpec.branch_points`),
- at the end of the prompt; the end of the generation needs no choice, since the request leaves its own slot there,
- at a junction found late: the pages of a prefix were stored, but no state. The request that computes them again keeps one for the next,
- every m tokens, if a state is smaller than a quarter of the K and V of m tokens.

Pages enter the tree when they are full. A state inside the last page of a prompt could not be found, so it is kept at the start of that
page. If the budget is too small for all positions, they are chosen one after the other, each time the one that spares the expected
visitors most tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

KV_SHARE = 4
"""A state every m tokens takes at most 1 / KV_SHARE of the memory of their K and V."""

BRANCH_WEIGHT, END_WEIGHT, JUNCTION_WEIGHT = 4.0, 1.0, 2.0
"""Expected visitors of a branch point, of the end of a prompt, and of a junction found late, relative to each other."""

MAX_POINTS = 64
"""Maximum number of branch points of a prompt that are considered, the last ones."""


class StateSizes(NamedTuple):
    """Bytes of the state of one sequence, and of the K and V of one token."""

    state_bytes: int
    token_bytes: float = 0.0

    def stride(self, page_size: int) -> int | None:
        """The smallest number of tokens, in whole pages, between states that are kept everywhere; None if K and V take no memory."""
        if not self.token_bytes:
            return None
        return max(1, -(-int(KV_SHARE * self.state_bytes / self.token_bytes) // page_size)) * page_size


def choose(
    num_tokens: int,
    page_size: int,
    sizes: StateSizes,
    budget_bytes: int,
    *,
    branch_points: Iterable[int] = (),
    num_in_pages: int = 0,
    num_state_tokens: int = 0,
    keeps_end: bool = True,
) -> tuple[int, ...]:
    """The positions of a prompt at which to keep states, ascending, each in a page that the prompt fills.

    Args:
        num_tokens: of the prompt. A state after its last token serves no sequence that needs the logits of that token.
        budget_bytes: for the states of this prompt.
        branch_points: positions at which other sequences are expected to go on.
        num_in_pages: tokens that were found in stored pages.
        num_state_tokens: position of the state that it goes on from.
        keeps_end: whether its end and the positions every m tokens count.
    """
    num_left = budget_bytes // sizes.state_bytes
    last = (num_tokens - 1) // page_size * page_size
    weights: dict[int, float] = {}

    def expect(position: int, weight: float) -> None:
        if -(-position // page_size) * page_size > num_tokens:  # its page is not full: others would not find it there
            position = min(position, last) // page_size * page_size
        if position - num_state_tokens >= page_size:
            weights[position] = weights.get(position, 0.0) + weight

    for point in sorted(branch_points)[-MAX_POINTS:]:
        expect(point, BRANCH_WEIGHT)
    expect(num_in_pages, JUNCTION_WEIGHT)
    if keeps_end:
        expect(last, END_WEIGHT)
    chosen = _most_sparing(weights, num_state_tokens, num_left)
    stride = sizes.stride(page_size) if keeps_end else None
    if stride is not None and (num_free := num_left - len(chosen)) > 0:
        even = -(-(last - num_state_tokens) // (num_free + 1) // page_size) * page_size
        stride = max(stride, even)
        first = num_state_tokens // stride * stride + stride
        near = sorted({num_state_tokens, *chosen})
        periodic = [
            each for each in range(first, last, stride) if all(abs(each - other) >= stride / 2 for other in near)
        ]
        chosen += periodic[:num_free]
    return tuple(sorted(chosen))


def _most_sparing(weights: dict[int, float], start: int, count: int) -> list[int]:
    """Up to `count` of the positions: each time the one that spares the visitors of all positions most tokens."""
    chosen: list[int] = []
    before = dict.fromkeys(weights, start)  # the deepest state that a visitor of the position finds so far
    while len(chosen) < count and len(chosen) < len(weights):

        def spared(position: int) -> tuple[float, int]:
            gains = (weights[each] * (position - before[each]) for each in weights if before[each] < position <= each)
            return sum(gains), position

        best = max((each for each in weights if each not in chosen), key=spared)
        chosen.append(best)
        for each in weights:
            if best <= each:
                before[each] = max(before[each], best)
    return chosen


def common_position(a: Sequence[int], b: Sequence[int], limit: int, page_size: int) -> int:
    """The number of tokens in whole pages with which both sequences begin, at most `limit`."""
    low, high = 0, min(len(a), len(b), limit)
    while low < high:  # bisection on slices, which compare at C speed
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low // page_size * page_size
