"""Grammar automata on a GPU: tables of all grammars in use, the position of each row, and the masks of the rows.

Automata are arrays (see `AutomatonStore.add` for the format). They share pools, in which their states are renumbered. The tokens that a
state allows are cached as two rows of bits: tokens allowed whatever the stack, and tokens that depend on the stack. The first step that
reaches the state computes both. `build_masks` writes the mask of each row, `advance` consumes the sampled tokens; neither waits for the
device. A token that has more than eight frames of its own open at the same time is forbidden here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rtlang_kernels.host.transfer import copy_to_device
from rtlang_kernels.triton.grammar import automaton_kernel as kernels
from rtlang_kernels.triton.primitives.jit import check_device

MAX_DEPTH = 128  # frames per row
DEPTH_RESERVE = 32  # frames that may be pushed before the host learns of them
MASK_BLOCK, MASK_WARPS = 512, 4  # tokens per program
ADVANCE_BLOCK = 16  # rows per program
MAX_GRAMMARS = 64
_MAX_STATES = 1 << 15  # a state fits in 16 bits of the overlay
_CACHE_BYTES = 384 << 20  # of cached masks
_CLASSES_PER_STATE, _CALLS_PER_STATE = 48, 4


@dataclass(frozen=True, slots=True)
class DeviceSlot:
    """Position of a row: grammar, state, and return states, the outermost first; numbered as in the grammar."""

    grammar: int
    state: int
    stack: tuple[int, ...]
    is_complete: bool


class AutomatonStore:
    """Automata and row positions on one device. Owned by one thread.

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
    ) -> None:
        """Copy the vocabulary to the device.

        Args:
            text, offsets: token i is text[offsets[i]:offsets[i + 1]], at most vocab_size of them; empty if the token has no text.
            end_words: int32 [ceil(vocab_size / 32)], bits of the tokens that are allowed when a text is complete.
            num_slots: maximum number of rows at a time.
            cache_bytes: memory for the cached masks of states.
        """
        check_device(device)
        self._device, self._vocab_size = device, vocab_size
        self._num_words = -(-vocab_size // 32)
        self._num_chunks = -(-vocab_size // MASK_BLOCK)
        self.num_slots = num_slots
        self._num_states = min(_MAX_STATES, max(1, cache_bytes // (8 * self._num_words)))
        whole = np.full(vocab_size + 1, offsets[-1], dtype=np.int32)
        whole[: len(offsets)] = offsets
        self._text = torch.from_numpy(np.append(text, np.uint8(0))).to(device)
        self._offsets = torch.from_numpy(whole).to(device)
        self._end_words = torch.from_numpy(np.array(end_words, dtype=np.int32)).to(device)

        def zeros(*shape: int, dtype: torch.dtype = torch.int32) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device=device)

        states = self._num_states
        self._classes = zeros(MAX_GRAMMARS, 256)
        self._trans, self._trans_at = zeros(states * _CLASSES_PER_STATE), zeros(states)
        self._calls, self._may_end = zeros(states * _CALLS_PER_STATE, 2), zeros(states)
        self._allowed, self._undecided = zeros(states, self._num_words), zeros(states, self._num_words)
        self._built = zeros(states, self._num_chunks)
        self._state, self._depth = zeros(num_slots), zeros(num_slots)
        self._stack = zeros(num_slots, MAX_DEPTH)
        self._grammar, self._complete = zeros(num_slots), zeros(num_slots)
        self.masks = zeros(num_slots, self._num_words)
        self._used = [0, 0, 0]  # states, entries of trans, calls
        self._first_state: list[int] = []
        self._num_steps = 0

    def add(
        self, classes: NDArray[np.uint8], trans: NDArray[np.int32], calls: NDArray[np.int32], may_end: NDArray[np.bool_]
    ) -> int | None:
        """Add a grammar. Returns its number, or None if there is no room.

        Args:
            classes: [256], the class of each byte.
            trans: [num_states, num_classes]; an entry is a next state, -1 (dead), -2 (the frame ends; the byte is read again in the
                return state), or -3 - i: a call, calls[i].
            calls: [num_calls, 2], the initial state of a frame, in which the byte is read again, and the return state; -1:
                the frame ends with the called one.
            may_end: [num_states], whether the frame may end there. A text is complete if its frame and all below may end.
        """
        states, entries, first_call = self._used
        num_states, num_classes = trans.shape
        limits = (self._num_states, self._trans.numel(), len(self._calls))
        after = [states + num_states, entries + trans.size, first_call + len(calls)]
        if len(self._first_state) >= MAX_GRAMMARS or any(a > b for a, b in zip(after, limits, strict=True)):
            return None
        shifted = np.where(trans >= 0, trans + states, np.where(trans <= -3, trans - first_call, trans))
        moved = np.where(calls >= 0, calls + states, calls)
        arrays: list[NDArray[Any]] = [
            shifted.reshape(-1).astype(np.int32),
            (entries + np.arange(num_states) * num_classes).astype(np.int32),
            moved.astype(np.int32),
            may_end.astype(np.int32),
            classes.astype(np.int32),
        ]
        there = copy_to_device(self._device, arrays)
        grammar = len(self._first_state)
        self._trans[entries : after[1]] = there[0]
        self._trans_at[states : after[0]] = there[1]
        self._calls[first_call : after[2]] = there[2]
        self._may_end[states : after[0]] = there[3]
        self._classes[grammar] = there[4]
        self._first_state.append(states)
        self._used = after
        return grammar

    def clear(self) -> None:
        """Remove all grammars; no row may use one."""
        self._first_state, self._used = [], [0, 0, 0]
        self._built.zero_()

    def put(self, slots: Sequence[int], places: Sequence[DeviceSlot]) -> None:
        """Set the positions of rows."""
        count = len(slots)
        numbers = np.zeros((5, count), dtype=np.int64)
        stacks = np.zeros((count, MAX_DEPTH), dtype=np.int32)
        for index, place in enumerate(places):
            first = self._first_state[place.grammar]
            depth = len(place.stack)
            numbers[:, index] = slots[index], place.state + first, depth, place.grammar, place.is_complete
            stacks[index, :depth] = np.array(place.stack, dtype=np.int32) + first
        where, *values, stack = copy_to_device(self._device, [*numbers, stacks])
        self._stack.index_copy_(0, where, stack)
        targets = (self._state, self._depth, self._grammar, self._complete)
        for target, content in zip(targets, values, strict=True):
            target.index_copy_(0, where, content.to(torch.int32))

    def build_masks(self, slots: Sequence[int]) -> None:
        """Write the masks of these slots."""
        self._num_steps += 1
        slots_there, step = copy_to_device(
            self._device, [np.array(slots, dtype=np.int32), np.array([self._num_steps], dtype=np.int32)]
        )
        kernels.build_masks[(self._num_chunks, len(slots))](
            slots_there,
            step,
            self._state,
            self._depth,
            self._stack,
            self._grammar,
            self._complete,
            self._classes,
            self._trans,
            self._trans_at,
            self._calls,
            self._text,
            self._offsets,
            self._end_words,
            self._allowed,
            self._undecided,
            self._built,
            self.masks,
            self._num_words,
            self._vocab_size,
            MAX_DEPTH=MAX_DEPTH,
            BLOCK=MASK_BLOCK,
            num_warps=MASK_WARPS,
            enable_fp_fusion=True,
        )

    def advance(self, slots: Sequence[int], token_ids: Tensor, places: Sequence[int]) -> None:
        """Consume sampled tokens.

        Args:
            token_ids: int64, on the device.
            places: index in `token_ids` of the token of each slot.
        """
        slots_there, places_there = copy_to_device(
            self._device, [np.array(slots, dtype=np.int32), np.array(places, dtype=np.int32)]
        )
        kernels.advance[(-(-len(slots) // ADVANCE_BLOCK),)](
            slots_there,
            token_ids,
            places_there,
            len(slots),
            self._state,
            self._depth,
            self._stack,
            self._grammar,
            self._complete,
            self._classes,
            self._trans,
            self._trans_at,
            self._calls,
            self._may_end,
            self._text,
            self._offsets,
            MAX_DEPTH=MAX_DEPTH,
            BLOCK=ADVANCE_BLOCK,
            num_warps=1,
            enable_fp_fusion=True,
        )
