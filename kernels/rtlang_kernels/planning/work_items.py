"""Work items of GPU attention: which program reads which keys for which query tokens.

The input is the rectangles of the prefix tree (`shared_prefix_tiling.tree_rectangles`). A rectangle shared by several rows is retained if
reading its keys once saves more bytes than writing its partial results costs; otherwise each row below it reads the keys itself (the cut
rule). Rows are then cut into tiles of query lines and positions into splits of about equal cost, so that all multiprocessors have work; an
item is one tile x one split. The result of a token with a single item is written directly; the partial results of all other tokens are
merged in order of position, so results do not depend on timing.

In a plan with a fixed order, splits begin at multiples of SEGMENT instead, all tiles are of one class, and keys are read in blocks that
begin at multiples of SPLIT_STEP. A token then folds the same blocks in the same order, and merges the same parts, whatever else the step
has; a part that it does not see changes nothing. Shared rectangles end at such a multiple. Layers with a window read keys in one item.

Invariant: the items of a token, within the token's own bounds, tile its visible positions exactly once and in order of position.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rtlang_kernels.contract.attention_plan import AttentionPlan
from rtlang_kernels.host.numba_jit import kernel
from rtlang_kernels.planning.shared_prefix_tiling import IS_CAUSAL, ROW, ROW_END, START
from rtlang_kernels.planning.tile_sizes import LARGEST_GROUP, LINES, GpuProperties

Int32s = NDArray[np.int32]

# Fields of an item: keys at positions [P0, P1) of table row ROW, read for NUM_TOKENS tokens from TOKEN on. Every token of
# the item sees all of [FULL_LO, FULL_HI). PARTIAL is the first row of the partial results, one per token, or -1: written directly.
ITEM_ROW, P0, P1, TOKEN, NUM_TOKENS, PARTIAL, FULL_LO, FULL_HI = range(8)
ITEM_FIELDS = 8

# Header that kernels read: start of each class (len(LINES) + 1 entries), tokens to merge, width of the page table.
NUM_MERGED, TABLE_WIDTH = len(LINES) + 1, len(LINES) + 2
HEADER_WORDS = 8

MIN_SHARED = 32  # keys: a smaller shared rectangle never saves the cost of its partial results
MIN_SPLIT = 256  # keys: shorter splits cost more in merging than better balance gains
SPLIT_STEP = 64  # splits start at multiples of this within their rectangle
PROGRAMS_PER_MULTIPROCESSOR = 2  # enough to saturate memory, and few enough to all run at once
# Where lengths differ: smaller splits, longest first, so that all multiprocessors end together.
UNEVEN_PROGRAMS_PER_MULTIPROCESSOR = 6
SEGMENT = 2048  # keys of a split in a fixed order: shorter ones cost memory for partial results of long prompts
UNEVEN = 1.25  # the longest item over the average one from which lengths differ
L2_SPEEDUP = 2  # speed of reads from L2, relative to reads from memory
PARTIAL_BYTES = 4
CLASS_COST = (4, 5, 8)  # relative cost of reading one key with a tile of each class


@dataclass(frozen=True, slots=True)
class Schedule:
    """The work of one step and one kind of layer.

    Attributes:
        items: int32 [num_items, 8], by class of tile, costly ones first within a class.
        class_start: int32 [len(LINES) + 1], start of each class.
        num_partials: number of rows of partial results.
        merge_tokens: int32 [m], tokens whose result is merged.
        merge_start: int32 [m + 1], start of each token's partial rows in `merge_rows`.
        merge_rows: int32 [n], in order of position.
    """

    items: Int32s
    class_start: Int32s
    num_partials: int
    merge_tokens: Int32s
    merge_start: Int32s
    merge_rows: Int32s

    def header(self, table_width: int) -> Int32s:
        """The counts that kernels read: int32 [HEADER_WORDS]."""
        words = np.zeros(HEADER_WORDS, np.int32)
        words[: len(self.class_start)] = self.class_start
        words[NUM_MERGED], words[TABLE_WIDTH] = len(self.merge_tokens), table_width
        return words

    @property
    def class_sizes(self) -> tuple[int, ...]:
        """Number of items of each class."""
        return tuple(np.diff(self.class_start).tolist())


def schedule(
    plan: AttentionPlan,
    table: Int32s,
    first: Int32s,
    gpu: GpuProperties,
    *,
    min_shared: int = MIN_SHARED,
    min_split: int = MIN_SPLIT,
    min_saving_ratio: float = 1.0,
    is_windowed: bool = False,
) -> Schedule:
    """Cut a step into work items.

    Args:
        table: rectangles of the step, from `tree_rectangles`.
        first: int32 [num_tokens], first visible position of each token, from `first_visible`.
        min_shared: fewest keys of a shared rectangle that is retained.
        min_split: fewest keys of a split.
        is_windowed: whether the layer has a window or chunks, even if they hide nothing yet.
        min_saving_ratio: bytes that sharing must save, relative to its cost: 0 retains every rectangle of `min_shared` keys, infinity none.
    Raises:
        ValueError: more query heads per KV head than a tile has lines.
    """
    group = plan.num_q_heads // plan.num_kv_heads
    if group > LARGEST_GROUP:
        raise ValueError(f"num_q_heads / num_kv_heads = {group}: expected at most {LARGEST_GROUP}")
    shared = table[(table[:, IS_CAUSAL] == 0) & (table[:, ROW_END] - table[:, ROW] > 1)]
    order = np.lexsort((shared[:, ROW], shared[:, START]))  # enclosing rectangles come first
    item_bytes, positions = plan.dtype.itemsize, plan.token_positions()
    is_fixed = plan.has_fixed_order
    lines = LINES if not is_fixed else LINES[fixed_class(group) : fixed_class(group) + 1]
    tiles = _tiles(
        shared[order] if not (is_fixed and is_windowed) else shared[:0],
        plan.cu_seqlens_q,
        positions,
        first,
        np.int64(group),
        np.array(lines, np.int32),
        np.int64(min_shared),
        np.float64(min_saving_ratio * group * PARTIAL_BYTES / item_bytes),
        np.int64(2 * plan.num_kv_heads * plan.head_dim * item_bytes),
        np.int64(gpu.l2_bytes // 3),
        np.int32(SEGMENT if is_fixed else 1),
        np.int32(SPLIT_STEP if is_fixed else 1),
    )
    if is_fixed:
        return _in_fixed_order(tiles, fixed_class(group), plan.num_tokens, is_windowed=is_windowed)
    lines_class = np.searchsorted(LINES, tiles[:, 4] * group)
    is_sharing = bool((tiles[:, 2] <= positions[tiles[:, 3]]).any())
    for programs in (PROGRAMS_PER_MULTIPROCESSOR, UNEVEN_PROGRAMS_PER_MULTIPROCESSOR):
        num_wanted = max(1, programs * gpu.num_multiprocessors // plan.num_kv_heads)
        splits, longest = _splits(tiles, lines_class, np.array(CLASS_COST), np.int64(num_wanted), np.int64(min_split))
        if longest <= UNEVEN or is_sharing:  # splits of shared rectangles cost more in merging than they gain
            break
    lengths = tiles[:, 2].astype(np.int64) - tiles[:, 1]
    sizes = ((lengths + splits - 1) // splits + SPLIT_STEP - 1) // SPLIT_STEP * SPLIT_STEP
    return _ordered(*_items(tiles, lines_class, splits, sizes, np.int64(plan.num_tokens)))


def fixed_class(group: int) -> int:
    """The class of all tiles in a fixed order: the narrowest for which all NVIDIA processors of a kind use one matrix instruction."""
    return max(1, bisect_left(LINES, group))


def _in_fixed_order(tiles: Int32s, lines_class: int, num_tokens: int, *, is_windowed: bool) -> Schedule:
    """Split tiles at multiples of SEGMENT, or not at all, so that every token of a layer with a window has one part."""
    lengths = tiles[:, 2].astype(np.int64) - tiles[:, 1]
    sizes = lengths if is_windowed else np.full(len(tiles), SEGMENT)
    classes = np.full(len(tiles), lines_class)
    items, *rest = _items(tiles, classes, -(-lengths // sizes), sizes, np.int64(num_tokens))
    if is_windowed:  # blocks that all tokens of an item see would come before those at its lower edge
        items[:, FULL_LO] = items[:, FULL_HI] = items[:, P0]
    return _ordered(items, *rest)


def _ordered(
    items: Int32s, classes: Any, num_partials: Any, merge_tokens: Int32s, merge_start: Int32s, merge_rows: Int32s
) -> Schedule:
    costs = items[:, P1] - items[:, P0]
    order = np.lexsort((-costs, classes))  # stable: tiles of one split stay adjacent and read their keys from L2
    class_start = np.searchsorted(classes[order], np.arange(len(LINES) + 1)).astype(np.int32)
    return Schedule(items[order], class_start, int(num_partials), merge_tokens, merge_start, merge_rows)


@kernel()
def _tiles(
    shared: Any,
    cu_seqlens_q: Any,
    positions: Any,
    first: Any,
    group: Any,
    class_lines: Any,
    min_shared: Any,
    partial_ratio: Any,
    key_bytes: Any,
    l2_share: Any,
    stop_step: Any,
    first_step: Any,
) -> Any:
    """Tiles before splitting: int32 [n, 7] (row, p0, p1, token, tokens, full_lo, full_hi); shared ones first, parents first.

    Shared tiles end at multiples of `stop_step`, and begin at multiples of `first_step` as all others do.
    """
    num_rows = len(cu_seqlens_q) - 1
    limit = cu_seqlens_q[num_rows]
    for index in range(len(shared)):
        limit += cu_seqlens_q[shared[index, 1]] - cu_seqlens_q[shared[index, 0]]
    tiles = np.empty((limit, 7), np.int32)
    count = 0
    covered = np.zeros(num_rows, np.int32)
    for index in range(len(shared) + num_rows):
        is_shared = index < len(shared)
        row = np.int64(shared[index, 0]) if is_shared else np.int64(index - len(shared))
        row_end = np.int64(shared[index, 1]) if is_shared else row + 1
        stop = shared[index, 3] // stop_step * stop_step if is_shared else np.int32(0)
        begin, low, high = covered[row], np.int64(cu_seqlens_q[row]), np.int64(cu_seqlens_q[row_end])
        width = np.int64(1)
        for lines in class_lines:  # as wide as needed, but at most the widest
            if width * group < lines and width < high - low:
                width = max(np.int64(1), np.int64(lines) // group)
        if is_shared:
            visible, saved = stop, -((high - low + width - 1) // width)
            for member in range(row, row_end):
                visible = min(visible, first[cu_seqlens_q[member]])
                saved += (np.int64(cu_seqlens_q[member + 1] - cu_seqlens_q[member]) + width - 1) // width
            num_keys = np.int64(stop) - np.int64(max(begin, visible))
            price = partial_ratio * (high - low)
            if num_keys * key_bytes < l2_share:
                price *= L2_SPEEDUP
            if num_keys < min_shared or num_keys * saved < price:
                continue
            covered[row:row_end] = stop
        for token in range(low, high, width):
            end = min(token + width, high)
            lowest, full_lo = first[token], first[token]
            last, full_hi = positions[token] + 1, positions[token] + 1
            for other in range(token + 1, end):
                lowest, full_lo = min(lowest, first[other]), max(full_lo, first[other])
                last, full_hi = max(last, positions[other] + 1), min(full_hi, positions[other] + 1)
            p0, p1 = max(begin, lowest // first_step * first_step), stop if is_shared else last
            if p0 < p1:
                tile = tiles[count]
                tile[0], tile[1], tile[2], tile[3], tile[4] = row, p0, p1, token, end - token
                tile[5], tile[6] = min(max(full_lo, p0), p1), max(min(full_hi, p1), p0)
                count += 1
    return tiles[:count]


@kernel()
def _splits(tiles: Any, lines_class: Any, class_cost: Any, num_wanted: Any, min_split: Any) -> Any:
    """Number of splits of each tile for about `num_wanted` items, int64 [n], and the cost of the longest item over the average."""
    total = 0
    for index in range(len(tiles)):
        total += (tiles[index, 2] - tiles[index, 1]) * class_cost[lines_class[index]]
    splits = np.empty(len(tiles), np.int64)
    num_items, longest = 0, 0
    for index in range(len(tiles)):
        length = np.int64(tiles[index, 2] - tiles[index, 1])
        share = length * class_cost[lines_class[index]] * num_wanted / total
        count = max(np.int64(1), min(np.int64(share + 0.5), length // min_split))
        size = ((length + count - 1) // count + SPLIT_STEP - 1) // SPLIT_STEP * SPLIT_STEP
        splits[index] = (length + size - 1) // size
        num_items += splits[index]
        longest = max(longest, min(size, length) * class_cost[lines_class[index]])
    return splits, longest * num_items / max(total, 1)


@kernel()
def _items(tiles: Any, lines_class: Any, splits: Any, sizes: Any, num_tokens: Any) -> Any:
    """Split tiles into splits of `sizes` keys. Returns the arrays of `Schedule`, with unordered items and their classes."""
    parts_of = np.zeros(num_tokens + 1, np.int64)
    num_items = 0
    for index in range(len(tiles)):
        num_items += splits[index]
        for token in range(tiles[index, 3], tiles[index, 3] + tiles[index, 4]):
            parts_of[token] += splits[index]
    items = np.empty((num_items, ITEM_FIELDS), np.int32)
    classes = np.empty(num_items, np.int64)
    rows_of = np.zeros(num_tokens + 1, np.int64)  # partial rows of each token, then their start
    count, num_partials = 0, 0
    for index in range(len(tiles)):
        row, p0, p1, token, num, full_lo, full_hi = tiles[index]
        is_direct = True
        for other in range(token, token + num):
            is_direct = is_direct and parts_of[other] == 1
        size = sizes[index]
        for split in range(splits[index]):
            low, high = p0 + split * size, min(p0 + (split + 1) * size, np.int64(p1))
            item = items[count]
            item[ITEM_ROW], item[P0], item[P1], item[TOKEN], item[NUM_TOKENS] = row, low, high, token, num
            item[FULL_LO], item[FULL_HI] = min(max(full_lo, low), high), max(min(full_hi, high), low)
            item[PARTIAL] = -1
            if not is_direct:
                item[PARTIAL] = num_partials
                num_partials += num
                for other in range(token, token + num):
                    rows_of[other] += 1
            classes[count] = lines_class[index]
            count += 1
    num_merged = 0
    for token in range(num_tokens):
        num_merged += rows_of[token] > 0
    merge_tokens, merge_start = np.empty(num_merged, np.int32), np.zeros(num_merged + 1, np.int32)
    merge_rows = np.empty(num_partials, np.int32)
    num_merged = 0
    for token in range(num_tokens):
        if rows_of[token] > 0:
            merge_tokens[num_merged] = token
            merge_start[num_merged + 1] = merge_start[num_merged] + rows_of[token]
            rows_of[token] = merge_start[num_merged]
            num_merged += 1
    for index in range(num_items):
        if items[index, PARTIAL] >= 0:
            for other in range(items[index, NUM_TOKENS]):
                token = items[index, TOKEN] + other
                merge_rows[rows_of[token]] = items[index, PARTIAL] + other
                rows_of[token] += 1
    return items, classes, num_partials, merge_tokens, merge_start, merge_rows
