"""An agent with six effects that is killed at the boundaries of its nodes: no effect twice, none lost, the same end."""

from __future__ import annotations

import multiprocessing
import os

from tests.support.long_tests import sized
from tests.support.programs.kill_trial import trial

NUM_KILLS = int(os.environ.get("RTLANG_EFFECT_KILLS", str(sized(40, usual=3))))
PREPARED = multiprocessing.get_context("forkserver")
PREPARED.set_forkserver_preload(["tests.support.programs.kill_trial_warm"])


def test_killed_at_any_boundary_no_effect_takes_place_twice_and_none_is_lost() -> None:
    counts = trial(PREPARED, NUM_KILLS, int(os.environ.get("RTLANG_EFFECT_SEED", "0")))
    assert counts.kills >= NUM_KILLS
    assert counts.is_right, str(counts)
    assert len(counts.points) >= min(NUM_KILLS, 40) * 0.6
