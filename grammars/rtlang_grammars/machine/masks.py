"""The masks of one grammar: made by walks over the token trie, and kept.

A mask is kept under what its walk read: the heads and as many levels of frames as it looked at, a prefix of the configuration. It is looked
up under every such length that was seen with these heads. Inside a string whose code points are counted nearly all tokens are short beside
what is left: their mask is kept once for all such places, and only the few long tokens are walked at each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.machine import walks
from rtlang_grammars.machine.engine import REACH, Engine, Workspace
from rtlang_grammars.machine.layout import (
    BOUNDS,
    HEADS,
    LENGTH,
    MAX_LEVELS,
    NO_SPACE,
    NUM_HEADS,
    NUM_LEVELS,
    OK,
    PARAM,
    SLICE,
    WIDTH,
)
from rtlang_grammars.machine.prelude import COUNTED_SLICE, EMBEDDED_SLICE, TWIN_SLICE
from rtlang_grammars.machine.tables import Snapshot, Tables

Configuration = NDArray[np.int64]
Mask = NDArray[np.uint32]

_MAX_SLICED_HEADS = 8


class Steps(Protocol):
    """What is needed of a grammar."""

    tables: Tables

    @property
    def snapshot(self) -> Snapshot:
        """The tables as they are."""

    def go_on(self, code: int, workspace: Workspace) -> bool:
        """Do what compiled code asked for."""


class Masks:
    """Makes and keeps the masks of a grammar. Safe to use from several threads: two may make the same mask, and both are right.

    Attributes:
        num_looks: trie records looked at, so far.
    """

    def __init__(self, engine: Engine, steps: Steps, max_bytes: int) -> None:
        self._engine, self._steps = engine, steps
        self._most = max(16, max_bytes // (4 * engine.num_words))
        self._kept: dict[tuple[int, bytes], Mask] = {}
        self._older: dict[tuple[int, bytes], Mask] = {}
        self._levels: dict[bytes, tuple[int, ...]] = {}
        self.num_looks = 0

    @property
    def num_bytes(self) -> int:
        """Memory held."""
        return (len(self._kept) + len(self._older)) * 4 * self._engine.num_words

    def mask(self, configuration: Configuration) -> Mask:
        """The tokens that may follow, end tokens among them, uint32 [num_mask_words]. Not to be changed."""
        return self._found(self._heads(configuration), configuration, lambda: self._make(configuration))[0]

    def _found(
        self, heads: bytes, configuration: Configuration, make: Callable[[], tuple[Mask, int]]
    ) -> tuple[Mask, int]:
        """A mask, kept or made, and how many levels of frames it depends on."""
        for level in self._levels.get(heads, ()):
            key = (level, heads + _frames(configuration, level))
            found = self._kept.get(key)
            if found is None:
                found = self._older.get(key)
                if found is not None:
                    self._kept[key] = found
            if found is not None:
                return found, level
        mask, level = make()
        levels = self._levels.get(heads, ())
        if level not in levels:
            self._levels[heads] = tuple(sorted((*levels, level)))
        if len(self._kept) >= self._most // 2:
            self._kept, self._older = {}, self._kept
            if len(self._levels) > 4 * self._most:
                self._levels = {heads: self._levels[heads]}
        self._kept[level, heads + _frames(configuration, level)] = mask
        return mask, level

    def _heads(self, configuration: Configuration) -> bytes:
        """The heads as a key. A count far from its bounds looks like any other such count."""
        if configuration[NUM_HEADS] == 1:
            state, count, _ = configuration[HEADS : HEADS + 3].tolist()
            record = self._steps.snapshot.S[state]
            slice_id = record[SLICE]
            if slice_id in (COUNTED_SLICE, TWIN_SLICE):
                far = self._engine.max_depth + 1
                least = int(record[PARAM]) if slice_id == COUNTED_SLICE else 1
                lack, room = min(max(least - count, 0), far), min(int(record[WIDTH]) - count, far)
                return np.array([state, lack, room], dtype=np.int64).tobytes()
        return configuration[NUM_HEADS : configuration[BOUNDS]].tobytes()

    def _make(self, configuration: Configuration) -> tuple[Mask, int]:
        engine = self._engine
        if configuration[NUM_HEADS] == 1:
            state, count, _ = configuration[HEADS : HEADS + 3].tolist()
            record = self._steps.snapshot.S[state]
            slice_id, room = record[SLICE], int(record[WIDTH]) - count
            if slice_id == COUNTED_SLICE:
                parts = engine.counted_others
                if count >= record[PARAM] and REACH <= room < engine.max_depth:
                    return self._bounded(configuration, configuration, parts, engine.counted(room))
                mask = engine.counted(room).copy()
                return mask, self._walk(configuration, engine.slices[COUNTED_SLICE].others, mask)
            if slice_id == TWIN_SLICE and count > 0 and room >= REACH:
                twin = configuration.copy()
                twin[HEADS], twin[HEADS + 1] = record[PARAM], 0
                if room >= engine.max_depth:
                    return self._found(self._heads(twin), twin, lambda: self._make(twin))
                return self._bounded(configuration, twin, engine.parts, None)
        mask, trie = self._slice(configuration)
        return mask, self._walk(configuration, trie, mask)

    def _bounded(
        self,
        configuration: Configuration,
        simple: Configuration,
        parts: tuple[NDArray[np.int64], NDArray[np.int64]],
        more: Mask | None,
    ) -> tuple[Mask, int]:
        """A mask where every short token fits: that of the short ones, which `simple` gives as well, and of the long ones."""

        def make() -> tuple[Mask, int]:
            mask = np.zeros(self._engine.num_words, dtype=np.uint32)
            return mask, self._walk(simple, parts[0], mask)

        short, level = self._found(b"short" + simple[HEADS : HEADS + 1].tobytes(), simple, make)
        mask = short.copy() if more is None else short | more
        return mask, max(level, self._walk(configuration, parts[1], mask))

    def _slice(self, configuration: Configuration) -> tuple[Mask, NDArray[np.int64]]:
        """What certainly may follow one of the heads, and the trie of all other tokens."""
        engine, S = self._engine, self._steps.snapshot.S
        for i in range(min(int(configuration[NUM_HEADS]), _MAX_SLICED_HEADS)):
            state, count, _ = configuration[HEADS + 3 * i : HEADS + 3 * i + 3].tolist()
            slice_id = int(S[state, SLICE])
            if slice_id in (0, TWIN_SLICE):
                continue
            if slice_id == COUNTED_SLICE and S[state, WIDTH] - count < engine.max_depth:
                continue
            found = engine.slices[slice_id]
            if slice_id == EMBEDDED_SLICE:
                with self._steps.tables.lock:
                    length = self._steps.tables.embedded[state](state)
                if length is not None:
                    short = engine.short(length)
                    if short is None:
                        continue
                    found = short
            return found.mask.copy(), found.others
        return np.zeros(engine.num_words, dtype=np.uint32), engine.trie.nodes

    def _walk(self, configuration: Configuration, trie: NDArray[np.int64], mask: Mask) -> int:
        """Add the tokens of a trie that may follow, and end tokens; the levels of frames that were read."""
        workspace = self._engine.workspace
        at = 0
        while True:
            tables = self._steps.snapshot
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
                workspace.R,
                trie,
                at,
                mask,
                workspace.out,
            )
            if code == OK:
                break
            at = 0 if code == NO_SPACE else int(workspace.out[1])
            self._steps.go_on(code, workspace)
        if workspace.out[5]:
            mask |= self._engine.end_mask
        self.num_looks += int(workspace.out[6])
        return int(workspace.out[1])


def _frames(configuration: Configuration, level: int) -> bytes:
    """The frames down to a level."""
    if level == 0:
        return b""
    end = configuration[LENGTH if level >= min(MAX_LEVELS, int(configuration[NUM_LEVELS])) else BOUNDS + level]
    return configuration[configuration[BOUNDS] : end].tobytes()
