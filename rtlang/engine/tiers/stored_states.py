"""States of recurrent layers in the tiers below the pool: where one may be stored, and which ones are worth storing.

A sequence of a model with recurrent layers goes on from a state only, so pages behind the deepest state in reach save nothing. A prompt is
therefore looked up backwards, from the end of its stored pages: at the end of each page, where most states are kept, and near the end at
each token, since the state at the end of a generation lies anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rtlang.cache.node import pack
from rtlang.cache.tiers.digest import state_digest, tail_digest

NUM_PAGES_EACH_TOKEN = 2
"""A state is looked for at each token of so many pages: the one behind the stored pages, and those before it."""
NUM_TOKENS_WITHOUT_KV = 1024
"""The same for a model without keys and values, whose stored pages are not known: tokens before the end of the prompt."""
MAX_KV_RATIO = 4
"""A state that was never used is stored if it takes at most so many times the bytes of the K and V of the tokens that it spares."""


class StoredState(NamedTuple):
    """A state that may be stored below.

    Attributes:
        position: number of tokens that it is the state after.
        digest: of the state.
        tail_digest: of the page up to the position, which is needed with it; None if the whole pages contain the position.
    """

    position: int
    digest: bytes
    tail_digest: bytes | None = None

    def num_pages(self, page_size: int) -> int:
        """The number of whole pages that must be there for it."""
        return self.position // page_size if self.tail_digest else -(-self.position // page_size)


def possible_states(
    root: bytes,
    digests: Sequence[bytes],
    token_ids: Sequence[int],
    page_size: int,
    start: int,
    namespace: str = "",
    num_public: int = 0,
    *,
    has_kv: bool = True,
) -> Iterator[StoredState]:
    """The states to look for, the deepest first.

    Args:
        root, digests: the digest before the first page, and those of the pages that can be reached, from the first on.
        token_ids: of the sequence; a state may be needed after all of them at most.
        start: position of the state that is there already; deeper ones are of use only.
        namespace, num_public: see `sequence_digests`.
        has_kv: False for a model without keys and values.
    """
    end = len(digests) * page_size
    first_each = end - (NUM_PAGES_EACH_TOKEN - 1) * page_size if has_kv else end - NUM_TOKENS_WITHOUT_KV
    for position in range(min(len(token_ids), end + page_size - 1), start, -1):
        num_before, num_rest = divmod(position, page_size)
        if num_rest and position < first_each:
            break
        yield _at(root, digests, token_ids, page_size, position, namespace, num_public)
    else:
        return
    for position in range(num_before * page_size, start, -page_size):
        yield StoredState(position, state_digest(digests[position // page_size - 1], "", b""))


def _at(
    root: bytes,
    digests: Sequence[bytes],
    token_ids: Sequence[int],
    page_size: int,
    position: int,
    namespace: str,
    num_public: int,
) -> StoredState:
    num_before, num_rest = divmod(position, page_size)
    before = digests[num_before - 1] if num_before else root
    if not num_rest:
        return StoredState(position, state_digest(before, "", b""))
    name = namespace if position > num_public else ""
    tokens = pack(token_ids[position - num_rest : position])
    needs_tail = num_before == len(digests)
    return StoredState(
        position,
        state_digest(before, name, tokens),
        tail_digest(before, name, tokens) if needs_tail else None,
    )


def is_worth_storing(
    num_spared: int,
    num_uses: int,
    state_bytes: int,
    token_bytes: float,
    compute_s: float | None = None,
    load_s: float | None = None,
) -> bool:
    """Whether a checkpoint is worth its bytes in the tiers below.

    Args:
        num_spared: tokens since the checkpoint above it that is stored there.
        num_uses: the times that it was kept or matched.
        token_bytes: of the K and V of a token; 0 for a model without them, whose states are always worth it.
        compute_s, load_s: seconds for computing these tokens, and for loading a state; None if unknown.
    """
    if num_uses < 2 and token_bytes and state_bytes > MAX_KV_RATIO * token_bytes * num_spared:
        return False
    return compute_s is None or load_s is None or load_s < compute_s
