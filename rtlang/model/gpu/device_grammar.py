"""Constraints tracked on the device: assigns slots to requests and builds the masks of a step.

A row with a pending input keeps its slot and its state on the device, which is ahead of the host; any other row is set to the position
known to the host. Masks computed by the host occupy slots of the same table. Rows whose mask the device cannot make are lost: their logits
are kept, until the host has made a mask and samples them again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rtlang.contract.step import Row
from rtlang.model.gpu.accelerator import Accelerator, Fetched
from rtlang.model.gpu.device_sampler import DeviceMasks
from rtlang_grammars import Vocabulary
from rtlang_grammars.machine.export import ExportedAutomaton, Walk
from rtlang_grammars.machine.token_index.token_trie import MAX_TOKEN_BYTES
from rtlang_kernels.host.transfer import copy_to_device


@dataclass(frozen=True, slots=True)
class LostRows:
    """The rows of a step whose masks the device could not make, on their way to the host.

    Attributes:
        fetched: whether each row in `places` is lost.
        places: index among the sampled rows.
        logits: [len(places), vocab_size] on the device; valid for lost rows.
    """

    fetched: Fetched
    places: tuple[int, ...]
    logits: Tensor

    def wait(self) -> list[int]:
        """Wait for the copy; returns the indices among the sampled rows."""
        (is_lost,) = self.fetched.wait()
        if not is_lost.any():
            return []
        return [place for place, lost in zip(self.places, is_lost.tolist(), strict=True) if lost]


class DeviceGrammars:
    """Device tables of exported automata. Owned by the runner; memory is allocated with the first automaton.

    Args:
        vocabulary: creates the vocabulary for the model's logits.
        num_slots: maximum number of rows of a step.
    """

    def __init__(self, accelerator: Accelerator, vocabulary: Callable[[], Vocabulary], num_slots: int) -> None:
        self._accelerator, self._make_vocabulary, self._num_slots = accelerator, vocabulary, num_slots
        self._store: Any = None
        # by id(); holds the automaton to keep its id valid
        self._number_of: dict[int, tuple[ExportedAutomaton, int]] = {}
        self._slot_of: dict[int, int] = {}  # by request, for the step sampled last
        self._in_use: set[int] = set()  # automata of that step
        self._wanted: set[int] = set()  # automata of the step being built

    def warm_up(self, vocab_size: int, dtype: torch.dtype) -> None:
        """Compile the kernels, using temporary memory.

        Args:
            vocab_size, dtype: width and type of the logits.
        """
        from rtlang_kernels.triton.grammar.automaton_store import Automaton, AutomatonStore, DeviceSlot

        nothing = np.zeros(1, dtype=np.int64)
        ends = np.zeros(-(-vocab_size // 32), dtype=np.int32)
        device = self._accelerator.device
        store = AutomatonStore(
            device, vocab_size, nothing[:0].astype(np.uint8), nothing, ends, 1, cache_bytes=0, pool_words=1 << 10
        )
        states = np.array([[0, 256, -1, -1, 0, -1, -1, 0]], dtype=np.int32)
        nowhere = np.full((1, 1), -1, dtype=np.int32)
        store.add(Automaton(np.zeros(256, np.uint8), nowhere, states, np.zeros((1, 12), np.int64)))
        store.put([0], [DeviceSlot(0, 0)])
        store.build_masks([0])
        store.lost()
        store.lost_lines(torch.zeros((1, vocab_size), dtype=dtype, device=device), [0])
        store.advance(torch.zeros(1, dtype=torch.int64, device=device), [0])

    def takes(self, walk: Walk) -> bool:
        """Whether there is room for the automaton, for the place, and for what may be pushed before the host sees the tokens."""
        number = self._number(walk.automaton)
        if number is None or not _slot(number, walk).has_room:
            return False
        self._wanted.add(number)
        return True

    def masks(
        self, rows: Sequence[Row], walks: Sequence[Walk | None], bitmask: NDArray[np.int32] | None
    ) -> DeviceMasks:
        """The masks of a step.

        Args:
            walks: by row; None if the host computes the mask.
            bitmask: masks computed by the host, indexed by `Row.mask_row`.
        """
        before = self._slot_of
        slots = [
            before[row.request_id] if walk is not None and row.input_is_pending else -1
            for row, walk in zip(rows, walks, strict=True)
        ]
        automata = {id(walk.automaton): walk.automaton for walk in walks if walk is not None}
        number_of = {key: self._number(automaton) for key, automaton in automata.items()}
        given: list[tuple[int, int]] = []
        if -1 in slots:
            free = iter(sorted(set(range(self._num_slots)) - set(slots)))
            new, places = [], []
            for index, (row, walk) in enumerate(zip(rows, walks, strict=True)):
                if walk is None and row.mask_row is not None:
                    slots[index] = next(free)
                    given.append((slots[index], row.mask_row))
                elif walk is not None and slots[index] < 0:
                    number = number_of[id(walk.automaton)]
                    assert number is not None
                    slots[index] = next(free)
                    new.append(slots[index])
                    places.append(_slot(number, walk))
            if new:
                self._store.put(new, places)
        self._slot_of = {
            row.request_id: slot for row, walk, slot in zip(rows, walks, slots, strict=True) if walk is not None
        }
        self._in_use, self._wanted = {number for number in number_of.values() if number is not None}, set()
        for number in self._in_use:
            self._store.touch(number)
        self._store.build_masks(list(self._slot_of.values()))
        if given:
            assert bitmask is not None
            where, lines = zip(*given, strict=True)
            there, content = copy_to_device(self._accelerator.device, [np.array(where), bitmask[list(lines)]])
            self._store.masks.index_copy_(0, there, content)
        return DeviceMasks(self._store.masks, np.array(slots, dtype=np.int32))

    def advance(self, walks: Sequence[Walk | None], sampled: Tensor, logits: Tensor) -> LostRows:
        """Advance the rows of the last `masks` call by their sampled tokens; returns those that have to be sampled again.

        Args:
            sampled: int64 on the device, the token of row i at index i.
            logits: [num_rows, vocab_size], from which they were sampled.
        """
        places = tuple(index for index, walk in enumerate(walks) if walk is not None)
        lost = self._store.lost()
        kept = self._store.lost_lines(logits, places)
        self._store.advance(sampled, places)
        return LostRows(self._accelerator.fetch([lost]), places, kept)

    def _number(self, automaton: ExportedAutomaton) -> int | None:
        found = self._number_of.get(id(automaton))
        if found is not None:
            return found[1]
        with torch.inference_mode():
            return self._added(automaton)

    def _added(self, automaton: ExportedAutomaton) -> int | None:
        from rtlang_kernels.triton.grammar.automaton_store import Automaton

        if self._store is None:
            self._make_store()
        tables = Automaton(automaton.classes, automaton.rows, automaton.states, automaton.ops, automaton.has_names)
        added: tuple[int, list[int]] | None = self._store.add(tables, self._in_use | self._wanted)
        if added is None:
            return None
        number, gone = added
        for key in [key for key, (_, each) in self._number_of.items() if each in gone]:
            del self._number_of[key]
        self._number_of[id(automaton)] = automaton, number
        return number

    def _make_store(self) -> None:
        from rtlang_kernels.triton.grammar.automaton_store import AutomatonStore

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


def _slot(number: int, walk: Walk) -> Any:
    """A place as a `DeviceSlot` of the store."""
    from rtlang_kernels.triton.grammar.automaton_store import DeviceSlot

    trail = walk.trail
    names = trail.mode, trail.escape, trail.unit | trail.high << 16, trail.digest, trail.containers
    return DeviceSlot(number, walk.state, walk.register, walk.stack, walk.is_complete, *names, walk.blocks)
