"""A host runner that fails where requests ask for it with `x_fault`. Only for tests of what must survive such faults."""

from __future__ import annotations

import os

import torch

from rtlang.contract.params import FAULT
from rtlang.contract.step import Row, Step
from rtlang.model.host_runner import HostFlight, HostRunner

EXIT_CODE = 99


class FaultyRunner(HostRunner):
    """The `HostRunner` of a runtime with `fault_injection`."""

    def launch(self, step: Step) -> HostFlight:
        """See `Runner`; raises for rows whose fault is due."""
        for row in step.rows:
            match _fault(row):
                case "raise":
                    raise ValueError("this step was asked to fail")
                case "memory" if len(step.rows) > 1:
                    raise MemoryError("this step was asked to have too little memory")
                case "exit":
                    os._exit(EXIT_CODE)
        flight = super().launch(step)
        for index, at in enumerate(flight.batch.sampling_rows):
            if _fault(step.rows[at]) == "nan":
                assert flight.logits is not None
                with torch.inference_mode():
                    flight.logits[index] = float("nan")
        return flight


def _fault(row: Row) -> str | None:
    """The fault of a row, if it is due."""
    if row.params.x_fault is None or not row.needs_sample:
        return None
    match = FAULT.fullmatch(row.params.x_fault)
    assert match is not None
    return match[1] if row.num_output_tokens >= int(match[2] or 0) else None
