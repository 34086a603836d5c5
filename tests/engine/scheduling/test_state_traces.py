"""Prompt tokens that a model with states computes, relative to one without: the table of docs/design/scheduler.md."""

from __future__ import annotations

import pytest

from tests.support.engine.state_traces import TRACES, replay

MOST = {"tree, branches known": 1.05, "chat of 43 turns": 1.02, "questions at once": 1.07, "questions in turn": 1.9}
QUICK = "questions at once"


@pytest.mark.parametrize(
    "name", [QUICK, *(pytest.param(name, marks=pytest.mark.long) for name in MOST if name != QUICK)]
)
def test_prefixes_are_shared_nearly_as_without_states(name: str) -> None:
    make, num_states = TRACES[name]
    dense, hybrid = replay(make(), 0), replay(make(), num_states)
    assert dense.num_computed <= hybrid.num_computed <= MOST[name] * dense.num_computed
    assert hybrid.num_computed * 2 < hybrid.num_prompt_tokens
