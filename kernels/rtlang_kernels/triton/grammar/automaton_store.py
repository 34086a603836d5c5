"""Grammar automata on a GPU: tables of all grammars in use, the place of each row, and the masks of the rows.

Automata are arrays (see `Automaton` for the format) in pools that they share; the least recently used ones leave if there is no room.
The tokens that a state allows are cached in lines, as two rows of bits: tokens allowed in any case, and tokens that depend on more than
the state. The first step that needs a line computes both; lines that were not used for long are computed for another state.

`build_masks` writes the mask of each row, `advance` consumes the sampled tokens; neither waits for the device. Where a token meets a hole
of the tables, or has no room (more than eight frames of its own, MAX_DEPTH frames or MAX_NAMES names), its row is *lost*: its mask is
meaningless, and the caller has to put the row at a place again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rtlang_kernels.host.transfer import copy_to_device
from rtlang_kernels.triton.grammar import automaton_kernel as kernels
from rtlang_kernels.triton.grammar import block_kernel
from rtlang_kernels.triton.grammar.segments import Segments
from rtlang_kernels.triton.primitives.jit import check_device

MAX_DEPTH, MAX_NAMES = 128, 128  # frames or containers, and names, per row
DEPTH_RESERVE = 32  # frames that may be pushed before the host learns of them
MASK_BLOCK, MASK_WARPS = 512, 8  # tokens per program
KEEP_BLOCK = 4096
FIND_BLOCK, FIND_ATTEMPTS, FIND_WARPS = 64, 4, 4
MAX_GRAMMARS = 1024
_MAX_LINES = 1 << 16
_MAX_SERIAL = (1 << 16) - 1
_CACHE_BYTES = 384 << 20  # of cached masks
_POOL_WORDS = 1 << 24  # of 4 bytes, for rows; states and operations take a quarter of it each
_STATE_WORDS, _OP_WORDS = 8, 12
BLOCK_WORDS = int(block_kernel.BLOCK_WORDS.value)


@dataclass(frozen=True, slots=True, eq=False)
class Automaton:
    """A pushdown automaton with registers.

    Attributes:
        classes: uint8 [256], the class of each byte.
        rows: int32 [num_rows, num_classes]; a value is a next state, -1 (nowhere), -2 (a hole), or -3 - i: operation i.
        states: int32 [num_states, 8]: row; a byte whose value comes next (256: none); the value; parameter of calls; whether the frame
            cannot end (0), can end where no byte goes on (1), or can end or go on (2); minimum and maximum of a counter (-1: none); words
            of the register (above 2: a block).
        ops: int64 [num_ops, 12]: a kind and its words, as in `rtlang_grammars.machine.export`.
        has_names: names in one object must differ.
    """

    classes: NDArray[np.uint8]
    rows: NDArray[np.int32]
    states: NDArray[np.int32]
    ops: NDArray[np.int64]
    has_names: bool = False


@dataclass(frozen=True, slots=True)
class DeviceSlot:
    """Place of a row.

    Attributes:
        grammar: number of the automaton.
        stack: return state and register of each frame below, the outermost first.
        mode, escape, code, digest: progress in the names of JSON text, see `name_kernel`.
        containers: for each open container, outermost first: whether it is an object, and the digests of its names.
        blocks: frames whose register has many words, which is 0 in their place: the number of frames below, and the words (`block_kernel`).
    """

    grammar: int
    state: int
    register: int = 0
    stack: Sequence[tuple[int, int]] = ()
    is_complete: bool = False
    mode: int = 0
    escape: int = 0
    code: int = 0
    digest: int = 0
    containers: Sequence[tuple[bool, Sequence[int]]] = ()
    blocks: Sequence[tuple[int, Sequence[int]]] = ()

    @property
    def has_room(self) -> bool:
        """Whether the device has room for the place, and for what may be pushed before the host learns of it."""
        most = MAX_DEPTH - DEPTH_RESERVE
        num_names = sum(len(names) for _, names in self.containers)
        return len(self.stack) <= most and len(self.containers) <= most and num_names <= MAX_NAMES - DEPTH_RESERVE


class AutomatonStore:
    """Automata and row places on one device. Owned by one thread.

    Attributes:
        masks: int32 [num_slots, ceil(vocab_size / 32)] on the device; `slot` names a row.
    """

    def __init__(
        self,
        device: torch.device,
        vocab_size: int,
        text: NDArray[np.uint8],
        offsets: NDArray[np.int64],
        end_words: NDArray[np.int32],
        num_slots: int,
        *,
        cache_bytes: int = _CACHE_BYTES,
        pool_words: int = _POOL_WORDS,
    ) -> None:
        """Copy the vocabulary to the device.

        Args:
            text, offsets: token i is text[offsets[i]:offsets[i + 1]], at most vocab_size of them; empty if the token has no text.
            end_words: int32 [ceil(vocab_size / 32)], bits of the tokens that are allowed when a text is complete.
            num_slots: maximum number of rows at a time.
            cache_bytes: memory for the cached masks.
            pool_words: room for the rows of automata; states and operations have a quarter of it each, in words of 4 bytes.
        """
        check_device(device)
        self._device, self._vocab_size = device, vocab_size
        self._num_words = -(-vocab_size // 32)
        self._num_chunks = -(-vocab_size // MASK_BLOCK)
        self.num_slots = num_slots
        ways = int(kernels.WAYS.value)
        self._num_sets = max(1, min(_MAX_LINES, cache_bytes // (8 * self._num_words)) // ways)
        self._reach = int(np.diff(offsets).max(initial=0)) + 1
        whole = np.full(vocab_size + 1, offsets[-1], dtype=np.int32)
        whole[: len(offsets)] = offsets
        self._text = torch.from_numpy(np.append(text, np.uint8(0))).to(device)
        self._offsets = torch.from_numpy(whole).to(device)
        self._end_words = torch.from_numpy(np.array(end_words, dtype=np.int32)).to(device)

        def zeros(*shape: int, dtype: torch.dtype = torch.int32) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device=device)

        lines = self._num_sets * ways
        quarter = max(1, pool_words // 4)
        self._segments = [
            Segments(quarter // _STATE_WORDS),
            Segments(pool_words),
            Segments(max(1, quarter // 2 // _OP_WORDS)),
        ]
        self._states = zeros(self._segments[0].size, _STATE_WORDS)
        self._rows = zeros(self._segments[1].size)
        self._ops = zeros(self._segments[2].size, _OP_WORDS, dtype=torch.int64)
        self._grammars, self._classes = zeros(MAX_GRAMMARS, 8, dtype=torch.int64), zeros(MAX_GRAMMARS, 256)
        self._tags, self._used = zeros(lines + 1, dtype=torch.int64), zeros(lines + 1)
        self._made, self._built = zeros(lines + 1), zeros(lines, self._num_chunks)
        self._allowed, self._undecided = zeros(lines, self._num_words), zeros(lines, self._num_words)
        self._slots, self._wide = zeros(num_slots, 8), zeros(num_slots, 8, dtype=torch.int64)
        self._stack_states = zeros(num_slots, MAX_DEPTH)
        self._stack_registers = zeros(num_slots, MAX_DEPTH, dtype=torch.int64)
        self._blocks = zeros(num_slots * MAX_DEPTH, BLOCK_WORDS, dtype=torch.int64)
        self._containers, self._names = zeros(num_slots, MAX_DEPTH), zeros(num_slots, MAX_NAMES, dtype=torch.int64)
        self.masks = zeros(num_slots, self._num_words)
        self._at: dict[int, tuple[int, int, int]] = {}  # segments by number of the grammar, least recently used first
        self._serial = self._num_steps = 0
        self._step = zeros(1)
        self._slots_there = zeros(1)
        self._indices: dict[str, tuple[list[int], Tensor]] = {}  # on the device since an earlier step, see `_copied`

    @property
    def num_lines_made(self) -> int:
        """Number of lines that the last step made; waits for the device."""
        return int((self._made[:-1] == self._num_steps).sum()) if self._num_steps else 0

    def add(self, automaton: Automaton, kept: Collection[int] = ()) -> tuple[int, list[int]] | None:
        """Add an automaton. Returns its number, and those that left to make room; None if there is no room.

        Args:
            kept: numbers of automata that must stay; no row may use any other.
        """
        sizes = len(automaton.states), automaton.rows.size, len(automaton.ops)
        if any(size > segments.size for size, segments in zip(sizes, self._segments, strict=True)):
            return None
        gone: list[int] = []
        while (found := self._taken(sizes)) is None:
            oldest = next((number for number in self._at if number not in kept), None)
            if oldest is None:
                return None
            self._remove(oldest)
            gone.append(oldest)
        number = next(each for each in range(MAX_GRAMMARS) if each not in self._at)
        self._serial += 1
        if self._serial > _MAX_SERIAL:  # tags of former automata would be taken for those of new ones
            self._serial = 1
            self._tags.zero_()
        first_state, first_word, first_op = found
        about = np.zeros((1, 8), dtype=np.int64)
        about[0, :6] = (
            first_state * _STATE_WORDS,
            first_word,
            first_op * _OP_WORDS,
            automaton.rows.shape[1],
            automaton.has_names,
            self._serial,
        )
        arrays: list[NDArray[Any]] = [
            automaton.states.astype(np.int32),
            automaton.rows.reshape(-1).astype(np.int32),
            automaton.ops.astype(np.int64),
            about,
            automaton.classes.astype(np.int32),
        ]
        there = copy_to_device(self._device, arrays)
        self._states[first_state : first_state + sizes[0]] = there[0]
        self._rows[first_word : first_word + sizes[1]] = there[1]
        self._ops[first_op : first_op + sizes[2]] = there[2]
        self._grammars[number] = there[3][0]
        self._classes[number] = there[4]
        self._at[number] = found
        return number, gone

    def touch(self, number: int) -> None:
        """Note that an automaton is used."""
        self._at[number] = self._at.pop(number)

    def put(self, slots: Sequence[int], places: Sequence[DeviceSlot]) -> None:
        """Set the places of rows."""
        count = len(slots)
        narrow = np.zeros((count, 8), dtype=np.int32)
        wide = np.zeros((count, 8), dtype=np.int64)
        states = np.zeros((count, MAX_DEPTH), dtype=np.int32)
        registers = np.zeros((count, MAX_DEPTH), dtype=np.int64)
        containers = np.zeros((count, MAX_DEPTH), dtype=np.int32)
        names = np.zeros((count, MAX_NAMES), dtype=np.int64)
        for index, place in enumerate(places):
            num_names, depth = 0, len(place.stack)
            for level, (is_object, digests) in enumerate(place.containers):
                containers[index, level] = num_names << 1 | is_object
                names[index, num_names : num_names + len(digests)] = digests
                num_names += len(digests)
            if depth:
                states[index, :depth], registers[index, :depth] = zip(*place.stack, strict=True)
            mode = place.mode | place.escape << 3
            narrow[index, :7] = place.state, depth, place.grammar, place.is_complete, -1, -1, mode
            wide[index, :5] = place.register, place.code, place.digest, len(place.containers), num_names
        contents: list[NDArray[Any]] = [narrow, wide, states, registers, containers, names]
        where, *there = copy_to_device(self._device, [np.array(slots, dtype=np.int64), *contents])
        targets = self._slots, self._wide, self._stack_states, self._stack_registers, self._containers, self._names
        for target, content in zip(targets, there, strict=True):
            target.index_copy_(0, where, content)
        self._put_blocks(slots, places)

    def _put_blocks(self, slots: Sequence[int], places: Sequence[DeviceSlot]) -> None:
        blocks = [
            (slot * MAX_DEPTH + depth, words)
            for slot, place in zip(slots, places, strict=True)
            for depth, words in place.blocks
        ]
        if blocks:
            content = np.zeros((len(blocks), BLOCK_WORDS), dtype=np.int64)
            for index, (_, words) in enumerate(blocks):
                content[index, : len(words)] = words
            where = np.array([at for at, _ in blocks], dtype=np.int64)
            where_there, there = copy_to_device(self._device, [where, content])
            self._blocks.index_copy_(0, where_there, there)

    def build_masks(self, slots: Sequence[int]) -> None:
        """Write the masks of these slots."""
        self._num_steps += 1
        self._step += 1
        self._slots_there = self._copied("slots", slots)
        if not slots:
            return
        kernels.find_lines[(1,)](
            self._slots_there,
            len(slots),
            self._step,
            self._reach,
            self._slots,
            self._wide,
            self._containers,
            self._grammars,
            self._states,
            self._tags,
            self._used,
            self._made,
            self._num_sets,
            MAX_DEPTH=MAX_DEPTH,
            ATTEMPTS=FIND_ATTEMPTS,
            BLOCK=FIND_BLOCK,
            num_warps=FIND_WARPS,
        )
        kernels.build_masks[(self._num_chunks, len(slots))](
            self._slots_there,
            self._step,
            *self._tables,
            self._end_words,
            self._made,
            self._built,
            self._allowed,
            self._undecided,
            self.masks,
            self._num_words,
            self._vocab_size,
            MAX_DEPTH=MAX_DEPTH,
            MAX_NAMES=MAX_NAMES,
            BLOCK=MASK_BLOCK,
            num_warps=MASK_WARPS,
        )

    def lost(self) -> Tensor:
        """Whether each slot of the last `build_masks` is lost, bool [num_slots] on the device."""
        return self._slots.index_select(0, self._slots_there)[:, int(kernels.LOST_AT.value)] == self._num_steps

    def lost_lines(self, logits: Tensor, places: Sequence[int]) -> Tensor:
        """Copy the lost lines of `logits`; other lines of the result have no meaning.

        Args:
            logits: [num_lines, vocab_size], with contiguous lines.
            places: line of each slot of the last `build_masks`.
        Returns:
            [len(places), vocab_size], of the same type.
        """
        kept = torch.empty((len(places), logits.shape[1]), dtype=logits.dtype, device=logits.device)
        if places:
            places_there = self._copied("places", places)
            kernels.keep_lost[(-(-logits.shape[1] // KEEP_BLOCK), len(places))](
                self._slots_there,
                places_there,
                self._step,
                self._slots,
                logits,
                kept,
                logits.stride(0),
                logits.shape[1],
                BLOCK=KEEP_BLOCK,
            )
        return kept

    def advance(self, token_ids: Tensor, places: Sequence[int]) -> None:
        """Consume sampled tokens of the slots of the last `build_masks`.

        Args:
            token_ids: int64, on the device.
            places: index in `token_ids` of the token of each slot.
        """
        if not places:
            return
        places_there = self._copied("places", places)
        kernels.advance[(len(places),)](
            self._slots_there,
            token_ids,
            places_there,
            self._step,
            *self._tables,
            MAX_DEPTH=MAX_DEPTH,
            MAX_NAMES=MAX_NAMES,
            num_warps=1,
        )

    def _copied(self, name: str, indices: Sequence[int]) -> Tensor:
        """Indices on the device, int32; those of the last call of the same name are there if they are equal, as in most steps."""
        known = self._indices.get(name)
        if known is None or known[0] != list(indices):
            (there,) = copy_to_device(self._device, [np.array(indices, dtype=np.int32)])
            known = self._indices[name] = list(indices), there
        return known[1]

    @property
    def _tables(self) -> tuple[Tensor, ...]:
        stack = self._stack_states, self._stack_registers, self._blocks
        places = self._slots, self._wide, *stack, self._containers, self._names
        automata = self._grammars, self._classes, self._states, self._rows, self._ops
        return *places, *automata, self._text, self._offsets

    def _taken(self, sizes: tuple[int, int, int]) -> tuple[int, int, int] | None:
        """Segments of these sizes; None if one has no room."""
        if len(self._at) >= MAX_GRAMMARS:
            return None
        found: list[int] = []
        for segments, size in zip(self._segments, sizes, strict=True):
            start = segments.take(size)
            if start is None:
                for other, taken in zip(self._segments, found, strict=False):
                    other.give_back(taken)
                return None
            found.append(start)
        return found[0], found[1], found[2]

    def _remove(self, number: int) -> None:
        for segments, start in zip(self._segments, self._at.pop(number), strict=True):
            segments.give_back(start)
