"""Divides the memory of the cache between KV pages and recurrent states.

A model with recurrent layers needs a state for each running sequence, and more to keep as checkpoints of prefixes. The usual sequence of
`usual_pages` pages gets one of each; models with small states get as many as an eighth of the memory holds. Where all layers are recurrent,
pages have no bytes: their number is only that of tokens which the cache can tell apart.
"""

from __future__ import annotations

from dataclasses import dataclass

LEAST_STATES = 2
"""States without which not even one sequence runs: its own, and the one that its step writes."""
_LEAST_CHECKPOINTS = 8
_FREE_SHARE = 8  # an eighth of the memory is for states in any case
_MAX_BARE_PAGES = 1 << 18  # pages without bytes cost the host 100 bytes each


@dataclass(frozen=True, slots=True)
class MemoryNeeds:
    """What a model needs for its sequences.

    Attributes:
        page_bytes: bytes of a page in all layers; 0 without attention layers.
        state_bytes: bytes of a state in all layers; 0 without recurrent layers.
        usual_pages, longest_pages: pages of a usual sequence, and of the longest one.
        row_limit: maximum number of rows of a step.
    """

    page_bytes: int
    state_bytes: int
    usual_pages: int
    longest_pages: int
    row_limit: int

    def sequences_bytes(self, num_sequences: int) -> int:
        """Bytes for so many usual sequences, with a state and a checkpoint each, and for the longest one."""
        each = self.usual_pages * self.page_bytes + 2 * self.state_bytes
        rest = (LEAST_STATES + _LEAST_CHECKPOINTS) * self.state_bytes
        return num_sequences * each + self.longest_pages * self.page_bytes + rest


def divide_cache(needs: MemoryNeeds, cache_bytes: int, state_fraction: float | None) -> tuple[int, int]:
    """Numbers of pages and of states that fit into `cache_bytes`; either may be too small to run anything.

    Args:
        state_fraction: share of the bytes for states; None computes one.
    """
    page_bytes, state_bytes = needs.page_bytes, needs.state_bytes
    if not state_bytes:
        return cache_bytes // page_bytes, 0
    if not page_bytes:
        num_states = cache_bytes // state_bytes
        return min(num_states * needs.usual_pages + needs.longest_pages, _MAX_BARE_PAGES), num_states
    if state_fraction is not None:
        num_states = int(cache_bytes * state_fraction) // state_bytes
    else:
        num_sequences = cache_bytes // (needs.usual_pages * page_bytes + 2 * state_bytes)
        wanted = max(LEAST_STATES, _balanced(needs, num_sequences, cache_bytes))
        num_states = min(wanted, max(0, cache_bytes - 2 * page_bytes) // state_bytes)
    return (cache_bytes - num_states * state_bytes) // page_bytes, num_states


def states_beside(needs: MemoryNeeds, num_pages: int, free_bytes: int, state_fraction: float | None = None) -> int:
    """Number of states beside a given number of pages, within `free_bytes`, which may be negative.

    Args:
        state_fraction: share of the bytes of pages and states for states; None computes one.
    """
    if not needs.state_bytes:
        return 0
    if state_fraction is not None and needs.page_bytes:  # f of the whole: pages take 1 - f
        wanted = int(num_pages * needs.page_bytes * state_fraction / (1 - state_fraction)) // needs.state_bytes
    else:
        wanted = needs.row_limit + max(_LEAST_CHECKPOINTS, num_pages // needs.usual_pages)
    return min(wanted, max(0, free_bytes) // needs.state_bytes)


def _balanced(needs: MemoryNeeds, num_sequences: int, cache_bytes: int) -> int:
    """States for the rows of a step and for checkpoints, where the pages hold so many usual sequences."""
    cheap = cache_bytes // _FREE_SHARE // needs.state_bytes
    running = min(max(num_sequences, cheap, 1), needs.row_limit)
    checkpoints = max(num_sequences, min(cheap, cache_bytes // 2 // needs.page_bytes))  # of small ones, one a page
    half = cache_bytes // 2 // needs.state_bytes
    return max(running + checkpoints, min(running + _LEAST_CHECKPOINTS, half))
