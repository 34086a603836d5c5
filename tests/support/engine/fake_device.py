"""A runner without a model that pipelines steps: rows may read a token the host has not seen, and results come one step late."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from rtlang.contract.step import Row, Step, StepOutput
from tests.support.engine.fake_runner import FakeFlight, FakeRunner


@dataclass
class FakeDeviceRunner(FakeRunner):
    """See the module. `fail_at` as before; `fail_collect_at` holds numbers of steps whose results are lost."""

    is_pipelined: bool = True
    fail_collect_at: set[int] = field(default_factory=set)
    num_taken: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._sampled: dict[
            int, int
        ] = {}  # request id -> the token of the step before, unless it may be one of several
        self._uncollected: list[FakeFlight] = []

    def launch(self, step: Step) -> FakeFlight:
        assert len(self._uncollected) <= 1, "at most one step is in flight when the next is launched"
        assert all(flight.result is not None for flight in self._uncollected)
        drafting = {row.request_id for flight in self._uncollected for row in flight.step.rows if row.num_draft_tokens}
        rows = []
        for row in step.rows:
            assert row.request_id not in drafting, "only the results of drafts say where the row goes on"
            if row.input_is_pending:
                assert not row.num_draft_tokens
                self.num_taken += 1
                row = row._replace(token_ids=[self._sampled[row.request_id]])
            rows.append(row._replace(page_ids=tuple(row.page_ids)))
        flight = super().launch(replace(step, rows=tuple(rows)))
        self._uncollected.append(flight)
        return flight

    def sample(
        self, flight: FakeFlight, rows: Sequence[Row], bitmask: NDArray[np.int32] | None, walks: object = None
    ) -> None:
        merged = tuple(
            known._replace(mask_row=row.mask_row, output_token_ids=row.output_token_ids)
            for known, row in zip(flight.step.rows, rows, strict=True)
        )
        super().sample(flight, merged, bitmask)
        assert flight.result is not None
        self._sampled = {
            row.request_id: 0 if out.token_id is None else out.token_id
            for row, out in zip(merged, flight.result.rows, strict=True)
            if row.needs_sample and not row.num_draft_tokens
        }

    def collect(self, flight: FakeFlight) -> StepOutput:
        self._uncollected.remove(flight)
        assert flight.result is not None
        if flight.step.step_id in self.fail_collect_at:
            self._uncollected.clear()  # what was launched after it is lost as well
            raise RuntimeError("what this step gave was told to be lost")
        return super().collect(flight)
