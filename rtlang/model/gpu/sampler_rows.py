"""The sampling settings of rows by request: derived once, when a request is sampled first, and gathered in the steps after that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rtlang.contract.params import SamplingParams
from rtlang.contract.step import LogitFilters, Row
from rtlang.model.sampler import changes_logits, sampled_from
from rtlang_kernels.contract.sampler_settings import RowSettings, checked_settings

_NUM_SLOTS = 1024
"""Requests that are remembered at least; all are forgotten when there are more."""


class _Known(NamedTuple):
    """A request whose settings are in the table, and what they were derived from."""

    slot: int
    params: SamplingParams
    seed: int
    choice: int
    filters: LogitFilters | None
    changes_logits: bool

    def is_of(self, row: Row) -> bool:
        """Whether the settings are those of a row."""
        return (
            self.params is row.params
            and self.seed == row.seed
            and self.choice == row.choice
            and self.filters is row.filters
        )


@dataclass(frozen=True, slots=True)
class SettledRows:
    """The settings of the rows of a step.

    Attributes:
        settings: one entry per row.
        changed: rows that are sampled from modified logits.
        reported: rows with log-probabilities, and the number of top entries of each.
    """

    settings: RowSettings
    changed: list[int]
    reported: tuple[tuple[int, int], ...]


class SamplerRows:
    """Remembers the sampling settings of requests. Owned by one thread."""

    def __init__(self) -> None:
        self._known: dict[int, _Known] = {}
        self._table: RowSettings | None = None

    def settle(self, rows: Sequence[Row]) -> SettledRows:
        """The settings of the rows of a step; derived anew only for rows that are new, or whose grammar sets a temperature."""
        if len(self._known) + len(rows) > max(_NUM_SLOTS, 2 * len(rows)):
            self._known = {}
        known, slots = self._known, []
        changed: list[int] = []
        reported: list[tuple[int, int]] = []
        warmer: list[int] = []  # rows with a temperature of their grammar
        new: dict[int, Row] = {}
        for index, row in enumerate(rows):
            found = known.get(row.request_id)
            if found is None or not found.is_of(row):
                slot = len(known) if found is None else found.slot
                plain = row._replace(temperatures=(), banned_token_ids=())
                found = _Known(slot, row.params, row.seed, row.choice, row.filters, changes_logits(plain))
                known[row.request_id], new[slot] = found, plain
            slots.append(found.slot)
            if found.changes_logits or row.banned_token_ids:
                changed.append(index)
            if found.params.logprobs is not None:
                reported.append((index, found.params.logprobs))
            if row.temperatures:
                warmer.append(index)
        if new:
            self._add(new)
        assert self._table is not None
        where = np.array(slots, dtype=np.intp)
        settings = RowSettings(*(array[where] for array in self._table.arrays))
        if warmer:
            own = _settings_of([rows[index] for index in warmer])
            for array, values in zip(settings.arrays, own.arrays, strict=True):
                array[warmer] = values
        return SettledRows(settings, changed, tuple(reported))

    def _add(self, rows: dict[int, Row]) -> None:
        """Put settings into the table, by slot."""
        found, needed = _settings_of(list(rows.values())), len(self._known)
        table = self._table
        if table is None or len(table.kinds) < needed:
            size = max(_NUM_SLOTS, 2 * needed)
            grown = RowSettings(*(np.zeros(size, dtype=array.dtype) for array in found.arrays))
            if table is not None:
                for array, before in zip(grown.arrays, table.arrays, strict=True):
                    array[: len(before)] = before
            table = self._table = grown
        slots = list(rows)
        for array, values in zip(table.arrays, found.arrays, strict=True):
            array[slots] = values


def _settings_of(rows: Sequence[Row]) -> RowSettings:
    from rtlang_kernels.triton.sampling.sampler import row_settings

    plain = [sampled_from(row) for row in rows]
    params = [row.params for row in plain]
    settings = checked_settings(
        len(rows),
        1,  # the masks, which are not here
        temperature=np.array([row.temperature for row in plain], dtype=np.float32),
        top_k=np.array([item.top_k for item in params], dtype=np.int64),
        top_p=np.array([item.top_p for item in params], dtype=np.float32),
        min_p=np.array([item.min_p for item in params], dtype=np.float32),
        seeds=np.array([row.seed for row in rows], dtype=np.uint64),
        choices=np.array([row.choice for row in rows], dtype=np.int32),
        steps=np.zeros(len(rows), dtype=np.int64),
        bitmask=None,
        mask_rows=None,
    )
    return row_settings(settings)
