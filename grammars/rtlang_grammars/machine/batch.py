"""Masks of many matchers, or of a tree of draft tokens, in one call.

The matchers may follow different grammars over one vocabulary. Python looks for each mask in the caches of its grammar; compiled code
computes those that are missing, and then writes all rows in one call. Compiled code does not hold the interpreter lock.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.machine.matcher import MachineMatcher
from rtlang_grammars.machine.token_index.mask import Mask, write_rows
from rtlang_grammars.spec.errors import EmptyMaskError
from rtlang_grammars.spec.protocols import GrammarMatcher


def fill_batch(matchers: Sequence[GrammarMatcher], bitmask: NDArray[np.int32]) -> None:
    """Write the allowed tokens of matchers[i] into row i, as `GrammarMatcher.fill_bitmask` does one at a time.

    Args:
        matchers: of any backend, over one vocabulary. Different calls may run in different threads; a matcher belongs to one of them.
        bitmask: int32 [len(matchers), ceil(vocab_size / 32)], C-contiguous; completely overwritten.
    Raises:
        ValueError: `bitmask` has another shape, type or layout.
        GrammarError: a grammar needs more states than its limits allow, or no token may follow an incomplete text (EmptyMaskError). The
            rows are undefined then; find the matcher with `fill_bitmask`.
    """
    _check(bitmask, len(matchers))
    write_rows([find_mask(matcher, row) for matcher, row in zip(matchers, bitmask, strict=True)], bitmask)


def find_mask(matcher: GrammarMatcher, row: NDArray[np.int32]) -> Mask | None:
    """The mask that belongs into `row`, for `write_rows`; None: `row` is written already, as matchers of other libraries do.

    Raises:
        ValueError, GrammarError: as `fill_bitmask`.
    """
    if isinstance(matcher, MachineMatcher):
        return matcher.find_mask(row)
    matcher.fill_bitmask(row)
    return None


def fill_tree(
    matcher: GrammarMatcher, token_ids: Sequence[int], parents: Sequence[int], bitmask: NDArray[np.int32]
) -> list[bool]:
    """Write the tokens that may follow each node of a tree of draft tokens. Does not change the matcher.

    Args:
        token_ids: the token of each node.
        parents: for each node the index of an earlier node, which it follows, or -1: it follows the text so far.
        bitmask: int32 [len(token_ids), ceil(vocab_size / 32)], C-contiguous; row i belongs to node i. Zeros where nothing may follow: after
            an end token, after nodes that are not allowed, and where no token may follow an incomplete text.
    Returns:
        For each node, whether it is allowed after the nodes before it.
    Raises:
        ValueError: `bitmask` has another shape, type or layout; or a parent is not an earlier node.
        GrammarError: as `fill_batch`.
    """
    if len(token_ids) != len(parents):
        raise ValueError(f"{len(token_ids)} token_ids and {len(parents)} parents: expected as many parents as tokens")
    _check(bitmask, len(token_ids))
    nodes: list[GrammarMatcher | None] = []
    masks: list[Mask | None] = []
    for index, (token_id, parent) in enumerate(zip(token_ids, parents, strict=True)):
        if not -1 <= parent < index:
            raise ValueError(f"parents[{index}] = {parent}: expected -1 or the index of an earlier node")
        before = matcher if parent < 0 else nodes[parent]
        node = None if before is None else before.fork()
        if node is not None and node.accept_token(token_id):
            nodes.append(node)
            try:
                masks.append(find_mask(node, bitmask[index]))
            except EmptyMaskError:  # the text need not go this way
                masks.append(None)
                bitmask[index].fill(0)
        else:
            nodes.append(None)
            masks.append(None)
            bitmask[index].fill(0)
    write_rows(masks, bitmask)
    return [node is not None for node in nodes]


def _check(bitmask: NDArray[np.int32], num_rows: int) -> None:
    if bitmask.ndim != 2 or len(bitmask) != num_rows or bitmask.dtype != np.int32 or not bitmask.flags.c_contiguous:
        raise ValueError(
            f"bitmask is {bitmask.dtype} {bitmask.shape}: expected contiguous int32 with one row for each of {num_rows}"
        )
