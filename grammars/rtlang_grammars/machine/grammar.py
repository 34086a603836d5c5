"""A compiled grammar: its tables, the steps through them for whole tokens and texts, and the masks that were made.

A mask is kept under what its walk read: the heads and as many levels of frames as it looked at, a prefix of the configuration. It is
looked up under every such length that was seen with these heads.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.machine import walks
from rtlang_grammars.machine.engine import Engine, Slice, Workspace, start_configuration
from rtlang_grammars.machine.layout import (
    BOUNDS,
    HEADS,
    LENGTH,
    MAX_LEVELS,
    NEED_ROW,
    NO_SPACE,
    NUM_HEADS,
    NUM_LEVELS,
    OK,
    PARAM,
    SLICE,
    WIDTH,
)
from rtlang_grammars.machine.prelude import COUNTED_SLICE, EMBEDDED_SLICE
from rtlang_grammars.machine.tables import Tables

Configuration = NDArray[np.int64]

_FORCED_BYTES = 4096


class MachineGrammar:
    """Tables bound to a vocabulary. Safe to use from several threads.

    Attributes:
        start: the configuration at the start of the text.
        num_looks: trie records looked at for masks, so far.
    """

    def __init__(self, engine: Engine, tables: Tables, start: int, max_mask_bytes: int = 32 << 20) -> None:
        self.engine, self.tables = engine, tables
        self._snapshot = tables.snapshot or tables.publish()
        self.start = start_configuration(start)
        self._max_masks = max(16, max_mask_bytes // (4 * engine.num_words))
        self._masks: dict[tuple[int, bytes], NDArray[np.int32]] = {}
        self._older: dict[tuple[int, bytes], NDArray[np.int32]] = {}
        self._levels: dict[bytes, tuple[int, ...]] = {}
        self.num_looks = self.num_walks = 0

    @property
    def size_bytes(self) -> int:
        """Memory held by tables and masks."""
        masks = (len(self._masks) + len(self._older)) * 4 * self.engine.num_words
        return self.tables.num_bytes + masks + (4 << 10)

    def advance(
        self, configuration: Configuration, data: NDArray[np.uint8], start: int, end: int
    ) -> Configuration | None:
        """The configuration behind data[start:end]; None where it cannot follow."""
        workspace = self.engine.workspace
        while True:
            tables = self._snapshot
            code = walks.advance(
                tables.S,
                tables.T,
                tables.X,
                configuration,
                workspace.W,
                workspace.H,
                workspace.Q,
                workspace.D,
                data,
                start,
                end,
                workspace.out,
            )
            if code == OK:
                length = int(walks.compact(tables.S, workspace.W, workspace.H, workspace.D, workspace.C))
                if length >= 0:
                    return workspace.C[:length].copy()
                code = NO_SPACE
            if not self._go_on(code, workspace):
                return None

    def complete_row(self, state: int) -> None:
        """Have a row made that was left open."""
        self._snapshot = self.tables.complete(state)

    def is_complete(self, configuration: Configuration) -> bool:
        """Whether the text may end here."""
        workspace = self.engine.workspace
        while True:
            found = int(
                walks.completes(self._snapshot.S, configuration, workspace.W, workspace.H, workspace.Q, workspace.D)
            )
            if found >= 0:
                return bool(found)
            workspace.grow()

    def forced(self, configuration: Configuration) -> bytes:
        """The bytes that must come next."""
        workspace = self.engine.workspace
        text = np.zeros(_FORCED_BYTES, dtype=np.uint8)
        while True:
            tables = self._snapshot
            code = walks.forced(
                tables.S,
                tables.T,
                tables.X,
                configuration,
                workspace.W,
                workspace.H,
                workspace.Q,
                workspace.D,
                text,
                workspace.out,
            )
            if code == OK:
                return text[: workspace.out[1]].tobytes()
            self._go_on(code, workspace)

    def mask(self, configuration: Configuration) -> NDArray[np.int32]:
        """The tokens that may follow, end tokens among them, int32 [num_mask_words]. Not to be changed."""
        heads = self._heads(configuration)
        for level in self._levels.get(heads, ()):
            key = (level, heads + self._frames(configuration, level))
            found = self._masks.get(key)
            if found is None:
                found = self._older.get(key)
                if found is not None:
                    self._masks[key] = found
            if found is not None:
                return found
        mask, level = self._walk(configuration)
        levels = self._levels.get(heads, ())
        if level not in levels:
            self._levels[heads] = tuple(sorted((*levels, level)))
        if len(self._masks) >= self._max_masks // 2:
            self._masks, self._older = {}, self._masks
            if len(self._levels) > 4 * self._max_masks:
                self._levels = {heads: self._levels[heads]}
        self._masks[level, heads + self._frames(configuration, level)] = mask
        return mask

    def _heads(self, configuration: Configuration) -> bytes:
        """The heads as a key. A count far from its bounds looks like any other such count."""
        end = configuration[BOUNDS]
        if configuration[NUM_HEADS] == 1:
            state = configuration[HEADS]
            record = self._snapshot.S[state]
            if record[SLICE] == COUNTED_SLICE:
                far, count = self.engine.max_depth + 1, int(configuration[HEADS + 1])
                lack = min(max(int(record[PARAM]) - count, 0), far)
                room = min(int(record[WIDTH]) - count, far)
                return np.array([state, lack, room], dtype=np.int64).tobytes()
        return configuration[NUM_HEADS:end].tobytes()

    def _frames(self, configuration: Configuration, level: int) -> bytes:
        """The frames down to a level."""
        if level == 0:
            return b""
        end = configuration[LENGTH if level >= min(MAX_LEVELS, int(configuration[NUM_LEVELS])) else BOUNDS + level]
        return configuration[configuration[BOUNDS] : end].tobytes()

    def _walk(self, configuration: Configuration) -> tuple[NDArray[np.int32], int]:
        """A new mask, and the levels of frames that it depends on."""
        engine = self.engine
        workspace = engine.workspace
        base = self._slice(configuration)
        if base is None:
            mask, trie = np.zeros(engine.num_words, dtype=np.uint32), engine.trie.nodes
        else:
            mask, trie = base.mask.copy(), base.others
        at = 0
        while True:
            tables = self._snapshot
            code = walks.walk(
                tables.S,
                tables.T,
                tables.X,
                configuration,
                workspace.W,
                workspace.H,
                workspace.Q,
                workspace.D,
                workspace.P,
                trie,
                at,
                mask,
                workspace.out,
            )
            if code == OK:
                break
            at = 0 if code == NO_SPACE else int(workspace.out[1])
            self._go_on(code, workspace)
        if workspace.out[5]:
            mask |= engine.end_mask
        self.num_looks += int(workspace.out[6])
        self.num_walks += 1
        return mask.view(np.int32), int(workspace.out[1])

    def _slice(self, configuration: Configuration) -> Slice | None:
        """A slice that applies to one of the heads."""
        S = self._snapshot.S
        for i in range(min(int(configuration[NUM_HEADS]), 8)):
            state, count, _ = configuration[HEADS + 3 * i : HEADS + 3 * i + 3]
            slice_id = int(S[state, SLICE])
            if slice_id == COUNTED_SLICE:
                room = int(S[state, WIDTH]) - int(count)
                if configuration[NUM_HEADS] > 1 and room < self.engine.max_depth:
                    continue
                return Slice(self.engine.counted(room), self.engine.slices[slice_id].others)
            if slice_id == EMBEDDED_SLICE:
                with self.tables.lock:
                    if not self.tables.embedded[int(state)](int(state)):
                        continue
            if slice_id:
                return self.engine.slices[slice_id]
        return None

    def _go_on(self, code: int, workspace: Workspace) -> bool:
        """Do what compiled code asked for; False where it has refused."""
        if code == NEED_ROW:
            self._snapshot = self.tables.complete(int(workspace.out[0]))
        elif code == NO_SPACE:
            workspace.grow()
        else:
            return False
        return True
