"""Agents carry out the recorded task: no protocol error, and the files and commits end as recorded."""

from __future__ import annotations

import pytest

from tests.clients.agents.harness import Agent, agents, missing, run

pytestmark = [pytest.mark.clients, pytest.mark.skipif(missing() is not None, reason=f"{missing()} is not installed")]


@pytest.mark.parametrize("agent", agents(), ids=lambda agent: agent.name)
def test_an_agent_carries_out_the_recorded_task(agent: Agent) -> None:
    outcome = run(agent)
    assert outcome.problems == ()
    assert outcome.differences == ()
    assert outcome.exit_status == 0
