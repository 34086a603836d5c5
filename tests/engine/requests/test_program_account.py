"""The service of a program, on a machine whose cost is known."""

from __future__ import annotations

import pytest

from rtlang.engine.requests.program_account import ProgramAccount
from tests.support.engine.policy_simulation import Call, SimulatedProgram, Simulation


def test_all_calls_of_a_program_count_as_its_service() -> None:
    calls = [Call(600, 5), Call(200, 5)]
    simulation = Simulation([SimulatedProgram(0.0, "first", [Call(70, 40)]), SimulatedProgram(10.0, "agent", calls)])
    simulation.run()
    seconds = 0.0016 * (600 + 5 + 200 + 5)
    assert simulation.arrived[1].service_s == pytest.approx(seconds, rel=0.3)
    assert simulation.arrived[0].service_s < simulation.arrived[1].service_s / 2


def test_a_new_program_has_had_nothing() -> None:
    program = ProgramAccount(3.0, 9.0)
    assert (program.arrival_time, program.deadline, program.service_s) == (3.0, 9.0, 0.0)
