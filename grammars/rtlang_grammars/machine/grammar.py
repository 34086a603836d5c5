"""A compiled grammar: its tables, and the steps through them for whole tokens and texts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.machine.automaton.layout import NEED_ROW, NO_SPACE, OK
from rtlang_grammars.machine.automaton.tables import Tables
from rtlang_grammars.machine.masks import Mask, Masks
from rtlang_grammars.machine.native import walks
from rtlang_grammars.machine.token_index.vocabulary_index import VocabularyIndex, Workspace, start_configuration

Configuration = NDArray[np.int64]

_FORCED_BYTES = 4096


class MachineGrammar:
    """Tables bound to a vocabulary. Safe to use from several threads.

    Attributes:
        start: the configuration at the start of the text.
        masks: those that were made.
    """

    def __init__(self, index: VocabularyIndex, tables: Tables, start: int, max_mask_bytes: int = 32 << 20) -> None:
        self.index, self.tables = index, tables
        if tables.snapshot is None:
            tables.publish()
        self.start = start_configuration(start)
        self.masks = Masks(index, tables, max_mask_bytes)

    @property
    def size_bytes(self) -> int:
        """Memory held by tables and masks."""
        return self.tables.num_bytes + self.masks.num_bytes + (4 << 10)

    def advance(
        self, configuration: Configuration, data: NDArray[np.uint8], start: int, end: int
    ) -> Configuration | None:
        """The configuration behind data[start:end]; None where it cannot follow."""
        workspace = self.index.workspace
        while True:
            tables = self.tables.published
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
            if not self.go_on(code, workspace):
                return None

    def complete_row(self, state: int) -> None:
        """Have a row made that was left open."""
        self.tables.complete(state)

    def is_complete(self, configuration: Configuration) -> bool:
        """Whether the text may end here."""
        workspace = self.index.workspace
        while True:
            found = int(
                walks.completes(
                    self.tables.published.S, configuration, workspace.W, workspace.H, workspace.Q, workspace.D
                )
            )
            if found >= 0:
                return bool(found)
            workspace.grow()

    def forced(self, configuration: Configuration) -> bytes:
        """The bytes that must come next, at most _FORCED_BYTES."""
        workspace = self.index.workspace
        text = np.empty(_FORCED_BYTES, dtype=np.uint8)
        num_bytes = 0
        while True:
            tables, workspace.out[1] = self.tables.published, 0
            code = walks.forced(
                tables.S,
                tables.T,
                tables.X,
                configuration,
                workspace.W,
                workspace.H,
                workspace.Q,
                workspace.D,
                text[num_bytes:],
                workspace.out,
            )
            begin = num_bytes
            num_bytes += int(workspace.out[1])
            if code == OK:
                return text[:num_bytes].tobytes()
            self.go_on(code, workspace)
            if num_bytes > begin:  # the next walk begins here: a long text of rows not made yet takes as many walks
                reached = self.advance(configuration, text, begin, num_bytes)
                assert reached is not None, "what has to come may come"
                configuration = reached

    def mask(self, configuration: Configuration) -> Mask:
        """The tokens that may follow, end tokens among them."""
        return self.masks.mask(configuration)

    def go_on(self, code: int, workspace: Workspace) -> bool:
        """Do what compiled code asked for; False where it has refused."""
        if code == NEED_ROW:
            self.tables.complete(int(workspace.out[0]))
        elif code == NO_SPACE:
            workspace.grow()
        else:
            return False
        return True
