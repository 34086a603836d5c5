"""Protocol of the builder that lowers shapes.

`json_values.ShapeTables` implements it. Containers hold values and values may be containers, so the modules of containers depend on this
protocol, and the module of values depends on those modules.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.lowering.json_shapes.joints import Joints
from rtlang_grammars.machine.automaton.json_base_states import JsonBaseStates
from rtlang_grammars.machine.automaton.tables import Tables
from rtlang_grammars.schema.shape_graph.shapes import Alternative
from rtlang_grammars.spec.constraint import JsonStyle
from rtlang_grammars.spec.limits import Budget

Calls = list[tuple[bytes, int]]
"""First bytes and start state of each frame that may begin in one place."""


class ShapeBuilder(Protocol):
    """Builds the tables of a graph of shapes.

    Attributes:
        tables: the tables under construction.
        base: the JSON states with which they begin.
        budget: the limits of the compile.
        style: how values are written.
        joints: the punctuation of the containers that it builds.
        inner: the builder of what they contain.
    """

    tables: Tables
    base: JsonBaseStates
    budget: Budget
    style: JsonStyle
    joints: Joints

    @property
    def inner(self) -> ShapeBuilder:
        """See the class."""

    def rows_of(self, ref: int) -> tuple[int, int]:
        """Two rows of a place where a value of shape `ref` begins: with blanks before it, and without. Their calls return to PARAM."""

    def calls_of(self, ref: int) -> Calls:
        """First bytes and start states of the frames of shape `ref`."""

    def calls_of_alternative(self, alternative: Alternative) -> Calls:
        """First bytes and start states of the frames of one alternative."""

    def starts_of(self, ref: int) -> tuple[int, ...]:
        """Start states of the frames of shape `ref`."""

    def add_trie_of(self, texts: list[bytes], mode: int, plan: NDArray[np.int64]) -> int:
        """Add a trie of texts (see `literal_trie.build_trie`) and fill in the rest of `plan`; returns its start state."""
