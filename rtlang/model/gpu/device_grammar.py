"""Constraints tracked on the device: assigns slots to requests and builds the masks of a step.

A row with a pending input keeps its slot and its state on the device, which is ahead of the host; any other row is set to the position
known to the host. Masks computed by the host occupy slots of the same table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rtlang.contract.step import Row
from rtlang.model.gpu.accelerator import Accelerator
from rtlang.model.gpu.device_sampler import DeviceMasks
from rtlang_grammars import Vocabulary
from rtlang_grammars.machine.export import ExportedAutomaton, Walk
from rtlang_grammars.machine.token_index.token_trie import MAX_TOKEN_BYTES
from rtlang_kernels.host.transfer import copy_to_device


class DeviceGrammars:
    """Device tables of exported automata. Owned by the runner; memory is allocated with the first automaton.

    Args:
        vocabulary: creates the vocabulary for the model's logits.
        num_slots: maximum number of rows of a step.
    """

    def __init__(self, accelerator: Accelerator, vocabulary: Callable[[], Vocabulary], num_slots: int) -> None:
        self._accelerator, self._make_vocabulary, self._num_slots = accelerator, vocabulary, num_slots
        self._store: Any = None
        self._number_of: dict[
            int, tuple[ExportedAutomaton, int]
        ] = {}  # by id(); holds the automaton to keep its id valid
        self._slot_of: dict[int, int] = {}  # by request, for the step sampled last
        self._is_wanted = False  # whether the step being built uses an automaton
        self._most_frames = 0

    def warm_up(self, vocab_size: int) -> None:
        """Compile the kernels, using temporary memory.

        Args:
            vocab_size: width of the logits.
        """
        from rtlang_kernels.triton.grammar.automaton_store import AutomatonStore, DeviceSlot

        nothing, nowhere = np.zeros(1, dtype=np.int64), np.full((1, 1), -1, dtype=np.int32)
        ends = np.zeros(-(-vocab_size // 32), dtype=np.int32)
        device = self._accelerator.device
        store = AutomatonStore(device, vocab_size, nothing[:0].astype(np.uint8), nothing, ends, 1, cache_bytes=0)
        store.add(np.zeros(256, np.uint8), nowhere, np.zeros((1, 2), np.int32), np.zeros(1, np.bool_))
        store.put([0], [DeviceSlot(0, 0, (), False)])
        store.build_masks([0])
        store.advance([0], torch.zeros(1, dtype=torch.int64, device=device), [0])

    def takes(self, walk: Walk) -> bool:
        """Whether there is room for the automaton, and for the stack frames that may be pushed before the host sees the tokens."""
        if self._number(walk.automaton) is None or len(walk.stack) > self._most_frames:
            return False
        self._is_wanted = True
        return True

    def masks(
        self, rows: Sequence[Row], walks: Sequence[Walk | None], bitmask: NDArray[np.int32] | None
    ) -> DeviceMasks:
        """The masks of a step.

        Args:
            walks: by row; None if the host computes the mask.
            bitmask: masks computed by the host, indexed by `Row.mask_row`.
        """
        from rtlang_kernels.triton.grammar.automaton_store import DeviceSlot

        before, self._slot_of = self._slot_of, {}
        slots = [
            before[row.request_id] if walk is not None and row.input_is_pending else -1
            for row, walk in zip(rows, walks, strict=True)
        ]
        free = iter(sorted(set(range(self._num_slots)) - set(slots)))
        new, places, given = [], [], []
        for index, (row, walk) in enumerate(zip(rows, walks, strict=True)):
            if walk is not None:
                if slots[index] < 0:
                    slots[index] = next(free)
                    number = self._number(walk.automaton)
                    assert number is not None
                    new.append(slots[index])
                    places.append(DeviceSlot(number, walk.state, tuple(walk.stack), walk.is_complete))
                self._slot_of[row.request_id] = slots[index]
            elif row.mask_row is not None:
                slots[index] = next(free)
                given.append((slots[index], row.mask_row))
        if new:
            self._store.put(new, places)
        self._is_wanted = False
        self._store.build_masks(list(self._slot_of.values()))
        if given:
            assert bitmask is not None
            where, lines = zip(*given, strict=True)
            there, content = copy_to_device(self._accelerator.device, [np.array(where), bitmask[list(lines)]])
            self._store.masks.index_copy_(0, there, content)
        return DeviceMasks(self._store.masks, np.array(slots, dtype=np.int32))

    def advance(self, rows: Sequence[Row], walks: Sequence[Walk | None], sampled: Tensor) -> None:
        """Advance the rows of the last `masks` call by their sampled tokens.

        Args:
            sampled: int64 on the device, the token of rows[i] at index i.
        """
        places = [index for index, walk in enumerate(walks) if walk is not None]
        self._store.advance([self._slot_of[rows[index].request_id] for index in places], sampled, places)

    def _number(self, automaton: ExportedAutomaton) -> int | None:
        found = self._number_of.get(id(automaton))
        if found is not None:
            return found[1]
        with torch.inference_mode():
            return self._added(automaton)

    def _added(self, automaton: ExportedAutomaton) -> int | None:
        if self._store is None:
            self._make_store()
        arrays = automaton.classes, automaton.trans, automaton.calls, automaton.may_end
        number: int | None = self._store.add(*arrays)
        if number is None and not self._slot_of and not self._is_wanted:
            self._store.clear()
            self._number_of = {}
            number = self._store.add(*arrays)
        if number is not None:
            self._number_of[id(automaton)] = automaton, number
        return number

    def _make_store(self) -> None:
        from rtlang_kernels.triton.grammar.automaton_store import DEPTH_RESERVE, MAX_DEPTH, AutomatonStore

        vocabulary = self._make_vocabulary()
        silent = vocabulary.silent_ids
        texts = [
            b"" if token in silent or len(text) > MAX_TOKEN_BYTES else text
            for token, text in enumerate(vocabulary.token_bytes)
        ]
        offsets = np.zeros(len(texts) + 1, dtype=np.int64)
        np.cumsum([len(text) for text in texts], out=offsets[1:])
        ends = np.zeros(vocabulary.num_mask_words, dtype=np.uint32)
        for token in vocabulary.eos_token_ids:
            ends[token // 32] |= np.uint32(1 << (token % 32))
        text = np.frombuffer(b"".join(texts), dtype=np.uint8)
        self._store = AutomatonStore(
            self._accelerator.device, vocabulary.vocab_size, text, offsets, ends.view(np.int32), self._num_slots
        )
        self._most_frames = MAX_DEPTH - DEPTH_RESERVE
